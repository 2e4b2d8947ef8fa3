import { describe, expect, test } from '@jest/globals';
import {
  AbortReason,
  after,
  compose,
  createDispatcher,
  defineTool,
  type Executed,
  fail,
  isPromise,
  type Middleware,
  type Next,
  named,
  type ToolCall,
  type ToolDispatchResult,
  type ToolOutcome,
  toolError,
} from 'toolonion';
import { timeout } from 'toolonion/middleware';
import { ManualClock, turns } from './support/manual-clock.ts';

type Execute = (input: unknown, call: ToolCall) => unknown;

function dispatch(execute: Execute, ...middleware: Middleware[]): Promise<ToolDispatchResult> {
  const tool = defineTool({ name: 'tool', description: 'A tool.', execute });
  return createDispatcher({ tools: [tool], middleware }).dispatch({ id: 'c1', name: 'tool' });
}

/** Every way a tool can answer: at once, in a microtask, in a turn of the event loop. */
const WAYS: Readonly<Record<string, <Value>(value: Value) => Value | Promise<Value>>> = {
  'at once': (value) => value,
  'in a microtask': async (value) => value,
  'in a turn': (value) => new Promise((resolve) => setImmediate(() => resolve(value))),
};

describe('layers', () => {
  test('the first is outermost, and each sees the call go in and the outcome come out', async () => {
    const seen: string[] = [];
    const layer = (name: string): Middleware =>
      named(name, async (call, next) => {
        seen.push(`${name} in`);
        const outcome = await next(call);
        seen.push(`${name} out`);
        return outcome;
      });
    await dispatch(() => seen.push('tool'), layer('a'), layer('b'), layer('c'));
    expect(seen).toEqual(['a in', 'b in', 'c in', 'tool', 'c out', 'b out', 'a out']);
  });

  for (const [way, give] of Object.entries(WAYS)) {
    test(`an outcome passes untouched layers by identity when the tool answers ${way}`, async () => {
      const seen: ToolOutcome[] = [];
      const watch: Middleware = (call, next) => after(next(call), (outcome) => (seen.push(outcome), outcome));
      const plain: Middleware = (call, next) => next(call);
      const awaiting: Middleware = async (call, next) => await next(call);
      await dispatch(() => give('x'), watch, plain, awaiting, watch, plain, watch);
      expect(new Set(seen).size).toBe(1);
    });

    test(`L03: a layer may call next again once it has settled, when the tool answers ${way}`, async () => {
      let runs = 0;
      const again: Middleware = async (call, next) => {
        await next(call);
        await next(call);
        return await next(call);
      };
      const result = await dispatch(
        () => give(`run ${++runs}`),
        (call, next) => next(call),
        again,
        async (call, next) => next(call),
      );
      expect(result.content).toBe('run 3');
    });

    test(`a layer of values and promises may call next again inside after, when the tool answers ${way}`, async () => {
      let runs = 0;
      const again: Middleware = (call, next) => after(next(call), () => next(call));
      const result = await dispatch(
        () => give(`run ${++runs}`),
        again,
        (call, next) => next(call),
      );
      expect(result).toMatchObject({ content: 'run 2', isError: false });
    });

    test(`layers that call next again multiply, when the tool answers ${way}`, async () => {
      let runs = 0;
      const again: Middleware = async (call, next) => {
        await next(call);
        return next(call);
      };
      await dispatch(
        () => give(++runs),
        again,
        (call, next) => next(call),
        again,
        again,
      );
      expect(runs).toBe(8);
    });
  }

  test('what a layer answers by itself keeps the tool from running', async () => {
    let ran = false;
    const result = await dispatch(
      () => {
        ran = true;
      },
      (call) => fail(call, 'budget_exceeded', 'No more calls.'),
    );
    expect(ran).toBe(false);
    expect(result).toMatchObject({ isError: true, error: { code: 'budget_exceeded', executed: 'no' } });
  });

  test('fields an outcome has beyond the known ones reach the result', async () => {
    const tag: Middleware = async (call, next) => ({ ...(await next(call)), tag: 'kept' }) as ToolOutcome;
    expect(await dispatch(() => 'x', tag)).toMatchObject({ content: 'x', tag: 'kept' });
  });

  test('a layer sees a refusal further inside as an outcome, without try and catch', async () => {
    let seen: ToolOutcome | undefined;
    const logger: Middleware = async (call, next) => {
      seen = await next(call);
      return seen;
    };
    await dispatch(
      () => 'x',
      logger,
      () => {
        throw new Error('secret');
      },
    );
    expect(seen).toMatchObject({ isError: true, error: { code: 'internal' } });
  });

  test('C11: an unknown tool is answered inside the onion, so that outer layers see it', async () => {
    const seen: (string | undefined)[] = [];
    const layer: Middleware = (call, next) => after(next(call), (outcome) => (seen.push(outcome.error?.code), outcome));
    await createDispatcher({ middleware: [layer] }).dispatch({ name: 'gone' });
    expect(seen).toEqual(['not_found']);
  });

  test('compose walks layers around any innermost function', async () => {
    let captured: ToolCall | undefined;
    const innermost: Next = (call) => {
      captured = call;
      return { resolvedToolName: 'inner', content: 'composed', isError: false, notes: [] };
    };
    const inner = compose([(call, next) => next(call)], innermost);
    expect(typeof inner).toBe('function');
    expect(inner(undefined as unknown as ToolCall)).toMatchObject({ isError: true, error: { code: 'internal' } });
    expect(captured).toBeUndefined();
  });

  test('a name given by named survives, whatever a minifier made of the function', () => {
    const { middlewareNames } = createDispatcher({
      middleware: [named('outer', (c, n) => n(c)), named('inner', (c, n) => n(c))],
    });
    expect(middlewareNames).toEqual(['outer', 'inner']);
  });
});

