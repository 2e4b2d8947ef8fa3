import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  createDispatcher,
  type Dispatcher,
  type DispatchOptions,
  defineTool,
  type JsonSchema,
  type Middleware,
  type Next,
  named,
  PermissionCheck,
  type Progress,
  type StandardSchema,
  type ToolCall,
  type ToolDispatchResult,
  type ToolOutcome,
} from 'toolonion';
import {
  allowAll,
  type CallLogger,
  permission,
  type StandardOptions,
  standard,
  type TimeoutOptions,
  timeout,
  timeoutMs,
  validation,
} from 'toolonion/middleware';
import { z } from 'zod';
import { ManualClock, turns } from '../support/manual-clock.ts';

type Execute = (input: unknown, call: ToolCall) => unknown;

interface LabOptions extends Partial<StandardOptions> {
  readonly outside?: readonly Middleware[];
  readonly inside?: readonly Middleware[];
  readonly inputSchema?: JsonSchema | StandardSchema;
  readonly onLate?: (outcome: ToolOutcome) => void;
}

/** A tool, `work`, in the standard onion, and what its host hears. */
interface Lab {
  readonly clock: ManualClock;
  readonly late: ToolOutcome[];
  readonly warnings: string[];
  readonly progress: Progress[];
  readonly dispatcher: Dispatcher;
  readonly controller: AbortController;
  dispatch(options?: DispatchOptions): Promise<ToolDispatchResult>;
  /** The result of a call that is aborted, or goes on, for so many milliseconds. */
  after(ms: number, options?: DispatchOptions): Promise<ToolDispatchResult | undefined>;
}

function lab(execute: Execute, given: LabOptions = {}): Lab {
  const { outside = [], inside = [], inputSchema = { type: 'object' }, onLate, ...options } = given;
  const clock = new ManualClock();
  const late: ToolOutcome[] = [];
  const warnings: string[] = [];
  const progress: Progress[] = [];
  const controller = new AbortController();
  const onion = standard({ logging: false, permission: { check: allowAll }, ...options });
  const dispatcher = createDispatcher({
    tools: [defineTool({ name: 'work', description: 'Works.', inputSchema, execute })],
    middleware: [...outside, ...onion, ...inside],
    clock,
    onLate: onLate ?? ((outcome) => late.push(outcome)),
    onWarning: (message) => warnings.push(message),
  });
  const dispatch = (extra?: DispatchOptions) =>
    dispatcher.dispatch(
      { name: 'work' },
      { signal: controller.signal, onProgress: (sign) => progress.push(sign), ...extra },
    );
  return {
    clock,
    late,
    warnings,
    progress,
    dispatcher,
    controller,
    dispatch,
    after: async (ms, extra) => {
      let result: ToolDispatchResult | undefined;
      void dispatch(extra).then((settled) => {
        result = settled;
      });
      await clock.advance(ms);
      await turns();
      return result;
    },
  };
}

const wait = (call: ToolCall, ms: number): Promise<void> =>
  new Promise((resolve) => void call.clock.setTimeout(resolve, ms));

/** Waits as a good tool does: an abort ends it, and takes the timer along. */
const waitHeeding = (call: ToolCall, ms: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = call.clock.setTimeout(resolve, ms);
    call.signal.addEventListener('abort', () => {
      call.clock.clearTimeout(timer);
      reject(call.signal.reason);
    });
  });

const hanging: Execute = () => new Promise(() => {});

/** A log that nobody keeps. */
const silent = { info: () => {}, warn: () => {}, error: () => {}, isLevelEnabled: () => true } as unknown as CallLogger;

const unhandled: unknown[] = [];
const processWarnings: string[] = [];
const hear = (reason: unknown) => unhandled.push(reason);
const hearWarning = (warning: Error) => processWarnings.push(warning.name);

beforeEach(() => {
  unhandled.length = 0;
  processWarnings.length = 0;
  process.on('unhandledRejection', hear);
  process.on('warning', hearWarning);
});

afterEach(async () => {
  await turns();
  process.off('unhandledRejection', hear);
  process.off('warning', hearWarning);
  expect(unhandled).toEqual([]);
  expect(processWarnings).toEqual([]);
});

