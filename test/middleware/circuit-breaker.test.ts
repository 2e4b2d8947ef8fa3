import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createDispatcher, defineTool, type Middleware, PermissionCheck, type ToolCall, ToolFailure } from 'toolonion';
import {
  type Admission,
  type CircuitBreakerOptions,
  circuitBreaker,
  permission,
  retry,
  ToolHealth,
  type ToolHealthOptions,
  timeout,
  validation,
} from 'toolonion/middleware';
import { ManualClock, turns } from '../support/manual-clock.ts';

type Execute = (input: { readonly text?: string }, call: ToolCall) => unknown;

function trial(
  execute: Execute,
  options: ToolHealthOptions = {},
  around: { outside?: Middleware[]; inside?: Middleware[] } & CircuitBreakerOptions = {},
) {
  const clock = new ManualClock();
  const { outside = [], inside = [], ...own } = around;
  const health = new ToolHealth({ clock, ...options });
  let runs = 0;
  const tool = defineTool({
    name: 'tool',
    description: '…',
    concurrencySafe: true,
    inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
    execute: (input: { readonly text?: string }, call: ToolCall) => {
      runs++;
      return execute(input, call);
    },
  });
  const dispatcher = createDispatcher({
    tools: [tool],
    middleware: [...outside, circuitBreaker({ health, ...own }), ...inside],
    clock,
  });
  const dispatch = (given: unknown = {}, signal?: AbortSignal) =>
    dispatcher.dispatch({ name: 'tool', arguments: given }, { ...(signal && { signal }) });
  const code = async (given?: unknown) => (await dispatch(given)).error?.code ?? 'ok';
  return { clock, health, dispatcher, dispatch, code, runs: () => runs };
}

function down(): never {
  throw Object.assign(new Error('x'), { code: 'ECONNREFUSED' });
}

/** A tool that fails as long as it is told to. */
function service() {
  const state = { isUp: false };
  return { state, execute: () => (state.isUp ? 'Done.' : down()) };
}

/** A tool whose calls end when they are told to. */
function slow() {
  const calls: { end(): void; fail(): void }[] = [];
  const execute: Execute = () =>
    new Promise((resolve, reject) => {
      calls.push({
        end: () => resolve('Done.'),
        fail: () => reject(Object.assign(new Error('x'), { code: 'ECONNRESET' })),
      });
    });
  return { calls, execute };
}

describe('a tool that fails', () => {
  test('is not called for a while after three failures in a row, and the model reads how long', async () => {
    const { code, dispatch, clock, runs } = trial(down);
    expect([await code(), await code(), await code(), await code()]).toEqual(['io', 'io', 'io', 'circuit_open']);
    await clock.advance(10_500);
    expect(await dispatch()).toMatchObject({
      content: 'Tool "tool" keeps failing, and is not called for 20 s. Do without it, or try again later.',
      error: { code: 'circuit_open', executed: 'no', retryable: true, retryAfterMs: 19_500 },
    });
    expect(runs()).toBe(3);
  });

  test('is called as ever once a call after that goes well', async () => {
    const { state, execute } = service();
    const { code, clock, health } = trial(execute);
    for (let call = 0; call < 3; call++) await code();
    await clock.advance(30_000);
    expect(health.report('tool')).toMatchObject({ breaker: 'half-open', retryAfterMs: 0 });
    state.isUp = true;
    expect([await code(), health.report('tool').breaker]).toEqual(['ok', 'closed']);
  });

  test('is not called again for as long where that call fails', async () => {
    const { code, clock, runs } = trial(down);
    for (let call = 0; call < 3; call++) await code();
    await clock.advance(30_000);
    expect([await code(), await code()]).toEqual(['io', 'circuit_open']);
    await clock.advance(29_999);
    expect([await code(), runs()]).toEqual(['circuit_open', 4]);
  });

  test('may do so between successes, or for ever where that is wanted', async () => {
    const flaky = trial(({ text }) => (text === 'bad' ? down() : 'Done.'));
    for (let round = 0; round < 5; round++)
      expect([await flaky.code({ text: 'bad' }), await flaky.code({ text: 'bad' }), await flaky.code()]).toEqual([
        'io',
        'io',
        'ok',
      ]);
    const never = trial(down, { failures: Number.POSITIVE_INFINITY });
    for (let call = 0; call < 50; call++) expect(await never.code()).toBe('io');
  });

  test('does not stand in the way of others, unless they fail together', async () => {
    const tools = ['a', 'b'].map((name) =>
      defineTool({ name, description: '…', execute: () => (name === 'a' ? down() : 'Done.') }),
    );
    const codes = async (options: CircuitBreakerOptions) => {
      const dispatcher = createDispatcher({ tools, middleware: [circuitBreaker(options)] });
      const found = [];
      for (const name of ['a', 'a', 'a', 'a', 'b']) found.push((await dispatcher.dispatch({ name })).error?.code);
      return found.slice(3);
    };
    expect(await codes({})).toEqual(['circuit_open', undefined]);
    expect(await codes({ key: () => 'service' })).toEqual(['circuit_open', 'circuit_open']);
  });
});

