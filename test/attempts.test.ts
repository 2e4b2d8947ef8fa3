import { describe, expect, test } from '@jest/globals';
import {
  createDispatcher,
  type Dispatcher,
  defineTool,
  isPromise,
  type Middleware,
  type Next,
  named,
  type ToolCall,
  type ToolDispatchResult,
  ToolFailure,
  type ToolOutcome,
  type Validator,
} from 'toolonion';
import { denyAll, permission, timeout } from 'toolonion/middleware';
import { ManualClock, turns } from './support/manual-clock.ts';

type Execute = (input: unknown, call: ToolCall) => unknown;

interface Trial {
  readonly dispatcher: Dispatcher;
  readonly clock: ManualClock;
  readonly late: ToolOutcome[];
  runs(): number;
}

function trial(execute: Execute, ...middleware: Middleware[]): Trial {
  const clock = new ManualClock();
  const late: ToolOutcome[] = [];
  let runs = 0;
  const counted: Execute = (input, call) => {
    runs++;
    return execute(input, call);
  };
  const tool = defineTool({ name: 'tool', description: 'A tool.', execute: counted });
  const onLate = (outcome: ToolOutcome) => late.push(outcome);
  return { dispatcher: createDispatcher({ tools: [tool], middleware, clock, onLate }), clock, late, runs: () => runs };
}

/** Sleeps on the call's clock. */
function sleep(call: ToolCall, ms: number): Promise<void> {
  return new Promise((resolve) => {
    call.clock.setTimeout(resolve, ms);
  });
}

const never = () => new Promise<never>(() => {});
const again: Middleware = async (call, next) => {
  await next(call);
  return next(call);
};
const retry: Middleware = async (call, next) => {
  const outcome = await next(call);
  return outcome.isError ? next(call) : outcome;
};
const pass: Middleware = async (call, next) => await next(call);

describe('a further attempt', () => {
  for (const outside of [true, false]) {
    test(`whose arguments take their time does not run once it was aborted; the limit ${outside ? 'outside' : 'inside'}`, async () => {
      const slowly: Validator = async (call, input) => {
        await sleep(call, 50);
        return { valid: true, input, parsed: {} };
      };
      const validating: Middleware = (call, next) => next(call.with({ parsed: {}, validator: slowly }));
      const limit = timeout({ limitMs: 20 });
      const layers = outside ? [limit, validating, again] : [validating, again, limit];
      const { dispatcher, clock, late, runs } = trial(async () => 'done', ...layers);
      const pending = dispatcher.dispatch({ name: 'tool' });
      await clock.advance(20);
      const result = await pending;
      await clock.advance(100);
      expect(result.error).toMatchObject({ code: 'timeout', executed: 'yes' });
      expect([runs(), late]).toEqual([1, []]);
    });
  }

  for (const [what, validator] of Object.entries({
    'answers nothing': (): unknown => undefined,
    throws: (): never => {
      throw new Error('secret');
    },
    rejects: () => Promise.reject(new Error('secret')),
  })) {
    test(`with a validator that ${what} is an internal error, and next does not throw`, async () => {
      let thrown = false;
      const careful: Middleware = async (call, next) => {
        await next(call);
        try {
          return await next(call);
        } catch {
          thrown = true;
          return await never();
        }
      };
      const validating: Middleware = (call, next) =>
        next(call.with({ parsed: {}, validator: validator as unknown as Validator }));
      const { dispatcher, runs } = trial(() => 'done', validating, careful);
      const result = await dispatcher.dispatch({ name: 'tool' });
      expect(result.error).toMatchObject({ code: 'internal', executed: 'yes' });
      expect([thrown, runs()]).toEqual([false, 1]);
    });
  }

  test('that is refused does not make the call one that never ran', async () => {
    let judged = 0;
    const gate = permission({ check: () => (judged++ === 0 ? { type: 'allow' } : { type: 'deny' }) });
    const { dispatcher } = trial(() => Promise.reject(new Error('secret')), retry, gate);
    expect((await dispatcher.dispatch({ name: 'tool' })).error).toMatchObject({ code: 'denied', executed: 'yes' });
  });

  test('that is cancelled before it starts does not make the call one that never ran', async () => {
    const controller = new AbortController();
    let open = () => {};
    const { dispatcher } = trial(
      () => new Promise<void>((resolve) => (open = resolve)),
      retry,
      timeout({ limitMs: 1000 }),
    );
    const pending = dispatcher.dispatch({ name: 'tool' }, { signal: controller.signal });
    controller.abort();
    await turns(2);
    const result = await pending;
    open();
    expect(result.error).toMatchObject({ code: 'cancelled', executed: 'unknown' });
    expect(result.content).not.toContain('It had not started');
  });

  test('leaves a tool its own word', async () => {
    const { dispatcher } = trial(() => {
      throw new ToolFailure('No.', { executed: 'no' });
    }, retry);
    expect((await dispatcher.dispatch({ name: 'tool' })).error?.executed).toBe('no');
  });

  test('is not disturbed by layers inside an earlier one that was given up', async () => {
    const fallback: Middleware = async (call, next) => {
      const scope = call.abortScope();
      const first = next(scope.call);
      await sleep(call, 10);
      scope.abort(new Error('slow'));
      if (isPromise(first)) scope.follow(first);
      return next(call);
    };
    const waits = [25, 5];
    const inner: Middleware = async (call, next) => {
      const scope = call.abortScope();
      await sleep(call, waits.shift() ?? 0);
      return scope.follow(next(scope.call));
    };
    const slow: Middleware = async (call, next) => {
      await sleep(call, 20);
      return next(call);
    };
    const { dispatcher, clock, runs } = trial(() => 'done', fallback, inner, slow);
    const pending = dispatcher.dispatch({ name: 'tool' });
    await clock.advance(100);
    expect(await pending).toMatchObject({ content: 'done', isError: false });
    expect(runs()).toBe(1);
  });
});

