import { AsyncLocalStorage } from 'node:async_hooks';
import { getEventListeners } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import {
  createDispatcher,
  type Dispatcher,
  type DispatcherOptions,
  defineTool,
  type Middleware,
  type ToolCall,
  type ToolCallRequest,
  ToolContext,
  type ToolDispatchResult,
} from 'toolonion';
import { schedule, timeout, validation } from 'toolonion/middleware';
import { heapInUse } from './support/garbage.ts';
import { endlessValues, hostileValues } from './support/hostile.ts';
import { ManualClock, turns } from './support/manual-clock.ts';
import { soon } from './support/soon.ts';
import { expectNothingUnhandled } from './support/unhandled.ts';
import { calls, Work } from './support/work.ts';

expectNothingUnhandled();

const MODES = ['parallel', 'sequential'] as const;
const WAYS = MODES.flatMap((mode) => [true, false].map((failFast) => ({ mode, failFast })));
const OPTIONS = [
  ...['signal', 'context', 'settings', 'parent', 'onProgress', 'onPart'],
  ...['mode', 'concurrency', 'failFast', 'onResult', 'earlier'],
];
const inputSchema = { type: 'object' } as const;
const ok = defineTool({
  name: 'ok',
  description: 'Is.',
  inputSchema,
  concurrencySafe: true,
  execute: async () => 'ok',
});
const slow = defineTool({
  name: 'slow',
  description: 'Takes a while, alone.',
  inputSchema,
  execute: async () => {
    await turns(2);
    return 'ok';
  },
});
const hangs: Middleware = () => new Promise(() => {});

function explode(): never {
  throw new Error('no');
}

function toolCalls(...names: readonly string[]): readonly ToolCallRequest[] {
  return names.map((name) => ({ name }));
}

function endings(results: readonly ToolDispatchResult[]): readonly string[] {
  return results.map(({ content, error }) => error?.code ?? String(content));
}

const onions: readonly (readonly [string, () => readonly Middleware[]])[] = [
  ['without a schedule layer', () => []],
  ['with one', () => [schedule({ concurrency: 2 })]],
];

