import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import {
  createDispatcher,
  type Dispatcher,
  defineTool,
  type Middleware,
  named,
  type Tool,
  type ToolCall,
  type ToolCallRequest,
  ToolContext,
} from 'toolonion';
import { type ScheduleOptions, schedule } from 'toolonion/middleware';
import { collectGarbage } from '../support/garbage.ts';
import { gate } from '../support/gate.ts';
import { hostileValues } from '../support/hostile.ts';
import { ManualClock, turns } from '../support/manual-clock.ts';
import { root } from '../support/pages.ts';
import { runNode } from '../support/process.ts';
import { soon } from '../support/soon.ts';
import { expectNothingUnhandled } from '../support/unhandled.ts';
import { callOf, calls, Work } from '../support/work.ts';

expectNothingUnhandled();

const inputSchema = { type: 'object', properties: { key: { type: 'string' } } } as const;
const keyed = { concurrencySafe: true, resourceKey: ({ key }: { readonly key?: string }) => key };

/** A tool that makes calls. */
function caller(name: string, execute: (call: ToolCall) => Promise<string>): Tool {
  const description = 'Makes calls.';
  return defineTool({ name, description, inputSchema, ...keyed, execute: (_input, call) => execute(call) });
}

/** A layer that makes a call of its own beside one. */
function beside(id: string, make: (call: ToolCall) => Promise<unknown>): Middleware {
  return async (call, next) => {
    const outcome = next(call);
    if (call.id === id) await make(call);
    return outcome;
  };
}

describe('several layers', () => {
  const one = schedule();
  const inner = schedule();
  const onions: readonly (readonly [string, readonly Middleware[]])[] = [
    ['two', [schedule(), schedule()]],
    ['one twice', [one, one]],
    ['one within another layer', [named('outer', (call, next) => inner(call, next))]],
  ];

  test.each(onions)('%s: as many calls of a batch run as may, and it ends', async (_, middleware) => {
    const work = new Work();
    const dispatcher = createDispatcher({ tools: [work.tool('read', { concurrencySafe: true })], middleware });
    const batch = dispatcher.dispatchAll(calls('read a', 'read b', 'read c'), { concurrency: 2 });
    for (const wave of [['a', 'b'], ['c']]) {
      await turns();
      expect(work.running).toEqual(wave);
      work.end(...wave);
    }
    expect((await batch).map(({ content }) => content)).toEqual(['a', 'b', 'c']);
  });

  test('a call says how long it waited in both of them', async () => {
    const clock = new ManualClock();
    const work = new Work();
    const middleware = [schedule(), schedule({ scope: () => 'all' })];
    const dispatcher = createDispatcher({ tools: [work.tool('write')], middleware, clock });
    const results = [
      dispatcher.dispatch(callOf('write a')),
      dispatcher.dispatch(callOf('write b')),
      dispatcher.dispatch(callOf('write c'), { context: new ToolContext() }),
    ];
    await clock.advance(30);
    work.end('a');
    await clock.advance(40);
    work.end('c');
    await clock.advance(10);
    work.end('b');
    // b is behind a in the first, and behind c in the second.
    expect((await Promise.all(results)).map(({ queuedMs }) => queuedMs)).toEqual([undefined, 70, 30]);
  });

  test('of two dispatchers, whose tools call each other, know nothing of each other: an abort ends that', async () => {
    const stop = new AbortController();
    const leaf = defineTool({ name: 'leaf', description: 'Is called.', execute: () => 'leaf' });
    const make = (other: () => Dispatcher) => {
      const asks = async (call: ToolCall) => {
        await turns(2);
        const { content, error } = await other().dispatch({ name: 'leaf' }, { parent: call });
        return String(error?.code ?? content);
      };
      return createDispatcher({ tools: [leaf, caller('asks', asks)], middleware: [schedule({ concurrency: 1 })] });
    };
    const first: Dispatcher = make(() => second);
    const second: Dispatcher = make(() => first);
    const both = [first, second];
    const asked = Promise.all(both.map((each) => each.dispatch({ name: 'asks' }, { signal: stop.signal })));
    await turns(20);
    stop.abort();
    expect((await soon(asked)).map(({ content }) => content)).toEqual(['cancelled', 'cancelled']);
    const after = Promise.all(both.map((each) => each.dispatch({ name: 'leaf' })));
    expect((await soon(after)).map(({ content }) => content)).toEqual(['leaf', 'leaf']);
  });
});