describe('a layer that was waiting when the caller left', () => {
  test('has done nothing wrong by calling next then, and nobody is told of it', async () => {
    const controller = new AbortController();
    const slow: Middleware = async (call, next) => {
      await sleep(call, 50);
      return next(call);
    };
    const { dispatcher, clock, late, runs } = trial(() => 'done', pass, slow);
    const pending = dispatcher.dispatch({ name: 'tool' }, { signal: controller.signal });
    await clock.advance(10);
    controller.abort();
    await pending;
    await clock.advance(100);
    expect([late, runs()]).toEqual([[], 0]);
  });
});

test('a refusal that comes after the answer is nobody’s late answer', async () => {
  const slow: Middleware = async (call, next) => {
    const outcome = await next(call);
    await sleep(call, 50);
    return outcome;
  };
  const gate = permission({ check: () => ({ type: 'deny' }) });
  const { dispatcher, clock, late } = trial(() => 'done', timeout({ limitMs: 20 }), slow, gate);
  const pending = dispatcher.dispatch({ name: 'tool' });
  await clock.advance(20);
  expect((await pending).error).toMatchObject({ code: 'timeout', executed: 'no' });
  await clock.advance(100);
  expect(late).toEqual([]);
});

describe('an abort scope', () => {
  test('that aborts while the tool has just begun still ends the call, and disturbs no other', async () => {
    let abort = () => {};
    const scoped: Middleware = (call, next) => {
      const scope = call.abortScope();
      abort = () => scope.abort(new Error('enough'));
      return scope.follow(next(scope.call));
    };
    const { dispatcher } = trial(() => {
      abort();
      return never();
    }, scoped);
    expect((await dispatcher.dispatch({ name: 'tool' })).error?.code).toBe('cancelled');

    const slow: Middleware = async (call, next) => {
      await sleep(call, 20);
      return next(call);
    };
    const other = trial(() => 'done', timeout({ limitMs: 10 }), slow);
    const pending = other.dispatcher.dispatch({ name: 'tool' });
    await other.clock.advance(50);
    expect((await pending).error).toMatchObject({ code: 'timeout', executed: 'no' });
    expect([other.late, other.runs()]).toEqual([[], 0]);
  });

  test('that was aborted before it follows ends all the same', async () => {
    const hung: Middleware = () => never();
    const scoped: Middleware = (call, next) => {
      const scope = call.abortScope();
      const outcome = next(scope.call);
      scope.abort(new Error('enough'));
      return scope.follow(outcome);
    };
    const { dispatcher } = trial(() => 'done', scoped, hung);
    expect((await dispatcher.dispatch({ name: 'tool' })).error?.code).toBe('cancelled');
  });

  test('that follows again, or is used after its end, still hears of aborts', async () => {
    const signals: AbortSignal[] = [];
    const twice: Middleware = async (call, next) => {
      const scope = call.abortScope();
      await scope.follow(next(scope.call));
      return scope.follow(next(scope.call));
    };
    const ended: Middleware = (call, next) => {
      const scope = call.abortScope();
      scope.call.signal;
      scope.end();
      return next(scope.call);
    };
    for (const layer of [twice, ended]) {
      const controller = new AbortController();
      let run = 0;
      const { dispatcher } = trial((_, call) => {
        signals.push(call.signal);
        return layer === twice && run++ === 0 ? 'first' : never();
      }, layer);
      const pending = dispatcher.dispatch({ name: 'tool' }, { signal: controller.signal });
      await turns(2);
      controller.abort();
      expect((await pending).error?.code).toBe('cancelled');
      expect(signals.at(-1)?.aborted).toBe(true);
    }
  });

  for (const graceMs of [Number.POSITIVE_INFINITY, 300]) {
    test(`with a long grace (${graceMs}) outside does not prolong a short one inside`, async () => {
      const { dispatcher, clock } = trial(
        never,
        timeout({ limitMs: 30, graceMs }),
        timeout({ limitMs: 20, graceMs: 20 }),
      );
      let result: ToolDispatchResult | undefined;
      dispatcher.dispatch({ name: 'tool' }).then((given) => {
        result = given;
      });
      await clock.advance(40);
      await turns();
      expect(result?.error?.code).toBe('timeout');
      expect(clock.pending).toBe(0);
    });
  }
});