describe('M02: half open', () => {
  test.each([1, 3])(
    'lets no more than %i calls through at once, and tells the others when to come again',
    async (probes) => {
      const { calls, execute } = slow();
      const { dispatch, clock } = trial(execute, { failures: 1, probes });
      const first = dispatch();
      await turns();
      calls[0]?.fail();
      await first;
      await clock.advance(30_000);
      const all = Array.from({ length: 20 }, () => dispatch());
      await turns();
      expect(calls.length).toBe(1 + probes);
      for (const call of calls) call.end();
      const codes = (await Promise.all(all)).map(({ error }) => error?.code ?? 'ok');
      expect(codes.filter((code) => code === 'ok').length).toBe(probes);
      expect(await Promise.all(all)).toContainEqual(
        expect.objectContaining({ error: expect.objectContaining({ code: 'circuit_open', retryAfterMs: 30_000 }) }),
      );
    },
  );
});

describe('M03: what comes late', () => {
  test('from before it opened neither closes nor opens it', async () => {
    const { calls, execute } = slow();
    const { dispatch, clock, health } = trial(execute);
    const all = Array.from({ length: 5 }, () => dispatch());
    await turns();
    for (const call of calls.slice(0, 3)) call.fail();
    await turns();
    expect(health.report('tool').breaker).toBe('open');
    calls[3]?.end();
    await turns();
    expect(health.report('tool').breaker).toBe('open');
    await clock.advance(30_000);
    const probe = dispatch();
    await turns();
    calls[4]?.fail();
    await turns();
    expect(health.report('tool').breaker).toBe('half-open');
    calls[5]?.end();
    await Promise.all([...all, probe]);
    expect(health.report('tool')).toMatchObject({ breaker: 'closed', calls: 6, failures: 4 });
  });

  test('from a call that was to show whether it does again, after its lease: it was open again from then on', async () => {
    const { calls, execute } = slow();
    const { dispatch, clock, health } = trial(execute, { failures: 1, leaseMs: 1000 });
    const first = dispatch();
    await turns();
    calls[0]?.fail();
    await first;
    await clock.advance(30_000);
    const probe = dispatch();
    await clock.advance(1500);
    expect(health.report('tool')).toMatchObject({ breaker: 'open', retryAfterMs: 29_500 });
    calls[1]?.end();
    await probe;
    expect(health.report('tool').breaker).toBe('open');
  });
});

test.each([
  [{ probes: 0 }, 'Option "probes" of ToolHealth must be a whole number of at least 1; got 0.'],
  [
    { failures: 0 },
    'Option "failures" of ToolHealth must be a whole number of at least 1, or Infinity for never; got 0.',
  ],
  [{ failures: Number.NaN }, 'Option "failures" of ToolHealth must be'],
  [{ successes: 0 }, 'Option "successes" of ToolHealth must be'],
  [{ cooldownMs: 0 }, 'Option "cooldownMs" of ToolHealth must be'],
  [{ clock: {} }, 'Option "clock" of ToolHealth must be a clock'],
  [{ halfOpenMax: 1 }, 'ToolHealth has no option "halfOpenMax"'],
])('M04: %j is refused', (options, message) => {
  expect(() => new ToolHealth(options as never)).toThrow(message);
});