describe('a layer outside', () => {
  test.each([true, false])(
    'may call next 2,000 times, and keeps no turn that is over (failFast: %s)',
    async (failFast) => {
      const attempts: WeakRef<ToolCall>[] = [];
      let kept = 0;
      const again: Middleware = async (call, next) => {
        for (let attempt = 0; attempt < 2000; attempt++) {
          const own = call.with({ input: { attempt } });
          attempts.push(new WeakRef(own));
          await next(own);
        }
        await collectGarbage();
        kept = attempts.filter((attempt) => attempt.deref() !== undefined).length;
        return next(call);
      };
      const tool = defineTool({ name: 'tool', description: 'Works.', execute: async () => 'done' });
      const dispatcher = createDispatcher({ tools: [tool], middleware: [again, schedule()] });
      const [result] = await dispatcher.dispatchAll([{ name: 'tool' }], { failFast });
      expect(result?.content).toBe('done');
      expect(kept).toBeLessThan(10);
    },
  );

  test('that calls next again has the call say how long it waited for all attempts', async () => {
    const clock = new ManualClock();
    const work = new Work();
    const again: Middleware = async (call, next) => {
      const first = await next(call);
      return call.id === 'b' ? next(call) : first;
    };
    const dispatcher = createDispatcher({ tools: [work.tool('write')], middleware: [again, schedule()], clock });
    const results = calls('write a', 'write b', 'write c').map((call) => dispatcher.dispatch(call));
    for (const [id, ranMs] of [
      ['a', 10],
      ['b', 20],
      ['c', 40],
      ['b', 80],
    ] as const) {
      await clock.advance(ranMs);
      work.end(id);
    }
    // b is behind a, and then behind c.
    expect((await Promise.all(results)).map(({ queuedMs }) => queuedMs)).toEqual([undefined, 50, 30]);
  });

  type Making = (make: (call: ToolCall) => Promise<unknown>) => Middleware;
  const makings: readonly (readonly [string, Making])[] = [
    [
      'before',
      (make) => async (call, next) => {
        if (call.id === 'a') {
          // The other one comes first.
          await turns(2);
          await make(call);
        }
        return next(call);
      },
    ],
    [
      'beside',
      (make) => async (call, next) => {
        const outcome = next(call);
        await make(call);
        return outcome;
      },
    ],
    [
      'after',
      (make) => async (call, next) => {
        const outcome = await next(call);
        await make(call);
        return outcome;
      },
    ],
  ];

  test.each(makings)('may make a call itself, %s the turn of its own: nothing hangs', async (_, making) => {
    const execute = async () => {
      await turns(2);
      return 'written';
    };
    const write = defineTool({ name: 'write', description: 'Writes.', execute });
    const makes = making((call) => dispatcher.dispatch({ name: 'write' }, { parent: call }));
    const outside: Middleware = (call, next) => (call.parent === undefined ? makes(call, next) : next(call));
    const middleware = [outside, schedule({ concurrency: 1 })];
    const dispatcher: Dispatcher = createDispatcher({ tools: [write], middleware });
    for (const failFast of [false, true]) {
      const batch = dispatcher.dispatchAll(calls('write a', 'write b'), { failFast });
      expect((await soon(batch)).map(({ content }) => content)).toEqual(['written', 'written']);
    }
  });

  test('may make a call while its own waits for a slot: it waits as well, and runs in the slot that its own is given', async () => {
    const work = new Work();
    const outside: Middleware = async (call, next) => {
      const outcome = next(call);
      if (call.id === 'outer') await dispatcher.dispatch(callOf('edit inner key=f'), { parent: call });
      return outcome;
    };
    const tools = [work.tool('read', { concurrencySafe: true }), work.tool('edit', keyed)];
    const middleware = [outside, schedule({ concurrency: 2 })];
    const dispatcher: Dispatcher = createDispatcher({ tools, middleware });
    const batch = dispatcher.dispatchAll(calls('read a', 'read b', 'edit outer key=f'));
    await turns();
    expect(work.running).toEqual(['a', 'b']);
    work.end('a');
    await turns();
    expect(work.running).toEqual(['b', 'outer', 'inner']);
    work.end('b', 'outer', 'inner');
    expect((await batch).map(({ content }) => content)).toEqual(['a', 'b', 'outer']);
  });

  test('may make a call while its own waits for the only slot: both run', async () => {
    const layer = beside('b', (call) => dispatcher.dispatch({ name: 'read' }, { parent: call }));
    const read = defineTool({
      name: 'read',
      description: 'Reads.',
      inputSchema,
      concurrencySafe: true,
      execute: () => 'read',
    });
    const dispatcher: Dispatcher = createDispatcher({
      tools: [read],
      middleware: [layer, schedule({ concurrency: 1 })],
    });
    const batch = dispatcher.dispatchAll([{ name: 'read' }, { id: 'b', name: 'read' }]);
    expect((await soon(batch)).map(({ content }) => content)).toEqual(['read', 'read']);
  });

  test('may make a call whose tool makes one of its own key: that passes, whether its batch stops at a failure or not', async () => {
    const edit = { name: 'edit', arguments: { key: 'f' } };
    for (const failFast of [false, true]) {
      const layer = beside('b', (call) => dispatcher.dispatch({ name: 'nests' }, { parent: call }));
      const answers = { description: 'Answers.', inputSchema, execute: () => 'done' };
      const tools = [
        defineTool({ name: 'write', ...answers }),
        defineTool({ name: 'edit', ...answers, ...keyed }),
        caller('nests', async (call) => {
          await turns(1);
          return String((await dispatcher.dispatch(edit, { parent: call })).content);
        }),
      ];
      const dispatcher: Dispatcher = createDispatcher({ tools, middleware: [layer, schedule()] });
      const batch = dispatcher.dispatchAll([{ name: 'write' }, { ...edit, id: 'b' }], { failFast });
      expect((await soon(batch)).map(({ content }) => content)).toEqual(['done', 'done']);
    }
  });

  test('may bring calls into one session: those that are not safe never meet', async () => {
    const work = new Work();
    const { layer, open } = gate();
    const context = new ToolContext();
    const move: Middleware = (call, next) => next(call.with({ context }));
    const dispatcher = createDispatcher({ tools: [work.tool('write')], middleware: [layer, move, schedule()] });
    const batch = dispatcher.dispatchAll(calls('write held1', 'write b'));
    await turns();
    open('held1');
    await work.runOneByOne('b', 'held1');
    await batch;
  });
});

