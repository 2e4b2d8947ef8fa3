import { spawn } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import {
  closeDangling,
  createDispatcher,
  type DispatcherOptions,
  defineTool,
  type Middleware,
  PermissionCheck,
  type StandardSchema,
  type Tool,
  type ToolCallRequest,
  type ToolDispatchResult,
} from 'toolonion';
import { allowAll, type PermissionOptions, standard } from 'toolonion/middleware';
import { firstOf, jsonLines } from '../support/command.ts';
import { ManualClock, turns } from '../support/manual-clock.ts';
import { root } from '../support/pages.ts';
import { finished } from '../support/process.ts';

const say = defineTool({
  name: 'say',
  description: 'Says something.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  execute: ({ text = 'nothing' }) => text,
});
const shout = defineTool({
  name: 'shout',
  description: 'Says it louder, later.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  execute: async ({ text = 'nothing' }) => text.toUpperCase(),
});

/** Two tools behind the standard onion; ids are made in order. */
function setUp(tools: readonly Tool[] = [say, shout], more: DispatcherOptions = {}) {
  let made = 0;
  const middleware = standard({ permission: { check: allowAll }, logging: false });
  return createDispatcher({ tools, middleware, generateId: () => `made_${++made}`, ...more });
}

function idsOf(results: readonly ToolDispatchResult[]): readonly string[] {
  return results.map(({ toolCallId }) => toolCallId);
}

/** Which call's id was replaced by which, as the notes tell. */
function replacedIn(results: readonly ToolDispatchResult[]): readonly string[] {
  return results.flatMap(({ notes }) =>
    notes.flatMap(({ type, message }) => (type === 'id_replaced' ? [message] : [])),
  );
}

describe('D01', () => {
  test('D01: two different calls with one id both run, in order, and the second says what became of its id', async () => {
    const calls: readonly ToolCallRequest[] = [
      { id: 'c1', name: 'say', arguments: { text: 'a' } },
      { id: 'c1', name: 'shout', arguments: { text: 'b' } },
    ];
    const results = await setUp().dispatchAll(calls);
    expect(results.map(({ resolvedToolName, content }) => [resolvedToolName, content])).toEqual([
      ['say', 'a'],
      ['shout', 'B'],
    ]);
    expect(idsOf(results)).toEqual(['c1', 'made_1']);
    expect(results.map(({ requested }) => requested.id)).toEqual(['c1', 'c1']);
    expect(replacedIn(results)).toEqual(['The id "c1" was taken already, so this call is "made_1".']);
  });

  const others: readonly (readonly [what: string, call: Partial<ToolCallRequest>, code: string])[] = [
    ['of an unknown tool', { name: 'gone' }, 'not_found'],
    ['with unreadable arguments', { name: 'say', arguments: '{"text":' }, 'truncated_arguments'],
    ['with wrong arguments', { name: 'say', arguments: { text: 5 } }, 'invalid_arguments'],
    ['without a name', { name: '' }, 'invalid_call'],
    ['that was cut off', { name: 'say', truncated: true }, 'truncated_arguments'],
  ];

  test.each(others)(
    'D01: so does a call %s that repeats an id, and nobody else’s result is lost',
    async (_, call, code) => {
      const first = { id: 'c1', name: 'say', arguments: { text: 'a' } };
      const repeated = { id: 'c1', ...call } as ToolCallRequest;
      const results = await setUp().dispatchAll([first, repeated, { ...first, id: 'c2' }]);
      expect(results.map(({ error, content }) => error?.code ?? content)).toEqual(['a', code, 'a']);
      expect(idsOf(results)).toEqual(['c1', 'made_1', 'c2']);
      expect(replacedIn(results)).toHaveLength(1);
    },
  );

  test('D01: a hundred calls with one id, in turn or at once, have a hundred results and ids', async () => {
    const calls = Array.from({ length: 100 }, (_, index) => ({
      id: 'c1',
      name: 'shout',
      arguments: { text: `number ${index}` },
    }));
    const dispatcher = setUp();
    for (const results of [
      await dispatcher.dispatchAll(calls),
      await Promise.all(calls.map((call) => dispatcher.dispatch(call))),
    ]) {
      expect(results.map(({ content }) => content)).toEqual(calls.map((_, index) => `NUMBER ${index}`));
      expect(new Set(idsOf(results)).size).toBe(100);
      expect(replacedIn(results)).toHaveLength(99);
    }
    expect(idsOf(await dispatcher.dispatchAll([{ id: 'c1', name: 'say' }]))).toEqual(['c1']);
  });

  test('D01: ids of calls at once are free again as they end, in whatever order', async () => {
    const ends = new Map<string, () => void>();
    const waits = defineTool({
      name: 'waits',
      description: 'Waits to be told.',
      execute: (_, call) => new Promise<void>((resolve) => ends.set(call.id, resolve)),
    });
    const dispatcher = setUp([waits]);
    const start = (id: string) => dispatcher.dispatch({ id, name: 'waits' });
    const [a, b, c] = [start('a'), start('b'), start('c')];
    const end = async (id: string, running: Promise<ToolDispatchResult>) => {
      ends.get(id)?.();
      expect((await running).toolCallId).toBe(id);
    };
    await end('a', a);
    const again = start('a');
    const twice = start('b');
    await end('b', b);
    await end('a', again);
    await end('made_1', twice);
    await end('c', c);
    const [third, fourth] = [start('c'), start('b')];
    await end('b', fourth);
    await end('c', third);
  });
});