describe('a tool that takes 100 ms to write, with a limit of 20', () => {
  type Writer = (writes: number[]) => Execute;

  const HEEDING: readonly (readonly [string, Writer])[] = [
    [
      'waits with its signal',
      (writes) => async (_, call) => {
        await waitHeeding(call, 100);
        writes.push(call.clock.now());
      },
    ],
    [
      'looks before it writes, whose last wait an abort ends',
      (writes) => async (_, call) => {
        await waitHeeding(call, 100).catch(() => {});
        if (call.aborted) throw new Error('given up');
        writes.push(call.clock.now());
      },
    ],
    [
      'is a generator that waits with its signal',
      (writes) =>
        async function* (_: unknown, call: ToolCall) {
          yield 'on the way';
          await waitHeeding(call, 100);
          writes.push(call.clock.now());
        },
    ],
    [
      'calls another tool that waits with its signal',
      (writes) => {
        const inner = defineTool({
          name: 'inner',
          description: 'Writes.',
          execute: async (_, call) => {
            await waitHeeding(call, 100);
            writes.push(call.clock.now());
          },
        });
        return async (_, call) => {
          const dispatcher = createDispatcher({ tools: [inner], middleware: [timeout()], clock: call.clock });
          const result = await dispatcher.dispatch({ name: 'inner' }, { parent: call });
          if (result.isError) throw new Error('given up');
        };
      },
    ],
  ];

  test('G01: is told by its signal, whose reason is the limit, and writes nothing; deaf to it, its outcome is unknown', async () => {
    const writes: number[] = [];
    let reason: unknown;
    const heeding = lab(
      async (_, call) => {
        call.signal.addEventListener('abort', () => {
          reason = call.signal.reason;
        });
        await waitHeeding(call, 100);
        writes.push(call.clock.now());
      },
      { timeout: { limitMs: 20 } },
    );
    const stopped = await heeding.after(200);
    expect(stopped?.error).toMatchObject({ code: 'timeout', executed: 'stopped', retryable: true });
    expect(stopped?.content).toBe(
      'Tool "work" did not finish within its limit of 20 ms. It was stopped before it was done.',
    );
    expect(reason).toMatchObject({ name: 'TimeoutError', message: expect.stringContaining('20 ms') });
    expect(writes).toEqual([]);
    expect(heeding.clock.pending).toBe(0);

    const deaf = lab(
      async (_, call) => {
        await wait(call, 100);
        writes.push(call.clock.now());
        return 'written';
      },
      { timeout: { limitMs: 20 } },
    );
    const unknown = await deaf.after(99);
    expect(unknown?.error).toMatchObject({ code: 'timeout', executed: 'unknown' });
    expect(unknown?.content).toMatch(/may still be running, so its effect is unknown: check before you call it again/);
    expect(writes).toEqual([]);
    await deaf.clock.advance(1);
    expect(writes).toEqual([100]);
    expect(deaf.late).toMatchObject([{ content: 'written' }]);
  });

  test.each(HEEDING)('that %s is stopped', async (_, writer) => {
    const writes: number[] = [];
    const { clock, after } = lab(writer(writes), { timeout: { limitMs: 20, graceMs: 5 } });
    expect((await after(200))?.error).toMatchObject({ code: 'timeout', executed: 'stopped' });
    expect(writes).toEqual([]);
    expect(clock.pending).toBe(0);
  });
});

describe('a tool that fails', () => {
  const FAILING: readonly (readonly [string, Execute])[] = [
    [
      'throws at once',
      () => {
        throw new Error('secret');
      },
    ],
    ['rejects at once', () => Promise.reject(new Error('secret'))],
    ['rejects with nothing', () => Promise.reject()],
    [
      'rejects before its limit',
      async (_, call) => {
        await wait(call, 15);
        throw new Error('secret');
      },
    ],
    [
      'rejects at its limit',
      async (_, call) => {
        await wait(call, 20);
        throw new Error('secret');
      },
    ],
    [
      'rejects long after it',
      async (_, call) => {
        await wait(call, 60);
        throw new Error('secret');
      },
    ],
    ['rejects as its signal aborts', (_, call) => waitHeeding(call, 1000)],
    [
      'is a generator that throws after a yield',
      async function* (_, call) {
        yield 'a';
        await wait(call, 15);
        throw new Error('secret');
      },
    ],
    [
      'is a generator whose finally throws',
      async function* (_, call) {
        try {
          yield 'a';
          await waitHeeding(call, 60);
        } finally {
          // biome-ignore lint/correctness/noUnsafeFinally: that is what it is here for.
          throw new Error('secret');
        }
      },
    ],
    [
      'is a synchronous generator that yields a promise which rejects',
      function* () {
        yield Promise.reject(new Error('secret'));
        yield 'never';
      },
    ],
    [
      'is a thenable that throws',
      () => ({
        then: () => {
          throw new Error('secret');
        },
      }),
    ],
    ['never settles', hanging],
  ];

  test('G02: leaves no unhandled rejection and no timer, whatever its limit and its caller do meanwhile', async () => {
    for (const [what, execute] of FAILING) {
      for (const abortAt of [undefined, -1, 0, 10, 20, 25, 70]) {
        for (const graceMs of [0, 10]) {
          const { clock, controller, dispatch } = lab(execute, { timeout: { limitMs: 20, graceMs } });
          if (abortAt === -1) controller.abort();
          const result = dispatch();
          for (let at = 0; at <= 100; at += 5) {
            if (at === abortAt) controller.abort(new Error('the caller'));
            await clock.advance(5);
          }
          const { isError, content } = await result;
          expect([what, abortAt, isError]).toEqual([what, abortAt, true]);
          expect(content).not.toContain('secret');
          expect(clock.pending).toBe(0);
          expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
          expect(unhandled).toEqual([]);
        }
      }
    }
  });
});

