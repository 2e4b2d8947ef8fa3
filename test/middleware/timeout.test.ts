import { describe, expect, test } from '@jest/globals';
import {
  type Clock,
  createDispatcher,
  type Dispatcher,
  type DispatchOptions,
  defineTool,
  type Middleware,
  named,
  type ToolCall,
  type ToolDispatchResult,
  ToolFailure,
  type ToolOutcome,
} from 'toolonion';
import {
  outputLimit,
  outputValidation,
  type TimeoutOptions,
  timeout,
  timeoutMs,
  validation,
} from 'toolonion/middleware';
import { ManualClock, turns } from '../support/manual-clock.ts';
import { expectNothingUnhandled } from '../support/unhandled.ts';

type Execute = (input: unknown, call: ToolCall) => unknown;

/** A dispatcher with one tool, `work`, and what its host hears. */
interface Bench {
  readonly clock: ManualClock;
  readonly late: ToolOutcome[];
  readonly dispatcher: Dispatcher;
  /** Keeps the event loop busy: time passes, and no timer fires. */
  busy(ms: number): void;
  dispatch(options?: DispatchOptions): Promise<ToolDispatchResult>;
}

function bench(
  execute: Execute,
  options?: TimeoutOptions,
  outside: Middleware[] = [],
  inside: Middleware[] = [],
): Bench {
  const clock = new ManualClock();
  let busyMs = 0;
  const late: ToolOutcome[] = [];
  const dispatcher = createDispatcher({
    tools: [defineTool({ name: 'work', description: 'Works.', execute })],
    middleware: [...outside, timeout(options), ...inside],
    clock: { ...clock, now: () => clock.now() + busyMs },
    onLate: (outcome) => {
      late.push(outcome);
    },
  });
  return {
    clock,
    late,
    dispatcher,
    busy: (ms) => {
      busyMs += ms;
    },
    dispatch: (given) => dispatcher.dispatch({ name: 'work' }, given),
  };
}

/** A promise settled by hand. */
function deferred<Value>() {
  let settle: { resolve: (value: Value) => void; reject: (reason: unknown) => void } | undefined;
  const promise = new Promise<Value>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return {
    promise,
    resolve: (value: Value) => settle?.resolve(value),
    reject: (reason: unknown) => settle?.reject(reason),
  };
}

/** A tool that stops when its signal aborts, and says so in its own way. */
const heeding: Execute = (_, call) =>
  new Promise((_resolve, reject) => {
    call.signal.addEventListener('abort', () => reject(call.signal.reason));
  });

const hanging: Execute = () => new Promise(() => {});

expectNothingUnhandled();

describe('the limit', () => {
  test('is two minutes by default', async () => {
    const { clock, dispatch } = bench(hanging);
    const result = dispatch();
    await clock.advance(119_999);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    expect((await result).error).toMatchObject({ code: 'timeout', executed: 'unknown', retryable: true });
    expect((await result).content).toBe(
      'Tool "work" did not finish within its limit of 120000 ms. It may still be running, so its effect is unknown: check before you call it again.',
    );
    expect(clock.pending).toBe(0);
  });

  test('is told per tool, and by the name of any', async () => {
    const { clock, dispatch } = bench(hanging, { limitMs: { default: 10, byTool: { work: 50, constructor: 1 } } });
    const result = dispatch();
    await clock.advance(49);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    expect((await result).content).toContain('limit of 50 ms');
  });

  test('is told per call, whatever the tool has', async () => {
    const { clock, dispatch } = bench(hanging, { limitMs: { byTool: { work: Number.POSITIVE_INFINITY } } });
    const result = dispatch({ settings: [timeoutMs(500)] });
    await clock.advance(500);
    expect((await result).content).toContain('limit of 500 ms');
  });

  test('can be lifted: Infinity arms nothing', async () => {
    const work = deferred<string>();
    const { clock, dispatch } = bench(() => work.promise, { limitMs: Number.POSITIVE_INFINITY });
    const result = dispatch();
    await clock.advance(2 ** 40);
    expect(clock.pending).toBe(0);
    work.resolve('done');
    expect((await result).content).toBe('done');
  });

  test.each([0, -1, Number.NaN, 2 ** 31, 1e306, '5', null])(
    'G07: %p is refused where it is given, naming the option',
    (value) => {
      const limitMs = value as number;
      expect(() => timeout({ limitMs })).toThrow(
        /"limitMs" of timeout must be milliseconds above 0 and up to 2147483647/,
      );
      expect(() => timeout({ limitMs: { byTool: { work: limitMs } } })).toThrow(/"limitMs" of timeout.*for each tool/);
      expect(() => timeoutMs(limitMs)).toThrow(/"timeoutMs" of settings must be milliseconds above 0/);
    },
  );

  test('G07: the longest limit does not fire at once', async () => {
    const { clock, dispatch } = bench(hanging, { limitMs: 2 ** 31 - 1 });
    const result = dispatch();
    await clock.advance(2 ** 31 - 2);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    expect((await result).error?.code).toBe('timeout');
  });

  test.each([-1, Number.NaN, 2 ** 31, 'long'])('a grace of %p is refused where it is given', (value) => {
    expect(() => timeout({ graceMs: value as number })).toThrow(
      /"graceMs" of timeout must be 0, or milliseconds above 0/,
    );
  });

  test('an option it does not have is refused', () => {
    expect(() => timeout({ limit: 5 } as TimeoutOptions)).toThrow(
      /has no option "limit". Its options: limitMs, idleMs, graceMs/,
    );
  });
});