describe('D02', () => {
  const missing: readonly (readonly [what: string, id: unknown])[] = [
    ['empty', ''],
    ['undefined', undefined],
    ['null', null],
    ['zero', 0],
    ['a number', 7],
    ['false', false],
    ['an object', { id: 'c1' }],
    ['text in a box', new String('c1')],
    ['a symbol', Symbol('c1')],
  ];

  test.each(missing)('D02: an id that is %s is made, unique in its batch, and on the result', async (_, id) => {
    const call = { id, name: 'say' } as ToolCallRequest;
    const results = await setUp().dispatchAll([call, { id: 'c1', name: 'say' }, call]);
    expect(idsOf(results)).toEqual(['made_1', 'c1', 'made_2']);
    expect(replacedIn(results)).toEqual([]);
    expect(results[0]?.requested.id).toBe(id === '' ? '' : undefined);
    const [first, second] = await createDispatcher({ tools: [say] }).dispatchAll([call, call]);
    expect(first?.toolCallId).toMatch(/^[\w-]{21}$/);
    expect(second?.toolCallId).not.toBe(first?.toolCallId);
  });

  test('D02: a call without the key has one as well, and the tool sees the one that is on the result', async () => {
    const seen: string[] = [];
    const sees = defineTool({
      name: 'sees',
      description: 'Sees its id.',
      execute: (_, call) => {
        seen.push(call.id);
      },
    });
    const results = await setUp([sees]).dispatchAll([{ name: 'sees' }, { id: '', name: 'sees' }]);
    expect(seen).toEqual(['made_1', 'made_2']);
    expect(idsOf(results)).toEqual(seen);
    for (const { toolCallId, requested } of results) expect(requested.id || toolCallId).toBe(toolCallId);
  });

  test('D02: even what is no call at all has a result with an id', async () => {
    const results = await setUp().dispatchAll([null, 7, {}, { id: '' }] as unknown as ToolCallRequest[]);
    expect(results.map(({ error }) => error?.code)).toEqual(results.map(() => 'invalid_call'));
    expect(idsOf(results)).toEqual(['made_1', 'made_2', 'made_3', 'made_4']);
  });

  test.each(['constructor', '__proto__', ' ', '\n', '0', 'x'.repeat(10_000)])(
    'D02: the id %j is kept as it is',
    async (id) => {
      const results = await setUp().dispatchAll([
        { id, name: 'say' },
        { id, name: 'say' },
      ]);
      expect(idsOf(results)).toEqual([id, 'made_1']);
      expect(results.map(({ requested }) => requested.id)).toEqual([id, id]);
    },
  );
});