describe('what a tool answers after its call has been answered', () => {
  const LATE: readonly (readonly [string, Execute, object])[] = [
    [
      'rejects',
      async (_, call) => {
        await wait(call, 60);
        throw new Error('secret');
      },
      { isError: true, error: { code: 'execution_failed', executed: 'yes' } },
    ],
    [
      'answers',
      async (_, call) => {
        await wait(call, 60);
        return 'done';
      },
      { isError: false, content: 'done' },
    ],
    [
      'is through with cleaning up, and rejects with the reason of its signal',
      async (_, call) => {
        await waitHeeding(call, 1000).catch(() => {});
        await wait(call, 40);
        throw call.signal.reason;
      },
      {
        isError: true,
        error: { code: 'timeout', executed: 'stopped' },
        content: 'Tool "work" stopped because its work was aborted.',
      },
    ],
    [
      'is a generator that comes to its next yield',
      async function* (_, call) {
        yield 'a';
        await wait(call, 60);
        yield 'b';
      },
      { isError: true, error: { code: 'timeout', executed: 'stopped' } },
    ],
  ];

  test.each(LATE)('G03: is told once to the host, and changes nothing, where the tool %s', async (_, execute, told) => {
    const { after, late, clock } = lab(execute, { timeout: { limitMs: 20 } });
    const result = await after(40);
    expect(result?.error).toMatchObject({ code: 'timeout', executed: 'unknown' });
    const before = structuredClone(result);
    expect(late).toEqual([]);
    await clock.advance(100);
    expect(late).toMatchObject([told]);
    expect(result).toEqual(before);
  });

  test.each([
    ['a text', 'enough'],
    ['an error', new Error('enough')],
    ['null', null],
  ])('is told to be stopped where the tool rejects with the reason of its caller, %s', async (_, reason) => {
    const { dispatch, controller, clock, late } = lab(async (_input, call) => {
      await waitHeeding(call, 1000).catch(() => {});
      await wait(call, 40);
      throw call.signal.reason;
    });
    const result = dispatch();
    await clock.advance(10);
    controller.abort(reason);
    expect((await result).error).toMatchObject({ code: 'cancelled', executed: 'unknown' });
    await clock.advance(40);
    expect(late).toMatchObject([{ error: { code: 'cancelled', executed: 'stopped' } }]);
  });

  test('is not told where it is what a layer that broke the rules is answered with', async () => {
    const twice: Middleware = named('twice', async (call, next) => {
      next(call);
      return next(call);
    });
    const slow: Middleware = named('slow', async (call, next) => {
      const outcome = await next(call);
      await wait(call, 10);
      return outcome;
    });
    const { after, late } = lab((_, call) => wait(call, 60), { inside: [slow, twice], timeout: { limitMs: 20 } });
    expect((await after(200))?.error?.code).toBe('internal');
    expect(late).toMatchObject([{ isError: false }]);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('a hook of the host');
      },
    ],
    ['rejects', () => Promise.reject(new Error('a hook of the host'))],
  ])('may go to a hook that %s: a warning, and nothing else', async (_, onLate) => {
    const { after, warnings, clock } = lab((_input, call) => wait(call, 60), {
      timeout: { limitMs: 20 },
      onLate: onLate as () => void,
    });
    expect((await after(40))?.error?.code).toBe('timeout');
    await clock.advance(40);
    expect(warnings).toEqual(['onLate failed']);
  });
});