describe('the tool', () => {
  test('G01: hears of the end by its signal, whose reason is a TimeoutError, and writes nothing', async () => {
    let written = false;
    let reason: unknown;
    const { clock, dispatch } = bench(
      async (_, call) => {
        await new Promise((resolve) => call.clock.setTimeout(() => resolve(undefined), 100));
        reason = call.signal.reason;
        call.signal.throwIfAborted();
        written = true;
      },
      { limitMs: 20 },
    );
    const result = dispatch();
    await clock.advance(20);
    expect((await result).error).toMatchObject({ code: 'timeout', executed: 'unknown' });
    await clock.advance(200);
    expect(written).toBe(false);
    expect(reason).toMatchObject({ name: 'TimeoutError', message: expect.stringContaining('limit of 20 ms') });
    expect(Object.prototype.toString.call(reason)).toBe('[object Error]');
  });

  test('that stops when it hears is told to be stopped', async () => {
    const { clock, dispatch, late } = bench(heeding, { limitMs: 20 });
    const result = dispatch();
    await clock.advance(20);
    expect(await result).toMatchObject({
      content: 'Tool "work" did not finish within its limit of 20 ms. It was stopped before it was done.',
      isError: true,
      error: { code: 'timeout', executed: 'stopped' },
    });
    expect(late).toEqual([]);
  });

  test('that answers within the turn it is given is believed', async () => {
    const { clock, dispatch } = bench(
      (_, call) => new Promise((resolve) => call.signal.addEventListener('abort', () => resolve('half of it'))),
      { limitMs: 20 },
    );
    const result = dispatch();
    await clock.advance(20);
    expect(await result).toMatchObject({
      content: 'half of it',
      isError: false,
      notes: [{ type: 'exceeded', by: 'dispatcher' }],
    });
    expect(clock.pending).toBe(0);
  });

  test('G04: may report after the end, and nobody hears', async () => {
    const heard: unknown[] = [];
    let call: ToolCall | undefined;
    const { clock, dispatch } = bench(
      (_, given) => {
        call = given;
        return new Promise(() => {});
      },
      { limitMs: 20 },
    );
    const result = dispatch({ onProgress: (progress) => heard.push(progress) });
    call?.report({ message: 'early' });
    await clock.advance(20);
    await result;
    call?.report({ message: 'late' });
    expect(heard).toEqual([{ message: 'early' }]);
  });

  test('G16: that is a generator is closed, and one that is stuck holds nothing up', async () => {
    let closed = 0;
    async function* stuckAfterOne() {
      try {
        yield 'one';
        await new Promise(() => {});
      } finally {
        closed++;
      }
    }
    const stuck = bench(stuckAfterOne, { limitMs: 20 });
    const result = stuck.dispatch();
    await stuck.clock.advance(20);
    expect((await result).error).toMatchObject({ code: 'timeout', executed: 'unknown' });
    expect(closed).toBe(0);

    const tick = deferred<void>();
    async function* waits() {
      try {
        yield 'one';
        await tick.promise;
        yield 'two';
        yield 'three';
      } finally {
        closed++;
      }
    }
    const waiting = bench(waits, { limitMs: 20 });
    const second = waiting.dispatch();
    await waiting.clock.advance(20);
    expect((await second).error?.code).toBe('timeout');
    tick.resolve();
    await turns();
    expect(closed).toBe(1);
  });

  test('G14: that keeps the event loop busy longer than its limit is believed, with a note', async () => {
    const { dispatch, busy } = bench(
      () => {
        busy(300);
        return 'done';
      },
      { limitMs: 50 },
    );
    expect(await dispatch()).toMatchObject({
      content: 'done',
      isError: false,
      notes: [{ type: 'exceeded', by: 'dispatcher', message: expect.stringMatching(/took 300 ms.*limit of 50 ms/) }],
    });
  });

  test('G14: that keeps the event loop busy before it waits has used up that much of its limit', async () => {
    const { dispatch, busy, clock } = bench(
      () => {
        busy(40);
        return new Promise(() => {});
      },
      { limitMs: 50 },
    );
    const result = dispatch();
    await clock.advance(9);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    expect((await result).error?.code).toBe('timeout');
  });

  test('that answers at once is answered for untouched, and nothing is armed', async () => {
    const seen: ToolOutcome[] = [];
    const look: Middleware = (call, next) => {
      const outcome = next(call) as ToolOutcome;
      seen.push(outcome);
      return outcome;
    };
    const { dispatch, clock } = bench(() => 'done', {}, [look], [look]);
    const armed: unknown[] = [];
    const setTimeout = clock.setTimeout;
    Object.assign(clock, { setTimeout: (...given: Parameters<typeof setTimeout>) => armed.push(setTimeout(...given)) });
    await dispatch();
    expect(seen[0]).toBe(seen[1]);
    expect(armed).toEqual([]);
  });
});