describe('D04', () => {
  const delays = [30, 10, 20, 10] as const;

  test.each<[string, (index: number) => string | undefined]>([
    ['without ids', () => undefined],
    ['with one id', () => 'c1'],
    ['with ids of their own', (index) => `c${index}`],
  ])(
    'D04: calls of one tool, %s, which end in another order, have their own results, in the order of the calls',
    async (_, idOf) => {
      const clock = new ManualClock();
      const slow = defineTool({
        name: 'slow',
        description: 'Takes as long as it is told.',
        inputSchema: { type: 'object', properties: { ms: { type: 'number' } }, required: ['ms'] },
        execute: ({ ms }, { id }) => new Promise((resolve) => clock.setTimeout(() => resolve(`${id} after ${ms}`), ms)),
      });
      const dispatcher = setUp([slow], { clock });
      const ended: number[] = [];
      const calls = delays.map((ms, index) => {
        const id = idOf(index);
        return { name: 'slow', arguments: { ms }, ...(id !== undefined && { id }) };
      });
      const running = calls.map(async (call, index) => {
        const result = await dispatcher.dispatch(call);
        ended.push(index);
        return result;
      });
      await clock.advance(30);
      const results = await Promise.all(running);
      expect(ended).toEqual([1, 3, 2, 0]);
      expect(new Set(idsOf(results)).size).toBe(delays.length);
      for (const [index, { toolCallId, resolvedToolName, requested, content }] of results.entries()) {
        expect(resolvedToolName).toBe('slow');
        expect(requested).toEqual({ ...calls[index], input: { ms: delays[index] }, arguments: undefined });
        expect(content).toBe(`${toolCallId} after ${delays[index]}`);
      }
      const inOrder = dispatcher.dispatchAll(calls);
      await clock.advance(70);
      expect((await inOrder).map(({ content, toolCallId }) => [content, toolCallId])).toEqual(
        (await inOrder).map(({ toolCallId }, index) => [`${toolCallId} after ${delays[index]}`, toolCallId]),
      );
    },
  );
});

describe('D05', () => {
  const never = (): Promise<never> => new Promise(() => {});
  const tool = (execute: () => unknown): Tool => defineTool({ name: 'works', description: 'Works.', execute });
  const schema = (validate: () => unknown): StandardSchema<unknown, unknown> => ({
    '~standard': { version: 1, vendor: 'test', validate: validate as never },
  });

  interface Case {
    readonly tool?: Tool;
    readonly permission?: PermissionOptions;
    readonly inside?: Middleware;
    readonly executed: string;
  }

  const places: readonly (readonly [where: string, what: Case])[] = [
    ['a tool never settles', { tool: tool(never), executed: 'unknown' }],
    ['a promise of another kind never settles', { tool: tool(() => ({ then: () => {} })), executed: 'unknown' }],
    [
      'a generator stops half-way',
      {
        tool: tool(async function* () {
          yield 'half';
          await never();
        }),
        executed: 'unknown',
      },
    ],
    [
      'a generator does not even end when it is told to',
      {
        tool: tool(() => ({
          [Symbol.asyncIterator]() {
            return this;
          },
          next: never,
          return: never,
        })),
        executed: 'unknown',
      },
    ],
    [
      'a schema never answers',
      {
        tool: defineTool({
          name: 'works',
          description: 'Works.',
          inputSchema: schema(never),
          jsonSchema: { type: 'object' },
          execute: () => 'ran',
        }),
        executed: 'no',
      },
    ],
    [
      'the schema of its answer never answers',
      {
        tool: defineTool({
          name: 'works',
          description: 'Works.',
          outputSchema: schema(never),
          outputJsonSchema: { type: 'object' },
          execute: () => ({ content: 'done', structured: { a: 1 } }),
        }),
        executed: 'yes',
      },
    ],
    ['a rule never answers', { permission: { check: never }, executed: 'no' }],
    [
      'a person never answers',
      { permission: { check: () => PermissionCheck.ask('?'), approver: never }, executed: 'no' },
    ],
    ['a layer never answers', { inside: never, executed: 'no' }],
  ];

  test.each(places)(
    'D05: where %s, an abort gives each call its one result, and leaves nothing behind',
    async (_, what) => {
      const clock = new ManualClock();
      const layers = standard({ permission: what.permission ?? { check: allowAll }, logging: false });
      const middleware = what.inside === undefined ? layers : [...layers, what.inside];
      const tools = [what.tool ?? tool(() => 'ran'), say];
      const dispatcher = setUp(tools, { clock, middleware });
      const caller = new AbortController();
      const calls = [{ id: 'c1', name: 'works' }, { id: 'c1', name: 'works' }, { name: 'say' }];
      let settled = 0;
      const batch = dispatcher.dispatchAll(calls, { signal: caller.signal });
      const beside = dispatcher.dispatch({ id: 'c9', name: 'works' }, { signal: caller.signal });
      for (const running of [batch, beside]) void running.then(() => settled++);
      await turns();
      expect(settled).toBe(0);
      caller.abort();
      const results = [...(await batch), await beside];
      expect(results.map(({ error }) => [error?.code, error?.executed])).toEqual([
        ['cancelled', what.executed],
        ['cancelled', 'no'],
        ['cancelled', 'no'],
        ['cancelled', what.executed],
      ]);
      expect(new Set(idsOf(results)).size).toBe(4);
      expect(results.map(({ requested }) => requested.id)).toEqual(['c1', 'c1', undefined, 'c9']);
      await turns();
      expect([settled, clock.pending]).toEqual([2, 0]);
      expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
      // The id is free again.
      expect((await dispatcher.dispatch({ id: 'c9', name: 'gone' })).toolCallId).toBe('c9');
    },
  );

  test('D05: an abort before the call, or by the tool itself, has one result as well', async () => {
    const caller = new AbortController();
    const leaves = tool(() => {
      caller.abort();
      return never();
    });
    const dispatcher = setUp([leaves]);
    const results = await dispatcher.dispatchAll(
      [
        { id: 'c1', name: 'works' },
        { id: 'c2', name: 'works' },
      ],
      { signal: caller.signal },
    );
    expect(results.map(({ toolCallId, error }) => [toolCallId, error?.code, error?.executed])).toEqual([
      ['c1', 'cancelled', 'unknown'],
      ['c2', 'cancelled', 'no'],
    ]);
  });

  test('D05: what the tool answers afterwards is no second result', async () => {
    const late: unknown[] = [];
    let end = (_: unknown): void => {};
    const works = tool(
      () =>
        new Promise((resolve) => {
          end = resolve;
        }),
    );
    const dispatcher = setUp([works], { onLate: (outcome, { id }) => late.push([id, outcome.content]) });
    const caller = new AbortController();
    const running = dispatcher.dispatch({ id: 'c1', name: 'works' }, { signal: caller.signal });
    await turns();
    caller.abort();
    const result = await running;
    const before = JSON.stringify(result);
    end('done after all');
    await turns();
    expect(late).toEqual([['c1', 'done after all']]);
    expect(JSON.stringify(result)).toBe(before);
  });
});