describe.each(onions)('%s', (_, layers) => {
  function setUp(options: DispatcherOptions = {}): Dispatcher {
    return createDispatcher({ tools: [ok, slow], middleware: layers(), onWarning: () => {}, ...options });
  }

  test.each(hostileValues)(
    '%s for a list, a call, or a field of one costs no other call its result',
    async (_, value) => {
      const dispatcher = setUp();
      const fields = ['id', 'name', 'arguments', 'truncated'].map((field) => ({ name: 'ok', [field]: value }));
      for (const mode of MODES) {
        const list = await dispatcher.dispatchAll(value as never, { mode });
        expect(endings(list)).toEqual(list.map(() => 'invalid_call'));
        for (const call of [value as never, ...fields]) {
          const results = await dispatcher.dispatchAll([{ name: 'ok' }, call, { name: 'ok' }], { mode });
          expect(endings(results)).toEqual(['ok', expect.any(String), 'ok']);
        }
      }
    },
  );

  test.each(hostileValues)('%s for an option or an earlier result has calls refused at most', async (_, value) => {
    const dispatcher = setUp();
    const one = expect.stringMatching(/^(ok|invalid_call)$/);
    for (const mode of MODES) {
      for (const options of [value, ...OPTIONS.map((name) => ({ mode, [name]: value }))])
        expect(endings(await dispatcher.dispatchAll(toolCalls('ok', 'ok'), options as never))).toEqual([one, one]);
      const earlier = await dispatcher.dispatchAll(toolCalls('ok', 'ok'), { mode, earlier: [value as never] });
      expect(endings(earlier)).toEqual([one, 'ok']);
    }
  });

  test.each<[string, () => object]>([
    ['whose methods throw', () => ({ aborted: false, addEventListener: explode, removeEventListener: explode })],
    [
      'that has aborted, and does not say why',
      () => ({
        aborted: true,
        addEventListener: explode,
        removeEventListener: explode,
        get reason() {
          return explode();
        },
      }),
    ],
    [
      'that can be asked twice',
      () => {
        let asked = 0;
        return {
          get aborted() {
            return asked++ < 2 ? false : explode();
          },
          addEventListener: () => {},
          removeEventListener: explode,
        };
      },
    ],
    [
      'that cries wolf',
      () => ({
        aborted: false,
        addEventListener: (_: string, hear: () => void) => hear(),
        removeEventListener: () => {},
      }),
    ],
    [
      'that says now this, now that',
      () => {
        let asked = 0;
        return {
          get aborted() {
            return asked++ % 2 === 1;
          },
          addEventListener: (_: string, hear: () => void) => [hear(), hear()],
          removeEventListener: () => {},
        };
      },
    ],
  ])('a signal %s holds nothing up', async (_, signal) => {
    for (const way of WAYS) {
      const dispatcher = setUp();
      const options = { ...way, signal: signal() as AbortSignal };
      expect(await soon(dispatcher.dispatchAll(toolCalls('slow', 'ok', 'slow'), options))).toHaveLength(3);
      expect((await soon(dispatcher.dispatch({ name: 'slow' }))).content).toBe('ok');
    }
  });

  const hooks = ['onResult', 'onProgress', 'generateId', 'a getter of a call', 'a tool', 'a tool that makes calls'];

  test.each(hooks)('an abort by %s leaves nothing behind: the next call runs', async (where) => {
    for (const way of WAYS) {
      const stop = new AbortController();
      const { signal } = stop;
      const abortIn = (place: string) => {
        if (place === where) stop.abort();
      };
      const aborts = defineTool({
        name: 'aborts',
        description: 'Makes calls, and aborts.',
        execute: async (_, parent) => {
          parent.report({});
          await turns(1);
          abortIn('a tool');
          const nested = dispatcher.dispatchAll(toolCalls('slow', 'ok'), { parent, signal, concurrency: 1 });
          abortIn('a tool that makes calls');
          return String((await nested).length);
        },
      });
      let ids = 0;
      const generateId = () => {
        if (ids === 2) abortIn('generateId');
        return `id${ids++}`;
      };
      const dispatcher = setUp({ tools: [ok, slow, aborts], generateId });
      const call = {
        get name() {
          abortIn('a getter of a call');
          return 'ok';
        },
      };
      const batch = dispatcher.dispatchAll([...toolCalls('slow'), call, ...toolCalls('aborts', 'slow', 'ok')], {
        ...way,
        signal,
        concurrency: 2,
        onResult: () => abortIn('onResult'),
        onProgress: () => abortIn('onProgress'),
      });
      expect(await soon(batch)).toHaveLength(5);
      expect(signal.aborted).toBe(true);
      expect((await soon(dispatcher.dispatch({ name: 'slow' }))).content).toBe('ok');
    }
  });

  test('a clock that throws at any one look costs no result', async () => {
    let looks = Number.POSITIVE_INFINITY;
    for (let broken = 0; broken < looks; broken++) {
      const warnings: string[] = [];
      looks = 0;
      const now = () => (looks++ === broken ? explode() : looks);
      const dispatcher = setUp({
        clock: { now, setTimeout, clearTimeout: () => {} },
        onWarning: (message) => warnings.push(message),
      });
      expect(endings(await soon(dispatcher.dispatchAll(toolCalls('slow', 'slow', 'slow'))))).toEqual([
        'ok',
        'ok',
        'ok',
      ]);
      expect(await soon(dispatcher.drain())).toEqual({ aborted: 0, running: 0, unanswered: 0 });
      expect(warnings).toEqual(broken < looks ? ['The clock failed'] : []);
    }
    expect(looks).toBeGreaterThan(5);
  });

  test('a hundred thousand calls have as many results, and ids', async () => {
    const requests = Array.from({ length: 100_000 }, () => ({ name: 'ok' }));
    const results = await setUp().dispatchAll(requests);
    expect(new Set(results.map(({ toolCallId }) => toolCallId)).size).toBe(100_000);
  }, 20_000);
});

describe('a list', () => {
  test.each(endlessValues)(
    '%s is told of as one call; as earlier results it has all calls refused',
    async (_, value) => {
      const dispatcher = createDispatcher({ tools: [ok] });
      for (const mode of MODES) {
        expect(endings(await dispatcher.dispatchAll(value as never, { mode }))).toEqual(['invalid_call']);
        const results = await dispatcher.dispatchAll(toolCalls('ok', 'ok'), { mode, earlier: value as never });
        expect(endings(results)).toEqual(['invalid_call', 'invalid_call']);
      }
    },
  );

  test('of settings is read by its places: its iterator may never end', async () => {
    const settings = Object.assign([], { [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) });
    const results = await createDispatcher({ tools: [ok] }).dispatchAll(toolCalls('ok'), { settings });
    expect(endings(results)).toEqual(['ok']);
  });

  test('in sequence is taken as it was handed in', async () => {
    const dispatcher = createDispatcher({ tools: [slow] });
    const requests = [{ name: 'slow' }, { name: 'slow' }, { name: 'slow' }];
    const batch = dispatcher.dispatchAll(requests, { mode: 'sequential', onResult: () => requests.pop() });
    for (const request of requests) request.name = 'gone';
    expect(endings(await batch)).toEqual(['ok', 'ok', 'ok']);
  });

  test('of calls whose fields are inherited is read alike in every mode', async () => {
    class Call {
      get id(): string {
        return 'own';
      }
      get name(): string {
        return 'ok';
      }
    }
    for (const mode of MODES) {
      const [result] = await createDispatcher({ tools: [ok] }).dispatchAll([new Call()], { mode });
      expect(result).toMatchObject({ toolCallId: 'own', content: 'ok' });
    }
  });
});