describe('M05: what is no failure of the tool', () => {
  test('arguments that are wrong, calls that are denied, and answers that say what was wrong', async () => {
    const check = ({ input }: ToolCall) =>
      JSON.stringify(input).includes('deny') ? PermissionCheck.deny('No.') : PermissionCheck.allow();
    const execute: Execute = ({ text }) => {
      if (text === 'own') throw new ToolFailure('No such city.');
      return 'Done.';
    };
    const { code, health } = trial(execute, {}, { inside: [validation(), permission({ check })] });
    for (let call = 0; call < 5; call++) expect(await code({ text: 7 })).toBe('invalid_arguments');
    for (let call = 0; call < 5; call++) expect(await code({ text: 'own' })).toBe('execution_failed');
    expect([await code(), health.report('tool')]).toMatchObject(['ok', { breaker: 'closed', calls: 6, failures: 0 }]);
  });

  test('a call that was aborted, which gives its place back', async () => {
    const { calls, execute } = slow();
    const { dispatch, clock, code } = trial(execute, { failures: 1 });
    const first = dispatch();
    await turns();
    calls[0]?.fail();
    await first;
    await clock.advance(30_000);
    const abort = new AbortController();
    const probe = dispatch({}, abort.signal);
    await turns();
    abort.abort();
    await probe;
    await turns();
    const next = code();
    await turns();
    calls.at(-1)?.end();
    expect(await next).toBe('ok');
  });

  test('a name that no tool has', async () => {
    const { dispatcher, health } = trial(() => 'Done.');
    for (let call = 0; call < 5; call++)
      expect((await dispatcher.dispatch({ name: 'ghost' })).error?.code).toBe('not_found');
    expect(health.snapshot()).toEqual({});
  });
});

test('a call that waits to be answered later says nothing of the tool, and a tool that says it did nothing has failed all the same', async () => {
  const suspends = trial(({ text }, call) => (text === 'wait' ? call.suspend({ type: 'later' } as never) : down()));
  const results = [];
  for (const text of ['bad', 'bad', 'wait', 'bad']) results.push(await suspends.dispatch({ text }));
  expect(results[2]?.control?.type).toBe('suspend');
  expect(suspends.health.report('tool').breaker).toBe('open');
  const busy = trial(() => {
    throw new ToolFailure('Busy.', { code: 'rate_limited', executed: 'no' });
  });
  for (let call = 0; call < 3; call++) await busy.code();
  expect(busy.health.report('tool')).toMatchObject({ breaker: 'open', failures: 3 });
});

test.each([async () => 'a', () => undefined, () => ({})])(
  'a key that is no text is a fault of the layer, and not one for all: %p',
  async (key) => {
    const { dispatch } = trial(() => 'Done.', {}, { key: key as never });
    expect((await dispatch()).error).toMatchObject({ code: 'internal', executed: 'no' });
  },
);

test('M06: it closes only after as many successes as are wanted', async () => {
  const { state, execute } = service();
  const { code, clock, health } = trial(execute, { successes: 3 });
  for (let call = 0; call < 3; call++) await code();
  await clock.advance(30_000);
  state.isUp = true;
  for (const breaker of ['half-open', 'half-open', 'closed'])
    expect([await code(), health.report('tool').breaker]).toEqual(['ok', breaker]);
});

test('a timeout is a failure, and the attempts of one call are one', async () => {
  const timedOut = trial(() => new Promise(() => {}), { failures: 1 }, { inside: [timeout({ limitMs: 10 })] });
  const call = timedOut.dispatch();
  await timedOut.clock.advance(100);
  expect([(await call).error?.code, timedOut.health.report('tool').breaker]).toEqual(['timeout', 'open']);
  const again = trial(down, {}, { inside: [retry()] });
  const tried = again.dispatch();
  await again.clock.advance(60_000);
  await tried;
  expect(again.health.report('tool')).toMatchObject({ breaker: 'closed', failures: 1 });
});