describe('a limit', () => {
  test('G14: that a tool exceeds by keeping the event loop busy is noted, whenever it does', async () => {
    const busy = (clock: ManualClock) => clock.jump(200);
    const tools: readonly ((call: ToolCall, clock: ManualClock) => Promise<string>)[] = [
      async (_, clock) => (busy(clock), 'done'),
      async (_, clock) => {
        await null;
        busy(clock);
        return 'done';
      },
      async (_, clock) => {
        await turns(1);
        busy(clock);
        return 'done';
      },
    ];
    for (const execute of tools) {
      const { dispatcher, clock } = trial((_, call) => execute(call, clock), timeout({ limitMs: 50 }));
      const result = await dispatcher.dispatch({ name: 'tool' });
      expect(result).toMatchObject({ content: 'done', notes: [{ type: 'exceeded' }] });
    }
  });

  test('stops a generator that never really waits', async () => {
    const controller = new AbortController();
    for (const generate of [
      function* () {
        for (;;) yield;
      },
      async function* () {
        for (;;) yield;
      },
    ]) {
      const { dispatcher } = trial(generate);
      setImmediate(() => controller.abort());
      expect((await dispatcher.dispatch({ name: 'tool' }, { signal: controller.signal })).error?.code).toBe(
        'cancelled',
      );
    }
  });

  test('holds on a clock that calls back at once', async () => {
    const instant = { now: () => 0, setTimeout: (callback: () => void) => callback(), clearTimeout: () => {} };
    const tool = defineTool({ name: 'tool', description: 'Hangs.', execute: never });
    const dispatcher = createDispatcher({ tools: [tool], middleware: [timeout({ limitMs: 50 })], clock: instant });
    expect((await dispatcher.dispatch({ name: 'tool' })).error?.code).toBe('timeout');
  });
});

