import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test } from '@jest/globals';
import {
  after,
  type ContentPart,
  createDispatcher,
  type Dispatcher,
  defineTool,
  type Middleware,
  named,
  settingKey,
  type Tool,
  type ToolCall,
  type ToolCallRequest,
  type ToolDispatchResult,
  ToolFailure,
} from 'toolonion';
import {
  allowAll,
  memoryStore,
  outputLimit,
  type ResultStore,
  readResultTool,
  schedule,
  standard,
  timeout,
} from 'toolonion/middleware';
import { ManualClock, turns } from '../support/manual-clock.ts';
import { bothWays, joined, streamed } from '../support/streamed.ts';
import { expectNothingUnhandled } from '../support/unhandled.ts';

// What a node of tools gets wrong in a graph of an agent: batches, streams, limits and interrupts, each in both ways to run a call.

expectNothingUnhandled();

const image: ContentPart = { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' };
const text = (words: string): ContentPart => ({ type: 'text', text: words });

function tool(name: string, execute: (input: never, call: ToolCall) => unknown, traits: object = {}): Tool {
  return defineTool({ name, description: name, inputSchema: { type: 'object' }, execute, ...traits } as never);
}

function yields(...pieces: readonly unknown[]): () => AsyncGenerator<unknown> {
  return async function* () {
    yield* pieces;
  };
}

const run = (dispatcher: Dispatcher, name = 'tool') => bothWays(dispatcher, { id: 'c1', name });

describe('batches', () => {
  const ONIONS: readonly (readonly [string, readonly Middleware[]])[] = [
    ['without layers', []],
    ['with the standard ones', standard({ permission: { check: allowAll }, logging: false, schedule: {} })],
  ];

  test.each(ONIONS)(
    '%s: results keep the order of the calls though they end in another, streamed or not',
    async (_, middleware) => {
      const slow = tool(
        'slow',
        async function* ({ takes }: { takes: number }) {
          yield `${takes} `;
          await turns(takes);
          yield 'done';
        } as never,
        { concurrencySafe: true },
      );
      const ended: number[] = [];
      const parts: string[] = [];
      const calls = [9, 1, 5].map((takes) => ({ id: `c${takes}`, name: 'slow', arguments: { takes } }));
      const results = await createDispatcher({ tools: [slow], middleware }).dispatchAll(calls, {
        onResult: (_result, place) => ended.push(place),
        onPart: (part, call) => parts.push(`${call.id} ${part.type === 'text' ? part.text : ''}`),
      });
      expect(results.map(({ content }) => content)).toEqual(['9 done', '1 done', '5 done']);
      expect(ended).toEqual([1, 2, 0]);
      expect(parts).toEqual(['c9 9 ', 'c1 1 ', 'c5 5 ', 'c1 done', 'c5 done', 'c9 done']);
    },
  );

  test.each(ONIONS)(
    '%s: one tool twice, with ids of its own: contexts, settings and what goes beside never mix',
    async (_, middleware) => {
      const storage = new AsyncLocalStorage<string>();
      const seen: string[] = [];
      const looks = tool(
        'looks',
        async (input: { n: number }, call) => {
          call.report({ message: `${input.n}` });
          await turns(3 - input.n);
          seen.push(`${call.id} ${input.n} ${storage.getStore()}`);
          return `${call.id} ${input.n}`;
        },
        { concurrencySafe: true },
      );
      const heard: string[] = [];
      const results = await storage.run('caller', () =>
        createDispatcher({ tools: [looks], middleware }).dispatchAll(
          [1, 2].map((n) => ({ id: `c${n}`, name: 'looks', arguments: { n } })),
          { onProgress: ({ message }, call) => heard.push(`${call.id} ${message}`) },
        ),
      );
      expect(results.map(({ content }) => content)).toEqual(['c1 1', 'c2 2']);
      expect(seen.sort()).toEqual(['c1 1 caller', 'c2 2 caller']);
      expect(heard).toEqual(['c1 1', 'c2 2']);
    },
  );

  test('in sequence a later call runs after an earlier one has failed, and not before its stream has ended', async () => {
    const events: string[] = [];
    const first = tool('first', async function* () {
      events.push('first begins');
      yield 'a';
      await turns(2);
      events.push('first ends');
      throw new ToolFailure('Broken.');
    } as never);
    const second = tool('second', () => {
      events.push('second');
      return 'b';
    });
    const results = await createDispatcher({ tools: [first, second] }).dispatchAll(
      [{ name: 'first' }, { name: 'second' }],
      { mode: 'sequential', onPart: () => {} },
    );
    expect(events).toEqual(['first begins', 'first ends', 'second']);
    expect(results.map(({ content }) => content)).toEqual(['a\n\nBroken.', 'b']);
  });

  test('ids that are missing, empty or repeated make each call a call of its own, and none is taken for another', async () => {
    const echo = tool('echo', async ({ n }: { n: number }) => `${n}`, { concurrencySafe: true });
    const ids = [undefined, '', 'x', 'x', '', 'x'];
    const calls = ids.map((id, n) => ({ ...(id !== undefined && { id }), name: 'echo', arguments: { n } }));
    const results = await createDispatcher({ tools: [echo] }).dispatchAll(calls);
    expect(results.map(({ content }) => content)).toEqual(['0', '1', '2', '3', '4', '5']);
    expect(new Set(results.map(({ toolCallId }) => toolCallId)).size).toBe(6);
  });
});

describe('layers', () => {
  const streaming = tool('tool', yields('a', 'b'));
  const plain = tool('tool', async () => 'ab');

  test.each([
    ['streams', streaming],
    ['does not stream', plain],
  ])('the first is outermost, and all see a call of a tool that %s, streamed or not', async (_, each) => {
    for (const isStreamed of [true, false]) {
      const seen: string[] = [];
      const watch = (name: string): Middleware =>
        named(name, async (call, next) => {
          seen.push(`${name} in`);
          const outcome = await next(call);
          seen.push(`${name} out ${outcome.content}`);
          return outcome;
        });
      const dispatcher = createDispatcher({ tools: [each], middleware: [watch('outer'), watch('inner')] });
      if (isStreamed) await streamed(dispatcher.stream({ name: 'tool' }));
      else await dispatcher.dispatch({ name: 'tool' });
      expect(seen).toEqual(['outer in', 'inner in', 'inner out ab', 'outer out ab']);
    }
  });

  test.each([
    ['streams', streaming],
    ['does not stream', plain],
  ])('one that answers by itself keeps a tool that %s from running, and all inside it', async (_, each) => {
    const gate: Middleware = (call) => ({ resolvedToolName: call.toolName, content: 'no', isError: true, notes: [] });
    const inner: Middleware = () => {
      throw new Error('ran');
    };
    const { result, events, compared } = await run(createDispatcher({ tools: [each], middleware: [gate, inner] }));
    expect(result).toMatchObject({ content: 'no', isError: true });
    expect(events).toEqual([text('no')]);
    expect(compared[0]).toEqual(compared[1]);
  });

  test('a name no tool has goes through all of them, streamed or not', async () => {
    let seen = 0;
    const log: Middleware = (call, next) => {
      seen++;
      return next(call);
    };
    const { result } = await run(createDispatcher({ middleware: [log] }), 'gone');
    expect(result.error?.code).toBe('not_found');
    expect(seen).toBe(2);
  });

  test('an error of one fails its own call only', async () => {
    const picky: Middleware = (call, next) => {
      if (call.id === 'b') throw new Error('no');
      return next(call);
    };
    const results = await createDispatcher({ tools: [plain], middleware: [picky] }).dispatchAll(
      ['a', 'b', 'c'].map((id) => ({ id, name: 'tool' })),
    );
    expect(results.map(({ error }) => error?.code)).toEqual([undefined, 'internal', undefined]);
  });

  test('settings of another kind are nobody’s, of two with one key the later counts, and without any there are the defaults', async () => {
    const words = settingKey<string>();
    const other = settingKey<string>();
    const say = tool('tool', (_, call) => call.setting(words) ?? 'default');
    const dispatcher = createDispatcher({ tools: [say] });
    const contents = await Promise.all(
      [[], [other('x')], [words('a'), other('x'), words('b')]].map((settings) =>
        dispatcher.dispatch({ name: 'tool' }, { settings }).then(({ content }) => content),
      ),
    );
    expect(contents).toEqual(['default', 'default', 'b']);
  });

  test('a list of no tools is none, and no list is the tools there were', async () => {
    const dispatcher = createDispatcher({ tools: [plain] });
    expect((await dispatcher.with({ tools: [] }).dispatch({ name: 'tool' })).error?.code).toBe('not_found');
    expect((await dispatcher.with({}).dispatch({ name: 'tool' })).content).toBe('ab');
  });
});

describe('streams', () => {
  const rows: readonly (readonly [string, readonly unknown[], unknown])[] = [
    ['no pieces', [], ''],
    ['nothing but nulls', [null, null], 'null\nnull'],
    ['nothing', [undefined], ''],
    ['empty texts', ['', ''], ''],
    ['two images in one piece', [[image, image]], [image, image]],
    ['two images in two pieces', [image, image], [image, image]],
    ['one image', [image], [image]],
    ['text up to an image, and behind it', ['a', 'b', image, 'c', 'd'], [text('ab'), image, text('cd')]],
    ['texts that are JSON', ['{"a":1}', '{"b":2}'], '{"a":1}{"b":2}'],
    ['a field of a text that is joined', [{ type: 'text', text: 'a', lang: 'en' }, 'b'], 'ab'],
  ];

  test.each(rows)('of %s are the same in both ways', async (_, pieces, content) => {
    const { result, compared, events } = await run(createDispatcher({ tools: [tool('tool', yields(...pieces))] }));
    expect(result).toMatchObject({ content, isError: false });
    expect(compared[0]).toEqual(compared[1]);
    expect(joined(events)).toEqual(Array.isArray(content) && content.length === 1 ? content : result.content);
  });

  test('an error after some pieces keeps them, and is told with the name of its tool and the id of its call', async () => {
    const broken = tool('tool', async function* () {
      yield 'a';
      throw new Error('secret');
    } as never);
    const { result, compared } = await run(createDispatcher({ tools: [broken] }));
    expect(result).toMatchObject({ toolCallId: 'c1', resolvedToolName: 'tool', error: { code: 'execution_failed' } });
    expect(result.content).toMatch(/^a\n\nTool "tool" failed\./);
    expect(compared[0]).toEqual(compared[1]);
  });

  test('a consumer who leaves ends its own call only', async () => {
    const ends: string[] = [];
    const endless = tool('tool', async function* (_: never, call: ToolCall) {
      try {
        for (let count = 0; count < 4; count++) {
          yield `${count}`;
          await turns(1);
        }
      } finally {
        ends.push(call.id);
      }
    } as never);
    const dispatcher = createDispatcher({ tools: [endless] });
    const stays = streamed(dispatcher.stream({ id: 'stays', name: 'tool' }));
    for await (const _ of dispatcher.stream({ id: 'leaves', name: 'tool' })) break;
    expect(ends).toEqual(['leaves']);
    expect((await stays).result.content).toBe('0123');
  });

  test('a slow consumer holds up no other', async () => {
    const dispatcher = createDispatcher({ tools: [tool('tool', yields('a', 'b', 'c'))] });
    const slow = dispatcher.stream({ name: 'tool' });
    await slow.next();
    expect((await streamed(dispatcher.stream({ name: 'tool' }))).result.content).toBe('abc');
    expect((await streamed(slow)).events).toEqual([text('b'), text('c')]);
  });
});

describe('limits', () => {
  const limited = (
    pieces: readonly unknown[],
    options: Parameters<typeof outputLimit>[0],
    more: readonly Tool[] = [],
  ) => createDispatcher({ tools: [tool('tool', yields(...pieces)), ...more], middleware: [outputLimit(options)] });

  test('an answer as long as the limit passes, one that is longer by one does not, in both ways', async () => {
    for (const [extra, notes] of [
      ['', 0],
      ['x', 1],
    ] as const) {
      const { result, compared } = await run(limited(['x'.repeat(500), 'y'.repeat(500), extra], { limit: 1000 }));
      expect(result.notes).toHaveLength(notes);
      expect(String(result.content).length).toBeLessThanOrEqual(1000);
      expect(String(result.content).length).toBeGreaterThan(990);
      expect(compared[0]).toEqual(compared[1]);
    }
  });

  test('pieces with media between them share the limit, and media are not touched', async () => {
    const pieces = ['a'.repeat(600), image, 'b'.repeat(600), image, 'c'.repeat(600)];
    const { result, compared } = await run(limited(pieces, { limit: 500 }));
    const parts = result.content as readonly ContentPart[];
    expect(parts.filter((part) => part.type === 'image')).toEqual([image, image]);
    const size = parts.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0);
    expect(size).toBeLessThanOrEqual(500);
    expect(compared[0]).toEqual(compared[1]);
  });

  test('a failure beyond the limit is told', async () => {
    const broken = tool('tool', async function* () {
      yield 'x'.repeat(2000);
      throw new ToolFailure('It broke at the end.');
    } as never);
    const dispatcher = createDispatcher({ tools: [broken], middleware: [outputLimit({ limit: 400 })] });
    const { result, compared } = await run(dispatcher);
    expect(result.error?.message).toBe('It broke at the end.');
    expect(result.content).toMatch(/It broke at the end\.$/);
    expect(compared[0]).toEqual(compared[1]);
  });

  test.each<[string, ResultStore['put']]>([
    [
      'throws',
      () => {
        throw new Error('disk');
      },
    ],
    ['rejects', () => Promise.reject(new Error('disk'))],
    ['gives no id', () => ({}) as never],
  ])('a store that %s costs no answer, and the model is told that the rest is lost', async (_, put) => {
    const store: ResultStore = { put, read: () => undefined };
    const { result } = await run(limited(['x'.repeat(3000)], { limit: 400, store }, [readResultTool(store)]));
    expect(result).toMatchObject({ isError: false });
    expect(result.notes).toContainEqual(expect.objectContaining({ type: 'not_stored', forModel: true }));
    expect(JSON.stringify(result)).not.toContain('disk');
  });

  test('one huge line is read on to its end, whatever the id of its call, and the pages are not cut', async () => {
    const line = Array.from({ length: 40_000 }, (_, n) => `${n} `).join('');
    for (const id of ['../../x', 'a/b', '', 'x']) {
      const store = memoryStore();
      const dispatcher = limited([line], { limit: 500, keep: 'head', store }, [readResultTool(store)]);
      const { content } = await dispatcher.dispatch({ id, name: 'tool' });
      const [, head = ''] = /^([\s\S]*?)\n\[…/.exec(String(content)) ?? [];
      let read = head;
      for (let page = /\{"id".*?\}/.exec(String(content)); page !== null; ) {
        const next = await dispatcher.dispatch({ name: 'read_result', arguments: page[0] });
        const [, body = '', tail = ''] = /^([\s\S]*)\n(\[Bytes .*\])$/.exec(String(next.content)) ?? [];
        expect(next.notes).toEqual([]);
        read += body;
        page = /\{"id".*?\}/.exec(tail);
      }
      expect(read).toBe(line);
    }
  });

  test('what the tool returned is not changed', async () => {
    const own = { content: [text('x'.repeat(2000)), image], isError: false };
    const copy = structuredClone(own);
    const dispatcher = createDispatcher({
      tools: [tool('tool', () => own)],
      middleware: [outputLimit({ limit: 300 })],
    });
    await run(dispatcher);
    expect(own).toEqual(copy);
  });
});

describe('interrupts', () => {
  /** Tools that suspend until their call is approved, and how often each ran to its end. */
  function setUp(...middleware: readonly Middleware[]) {
    const approved = new Set<string>();
    const ran: string[] = [];
    const asks = tool('asks', async (_, call) => {
      await turns(1);
      if (!approved.has(call.id)) return call.suspend({ reason: `May I do ${call.id}?` });
      ran.push(call.id);
      return `did ${call.id}`;
    });
    const does = tool('does', async (_, call) => {
      ran.push(call.id);
      if (call.id === 'fails') throw new ToolFailure('Broken.');
      return `did ${call.id}`;
    });
    return { approved, ran, dispatcher: createDispatcher({ tools: [asks, does], middleware }) };
  }

  const calls: readonly ToolCallRequest[] = [
    { id: 'a', name: 'asks' },
    { id: 'b', name: 'does' },
    { id: 'c', name: 'asks' },
    { id: 'fails', name: 'does' },
  ];
  const states = (results: readonly ToolDispatchResult[]) =>
    results.map(({ control, error, content }) => control?.type ?? error?.code ?? content);

  test.each<[string, readonly Middleware[]]>([
    ['without layers', []],
    ['with the standard ones', standard({ permission: { check: allowAll }, logging: false, schedule: {} })],
  ])(
    '%s: of a batch in which two ask, one ends and one fails, the two that ended never run again',
    async (_, layers) => {
      const { approved, ran, dispatcher } = setUp(...layers);
      const first = await dispatcher.dispatchAll(calls);
      expect(states(first)).toEqual(['suspend', 'did b', 'suspend', 'execution_failed']);
      approved.add('c');
      const second = await dispatcher.dispatchAll(calls, { earlier: first });
      expect(states(second)).toEqual(['suspend', 'did b', 'did c', 'execution_failed']);
      approved.add('a');
      const third = await dispatcher.dispatchAll(calls, { earlier: second });
      expect(states(third)).toEqual(['did a', 'did b', 'did c', 'execution_failed']);
      expect(ran.sort()).toEqual(['a', 'b', 'c', 'fails']);
    },
  );

  test('a later call of the same tool is a fresh one', async () => {
    const { approved, dispatcher } = setUp();
    approved.add('a');
    const first = await dispatcher.dispatchAll(calls.slice(0, 1));
    const next = await dispatcher.dispatchAll([{ id: 'new', name: 'asks' }]);
    expect([...states(first), ...states(next)]).toEqual(['did a', 'suspend']);
  });

  test('an interrupt passes layers that repeat, limit, and turn errors into answers', async () => {
    const retry: Middleware = async (call, next) => {
      const outcome = await next(call);
      return outcome.isError ? next(call) : outcome;
    };
    const soften: Middleware = (call, next) =>
      after(next(call), (outcome) => (outcome.isError ? { ...outcome, isError: false, content: 'sorry' } : outcome));
    const { dispatcher } = setUp(soften, schedule(), retry, outputLimit({ limit: 100 }), timeout({ limitMs: 1000 }));
    const { result, compared } = await bothWays(dispatcher.with({ clock: new ManualClock() }), {
      id: 'a',
      name: 'asks',
    });
    expect(result.control).toMatchObject({ type: 'suspend', toolCallId: 'a', request: { reason: 'May I do a?' } });
    expect(compared[0]).toEqual(compared[1]);
  });

  test('other calls than those that were saved are not taken for them', async () => {
    const { dispatcher, ran } = setUp();
    const first = await dispatcher.dispatchAll(calls);
    const changed = calls.map((call) => ({ ...call, arguments: { other: true } }));
    const second = await dispatcher.dispatchAll(changed, { earlier: first });
    expect(states(second)).toEqual(['suspend', 'invalid_call', 'suspend', 'invalid_call']);
    expect(ran).toEqual(['b', 'fails']);
  });

  test('tools that have gone since keep what they gave', async () => {
    const { dispatcher } = setUp();
    const first = await dispatcher.dispatchAll(calls.slice(1, 2));
    expect(await dispatcher.with({ tools: [] }).dispatchAll(calls.slice(1, 2), { earlier: first })).toEqual(first);
  });
});