describe('the grace', () => {
  test('is waited out, and what comes within it is believed', async () => {
    const work = deferred<string>();
    const { clock, dispatch } = bench(() => work.promise, { limitMs: 20, graceMs: 100 });
    const result = dispatch();
    await clock.advance(119);
    work.resolve('after all');
    await turns();
    expect(await result).toMatchObject({ content: 'after all', isError: false });
    expect(clock.pending).toBe(0);
  });

  test.each<[string, string | undefined, object]>([
    ['a value is believed', 'committed', { content: 'committed', isError: false, notes: [{ type: 'exceeded' }] }],
    ['nothing is told as stopped', undefined, { isError: true, error: { code: 'timeout', executed: 'stopped' } }],
  ])('is waited out for a generator: one that returns %s', async (_, returned, expected) => {
    const work = deferred<void>();
    const { clock, dispatch } = bench(
      async function* () {
        yield 'begun';
        await work.promise;
        return returned;
      },
      { limitMs: 20, graceMs: 100 },
    );
    const result = dispatch();
    await clock.advance(119);
    work.resolve();
    await turns();
    expect(await result).toMatchObject(expected);
    expect(clock.pending).toBe(0);
  });

  test('ends in an unknown outcome', async () => {
    const { clock, dispatch } = bench(hanging, { limitMs: 20, graceMs: { byTool: { work: 100 } } });
    const result = dispatch();
    await clock.advance(119);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    expect((await result).error).toMatchObject({ code: 'timeout', executed: 'unknown' });
    expect(clock.pending).toBe(0);
  });

  test('G15: of Infinity waits for what writes and cannot be stopped', async () => {
    const work = deferred<string>();
    const { clock, dispatch } = bench(() => work.promise, { limitMs: 20, graceMs: Number.POSITIVE_INFINITY });
    const result = dispatch();
    await clock.advance(1_000_000);
    expect(clock.pending).toBe(0);
    work.resolve('written');
    expect(await result).toMatchObject({ content: 'written', isError: false });
  });
});