describe('a layer that breaks the rules', () => {
  const culprit = (middleware: unknown) => named('culprit', middleware as Middleware);
  const outer: Middleware = async (call, next) => await next(call);

  const BROKEN: readonly (readonly [string, unknown, RegExp, Executed[]])[] = [
    ['answers nothing', () => undefined, /"culprit" answered nothing/, ['no']],
    ['answers null', () => null, /"culprit" answered something that is not an outcome/, ['no']],
    ['answers null later', async () => null, /"culprit" answered something that is not an outcome/, ['no']],
    [
      'P01: forgets to return',
      (c: ToolCall, n: Next) => void n(c),
      /"culprit" answered (nothing|before)/,
      ['yes', 'unknown'],
    ],
    ['answers rubbish', () => ({ content: 'x' }), /"culprit" answered something that is not an outcome/, ['no']],
    [
      'answers with invalid parts',
      () => ({ resolvedToolName: 'x', content: [{ type: 'text' }], isError: false, notes: [] }),
      /not an outcome/,
      ['no'],
    ],
    [
      'throws',
      () => {
        throw new Error('secret');
      },
      /middleware "culprit" failed/,
      ['no'],
    ],
    ['rejects', async () => Promise.reject(new Error('secret')), /middleware "culprit" failed/, ['no']],
    ['answers a proxy that throws', () => new Proxy({}, { get: thrower, getPrototypeOf: thrower }), /culprit/, ['no']],
    [
      'throws a proxy that throws',
      () => thrower(new Proxy({}, { get: thrower, getPrototypeOf: thrower })),
      /culprit/,
      ['no'],
    ],
    ['rejects with nothing', async () => Promise.reject(), /middleware "culprit" failed/, ['no']],
    [
      'throws after the tool has run',
      async (c: ToolCall, n: Next) => {
        await n(c);
        throw new Error('secret');
      },
      /middleware "culprit" failed/,
      ['yes'],
    ],
    [
      'passes on something else',
      (_: ToolCall, n: Next) => n({} as ToolCall),
      /"culprit" gave next\(\) something else/,
      ['no'],
    ],
    [
      'passes on a spread call',
      (c: ToolCall, n: Next) => n({ ...c } as ToolCall),
      /"culprit" gave next\(\) something else/,
      ['no'],
    ],
    [
      'assigns to the call',
      (c: ToolCall, n: Next) => {
        (c as { name: string }).name = 'other';
        return n(c);
      },
      /middleware "culprit" failed/,
      ['no'],
    ],
  ];
  for (const [what, middleware, message, executed] of BROKEN) {
    for (const [way, give] of Object.entries(WAYS)) {
      test(`${what}: internal, naming it, when the tool answers ${way}`, async () => {
        const result = await dispatch(() => give('x'), outer, culprit(middleware), outer);
        expect(result).toMatchObject({ isError: true, error: { code: 'internal' } });
        expect(result.content).toMatch(message);
        expect(executed).toContain(result.error?.executed);
        expect(result.content).not.toContain('secret');
      });
    }
  }

  for (const way of ['in a microtask', 'in a turn']) {
    const give = WAYS[way] as <Value>(value: Value) => Value | Promise<Value>;
    test(`P02: a second next over an unsettled first runs the tool once and ends the call, when it answers ${way}`, async () => {
      let runs = 0;
      const seen: (string | undefined)[] = [];
      const watch: Middleware = (call, next) =>
        after(next(call), (outcome) => (seen.push(outcome.error?.code), outcome));
      const twice = culprit((call: ToolCall, next: Next) => {
        const first = next(call);
        next(call);
        return first;
      });
      const result = await dispatch(() => give(++runs), watch, twice, outer);
      expect(result.content).toMatch(/"culprit" called next\(\) again before its first call had settled/);
      expect(seen).toEqual(['internal']);
      expect(runs).toBe(1);
    });

    test(`an answer over an unsettled next ends the call and aborts the tool, when it answers ${way}`, async () => {
      let aborted: boolean | undefined;
      const execute: Execute = async (_, call) => {
        const { signal } = call;
        await give(undefined);
        aborted = signal.aborted;
        return 'too late';
      };
      const hasty = culprit(async (call: ToolCall, next: Next) => {
        next(call);
        return fail(call, 'denied', 'No.');
      });
      const result = await dispatch(execute, outer, hasty, outer);
      await turns();
      expect(result.content).toMatch(/"culprit" answered before next\(\) had settled/);
      expect(result.error?.executed).toBe('unknown');
      if (way === 'in a turn') expect(aborted).toBe(true);
    });
  }

  test('next called after the layer has answered runs nothing', async () => {
    let runs = 0;
    let late: ToolOutcome | undefined;
    const nagging = culprit((call: ToolCall, next: Next) => {
      setImmediate(() => {
        const outcome = next(call);
        if (!isPromise(outcome)) late = outcome;
      });
      return fail(call, 'denied', 'No.');
    });
    const result = await dispatch(() => ++runs, nagging);
    await turns();
    expect(result.error?.code).toBe('denied');
    expect(late?.content).toMatch(/"culprit" called next\(\) after the call had been answered/);
    expect(runs).toBe(0);
  });

  test('a retry around a layer that broke the rules cannot run the tool again', async () => {
    let runs = 0;
    const retry: Middleware = async (call, next) => {
      await next(call);
      return next(call);
    };
    const hasty = culprit(async (call: ToolCall, next: Next) => {
      next(call);
      return fail(call, 'denied', 'No.');
    });
    const result = await dispatch(() => new Promise(() => ++runs), retry, hasty);
    expect(result.error?.code).toBe('internal');
    expect(runs).toBe(1);
  });

  test('an outcome settled in an earlier dispatch may be answered again', async () => {
    let shared: ReturnType<Next> | undefined;
    let runs = 0;
    const memo: Middleware = (call, next) => {
      shared ??= next(call);
      return shared;
    };
    const tool = defineTool({ name: 'tool', description: 'A tool.', execute: async () => ++runs });
    const dispatcher = createDispatcher({
      tools: [tool],
      middleware: [async (c, n) => n(c), memo, async (c, n) => n(c)],
    });
    const results = await dispatcher.dispatchAll([{ name: 'tool' }, { name: 'tool' }]);
    expect(results.map((result) => result.structured)).toEqual([1, 1]);
  });
});