describe('a sign of life after the end', () => {
  const ENDS: readonly (readonly [string, Execute, (lab: Lab) => void])[] = [
    ['of a tool that returned at once', () => 'done', () => {}],
    ['of a tool that returned later', async () => 'done', () => {}],
    ['of a tool that failed', () => Promise.reject(new Error('secret')), () => {}],
    ['of a tool that exceeded its limit', hanging, () => {}],
    ['of a call whose caller has left', hanging, ({ controller }) => controller.abort()],
  ];

  test.each(ENDS)('G04: %s is heard by nobody, and does no harm', async (_, execute, meanwhile) => {
    let thrown: unknown;
    const setUp = lab(
      (input, call) => {
        call.report({ message: 'begun' });
        call.clock.setTimeout(() => {
          try {
            call.report({ message: 'late' });
          } catch (error) {
            thrown = error;
          }
        }, 50);
        return execute(input, call);
      },
      { timeout: { limitMs: 20 } },
    );
    const result = setUp.dispatch();
    await turns();
    meanwhile(setUp);
    await setUp.clock.advance(20);
    const before = structuredClone(await result);
    await setUp.clock.advance(50);
    expect(setUp.clock.now()).toBe(70);
    expect(thrown).toBeUndefined();
    expect(setUp.progress).toEqual([{ message: 'begun' }]);
    expect(await result).toEqual(before);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('a hook of the host');
      },
    ],
    ['rejects', () => Promise.reject(new Error('a hook of the host'))],
  ])('and one before it to a hook that %s, take nothing down', async (_, onProgress) => {
    const { dispatch, warnings } = lab(async (_input, call) => {
      call.report({ message: 'half' });
      return 'done';
    });
    expect((await dispatch({ onProgress: onProgress as () => void })).content).toBe('done');
    expect(warnings).toEqual(['onProgress failed']);
  });
});

describe('the signal of a session', () => {
  /** Every layer at work: an asynchronous schema, a person who is asked, a log, a limit. */
  const everything: LabOptions = {
    logging: { logger: silent },
    permission: { check: async () => PermissionCheck.ask('Run it?'), approver: async () => true },
    timeout: { limitMs: 1000 },
    inputSchema: z.object({}).refine(async () => true),
  };

  const ENDINGS: readonly (readonly [string, Execute])[] = [
    ['answers', async () => 'done'],
    ['answers at once', () => 'done'],
    ['fails', () => Promise.reject(new Error('secret'))],
    ['hears of aborts', (_, call) => (call.signal.addEventListener('abort', () => {}), turns(1))],
    ['exceeds its limit', hanging],
  ];

  test.each(ENDINGS)(
    'G05: keeps no listener of 1,000 calls in a row and 50 at once, whose tool %s',
    async (_, execute) => {
      const { dispatch, clock, controller } = lab(execute, everything);
      const { signal } = controller;
      let added = 0;
      let most = 0;
      const add = signal.addEventListener.bind(signal);
      Object.assign(signal, {
        addEventListener: (...given: Parameters<typeof add>) => {
          added++;
          add(...given);
          most = Math.max(most, getEventListeners(signal, 'abort').length);
        },
      });

      const many = execute === hanging ? 50 : 1000;
      for (let index = 0; index < many; index++) {
        const result = dispatch();
        if (execute === hanging) await clock.advance(1000);
        expect((await result).requested.name).toBe('work');
      }
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
      expect(added).toBe(many);

      const results = Array.from({ length: 50 }, () => dispatch());
      if (execute === hanging) await clock.advance(1000);
      await Promise.all(results);
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
      expect(most).toBe(1);
      await turns();
      expect(processWarnings).toEqual([]);
      expect(clock.pending).toBe(0);
    },
  );

  test('keeps none of 50 calls it has aborted, nor of those that call others with it', async () => {
    const inner = defineTool({ name: 'inner', description: 'Waits.', execute: (_, call) => waitHeeding(call, 1000) });
    const { dispatcher, dispatch, clock, controller } = lab(async (_, call) => {
      const { signal } = call;
      const other = dispatcher.with({ tools: [inner] });
      const calls = Array.from({ length: 20 }, () => other.dispatch({ name: 'inner' }, { signal, parent: call }));
      const results = await Promise.all(calls);
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
      return results.length;
    });
    const results = Array.from({ length: 50 }, () => dispatch());
    await clock.advance(10);
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
    controller.abort();
    for (const { error } of await Promise.all(results)) expect(error?.code ?? 'ok').toMatch(/cancelled|ok/);
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
    expect(clock.pending).toBe(0);
  });
});