describe('what comes late', () => {
  test('G03: goes to the host once, success or failure', async () => {
    const success = deferred<string>();
    const first = bench(() => success.promise, { limitMs: 20 });
    const result = first.dispatch();
    await first.clock.advance(20);
    await result;
    success.resolve('too late');
    await turns();
    expect(first.late).toMatchObject([{ content: 'too late', isError: false }]);

    const failure = deferred<string>();
    const second = bench(() => failure.promise, { limitMs: 20 });
    const other = second.dispatch();
    await second.clock.advance(20);
    await other;
    failure.reject(new ToolFailure('Too late, and wrong.'));
    await turns();
    expect(second.late).toMatchObject([{ content: 'Too late, and wrong.', error: { executed: 'yes' } }]);
  });

  test('G03: goes to the host once, though a layer hands on a copy of what was answered in its place', async () => {
    const work = deferred<string>();
    const layer = deferred<void>();
    const slow: Middleware = named('slow', async (call, next) => {
      const outcome = await next(call);
      await layer.promise;
      return { ...outcome };
    });
    const { clock, dispatch, late } = bench(() => work.promise, { limitMs: 20 }, [], [slow]);
    const result = dispatch();
    await clock.advance(20);
    await result;
    layer.resolve();
    await turns();
    work.resolve('too late');
    await turns();
    expect(late).toMatchObject([{ content: 'too late' }]);
  });

  test('changes nothing of the answer that was given', async () => {
    const work = deferred<string>();
    const { clock, dispatch } = bench(() => work.promise, { limitMs: 20 });
    const result = dispatch();
    await clock.advance(20);
    const before = structuredClone(await result);
    work.resolve('too late');
    await turns();
    expect(await result).toEqual(before);
  });
});

describe('a caller that aborts', () => {
  test('G10: before the call keeps the tool from starting', async () => {
    let runs = 0;
    const { dispatch, clock } = bench(() => runs++, { limitMs: 20 });
    const result = await dispatch({ signal: AbortSignal.abort() });
    expect(result.error).toMatchObject({ code: 'cancelled', executed: 'no' });
    expect(runs).toBe(0);
    expect(clock.pending).toBe(0);
  });

  test('G08: during the call is heard by the tool, with its own reason', async () => {
    let reason: unknown;
    const controller = new AbortController();
    const { dispatch, clock } = bench(
      (_, call) =>
        new Promise((_resolve, reject) => {
          call.signal.addEventListener('abort', () => {
            reason = call.signal.reason;
            reject(reason);
          });
        }),
      { limitMs: 20 },
    );
    const result = dispatch({ signal: controller.signal });
    await clock.advance(10);
    controller.abort('enough');
    expect((await result).error).toMatchObject({ code: 'cancelled', executed: 'stopped' });
    expect(reason).toBe('enough');
    expect(clock.pending).toBe(0);
  });

  test('G09: during the call is told that a tool which does not listen may still be running', async () => {
    const controller = new AbortController();
    const { dispatch, clock } = bench(hanging, { limitMs: 20 });
    const result = dispatch({ signal: controller.signal });
    controller.abort();
    expect((await result).error).toMatchObject({ code: 'cancelled', executed: 'unknown' });
    await clock.advance(100);
    expect(clock.pending).toBe(0);
  });

  test('during a long grace is not kept waiting', async () => {
    const controller = new AbortController();
    const { dispatch, clock } = bench(hanging, { limitMs: 20, graceMs: 10_000 });
    const result = dispatch({ signal: controller.signal });
    await clock.advance(20);
    controller.abort();
    expect((await result).error).toMatchObject({ executed: 'unknown' });
    expect(clock.pending).toBe(0);
  });

  test('after the call changes nothing', async () => {
    const controller = new AbortController();
    const { dispatch, clock } = bench(async () => 'done', { limitMs: 20 });
    const result = await dispatch({ signal: controller.signal });
    controller.abort();
    await clock.advance(100);
    expect(result.content).toBe('done');
  });
});