describe('earlier', () => {
  test.each<[string, unknown]>([
    ['with empty arguments', { name: 'ok', arguments: '' }],
    ['with a list for arguments', { name: 'ok', arguments: [1] }],
    ['with a number for arguments', { name: 'ok', arguments: 7 }],
    ['with a bigint', { name: 'ok', arguments: { a: 7n } }],
    ['with NaN', { name: 'ok', arguments: { a: Number.NaN } }],
    ['with -0', { name: 'ok', arguments: { a: -0 } }],
    ['with undefined', { name: 'ok', arguments: { a: undefined } }],
    ['with a date', { name: 'ok', arguments: { a: new Date(0) } }],
    ['with JSON in JSON', { name: 'ok', arguments: JSON.stringify(JSON.stringify({ a: 1 })) }],
    ['with text that was cut off', { name: 'ok', arguments: '{"a":1', truncated: true }],
    ['with null for an id', { id: null, name: 'ok', arguments: {} }],
    ['without a name', { arguments: {} }],
    ['with a number for a name', { name: 7, arguments: {} }],
    ['that is null', null],
    ['that is a text', 'x'],
  ])('the result of a call %s stands for the same call', async (_, request) => {
    const dispatcher = createDispatcher({ tools: [ok], middleware: [validation()] });
    const requests = [request as ToolCallRequest];
    const earlier = await dispatcher.dispatchAll(requests);
    for (const mode of MODES) expect((await dispatcher.dispatchAll(requests, { earlier, mode }))[0]).toBe(earlier[0]);
  });

  test('one result stands for one call', async () => {
    const dispatcher = createDispatcher({ tools: [ok] });
    const [first] = await dispatcher.dispatchAll(toolCalls('ok'));
    const results = await dispatcher.dispatchAll(toolCalls('ok', 'ok'), { earlier: [first, first] });
    expect(results[0]).toBe(first);
    expect(results[1]).toMatchObject({ error: { code: 'invalid_call' } });
    expect(results[1]?.toolCallId).not.toBe(first?.toolCallId);
  });

  test('a result without an id stands for none', async () => {
    const dispatcher = createDispatcher({ tools: [ok] });
    const [first] = await dispatcher.dispatchAll(toolCalls('ok'));
    const earlier = [{ ...first, toolCallId: undefined } as unknown as ToolDispatchResult];
    const [result] = await dispatcher.dispatchAll(toolCalls('ok'), { earlier });
    expect(result).toMatchObject({ toolCallId: expect.any(String), error: { code: 'invalid_call' } });
  });

  test('is taken as it was handed in', async () => {
    const dispatcher = createDispatcher({ tools: [slow] });
    const [first, second] = await dispatcher.dispatchAll(toolCalls('slow', 'slow'));
    const earlier = [undefined, second];
    const batch = dispatcher.dispatchAll(toolCalls('slow', 'slow'), { earlier, mode: 'sequential' });
    earlier[1] = first;
    expect((await batch)[1]).toBe(second);
  });

  test('ids are unique, though those of the earlier run are made anew', async () => {
    const make = () => {
      let made = 0;
      return createDispatcher({ tools: [ok], generateId: () => `made${made++}` });
    };
    const [first] = await make().dispatchAll(toolCalls('ok'));
    for (const mode of MODES) {
      const results = await make().dispatchAll(toolCalls('ok', 'ok'), { earlier: [undefined, first], mode });
      expect(new Set(results.map(({ toolCallId }) => toolCallId)).size).toBe(2);
    }
  });
});