function thrower(thrown?: unknown): never {
  throw thrown ?? new Error('trap');
}

describe('abort scopes', () => {
  test('tell what became of all attempts: one that may still be running outweighs one that stopped', async () => {
    const clock = new ManualClock();
    let attempt = 0;
    const tool = defineTool({
      name: 'tool',
      description: 'Hangs at first, then heeds its signal.',
      execute: (_, call) =>
        new Promise((_, reject) => {
          if (++attempt > 1) call.signal.addEventListener('abort', () => reject(call.signal.reason));
        }),
    });
    const again: Middleware = async (call, next) => ((await next(call)).isError ? next(call) : next(call));
    const seen: Executed[] = [];
    const watch: Middleware = async (call, next) => {
      const outcome = await next(call);
      seen.push(call.executed);
      return outcome;
    };
    const dispatcher = createDispatcher({ tools: [tool], clock, middleware: [watch, again, timeout({ limitMs: 10 })] });
    const pending = dispatcher.dispatch({ name: 'tool' });
    await clock.advance(20);
    expect((await pending).error).toMatchObject({ code: 'timeout', executed: 'unknown' });
    expect(seen).toEqual(['unknown']);
  });

  /** Gives each attempt so long, and makes a second one. */
  function attempts(seen: string[]): Middleware {
    return async (call, next) => {
      const first = await next(call);
      seen.push(first.error?.code ?? 'ok');
      return first.isError ? next(call) : first;
    };
  }

  test('an attempt that was given up does not disturb the next one, however late it answers', async () => {
    const clock = new ManualClock();
    const late: ToolOutcome[] = [];
    const answers: (() => void)[] = [];
    const tool = defineTool({
      name: 'tool',
      description: 'A tool.',
      execute: () => new Promise((resolve) => answers.push(() => resolve(`run ${answers.length}`))),
    });
    const seen: string[] = [];
    const pass: Middleware = async (call, next) => await next(call);
    const dispatcher = createDispatcher({
      tools: [tool],
      clock,
      middleware: [pass, attempts(seen), pass, timeout({ limitMs: 100 }), pass],
      onLate: (outcome) => late.push(outcome),
    });
    const result = dispatcher.dispatch({ name: 'tool' });
    await clock.advance(100);
    expect(seen).toEqual(['timeout']);
    expect(answers).toHaveLength(2);
    answers[0]?.();
    await turns();
    answers[1]?.();
    expect(await result).toMatchObject({ content: 'run 2', isError: false });
    expect(late.map((outcome) => outcome.content)).toEqual(['run 2']);
    expect(clock.pending).toBe(0);
  });

  test('that follow a promise which rejects end in an internal error', async () => {
    const layer: Middleware = (call, next) => {
      const scope = call.abortScope();
      const failing = async (): Promise<ToolOutcome> => {
        await next(scope.call);
        throw new Error('secret');
      };
      return scope.follow(failing());
    };
    const result = await dispatch(() => 'x', layer);
    expect(result).toMatchObject({ isError: true, error: { code: 'internal', executed: 'yes' } });
    expect(JSON.stringify(result)).not.toContain('secret');
  });

  test('inside an abandoned attempt next runs nothing any more', async () => {
    const clock = new ManualClock();
    let runs = 0;
    let wake = () => {};
    const sleepy: Middleware = async (call, next) => {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      return next(call);
    };
    const tool = defineTool({ name: 'tool', description: 'A tool.', execute: () => ++runs });
    const dispatcher = createDispatcher({ tools: [tool], clock, middleware: [timeout({ limitMs: 100 }), sleepy] });
    const pending = dispatcher.dispatch({ name: 'tool' });
    await clock.advance(100);
    const result = await pending;
    wake();
    await turns();
    expect(result).toMatchObject({ error: { code: 'timeout', executed: 'no' } });
    expect(result.content).toMatch(/It had not started/);
    expect(runs).toBe(0);
  });

  test('the signal of the call outside is not aborted with a scope, and an outer abort reaches every scope', async () => {
    const signals: AbortSignal[] = [];
    const layer: Middleware = async (call, next) => {
      const scope = call.abortScope();
      signals.push(call.signal);
      const outcome = next(scope.call);
      if (!isPromise(outcome)) throw new Error('the tool takes its time');
      scope.abort(new AbortReason(toolError('timeout', 'Too slow.')));
      return scope.follow(outcome, { settled: () => {} });
    };
    const result = await dispatch((_, call) => {
      signals.push(call.signal);
      return new Promise(() => {});
    }, layer);
    expect(signals.map((signal) => signal.aborted)).toEqual([false, true]);
    expect(result.error).toMatchObject({ code: 'timeout', executed: 'unknown' });
  });
});