describe('what cannot be trusted', () => {
  const hostile: Readonly<Record<string, () => unknown>> = {
    'a next that throws': () => ({
      [Symbol.iterator]: true,
      get next() {
        throw new Error('trap');
      },
    }),
    'a proxy that throws': () =>
      new Proxy(
        {},
        {
          has: () => {
            throw new Error('trap');
          },
        },
      ),
  };
  for (const [what, make] of Object.entries(hostile)) {
    test(`a tool may answer ${what}, at once, later, or from a generator`, async () => {
      for (const execute of [
        make,
        async () => make(),
        async function* () {
          return make();
        },
      ]) {
        const result = await trial(execute as Execute).dispatcher.dispatch({ name: 'tool' });
        expect(typeof result.isError).toBe('boolean');
      }
    });
  }

  test('a layer may answer an outcome that throws when it is read, at first or later', async () => {
    const trap = (reads: number) => {
      let left = reads;
      return {
        resolvedToolName: 'x',
        content: 'x',
        notes: [],
        get isError(): boolean {
          if (left-- <= 0) throw new Error('trap');
          return false;
        },
      };
    };
    for (const reads of [0, 1, 2]) {
      for (const layer of [() => trap(reads), async () => trap(reads)]) {
        for (const layers of [[layer], [timeout(), layer], [pass, layer]]) {
          const controller = new AbortController();
          const { dispatcher } = trial(() => 'done', ...(layers as Middleware[]));
          const result = await dispatcher.dispatch({ name: 'tool' }, { signal: controller.signal });
          if (result.isError) expect(result.error?.code).toBe('internal');
        }
      }
    }
  });

  test('a layer may name a tool that is none', async () => {
    const layer = named('router', (call, next) => next(call.with({ tool: { name: 5 } as never })));
    expect((await trial(() => 'done', pass, layer).dispatcher.dispatch({ name: 'tool' })).content).toContain(
      '"router"',
    );
  });

  test('O08: what a tool or layer does to call.input changes nothing: it is frozen', async () => {
    const inputs: unknown[] = [];
    const { dispatcher } = trial((input, call) => {
      inputs.push(structuredClone(input));
      try {
        (call.input as { evil?: boolean }).evil = true;
      } catch {
        // As it should be.
      }
      return 'done';
    }, again);
    const result = await dispatcher.dispatch({ name: 'tool', arguments: { a: { b: 1 } } });
    expect([...inputs, result.requested.input]).toEqual(Array(3).fill({ a: { b: 1 } }));
  });

  test('an id is taken as soon as its call has begun', async () => {
    const seen: string[] = [];
    const outer = defineTool({
      name: 'outer',
      description: 'Calls another under its own id.',
      execute: (_, call): unknown => inner(call),
    });
    const leaf = defineTool({ name: 'leaf', description: 'A leaf.', execute: (_, call) => seen.push(call.id) });
    const dispatcher: Dispatcher = createDispatcher({ tools: [outer, leaf] });
    const inner = (call: ToolCall) => {
      seen.push(call.id);
      return dispatcher.dispatch({ id: call.id, name: 'leaf' }, { parent: call });
    };
    await dispatcher.dispatch({ id: 'c1', name: 'outer' });
    expect(seen[0]).toBe('c1');
    expect(seen[1]).not.toBe('c1');
  });

  test('a call that cannot be read has an id of its own in a batch', async () => {
    const broken = {
      id: 'a',
      name: 'tool',
      get arguments(): unknown {
        throw new Error('trap');
      },
    };
    const results = await trial(() => 'done').dispatcher.dispatchAll([{ id: 'a', name: 'tool' }, broken]);
    expect(new Set(results.map((result) => result.toolCallId)).size).toBe(2);
  });

  test('many nested calls under one parent cost no more than each its own', async () => {
    const leaf = defineTool({ name: 'leaf', description: 'A leaf.', execute: () => turns(1) });
    const outer = defineTool({ name: 'outer', description: 'Calls many.', execute: (_, call): unknown => many(call) });
    const dispatcher: Dispatcher = createDispatcher({ tools: [leaf, outer] });
    const many = async (call: ToolCall) => {
      const calls = Array.from({ length: 2000 }, () => dispatcher.dispatch({ name: 'leaf' }, { parent: call }));
      return (await Promise.all(calls)).length;
    };
    expect((await dispatcher.dispatch({ name: 'outer' })).structured).toBe(2000);
  });
});

describe('a layer that keeps next between calls, shared by two dispatchers', () => {
  for (const [way, wait] of [
    ['at once', () => undefined],
    ['later', () => turns(2)],
  ] as const) {
    test(`cannot take a call around the gate of its own; the tool answers ${way}`, async () => {
      let runs = 0;
      let kept: Next | undefined;
      const keeping = named('keeping', (call, next) => {
        kept ??= next;
        return kept(call);
      });
      const tool = defineTool({
        name: 'tool',
        description: 'Runs.',
        execute: async () => {
          runs++;
          await wait();
          return 'done';
        },
      });
      const pass: Middleware = (call, next) => next(call);
      const open = createDispatcher({ tools: [tool], middleware: [keeping, pass] });
      const gated = createDispatcher({ tools: [tool], middleware: [keeping, permission({ check: denyAll })] });
      expect(await open.dispatch({ name: 'tool' })).toMatchObject({ isError: false, content: 'done' });
      const result = await gated.dispatch({ name: 'tool' });
      expect(result).toMatchObject({ isError: true, error: { code: 'internal', executed: 'no' } });
      expect(result.content).toContain('next() of another dispatcher');
      expect(runs).toBe(1);
      expect(await open.dispatch({ name: 'tool' })).toMatchObject({ isError: false });
    });
  }
});

test('a kept next of an earlier dispatch runs nothing', async () => {
  let kept: Next | undefined;
  let keptCall: ToolCall | undefined;
  const keeping: Middleware = (call, next) => {
    kept = next;
    keptCall = call;
    return next(call);
  };
  const { dispatcher, runs } = trial(() => 'done', keeping);
  await dispatcher.dispatch({ name: 'tool' });
  const outcome = keptCall && kept?.(keptCall);
  expect(outcome).toMatchObject({ isError: true, error: { code: 'internal' } });
  expect(runs()).toBe(1);
});