describe('a turn lasts as long as the calls that its tool made and did not wait for', () => {
  test.each<[string, string, ScheduleOptions]>([
    ['never more run than may', 'read', { concurrency: 1 }],
    ['one that is not safe waits for them', 'write', {}],
  ])('%s, however deep they are', async (_, kind, options) => {
    for (const depth of [1, 2, 5]) {
      const work = new Work();
      const forgetful = Array.from({ length: depth }, (_, level) =>
        caller(`level${level}`, async (call) => {
          const inner = level === 0 ? callOf(`${kind} nested`) : { name: `level${level - 1}` };
          void dispatcher.dispatch(inner, { parent: call });
          return 'gone';
        }),
      );
      const tools = [work.tool('read', { concurrencySafe: true }), work.tool('write'), ...forgetful];
      const dispatcher: Dispatcher = createDispatcher({ tools, middleware: [schedule(options)] });
      expect(await dispatcher.dispatch({ name: `level${depth - 1}` })).toMatchObject({ content: 'gone' });
      const other = dispatcher.dispatch(callOf(`${kind} other`));
      await work.runOneByOne('nested', 'other');
      await other;
    }
  });
});

describe('what the host is asked', () => {
  test('by a scope that throws in the middle of a batch fails its own call only', async () => {
    const work = new Work();
    const { layer, open } = gate();
    const scope = ({ id }: ToolCall) => {
      if (id === 'held2') throw new Error('no');
      return 'all';
    };
    const tools = [work.tool('read', { concurrencySafe: true }), work.tool('write')];
    const dispatcher = createDispatcher({ tools, middleware: [layer, schedule({ scope })] });
    const batch = dispatcher.dispatchAll(calls('write held1', 'read held2', 'read a', 'read b'));
    await turns();
    open('held2');
    await turns();
    expect(work.running).toEqual([]);
    open('held1');
    for (const wave of [['held1'], ['a', 'b']]) {
      await turns();
      expect(work.running).toEqual(wave);
      work.end(...wave);
    }
    expect((await batch).map(({ content, error }) => error?.code ?? content)).toEqual(['held1', 'internal', 'a', 'b']);
  });

  test('may abort another call: whose key is asked for has it all the same', async () => {
    const work = new Work();
    const stop = new AbortController();
    const { layer, open } = gate();
    const edit = work.tool('edit', {
      concurrencySafe: true,
      resourceKey: ({ id, key }) => {
        if (id === 'held1') stop.abort();
        return key;
      },
    });
    const tools = [edit, work.tool('read', { concurrencySafe: true })];
    const dispatcher = createDispatcher({ tools, middleware: [layer, schedule()] });
    const first = dispatcher.dispatch(callOf('edit a key=f'));
    const aborted = dispatcher.dispatch(callOf('edit b key=f'), { signal: stop.signal });
    const batch = dispatcher.dispatchAll(calls('edit held1 key=f', 'read c'));
    await turns();
    open('held1');
    expect((await aborted).error).toMatchObject({ code: 'cancelled', executed: 'no' });
    await turns();
    expect(work.running).toEqual(['a', 'c']);
    work.end('a', 'c');
    await turns();
    work.end('held1');
    await Promise.all([first, batch]);
  });

  test.each(hostileValues)('may be answered with %s: the call runs alone', async (_, value) => {
    const work = new Work();
    const odd = work.tool('odd', { concurrencySafe: () => value as boolean, resourceKey: () => value as string });
    const dispatcher = createDispatcher({
      tools: [odd, work.tool('read', { concurrencySafe: true })],
      middleware: [schedule({ scope: () => value })],
    });
    const batch = dispatcher.dispatchAll(calls('read a', 'odd b', 'odd c', 'read d'));
    await work.runOneByOne('a', 'b', 'c', 'd');
    expect((await batch).map(({ content }) => content)).toEqual(['a', 'b', 'c', 'd']);
  });
});