describe('a limit', () => {
  const REFUSED = [
    0,
    -0,
    -1,
    Number.NaN,
    2 ** 31,
    1e306,
    Number.NEGATIVE_INFINITY,
    '20',
    20n,
    null,
    true,
    new Date(20),
  ];
  const ALLOWED = [undefined, Number.POSITIVE_INFINITY, 2 ** 31 - 1, 1, 0.5];

  const WHERE: readonly (readonly [string, (value: unknown) => unknown])[] = [
    ['limitMs', (value) => timeout({ limitMs: value as number })],
    ['limitMs', (value) => timeout({ limitMs: { default: value as number, byTool: {} } })],
    ['limitMs', (value) => timeout({ limitMs: { byTool: { work: value as number } } })],
    ['timeout', (value) => standard({ permission: false, timeout: { limitMs: value as number } })],
    ['timeoutMs', (value) => timeoutMs(value as number)],
    ['checkLimitMs', (value) => permission({ checkLimitMs: value as number })],
    ['approvalLimitMs', (value) => permission({ approvalLimitMs: value as number })],
    ['limitMs', (value) => validation({ limitMs: value as number })],
  ];

  test('G07: that no timer can hold is refused where it is given, and the longest one does not fire at once', async () => {
    for (const [option, give] of WHERE) {
      for (const value of REFUSED) {
        let thrown: unknown;
        try {
          give(value);
        } catch (error) {
          thrown = error;
        }
        expect([option, value, thrown]).toEqual([option, value, expect.objectContaining({ name: 'TypeError' })]);
        expect(String(thrown)).toMatch(/LimitMs|limitMs|timeoutMs/);
        expect(String(thrown)).toMatch(/milliseconds above 0 and up to 2147483647 \(24\.8 days\), or Infinity/);
      }
      for (const value of ALLOWED) expect(() => give(value)).not.toThrow();
    }
    for (const [limitMs, lastMs] of [
      [2 ** 31 - 1, 2 ** 31 - 2],
      [Number.POSITIVE_INFINITY, 2 ** 40],
    ] as const) {
      let result: ToolDispatchResult | undefined;
      const { clock, dispatch, controller } = lab(hanging, { timeout: { limitMs } });
      void dispatch().then((settled) => {
        result = settled;
      });
      await clock.advance(lastMs);
      expect(result).toBeUndefined();
      await clock.advance(1);
      expect(result?.error?.code).toBe(limitMs === Number.POSITIVE_INFINITY ? undefined : 'timeout');
      controller.abort();
      await turns();
      expect(clock.pending).toBe(0);
    }
  });

  test.each([2 ** 31 - 1, Number.POSITIVE_INFINITY])(
    'of %p lets a tool work on the clock of the system',
    async (limitMs) => {
      const tool = defineTool({ name: 'work', description: 'Works.', execute: () => turns(3).then(() => 'done') });
      const middleware = standard({ logging: false, permission: { check: allowAll }, timeout: { limitMs } });
      const settings = [timeoutMs(limitMs)];
      const result = await createDispatcher({ tools: [tool], middleware }).dispatch({ name: 'work' }, { settings });
      expect(result).toMatchObject({ content: 'done', notes: [] });
    },
  );
});