describe('D07', () => {
  type Message =
    | { readonly role: 'user'; readonly content: string }
    | { readonly role: 'assistant'; readonly toolCalls: readonly ToolCallRequest[] }
    | { readonly role: 'tool'; readonly toolCallId: string; readonly content: ToolDispatchResult['content'] };

  const linesOf = (messages: readonly Message[]) => messages.map((message) => `${JSON.stringify(message)}\n`).join('');
  const close = (messages: readonly Message[]) =>
    closeDangling(messages, {
      calls: (message) => (message.role === 'assistant' ? message.toolCalls : []),
      answers: (message) => (message.role === 'tool' ? [message.toolCallId] : []),
      answer: ({ toolCallId, content }) => ({ role: 'tool', toolCallId, content }),
    });

  test('D07: the calls of a process that was killed are closed after the restart, and none of them runs', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'toolonion-'));
    try {
      const [stored, effects] = [join(directory, 'history.jsonl'), join(directory, 'effects')];
      const toolCalls = ['work', 'hang', 'work'].map((name, index) => ({ id: `c${index}`, name, arguments: '{}' }));
      const asked: readonly Message[] = [
        { role: 'user', content: 'Do it.' },
        { role: 'assistant', toolCalls },
      ];
      await writeFile(stored, linesOf(asked));

      const child = spawn(
        process.execPath,
        ['--import', 'tsx', join('test', 'support', 'killed-run.ts'), stored, effects],
        { cwd: root },
      );
      const ended = finished(child);
      expect(await firstOf(child.stdout)).toBe('hangs');
      child.kill('SIGKILL');
      expect(await ended).toEqual({ code: null, stdout: 'hangs', stderr: '' });

      const left = jsonLines<Message>(await readFile(stored, 'utf8'));
      expect(left).toEqual([...asked, { role: 'tool', toolCallId: 'c0', content: 'done' }]);
      const closed = close([...left, { role: 'user', content: 'Go on.' }]);
      const unknown = expect.stringMatching(/^The run was interrupted .* Check before you call it again\.$/);
      expect(closed).toEqual([
        ...left,
        { role: 'tool', toolCallId: 'c1', content: unknown },
        { role: 'tool', toolCallId: 'c2', content: unknown },
        { role: 'user', content: 'Go on.' },
      ]);
      expect(await readFile(effects, 'utf8')).toBe('c0\nc1\n');

      // What is stored again has nothing left to close.
      await appendFile(stored, linesOf(closed.slice(left.length)));
      const again = jsonLines<Message>(await readFile(stored, 'utf8'));
      expect(again).toEqual(closed);
      expect(close(again)).toBe(again);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});