describe('drain', () => {
  test('waits for calls in sequence that each hang in a layer', async () => {
    const clock = new ManualClock();
    const dispatcher = createDispatcher({ tools: [ok], clock, middleware: [hangs] });
    const { signal } = new AbortController();
    let answered = 0;
    const batch = dispatcher.dispatchAll(toolCalls(...Array.from({ length: 20 }, () => 'ok')), {
      mode: 'sequential',
      signal,
      onResult: () => answered++,
    });
    const drained = dispatcher.drain({ limitMs: 5 });
    await clock.advance(5);
    expect(await drained).toEqual({ aborted: 1, running: 0, unanswered: 0 });
    expect(answered).toBe(20);
    expect(new Set(endings(await batch))).toEqual(new Set(['cancelled']));
  });

  test('that has stopped a batch in sequence ends it, though a layer would hang in what is left', async () => {
    const clock = new ManualClock();
    const work = new Work();
    const hangsLater: Middleware = (call, next) => (call.id === 'later' ? hangs(call, next) : next(call));
    const dispatcher = createDispatcher({ tools: [work.tool('write')], clock, middleware: [hangsLater] });
    const batch = dispatcher.dispatchAll(calls('write now', 'write later', 'write last'), { mode: 'sequential' });
    const drained = dispatcher.drain({ limitMs: 1 });
    await clock.advance(1);
    expect(await soon(drained)).toEqual({ aborted: 1, running: 0, unanswered: 0 });
    expect(endings(await soon(batch))).toEqual(['cancelled', 'cancelled', 'cancelled']);
  });

  test('called again, and of a dispatcher made of this one, ends with the calls that calls under way make', async () => {
    const clock = new ManualClock();
    const outer = defineTool({
      name: 'outer',
      description: 'Makes calls.',
      execute: async (_, parent) => {
        const results: ToolDispatchResult[] = [];
        for (const mode of MODES) {
          await turns(2);
          results.push(...(await dispatcher.dispatchAll(toolCalls('slow', 'slow'), { parent, mode })));
        }
        return endings(results).join(' ');
      },
    });
    const middleware = [schedule({ concurrency: 1 })];
    const dispatcher: Dispatcher = createDispatcher({ tools: [slow, outer], clock, middleware });
    const batch = dispatcher.dispatchAll(toolCalls('outer', 'outer'), { mode: 'sequential' });
    await turns(1);
    const drained = [dispatcher.drain(), dispatcher.with({}).drain({ limitMs: 10 }), dispatcher.drain({ limitMs: 50 })];
    expect(endings(await dispatcher.dispatchAll(toolCalls('slow')))).toEqual(['cancelled']);
    expect(endings(await soon(batch))).toEqual(['ok ok ok ok', 'ok ok ok ok']);
    expect(await Promise.all(drained)).toEqual(drained.map(() => ({ aborted: 0, running: 0, unanswered: 0 })));
    expect(clock.pending).toBe(0);
  });
});

describe('what a batch leaves behind', () => {
  interface Input {
    readonly isSafe?: boolean;
    readonly key?: string;
    readonly nests?: boolean;
  }

  test('is no listener on the signal of its caller, and no place, wherever it is aborted', async () => {
    let stop = new AbortController();
    const work = defineTool({
      name: 'work',
      description: 'Works, and may make calls.',
      inputSchema,
      concurrencySafe: (input: Input) => input.isSafe === true,
      resourceKey: (input: Input) => input.key,
      execute: async (input: Input, parent) => {
        await turns(2);
        if (input.nests) await dispatcher.dispatchAll(requestsOf({}, { key: 'f' }), { parent, signal: stop.signal });
        return 'done';
      },
    });
    const requestsOf = (...inputs: readonly Input[]) => inputs.map((input) => ({ name: 'work', arguments: input }));
    const [safe, key] = [{ isSafe: true }, { isSafe: true, key: 'f' }];
    const dispatcher: Dispatcher = createDispatcher({ tools: [work], middleware: [schedule({ concurrency: 2 })] });
    for (const way of WAYS) {
      for (let point = 0; point < 16; point++) {
        stop = new AbortController();
        const requests = requestsOf({}, safe, { ...key, nests: true }, key, { nests: true }, safe);
        const batch = dispatcher.dispatchAll(requests, { ...way, signal: stop.signal, concurrency: 2 });
        await turns(point);
        stop.abort();
        expect(await batch).toHaveLength(6);
        await turns();
        expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
        const next = await soon(dispatcher.dispatchAll(requestsOf({ key: 'f' })), 8);
        expect(endings(next)).toEqual(['done']);
      }
    }
  });

  test('is no memory of its session and its keys', async () => {
    const work = defineTool({
      name: 'work',
      description: 'Works.',
      inputSchema,
      resourceKey: (input: Input) => input.key,
      execute: async () => 'done',
    });
    const { signal } = new AbortController();
    const dispatcher = createDispatcher({ tools: [work], middleware: [schedule({ concurrency: 4 })] });
    const run = async (name: string, count: number) => {
      for (let batch = 0; batch < count; batch++) {
        const requests = ['a', 'b'].map((key) => ({ name: 'work', arguments: { key: `${name} ${batch} ${key}` } }));
        await dispatcher.dispatchAll(requests, { context: new ToolContext(), signal });
      }
    };
    await run('warm', 5000);
    const before = await heapInUse();
    await run('hot', 20_000);
    const grownBy = (await heapInUse()) - before;
    expect(grownBy).toBeLessThan(1_000_000);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  }, 20_000);
});