describe('between the limit and the tool', () => {
  const awaits: Middleware = named('awaits', async (call, next) => await next(call));

  test('a layer that waits changes nothing', async () => {
    const { clock, dispatch, late } = bench(heeding, { limitMs: 20 }, [], [awaits]);
    const result = dispatch();
    await clock.advance(20);
    expect((await result).error).toMatchObject({ code: 'timeout', executed: 'stopped' });
    expect(clock.pending).toBe(0);
    expect(late).toEqual([]);
  });

  test('a layer that hangs before the tool is ended too, and the tool does not start', async () => {
    let runs = 0;
    const hangs: Middleware = named('hangs', () => new Promise(() => {}));
    const { clock, dispatch } = bench(() => runs++, { limitMs: 20 }, [], [hangs]);
    const result = dispatch();
    await clock.advance(20);
    expect((await result).error).toMatchObject({ code: 'timeout', executed: 'no' });
    expect(runs).toBe(0);
  });

  test('a layer that hangs after the tool is ended too, and the answer is told to be lost', async () => {
    const hangs: Middleware = named('hangs', async (call, next) => {
      await next(call);
      return await new Promise(() => {});
    });
    const { clock, dispatch } = bench(async () => 'done', { limitMs: 20 }, [], [hangs]);
    const result = dispatch();
    await clock.advance(20);
    expect((await result).error).toMatchObject({ code: 'timeout', executed: 'yes' });
  });

  test('a layer that hangs leaves no timer when the caller aborts', async () => {
    const hangs: Middleware = named('hangs', async (call, next) => {
      await next(call);
      return await new Promise(() => {});
    });
    const controller = new AbortController();
    const { clock, dispatch } = bench(async () => 'done', { limitMs: 20 }, [], [hangs]);
    const result = dispatch({ signal: controller.signal });
    await clock.advance(10);
    controller.abort();
    expect((await result).error).toMatchObject({ code: 'cancelled', executed: 'yes' });
    expect(clock.pending).toBe(0);
  });

  test('two limits hold: the shorter one ends the call, wherever it is', async () => {
    for (const [outer, inner] of [
      [10, 30],
      [30, 10],
    ] as const) {
      const { clock, dispatch } = bench(hanging, { limitMs: inner }, [timeout({ limitMs: outer })]);
      const result = dispatch();
      await clock.advance(10);
      expect((await result).content).toContain('limit of 10 ms');
      expect(clock.pending).toBe(0);
    }
  });
});

test('G13: a layer outside may call again after a limit, and each attempt has its own', async () => {
  let attempts = 0;
  const again: Middleware = named('again', async (call, next) => {
    const first = await next(call);
    return first.error?.code === 'timeout' ? await next(call) : first;
  });
  const { clock, dispatch } = bench(
    (_, call) => (++attempts === 1 ? heeding(_, call) : Promise.resolve('second')),
    { limitMs: 20 },
    [again],
  );
  const result = dispatch();
  await clock.advance(20);
  expect(await result).toMatchObject({ content: 'second', isError: false });
  expect(clock.pending).toBe(0);
});

test('concurrent calls have limits of their own', async () => {
  const { clock, dispatch } = bench(hanging, {});
  const results = [30, 10, 20].map((limitMs) => dispatch({ settings: [timeoutMs(limitMs)] }));
  const order: string[] = [];
  for (const result of results)
    void result.then(({ content }) => order.push(/of (\d+) ms/.exec(String(content))?.[1] ?? ''));
  await clock.advance(30);
  expect(order).toEqual(['10', '20', '30']);
});

test('a suspension passes', async () => {
  const { clock, dispatch } = bench(async (_, call) => call.suspend({ reason: 'Ask a person.' }), { limitMs: 20 });
  expect((await dispatch()).control).toMatchObject({ type: 'suspend' });
  expect(clock.pending).toBe(0);
});