describe('an id that is made', () => {
  const echo = defineTool({ name: 'echo', description: 'Echoes.', execute: () => 'ok' });
  const counting = () => {
    let made = 0;
    return createDispatcher({ tools: [echo], generateId: () => `call_${++made}` });
  };

  test.each<[string, readonly ToolCallRequest[], readonly string[]]>([
    ['missing before it', [{ name: 'echo' }, { id: 'call_1', name: 'echo' }], ['call_2', 'call_1']],
    [
      'twice before it',
      [
        { id: 'x', name: 'echo' },
        { id: 'x', name: 'echo' },
        { id: 'call_1', name: 'echo' },
      ],
      ['x', 'call_2', 'call_1'],
    ],
  ])('D01: is none that a later call of the batch asks for, where one is %s', async (_, calls, ids) => {
    expect((await counting().dispatchAll(calls)).map(({ toolCallId }) => toolCallId)).toEqual(ids);
  });

  test('D01: is told for a call that cannot be read as well', async () => {
    const unreadable = {
      id: 'x',
      name: 'echo',
      get arguments(): never {
        throw new Error('no');
      },
    };
    const [, second] = await counting().dispatchAll([{ id: 'x', name: 'echo' }, unreadable]);
    expect(second).toMatchObject({ toolCallId: 'call_1', requested: { id: 'x' }, notes: [{ type: 'id_replaced' }] });
  });

  test('D02: is not made for a call whose name alone cannot be read', async () => {
    const request = {
      id: 'x',
      get name(): string {
        throw new Error('no');
      },
    };
    expect(await counting().dispatch(request)).toMatchObject({ toolCallId: 'x', error: { code: 'invalid_call' } });
  });
});

test('D04: a batch runs as it was handed in, whatever becomes of the list meanwhile', async () => {
  const ran: unknown[] = [];
  const tools = ['slow', 'add', 'delete'].map((name) =>
    defineTool({
      name,
      description: '…',
      execute: async (input) => {
        await new Promise((resolve) => setImmediate(resolve));
        ran.push([name, input]);
        return 'ok';
      },
    }),
  );
  const second = { id: '2', name: 'add', arguments: { x: 1 } };
  const calls: ToolCallRequest[] = [{ id: '1', name: 'slow' }, second];
  const running = createDispatcher({ tools }).dispatchAll(calls);
  second.name = 'delete';
  second.arguments.x = 2;
  calls.push({ id: '3', name: 'delete' });
  expect((await running).map(({ toolCallId }) => toolCallId)).toEqual(['1', '2']);
  expect(ran).toEqual([
    ['slow', {}],
    ['add', { x: 1 }],
  ]);
  const other = createDispatcher({ tools }).dispatchAll(calls);
  calls.length = 0;
  expect(await other).toHaveLength(3);
});

test.each<[string, () => unknown]>([
  [
    'a proxy whose every trap throws',
    () =>
      new Proxy([{ name: 'echo' }], {
        get: () => {
          throw new Error('no');
        },
      }),
  ],
  [
    'a revoked proxy',
    () => {
      const { proxy, revoke } = Proxy.revocable([{ name: 'echo' }], {});
      revoke();
      return proxy;
    },
  ],
  [
    'a list whose first item throws',
    () =>
      Object.defineProperty([{ name: 'echo' }], 0, {
        get: () => {
          throw new Error('no');
        },
      }),
  ],
  ['a list with methods of its own', () => Object.assign([null], { map: () => 'x', flatMap: 5 })],
  ['a list with holes', () => new Array(1)],
])('D05: a batch that is %s is told of, and never rejects', async (_, list) => {
  const results = await createDispatcher().dispatchAll(list() as ToolCallRequest[]);
  expect(results.map(({ error }) => error?.code)).toEqual(['invalid_call']);
});