describe('the AsyncLocalStorage of each call', () => {
  const storage = new AsyncLocalStorage<string>();
  const enter: Middleware = (call, next) => storage.run(call.id, () => next(call));

  type Abort = (dispatcher: Dispatcher, clock: ManualClock, stop: AbortController) => Promise<unknown>;
  const aborts: readonly (readonly [string, readonly string[], Abort])[] = [
    ['another call that fails', ['fails'], async () => {}],
    ['a time limit', [], (_, clock) => clock.advance(50)],
    ['a drain', [], (dispatcher, clock) => Promise.all([dispatcher.drain({ limitMs: 10 }), clock.advance(10)])],
    ['the caller', [], async (_, __, stop) => stop.abort()],
  ];

  test.each(aborts)('is its own in all that it does where %s aborts it', async (_, others, abort) => {
    const seen: string[] = [];
    const see = (place: string, { id }: ToolCall) => seen.push(`${place}: ${storage.getStore() === id}`);
    const tool = (name: string, execute: (call: ToolCall) => unknown) =>
      defineTool({ name, description: 'Looks around.', concurrencySafe: true, execute: (_, call) => execute(call) });
    const tools = [
      tool('listens', (call) => {
        call.signal.addEventListener('abort', () => see('listener', call));
        return new Promise(() => {});
      }),
      tool('generates', async function* (call) {
        try {
          for (;;) {
            yield 'x';
            await turns(1);
          }
        } finally {
          see('finally', call);
        }
      }),
      tool('iterates', (call) => ({
        [Symbol.asyncIterator]: () => ({
          next: () => new Promise(() => {}),
          return: async () => see('return', call),
        }),
      })),
      tool('is late', async () => {
        await turns(40);
        return 'late';
      }),
      tool('fails', async () => {
        await turns(4);
        throw new Error('no');
      }),
    ];
    const clock = new ManualClock();
    const dispatcher = createDispatcher({
      ...{ tools, clock },
      middleware: [enter, schedule(), timeout({ limitMs: 50 })],
      onLate: (_, call) => see('onLate', call),
    });
    const stop = new AbortController();
    const names = ['listens', 'generates', 'iterates', 'is late', ...others];
    const batch = dispatcher.dispatchAll(toolCalls(...names), { failFast: true, signal: stop.signal });
    await turns(2);
    await storage.run('somebody else', () => abort(dispatcher, clock, stop));
    await batch;
    await turns(50);
    expect(new Set(seen)).toEqual(new Set(['listener: true', 'finally: true', 'return: true', 'onLate: true']));
  });

  test('is its own where its tool is asked about it', async () => {
    const seen: string[] = [];
    const see = (place: string, id: string) => seen.push(`${place} of ${id}: ${storage.getStore()}`);
    const tool = defineTool({
      name: 'tool',
      description: 'Is asked.',
      inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
      concurrencySafe: ({ id }) => see('flag', id) > 0,
      resourceKey: ({ id }) => String(see('key', id)),
      execute: async ({ id }) => see('tool', id),
    });
    const hold: Middleware = async (call, next) => {
      if (call.id === 'a') await turns(3);
      return next(call);
    };
    const dispatcher = createDispatcher({ tools: [tool], middleware: [enter, hold, schedule()] });
    await dispatcher.dispatchAll(['a', 'b'].map((id) => ({ id, name: 'tool', arguments: { id } })));
    const places = ['flag', 'key', 'tool'];
    expect(seen.sort()).toEqual(places.flatMap((place) => [`${place} of a: a`, `${place} of b: b`]));
  });
});