test('a call with a key that comes to a tool without, while one before it is on its way, loses nobody their turn', async () => {
  const program = join('test', 'support', 'lost-turns.ts');
  const ended = await runNode(['--import', 'tsx', program], { cwd: root, timeout: 10_000 });
  expect(ended).toEqual({ code: 0, stdout: 'a held1 held2 b c\n', stderr: '' });
}, 20_000);

describe('a key that is taken while a call waits for a slot', () => {
  function setUp() {
    const work = new Work();
    const many = caller('many', (call) => make(call, calls('read a', 'edit b key=g')));
    const one = caller('one', (call) => make(call, calls('edit c key=f')));
    const make = async (parent: ToolCall, requests: readonly ToolCallRequest[]) => {
      await turns(1);
      const results = await dispatcher.dispatchAll(requests, { parent });
      return results.map(({ content, error }) => error?.code ?? content).join(' ');
    };
    const tools = [work.tool('read', { concurrencySafe: true }), work.tool('edit', keyed), many, one];
    const dispatcher: Dispatcher = createDispatcher({ tools, middleware: [schedule({ concurrency: 2 })] });
    return { work, dispatcher };
  }

  test('by one that a tool makes is the next one’s again when that has ended', async () => {
    const { work, dispatcher } = setUp();
    const nesting = { name: 'one', arguments: {} };
    const batch = dispatcher.dispatchAll([...calls('read x'), nesting, ...calls('edit d key=f', 'edit e key=f')]);
    for (const wave of [['x', 'c'], ['d'], ['e']]) {
      await turns();
      expect(work.running).toEqual(wave);
      for (const id of wave) {
        work.end(id);
        await turns();
      }
    }
    expect((await batch).map(({ content }) => content)).toEqual(['x', 'c', 'd', 'e']);
  });

  test('by one that waits for the tool that makes it has it refused', async () => {
    const { work, dispatcher } = setUp();
    const nesting = (name: string, key: string) => ({ name, arguments: { key } });
    const batch = dispatcher.dispatchAll([nesting('many', 'f'), ...calls('read x'), nesting('one', 'g')]);
    for (const id of ['x', 'a', 'c']) {
      await turns();
      work.end(id);
    }
    expect((await batch).map(({ content }) => content)).toEqual(['a execution_failed', 'x', 'c']);
  });
});