test('G02: nothing a tool, its limit and its caller do together leaves an unhandled rejection or a timer', async () => {
  const tools: Execute[] = [
    () => {
      throw new Error('at once');
    },
    () => Promise.reject(new Error('at once')),
    async (_, call) => {
      await new Promise((resolve) => call.clock.setTimeout(() => resolve(undefined), 15));
      throw new Error('within the limit');
    },
    async (_, call) => {
      await new Promise((resolve) => call.clock.setTimeout(() => resolve(undefined), 60));
      throw new Error('after the limit');
    },
    async (_, call) => {
      await new Promise((resolve) => call.clock.setTimeout(() => resolve(undefined), 20));
      return 'at the limit';
    },
    heeding,
    hanging,
  ];
  for (const execute of tools) {
    for (const abortAt of [undefined, 0, 10, 20, 25, 70]) {
      for (const graceMs of [0, 10]) {
        const { clock, dispatch, late } = bench(execute, { limitMs: 20, graceMs });
        const controller = new AbortController();
        const result = dispatch({ signal: controller.signal });
        for (let at = 0; at <= 100; at += 5) {
          if (at === abortAt) controller.abort();
          await clock.advance(5);
        }
        expect(await result).toMatchObject({ toolCallId: expect.any(String) });
        expect(clock.pending).toBe(0);
        expect(late.length).toBeLessThanOrEqual(1);
      }
    }
  }
});

test('the whole row works together: a limit inside validation, cutting and output checks', async () => {
  const { clock, dispatch } = bench(hanging, { limitMs: 20 }, [validation(), outputLimit(), outputValidation()]);
  const result = dispatch();
  await clock.advance(20);
  expect((await result).error).toMatchObject({ code: 'timeout', executed: 'unknown' });
  expect(clock.pending).toBe(0);
});

test('a clock may be an object with methods of its own', async () => {
  class OwnClock implements Clock {
    readonly #clock = new ManualClock();
    now(): number {
      return this.#clock.now();
    }
    setTimeout(callback: () => void, delayMs: number): unknown {
      return this.#clock.setTimeout(callback, delayMs);
    }
    clearTimeout(timer: unknown): void {
      this.#clock.clearTimeout(timer);
    }
    advance(ms: number): Promise<void> {
      return this.#clock.advance(ms);
    }
  }
  const clock = new OwnClock();
  const tools = [defineTool({ name: 'work', description: 'Works.', execute: hanging })];
  let code: string | undefined;
  void createDispatcher({ tools, middleware: [timeout({ limitMs: 20 })], clock })
    .dispatch({ name: 'work' })
    .then(({ error }) => {
      code = error?.code;
    });
  await clock.advance(20);
  expect(code).toBe('timeout');
});

describe('on the clock of the system', () => {
  function real(execute: Execute, options: TimeoutOptions): Dispatcher {
    const tools = [defineTool({ name: 'work', description: 'Works.', execute })];
    return createDispatcher({ tools, middleware: [timeout(options)] });
  }

  /** How many timers that keep the process alive are left of those made while something runs. */
  async function timersLeft(run: () => Promise<unknown>): Promise<number> {
    const { setTimeout: set, clearTimeout: clear } = globalThis;
    const left = new Set<unknown>();
    const setAndKeep = (callback: () => void, delayMs?: number) => {
      const timer = set(() => {
        left.delete(timer);
        callback();
      }, delayMs);
      left.add(timer);
      return timer;
    };
    const clearAndForget = (timer: NodeJS.Timeout | undefined) => {
      left.delete(timer);
      clear(timer);
    };
    Object.assign(globalThis, { setTimeout: setAndKeep, clearTimeout: clearAndForget });
    try {
      await run();
      await turns();
      return [...left].filter((timer) => (timer as NodeJS.Timeout).hasRef()).length;
    } finally {
      Object.assign(globalThis, { setTimeout: set, clearTimeout: clear });
    }
  }

  test('a limit ends a call', async () => {
    for (const limitMs of [1, 30]) {
      const result = await real(hanging, { limitMs }).dispatch({ name: 'work' });
      expect(result.error).toMatchObject({ code: 'timeout', executed: 'unknown' });
    }
  });

  test('a limit ends a call whose tool answers others meanwhile', async () => {
    const dispatcher = real(
      async (input) => ((input as { hang?: boolean }).hang ? hanging(input, undefined as never) : 1),
      {
        limitMs: 40,
      },
    );
    const hung = dispatcher.dispatch({ name: 'work', arguments: { hang: true } });
    let settled = false;
    void hung.then(() => {
      settled = true;
    });
    while (!settled) {
      expect((await dispatcher.dispatch({ name: 'work' })).isError).toBe(false);
      await turns(1);
    }
    expect((await hung).error?.code).toBe('timeout');
  });

  test('a thousand calls that settle at once leave no timer', async () => {
    const dispatcher = real(async () => 'done', {});
    const left = await timersLeft(() =>
      Promise.all(Array.from({ length: 1000 }, () => dispatcher.dispatch({ name: 'work' }))),
    );
    expect(left).toBe(0);
  });

  test('a call that outlives many ticks leaves no timer', async () => {
    const work = deferred<string>();
    const left = await timersLeft(async () => {
      const result = real(() => work.promise, {}).dispatch({ name: 'work' });
      await new Promise((resolve) => setTimeout(resolve, 50));
      work.resolve('done');
      expect((await result).content).toBe('done');
    });
    expect(left).toBe(0);
  });
});