describe('the signal a tool sees', () => {
  const awaits: Middleware = named('awaits', async (call, next) => await next(call));
  const edits: Middleware = named('edits', (call, next) => next(call.with({ input: { edited: true } })));
  const scopes: Middleware = named('scopes', (call, next) => {
    const scope = call.abortScope();
    return scope.follow(next(scope.call));
  });
  const LAYERS: readonly Middleware[] = [
    ...standard({ permission: { check: allowAll }, logging: { logger: silent } }),
    permission({ check: async () => PermissionCheck.allow() }),
    awaits,
    edits,
    scopes,
  ];

  /** The layers in so many orders: each at each place once. */
  const ORDERS = LAYERS.map((_, at) => [...LAYERS.slice(at), ...LAYERS.slice(0, at)]).flatMap((order) => [
    order,
    order.toReversed(),
  ]);

  test('G08: aborts with the caller’s reason, through the layers in any order', async () => {
    const reason = { why: 'the user pressed Escape' };
    for (const outside of [[], ...ORDERS, ...LAYERS.map((layer) => [layer])]) {
      const seen: unknown[] = [];
      const tool = defineTool({
        name: 'work',
        description: 'Works.',
        execute: async (_, call) => {
          const { signal } = call;
          seen.push(signal.aborted);
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
          seen.push(signal.aborted, signal.reason, call.aborted, call.abortReason);
          throw signal.reason;
        },
      });
      const controller = new AbortController();
      const dispatcher = createDispatcher({ tools: [tool], middleware: outside });
      const result = dispatcher.dispatch({ name: 'work' }, { signal: controller.signal });
      await turns();
      controller.abort(reason);
      expect((await result).error).toMatchObject({ code: 'cancelled', executed: 'stopped' });
      expect(seen).toEqual([false, true, reason, true, reason]);
      expect(seen[2]).toBe(reason);
    }
  });

  /** Stand-ins for a signal: an older package’s, a test’s own, one wrapped by a proxy. */
  function standIn(call: (listener: () => void, signal: object) => void) {
    const listeners = new Set<() => void>();
    const signal = {
      aborted: false,
      reason: undefined as unknown,
      addEventListener: (_: string, listener: () => void) => listeners.add(listener),
      removeEventListener: (_: string, listener: () => void) => listeners.delete(listener),
    };
    return {
      signal: signal as unknown as AbortSignal,
      listeners,
      abort: (reason: unknown) => {
        Object.assign(signal, { aborted: true, reason });
        for (const listener of [...listeners]) call(listener, signal);
      },
    };
  }

  test.each([
    ['a plain function', (listener: () => void) => listener()],
    ['a method of the signal', (listener: () => void, signal: object) => listener.call(signal)],
    ['a method of an emitter', (listener: () => void) => listener.call({ emitter: true })],
  ])('aborts with a stand-in that calls its listeners as %s', async (_, call) => {
    const { signal, listeners, abort } = standIn(call);
    const { dispatch, clock } = lab((_input, own) => waitHeeding(own, 1000));
    const result = dispatch({ signal });
    await clock.advance(10);
    abort('enough');
    expect((await result).error).toMatchObject({ code: 'cancelled', executed: 'stopped' });
    expect(listeners.size).toBe(0);
    expect(clock.pending).toBe(0);
  });

  test('aborts with a signal behind a proxy', async () => {
    const { dispatch, controller, clock } = lab((_, call) => waitHeeding(call, 1000));
    const result = dispatch({ signal: new Proxy(controller.signal, {}) });
    await clock.advance(10);
    controller.abort('enough');
    expect((await result).error).toMatchObject({ code: 'cancelled', executed: 'stopped' });
  });

  const broken = (what: object) =>
    Object.defineProperties(
      { aborted: false, reason: undefined, addEventListener: () => {}, removeEventListener: () => {} },
      Object.getOwnPropertyDescriptors(what),
    ) as unknown as AbortSignal;
  const explode = () => {
    throw new Error('a fault of the signal');
  };

  test.each([
    ['takes no listener', () => broken({ addEventListener: explode }), undefined, 1],
    ['does not let go of one', () => broken({ removeEventListener: explode }), undefined, 1],
    [
      'cannot be read a second time',
      () => {
        let reads = 0;
        return broken({
          get aborted() {
            return reads++ === 0 ? false : explode();
          },
        });
      },
      undefined,
      0,
    ],
    [
      'does not tell its reason',
      () =>
        broken({
          aborted: true,
          get reason() {
            return explode();
          },
        }),
      'cancelled',
      0,
    ],
  ])('may be of one that %s: the call has a result all the same', async (_, make, code, warned) => {
    for (const execute of [() => 'done', async () => 'done']) {
      const { dispatch, warnings } = lab(execute, { outside: [awaits] });
      const result = await dispatch({ signal: make() });
      expect([result.error?.code, result.error?.executed]).toEqual([code, code && 'no']);
      expect(warnings).toEqual(Array(warned).fill('The signal failed'));
    }
  });
});