test('nested calls of one key run in their order, though another has taken the key while they waited for a slot', async () => {
  const work = new Work();
  const makes = (name: string, requests: readonly ToolCallRequest[], after: number) =>
    defineTool({
      name,
      description: 'Makes calls.',
      inputSchema,
      concurrencySafe: true,
      execute: async (_input, parent) => {
        await turns(after);
        return String((await dispatcher.dispatchAll(requests, { parent })).length);
      },
    });
  const tools = [
    work.tool('read', { concurrencySafe: true }),
    work.tool('edit', keyed),
    makes('many', calls('read a', 'edit b key=g', 'edit c key=g', 'edit d key=g'), 1),
    makes('one', calls('edit x key=g'), 3),
  ];
  const dispatcher: Dispatcher = createDispatcher({ tools, middleware: [schedule({ concurrency: 2 })] });
  const batch = dispatcher.dispatchAll([{ name: 'many' }, { name: 'one' }]);
  for (let left = 5; left > 0; left--) {
    await turns();
    work.end(...work.running);
  }
  await batch;
  expect(work.events.filter((each) => each.startsWith('+'))).toEqual(['+a', '+x', '+b', '+c', '+d']);
});

describe('thousands of calls that a tool makes end', () => {
  const leaf = defineTool({
    name: 'leaf',
    description: 'Is called.',
    inputSchema,
    ...keyed,
    execute: async () => 'leaf',
  });

  function leaves(count: number, key: string): readonly ToolCallRequest[] {
    return Array.from({ length: count }, () => ({ name: 'leaf', arguments: { key } }));
  }

  /** A dispatcher whose tool `many` makes these calls, and tells in which ways they ended. */
  function setUp(requests: readonly ToolCallRequest[], others: readonly Tool[] = [], options: ScheduleOptions = {}) {
    const many = caller('many', async (call) => {
      await turns(1);
      const results = await dispatcher.dispatchAll(requests, { parent: call });
      return [...new Set(results.map(({ content, error }) => error?.code ?? content))].join(' ');
    });
    const dispatcher: Dispatcher = createDispatcher({
      tools: [leaf, many, ...others],
      middleware: [schedule(options)],
    });
    return dispatcher;
  }

  test('where all need one key, that of the tool or not', async () => {
    const dispatcher = setUp(leaves(10_000, 'f'));
    for (const key of ['f', 'g']) {
      const result = await dispatcher.dispatch({ name: 'many', arguments: { key } });
      expect(result.content).toBe('leaf');
    }
  });

  test('where each of them would close a circle of keys', async () => {
    const work = new Work();
    const one = caller('one', async (call) => {
      const [only] = await dispatcher.dispatchAll(leaves(1, 'f'), { parent: call });
      return String(only?.content);
    });
    const dispatcher = setUp([callOf('first a'), ...leaves(20_000, 'g')], [work.tool('first'), one]);
    const batch = dispatcher.dispatchAll([
      { name: 'many', arguments: { key: 'f' } },
      { name: 'one', arguments: { key: 'g' } },
    ]);
    await turns();
    work.end('a');
    expect((await batch).map(({ content }) => content)).toEqual(['a execution_failed', 'leaf']);
  });

  test('where their key is taken while they wait for the slot of the tool', async () => {
    const work = new Work();
    const first = work.tool('first', { concurrencySafe: true });
    const holds = work.tool('holds', keyed);
    const one = caller('one', async (call) => {
      await turns(3);
      return String((await dispatcher.dispatch(callOf('holds b key=g'), { parent: call })).content);
    });
    const requests = [callOf('first a'), ...leaves(20_000, 'g')];
    const dispatcher = setUp(requests, [first, holds, one], { concurrency: 2 });
    const batch = dispatcher.dispatchAll([{ name: 'many' }, { name: 'one' }]);
    for (const id of ['a', 'b']) {
      await turns();
      work.end(id);
    }
    expect((await batch).map(({ content }) => content)).toEqual(['a leaf', 'b']);
  });
});