test('G05: a signal shared by many calls keeps no listener', async () => {
  const { dispatch } = bench(async () => 'done', {});
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  Object.assign(signal, {
    addEventListener: (...given: Parameters<typeof add>) => {
      listeners++;
      add(...given);
    },
    removeEventListener: (...given: Parameters<typeof remove>) => {
      listeners--;
      remove(...given);
    },
  });
  await Promise.all(Array.from({ length: 50 }, () => dispatch({ signal })));
  for (let index = 0; index < 50; index++) await dispatch({ signal });
  expect(listeners).toBe(0);
});

describe('a limit without signs of life', () => {
  /** Reports, or yields, every so many milliseconds, so many times. */
  const reporting =
    (everyMs: number, times: number, clock: () => ManualClock): Execute =>
    async (_, call) => {
      for (let count = 0; count < times; count++) {
        await new Promise<void>((resolve) => clock().setTimeout(resolve, everyMs));
        call.report({ progress: count });
      }
      return 'done';
    };

  test('G12: a tool that reports every 20 ms for 200 ms ends well with 50 ms of silence allowed', async () => {
    const one: Bench = bench(
      reporting(20, 10, () => one.clock),
      { idleMs: 50 },
    );
    const pending = one.dispatch();
    await one.clock.advance(200);
    expect(await pending).toMatchObject({ content: 'done', isError: false, notes: [] });
    expect(one.clock.pending).toBe(0);
  });

  test('G12: one that falls silent ends with it, to the millisecond, and its late answer goes to the host', async () => {
    const one: Bench = bench(
      async (_, call) => {
        await new Promise<void>((resolve) => one.clock.setTimeout(resolve, 30));
        call.report({ message: 'still here' });
        await new Promise<void>((resolve) => one.clock.setTimeout(resolve, 500));
        return 'at last';
      },
      { idleMs: 50 },
    );
    const pending = one.dispatch();
    let isAnswered = false;
    void pending.then(() => {
      isAnswered = true;
    });
    await one.clock.advance(79);
    await turns();
    expect(isAnswered).toBe(false);
    await one.clock.advance(1);
    const result = await pending;
    expect(result).toMatchObject({ error: { code: 'timeout', executed: 'unknown' }, durationMs: 80 });
    expect(result.content).toContain('Tool "work" gave no sign of life for 50 ms.');
    await one.clock.advance(500);
    expect(one.late).toMatchObject([{ content: 'at last' }]);
  });

  test('G12: however lively it is, the limit of the whole holds', async () => {
    const one: Bench = bench(
      reporting(20, 100, () => one.clock),
      { idleMs: 50, limitMs: 130 },
    );
    const pending = one.dispatch();
    await one.clock.advance(130);
    const result = await pending;
    expect(result).toMatchObject({ error: { code: 'timeout' }, durationMs: 130 });
    expect(result.content).toContain('did not finish within its limit of 130 ms.');
    expect(one.clock.pending).toBe(1);
  });

  test('takes a part that is yielded for a sign of life, streamed or not', async () => {
    for (const isStreamed of [false, true]) {
      const one: Bench = bench(
        async function* () {
          for (let count = 0; count < 5; count++) {
            await new Promise<void>((resolve) => one.clock.setTimeout(resolve, 40));
            yield `${count}`;
          }
        },
        { idleMs: 50 },
      );
      const stream = one.dispatcher.stream({ name: 'work' });
      const pending = isStreamed
        ? (async () => {
            for (let step = await stream.next(); ; step = await stream.next())
              if (step.done === true) return step.value;
          })()
        : one.dispatch();
      await one.clock.advance(200);
      expect((await pending).content).toBe('01234');
      expect(one.clock.pending).toBe(0);
    }
  });

  test('does not count the time in which nobody takes the part, but what comes after', async () => {
    for (const limitMs of [Number.POSITIVE_INFINITY, 100_000]) {
      const one: Bench = bench(
        async function* () {
          yield 'a';
          await new Promise(() => {});
        },
        { idleMs: 50, limitMs },
      );
      const stream = one.dispatcher.stream({ name: 'work' });
      expect((await stream.next()).value).toMatchObject({ text: 'a' });
      await one.clock.advance(1000);
      const next = stream.next();
      await one.clock.advance(49);
      expect(await Promise.race([next, turns()])).toBeUndefined();
      await one.clock.advance(50);
      expect((await next).value).toMatchObject({ text: expect.stringContaining('no sign of life for 50 ms') });
      expect(await stream.next()).toMatchObject({ done: true, value: { error: { code: 'timeout' } } });
      expect(one.clock.pending).toBe(0);
    }
  });

  test('does not count the wait for a part that came at once, as from a synchronous generator', async () => {
    const one: Bench = bench(
      function* () {
        yield 'a';
        yield 'b';
      },
      { idleMs: 50 },
    );
    const stream = one.dispatcher.stream({ name: 'work' });
    await stream.next();
    await one.clock.advance(500);
    expect((await stream.next()).value).toMatchObject({ text: 'b' });
    expect(await stream.next()).toMatchObject({ done: true, value: { content: 'ab', isError: false } });
  });

  test('does not count the time that onPart takes', async () => {
    const one: Bench = bench(
      function* () {
        yield 'a';
        yield 'b';
      },
      { idleMs: 50 },
    );
    const onPart = () => new Promise<void>((resolve) => one.clock.setTimeout(resolve, 1000));
    const pending = one.dispatch({ onPart });
    await one.clock.advance(3000);
    expect(await pending).toMatchObject({ content: 'ab', isError: false });
  });

  test('sets no timer again and again while a part waits', async () => {
    const one: Bench = bench(
      async function* () {
        yield 'a';
        yield 'b';
      },
      { idleMs: 50 },
    );
    let timers = 0;
    const counting: Clock = {
      ...one.clock,
      setTimeout: (callback, delayMs) => {
        timers++;
        return one.clock.setTimeout(callback, delayMs);
      },
    };
    const stream = one.dispatcher.with({ clock: counting }).stream({ name: 'work' });
    await stream.next();
    await one.clock.advance(5000);
    expect(timers).toBeLessThan(5);
    await stream.return(undefined as never);
  });

  test('names the limit that was reached, by a clock whose timers are early as well', async () => {
    for (const [limits, words] of [
      [{ limitMs: 50 }, 'did not finish within its limit of 50 ms'],
      [{ limitMs: 40, idleMs: 60 }, 'did not finish within its limit of 40 ms'],
      [{ limitMs: 60, idleMs: 40 }, 'gave no sign of life for 40 ms'],
    ] as const) {
      const one: Bench = bench(() => new Promise(() => {}), limits);
      const { clock } = one;
      const early: Clock = {
        now: clock.now,
        setTimeout: (callback, delayMs) => clock.setTimeout(callback, delayMs - 1),
        clearTimeout: clock.clearTimeout,
      };
      const pending = one.dispatcher.with({ clock: early }).dispatch({ name: 'work' });
      await clock.advance(60);
      expect((await pending).content).toContain(words);
    }
  });

  test('is per tool, and told where it is wrong', async () => {
    const one: Bench = bench(() => new Promise(() => {}), { idleMs: { byTool: { work: 10 } } });
    const pending = one.dispatch();
    await one.clock.advance(10);
    expect((await pending).error?.code).toBe('timeout');
    expect(() => timeout({ idleMs: 0 })).toThrow('Option "idleMs" of timeout must be milliseconds above 0');
  });
});