describe('a call aborted at 10 ms', () => {
  /** What the tool does by 50 ms, and what is known of it when the call is answered. */
  const ROWS: readonly (readonly [string, string, Execute, LabOptions])[] = [
    [
      'no',
      'waits for a person',
      () => 'done',
      { permission: { check: () => PermissionCheck.ask('?'), approver: hangs } },
    ],
    ['no', 'waits for a rule', () => 'done', { permission: { check: hangs } }],
    ['no', 'waits for its schema', () => 'done', { inputSchema: z.object({}).refine(hangs) }],
    ['no', 'waits in a layer before the tool', () => 'done', { inside: [named('hangs', hangs)] }],
    ['stopped', 'heeds its signal', (_, call) => waitHeeding(call, 50), {}],
    [
      'stopped',
      'heeds its signal by a failure of its own',
      (_, call) =>
        waitHeeding(call, 50).catch(() => {
          throw new Error('broken pipe');
        }),
      {},
    ],
    [
      'unknown',
      'ignores its signal and writes at 50 ms',
      async (_, call) => {
        await wait(call, 50);
        return 'written';
      },
      {},
    ],
    ['unknown', 'ignores its signal and fails at 50 ms', (_, call) => wait(call, 50).then(() => Promise.reject()), {}],
    [
      'yes',
      'is through, while a layer after it waits',
      () => 'written',
      {
        inside: [
          named('slow', async (call, next) => {
            const outcome = await next(call);
            await wait(call, 50);
            return outcome;
          }),
        ],
      },
    ],
  ];

  function hangs(): Promise<never> {
    return new Promise(() => {});
  }

  test.each(ROWS)('G09: says "%s" of a tool that %s', async (executed, _, execute, options) => {
    const { dispatch, controller, clock, late } = lab(execute, options);
    const result = dispatch();
    await clock.advance(10);
    controller.abort();
    const { error, content } = await result;
    expect(error).toMatchObject({ code: 'cancelled', executed, retryable: false });
    expect(content).toMatch(
      {
        no: /It had not started\.$/,
        stopped: /It was stopped before it was done\.$/,
        unknown: /It may still be running, so its effect is unknown: check before you call it again\.$/,
        yes: /It had finished, but its answer is lost\.$/,
      }[executed] as RegExp,
    );
    await clock.advance(100);
    expect(late.length).toBe(executed === 'unknown' || executed === 'yes' ? 1 : 0);
    expect(clock.pending).toBe(0);
  });
});

describe('a call whose signal has aborted already', () => {
  const reason = new Error('the user has left');
  const parents: ToolCall[] = [];

  const BEFORE: readonly (readonly [string, () => DispatchOptions | Promise<DispatchOptions>])[] = [
    ['with a reason', () => ({ signal: AbortSignal.abort(reason) })],
    ['without one', () => ({ signal: AbortSignal.abort() })],
    ['with a reason that is no error', () => ({ signal: AbortSignal.abort(0) })],
    [
      'beside another that has not',
      () => ({ signal: AbortSignal.any([AbortSignal.abort(), new AbortController().signal]) }),
    ],
    [
      'as that of the call whose tool makes it',
      async () => {
        const outer = lab((_, call) => (parents.push(call), hanging(_, call)));
        const result = outer.dispatch();
        outer.controller.abort(reason);
        await result;
        return { parent: parents.at(-1) as ToolCall };
      },
    ],
  ];

  const SCHEMAS = [{ type: 'object' }, z.object({}), z.object({}).refine(async () => true)] as const;

  test.each(BEFORE)(
    'G10: runs no tool and asks nobody, and every layer outside hears of it once: %s',
    async (_, given) => {
      for (const inputSchema of SCHEMAS) {
        const happened: string[] = [];
        const seen: ToolOutcome[] = [];
        const lines: object[] = [];
        const logger = {
          isLevelEnabled: () => true,
          info: (line: object) => lines.push(line),
          warn: (line: object) => lines.push(line),
          error: (line: object) => lines.push(line),
        };
        const { dispatcher, clock, late } = lab(() => happened.push('run'), {
          inputSchema,
          logging: { logger: logger as unknown as CallLogger },
          permission: {
            check: () => {
              happened.push('judged');
              return PermissionCheck.ask('Run it?');
            },
            approver: () => {
              happened.push('asked');
              return true;
            },
          },
          outside: [
            named('hook', async (call, next) => {
              const outcome = await next(call);
              seen.push(outcome);
              return outcome;
            }),
          ],
        });
        const result = await dispatcher.dispatch({ name: 'work' }, await given());
        expect(result.error).toMatchObject({ code: 'cancelled', executed: 'no', retryable: false });
        expect(result.content).toBe('The call of tool "work" was cancelled. It had not started.');
        await turns();
        expect(happened).toEqual([]);
        expect(seen).toHaveLength(1);
        expect(seen[0]?.error).toBe(result.error);
        expect(lines).toMatchObject([{ code: 'cancelled' }]);
        expect(late).toEqual([]);
        expect(clock.pending).toBe(0);
      }
    },
  );

  test.each(BEFORE)('runs no tool where no layer looks: %s', async (_, given) => {
    let runs = 0;
    const tool = defineTool({ name: 'work', description: 'Works.', execute: () => ++runs });
    for (const middleware of [
      [],
      [timeout()],
      [named('awaits', async (call: ToolCall, next: Next) => await next(call))],
    ]) {
      const result = await createDispatcher({ tools: [tool], middleware }).dispatch({ name: 'work' }, await given());
      expect(result.error).toMatchObject({ code: 'cancelled', executed: 'no' });
    }
    expect(runs).toBe(0);
  });
});