describe('what is known of a tool', () => {
  test('is the share of successes and a mean in which the last calls weigh most', async () => {
    const { code, health, clock } = trial(({ text }) => (text === 'bad' ? down() : clock.jump(10)), {
      failures: Number.POSITIVE_INFINITY,
    });
    expect(health.report('tool')).toEqual({
      status: 'healthy',
      score: 1,
      breaker: 'closed',
      retryAfterMs: 0,
      calls: 0,
      failures: 0,
      totalMs: 0,
      maxMs: 0,
    });
    await code();
    await code({ text: 'bad' });
    // 0.3 · 1/2 + 0.7 · 0.7
    expect(health.report('tool')).toMatchObject({ status: 'degraded', calls: 2, failures: 1, totalMs: 10, maxMs: 10 });
    expect(health.report('tool').score).toBeCloseTo(0.64, 10);
    await code({ text: 'bad' });
    // 0.3 · 1/3 + 0.7 · 0.49
    expect(health.report('tool')).toMatchObject({ status: 'unhealthy' });
    expect(health.report('tool').score).toBeCloseTo(0.443, 10);
    // A low score alone keeps nobody from calling it: it could never do better.
    expect([health.isAvailable('tool'), health.isAvailable('other')]).toEqual([true, true]);
  });

  test('tells whether a call makes sense, without taking its place', async () => {
    const { code, health, clock } = trial(down);
    for (let call = 0; call < 3; call++) await code();
    expect(health.isAvailable('tool')).toBe(false);
    await clock.advance(30_000);
    for (let look = 0; look < 3; look++) expect(health.isAvailable('tool')).toBe(true);
    expect(await code()).toBe('io');
  });

  test('can be saved, and taken up by another, which waits for what is left', async () => {
    const { code, health, clock } = trial(down);
    for (let call = 0; call < 3; call++) await code();
    await clock.advance(10_000);
    const other = new ToolHealth({ clock: new ManualClock() });
    other.restore(JSON.parse(JSON.stringify(health)));
    expect(other.snapshot()).toEqual(health.snapshot());
    expect(other.report('tool')).toMatchObject({ breaker: 'open', retryAfterMs: 20_000, calls: 3, failures: 3 });
  });

  test.each([
    null,
    {},
    { version: 2, tools: {} },
    { version: 1, tools: { a: {} } },
    ...[{ totalMs: Number.NaN }, { mean: 1e308 }, { failures: 5 }, { calls: 0.5 }, { isOpen: 'no' }].map((wrong) => ({
      version: 1,
      tools: { a: { calls: 1, failures: 0, totalMs: 0, maxMs: 0, mean: 1, isOpen: false, ...wrong } },
    })),
  ])('is not taken from %j', (saved) => {
    expect(() => new ToolHealth().restore(saved)).toThrow(
      new TypeError('ToolHealth.restore takes what ToolHealth.toJSON has given, of version 1.'),
    );
  });

  test('can be saved where it is never to be called again, and taken up by one that never stops calling', () => {
    const health = new ToolHealth({ cooldownMs: Number.POSITIVE_INFINITY, failures: 1 });
    health.admit('tool')?.settle('failure', 1);
    const saved = JSON.parse(JSON.stringify(health));
    const other = new ToolHealth({ clock: new ManualClock() });
    other.restore(saved);
    expect(other.report('tool')).toMatchObject({ breaker: 'open', retryAfterMs: 30_000 });
    const never = new ToolHealth({ failures: Number.POSITIVE_INFINITY });
    never.restore(saved);
    expect(never.report('tool').breaker).toBe('closed');
  });

  test('of many tools is forgotten for the one called longest ago', () => {
    const health = new ToolHealth({ maxTools: 2 });
    for (const name of ['a', 'b', 'a', 'c']) health.admit(name)?.settle('failure', 1);
    expect(Object.keys(health.snapshot())).toEqual(['a', 'c']);
  });
});

test('whatever happens, no more are let through than may be, and only its own calls open and close it', () => {
  const event = fc.oneof(
    fc.record({ kind: fc.constant('call' as const) }),
    fc.record({
      kind: fc.constant('settle' as const),
      which: fc.nat(9),
      verdict: fc.constantFrom('success' as const, 'failure' as const, 'neither' as const),
    }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 50, 100, 200) }),
  );
  const limits = fc.record({ probes: fc.integer({ min: 1, max: 3 }), successes: fc.integer({ min: 1, max: 3 }) });
  const check = (
    events: readonly (typeof event extends fc.Arbitrary<infer Event> ? Event : never)[],
    own: { probes: number; successes: number },
  ) => {
    const clock = new ManualClock();
    const health = new ToolHealth({ failures: 2, cooldownMs: 100, leaseMs: 150, ...own, clock });
    const breaker = () => health.report('tool').breaker;
    const waiting: Admission[] = [];
    /** Those that are to show whether it can close. */
    const probing = new Set<Admission>();
    for (const each of events) {
      const before = breaker();
      if (before !== 'half-open') probing.clear();
      if (each.kind === 'wait') clock.jump(each.ms);
      else if (each.kind === 'call') {
        const admission = health.admit('tool');
        expect(admission === undefined).toBe(before === 'open' || probing.size >= own.probes);
        if (admission !== undefined) waiting.push(admission);
        if (admission !== undefined && before === 'half-open') probing.add(admission);
      } else {
        const [admission] = waiting.splice(each.which % Math.max(1, waiting.length), 1);
        if (admission === undefined) continue;
        admission.settle(each.verdict, 1);
        const isProbe = probing.delete(admission);
        if (each.verdict === 'neither' || (before !== 'closed' && !isProbe)) expect(breaker()).toBe(before);
        if (before === 'half-open' && isProbe && each.verdict === 'failure') expect(breaker()).toBe('open');
      }
    }
  };
  fc.assert(fc.property(fc.array(event, { maxLength: 200 }), limits, check), { numRuns: 1000 });
});