describe('a tool that keeps the event loop busy for 300 ms, with a limit of 50', () => {
  const BUSY: readonly (readonly [string, (busy: () => void) => Execute])[] = [
    [
      'and answers at once',
      (busy) => () => {
        busy();
        return 'done';
      },
    ],
    [
      'before it waits',
      (busy) => async () => {
        busy();
        return 'done';
      },
    ],
    [
      'after it has waited',
      (busy) => async () => {
        await turns(1);
        busy();
        return 'done';
      },
    ],
    [
      'between two yields',
      (busy) =>
        async function* () {
          yield 'do';
          busy();
          yield 'ne';
        },
    ],
  ];
  const asked: StandardOptions['permission'] = { check: () => PermissionCheck.ask('?'), approver: async () => true };
  const EXCEEDED = {
    type: 'exceeded',
    by: 'dispatcher',
    message: expect.stringMatching(/longer than its limit of 50 ms/),
  };

  test.each(BUSY)('G14: %s: is believed, with a note that says so', async (_, tool) => {
    for (const options of [{}, { permission: asked }, { inside: [named('in', async (c, n) => await n(c))] }] as const) {
      for (const [busyMs, notes] of [
        [300, [EXCEEDED]],
        [50, []],
      ] as const) {
        const { dispatch, clock } = lab(
          tool(() => clock.jump(busyMs)),
          { timeout: { limitMs: 50 }, ...options },
        );
        expect(await dispatch()).toMatchObject({ content: 'done', isError: false, notes });
        expect(clock.pending).toBe(0);
      }
    }
  });

  test('and throws: the failure is its own, with the same note', async () => {
    for (const wait of [() => {}, () => turns(1)]) {
      const { dispatch, clock } = lab(
        async () => {
          await wait();
          clock.jump(300);
          throw new Error('secret');
        },
        { timeout: { limitMs: 50 } },
      );
      expect(await dispatch()).toMatchObject({ error: { code: 'execution_failed' }, notes: [EXCEEDED] });
    }
  });
});

describe('a tool that writes and cannot be stopped', () => {
  const writing: Execute = async (_, call) => {
    await wait(call, 300);
    return 'written';
  };
  const failing: Execute = async (_, call) => {
    await wait(call, 300);
    throw new Error('secret');
  };
  const GRACES: readonly (readonly [string, TimeoutOptions])[] = [
    ['for all tools', { graceMs: Number.POSITIVE_INFINITY }],
    ['for this tool', { graceMs: { default: 0, byTool: { work: Number.POSITIVE_INFINITY } } }],
    ['for tools of such a name', { graceMs: { byTool: { 'w*': 1000 } } }],
  ];

  test.each(GRACES)('G15: is waited for after its limit, where the host says so %s', async (_, grace) => {
    const done = lab(writing, { timeout: { limitMs: 50, ...grace } });
    const result = await done.after(300);
    expect(result).toMatchObject({ content: 'written', isError: false, notes: [{ type: 'exceeded' }] });
    expect(done.late).toEqual([]);
    expect(done.clock.pending).toBe(0);

    const failed = await lab(failing, { timeout: { limitMs: 50, ...grace } }).after(300);
    expect(failed?.error).toMatchObject({ code: 'timeout', executed: 'stopped' });
  });

  test.each<readonly [string, TimeoutOptions]>([
    ['nothing', {}],
    ['so for others only', { graceMs: { byTool: { deploy: Number.POSITIVE_INFINITY } } }],
    ['that it has 100 ms', { graceMs: 100 }],
  ])('is answered for with an unknown outcome, where the host says %s', async (_, grace) => {
    const { after, late, clock } = lab(writing, { timeout: { limitMs: 50, ...grace } });
    const result = await after(200);
    expect(result?.error).toMatchObject({ code: 'timeout', executed: 'unknown' });
    await clock.advance(100);
    expect(late).toMatchObject([{ content: 'written' }]);
    expect(clock.pending).toBe(0);
  });
});
