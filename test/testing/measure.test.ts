import { describe, expect, test } from '@jest/globals';
import {
  after,
  createDispatcher,
  type Dispatcher,
  defineTool,
  type Middleware,
  named,
  type Tool,
  type ToolCallRequest,
  ToolFailure,
} from 'toolonion';
import { allowAll, permission, rules, standard } from 'toolonion/middleware';
import { type MeasureOptions, type MeasureProgress, measure } from 'toolonion/testing';
import { ManualClock } from '../support/manual-clock.ts';

interface Counted {
  readonly name: string;
  readonly readOnly?: boolean;
  readonly idempotent?: boolean;
  readonly destructive?: boolean;
  readonly execute?: Tool['execute'];
}

/** Counts how often its tools run. */
function countedTools(...definitions: readonly Counted[]) {
  const runs = new Map<string, number>();
  const tools = definitions.map(({ name, execute = () => 'done', ...flags }) =>
    defineTool({
      description: 'Counts.',
      ...flags,
      name,
      inputSchema: { type: 'object' },
      execute: (input, call) => {
        runs.set(name, (runs.get(name) ?? 0) + 1);
        return execute(input as never, call);
      },
    }),
  );
  return { tools, runs };
}

/** A layer that takes milliseconds of a clock which nothing else moves. */
function taking(name: string, clock: ManualClock, ms: number): Middleware {
  return named(name, (call, next) => {
    clock.jump(ms);
    return next(call);
  });
}

const QUICK: MeasureOptions = { repeats: 4, rounds: 3 };
const READ: ToolCallRequest = { name: 'read' };

describe('measure', () => {
  test('runs a tool as often as it may, and never for timing the layers', async () => {
    const { tools, runs } = countedTools(
      { name: 'read', readOnly: true },
      { name: 'put', idempotent: true },
      { name: 'send' },
      { name: 'drop', destructive: true },
    );
    const dispatcher = createDispatcher({
      tools,
      middleware: standard({ permission: { check: allowAll }, logging: false }),
    });
    const { calls } = await measure(
      dispatcher,
      tools.map(({ name }) => ({ name })),
      QUICK,
    );
    expect(Object.fromEntries(runs)).toEqual({ read: 4, put: 4, send: 1, drop: 1 });
    expect(calls.map((call) => call.runs)).toEqual([4, 4, 1, 1]);
  });

  test('never runs what a gate refuses, though the gate is taken away for timing it', async () => {
    const { tools, runs } = countedTools({ name: 'read', readOnly: true }, { name: 'drop' });
    const gate = permission({ check: rules({ allow: ['read'], deny: ['drop'] }) });
    const { calls, layers } = await measure(
      createDispatcher({ tools, middleware: [gate] }),
      [READ, { name: 'drop' }],
      QUICK,
    );
    expect(runs.has('drop')).toBe(false);
    expect(calls.map(({ outcome }) => outcome)).toEqual(['ok', 'denied']);
    expect(layers.map(({ name }) => name)).toEqual(['permission']);
  });

  test('runs a tool a layer puts in the place of another as often as that one may run', async () => {
    const { tools, runs } = countedTools({ name: 'read', readOnly: true }, { name: 'other' });
    const [, other] = tools;
    const route = named('route', (call, next) => next(call.with({ tool: other as Tool })));
    const { calls } = await measure(createDispatcher({ tools, middleware: [route] }), [READ], QUICK);
    expect(Object.fromEntries(runs)).toEqual({ other: 1 });
    expect(calls[0]).toMatchObject({ outcome: 'ok', runs: 1 });
  });

  test('takes no second look at a request that says something else then', async () => {
    const { tools, runs } = countedTools({ name: 'read', readOnly: true }, { name: 'drop' });
    let looks = 0;
    const wavering = {
      get name() {
        return looks++ < 2 ? 'read' : 'drop';
      },
    };
    await measure(createDispatcher({ tools }), [wavering], QUICK);
    expect(Object.fromEntries(runs)).toEqual({ read: 4 });
  });

  test('stops a call that is led to another tool the second time', async () => {
    const { tools, runs } = countedTools({ name: 'read', readOnly: true }, { name: 'other' });
    const [, other] = tools;
    let turn = 0;
    const route = named('route', (call, next) => next(turn++ % 2 === 0 ? call : call.with({ tool: other as Tool })));
    await measure(createDispatcher({ tools, middleware: [route] }), [READ], QUICK);
    expect(runs.get('other')).toBeUndefined();
  });

  test('has stand-ins give what the tools gave, at once where they did', async () => {
    const answers: Readonly<Record<string, () => unknown>> = {
      text: () => 'text',
      later: async () => 'later',
      soft: () => ({ content: 'soft', isError: true }),
      data: () => ({ rows: 2 }),
      parts: () => [{ type: 'text', text: 'part' }],
      hard: () => {
        throw new ToolFailure('hard', { code: 'rate_limited' });
      },
      broken: async () => {
        throw new Error('secret');
      },
    };
    const definitions = Object.entries(answers).map(([name, execute]) => ({ name, readOnly: true, execute }));
    const { tools } = countedTools(...definitions);
    const seen = new Map<string, Set<string>>();
    const watch = named('watch', (call, next) => {
      const outcome = next(call);
      const how = 'then' in outcome ? 'promise' : 'at once';
      return after(outcome, (settled) => {
        const { content, isError, structured, error } = settled;
        const text = JSON.stringify([
          how,
          content,
          isError,
          structured,
          error?.code,
          error?.retryable,
          error?.executed,
        ]);
        seen.set(call.name, (seen.get(call.name) ?? new Set()).add(text));
        return settled;
      });
    });
    const dispatcher = createDispatcher({ tools, middleware: [watch] });
    await measure(
      dispatcher,
      tools.map(({ name }) => ({ name })),
      QUICK,
    );
    expect([...seen].map(([name, { size }]) => [name, size])).toEqual(Object.keys(answers).map((name) => [name, 1]));
  });

  test('finds what a layer takes, both by taking it away and by its span', async () => {
    const clock = new ManualClock();
    const { tools } = countedTools({ name: 'read', readOnly: true });
    const middleware = [taking('idle', clock, 0), taking('slow', clock, 3), taking('slower', clock, 5)];
    const dispatcher = createDispatcher({ tools, middleware, clock });
    const { layers, dispatching, withTools, sampled, probeUs } = await measure(dispatcher, [READ, READ], {
      ...QUICK,
      clock,
    });
    const exactly = (us: number) => ({ median: us, low: us, high: us });
    expect(layers).toMatchObject([
      { name: 'idle', takenAwayUs: exactly(0), ownUs: 0 },
      { name: 'slow', takenAwayUs: exactly(3000), ownUs: 3000 },
      { name: 'slower', takenAwayUs: exactly(5000), ownUs: 5000 },
    ]);
    expect(dispatching).toMatchObject({ p50Ms: 8, p99Ms: 8, maxMs: 8, perSecond: 125 });
    expect(withTools).toMatchObject({ dispatches: 8, p50Ms: 8, perSecond: 125 });
    expect([sampled, probeUs]).toEqual([2, 0]);
  });

  test('takes off what the probes themselves take', async () => {
    let now = 0;
    const clock = { ...new ManualClock(), now: () => ++now };
    const { tools } = countedTools({ name: 'read', readOnly: true });
    const middleware = ['a', 'b', 'c'].map((name) => named(name, (call, next) => next(call)));
    const { layers, probeUs } = await measure(createDispatcher({ tools, middleware, clock }), [READ], {
      ...QUICK,
      clock,
    });
    expect(probeUs).toBeGreaterThan(0);
    expect(layers.reduce((sum, { ownUs }) => sum + ownUs, 0)).toBeCloseTo(0, 6);
  });

  test('gives percentiles of all dispatches, and the median of each call', async () => {
    const clock = new ManualClock();
    const times = [1, 2, 3, 4, 100];
    let run = 0;
    const { tools } = countedTools({ name: 'read', readOnly: true, execute: () => clock.jump(times[run++] ?? 0) });
    const dispatcher = createDispatcher({ tools, clock });
    const { withTools, calls } = await measure(dispatcher, [READ], { repeats: 5, rounds: 1, clock });
    expect(withTools).toMatchObject({ dispatches: 5, p50Ms: 3, p90Ms: 100, p99Ms: 100, maxMs: 100 });
    expect(withTools.perSecond).toBeCloseTo(5 / 0.11, 6);
    expect(calls[0]?.durationMs).toBe(3);
  });

  test('shows the last run of each call layer by layer, retries as passages of their own', async () => {
    const clock = new ManualClock();
    const { tools } = countedTools({ name: 'read', readOnly: true, execute: () => clock.jump(2) });
    const twice = named('twice', (call, next) => after(next(call), () => next(call)));
    const dispatcher = createDispatcher({ tools, middleware: [taking('slow', clock, 1), twice], clock });
    const { calls } = await measure(dispatcher, [READ, { name: 'none' }], { ...QUICK, clock });
    expect(calls[0]?.spans).toEqual([
      { name: 'slow', passages: [{ enteredMs: 0, leftMs: 5 }], totalMs: 5, ownMs: 1 },
      { name: 'twice', passages: [{ enteredMs: 1, leftMs: 5 }], totalMs: 4, ownMs: 0 },
      {
        name: 'tool',
        passages: [
          { enteredMs: 1, leftMs: 3 },
          { enteredMs: 3, leftMs: 5 },
        ],
        totalMs: 4,
        ownMs: 4,
      },
    ]);
    expect(calls[1]).toMatchObject({ outcome: 'not_found', runs: 1 });
  });

  test('gives a call that never reached a layer no passage there', async () => {
    const { tools } = countedTools({ name: 'read', readOnly: true });
    const refuse = permission({ check: rules({ deny: ['read'] }) });
    const { calls } = await measure(createDispatcher({ tools, middleware: [refuse] }), [READ], QUICK);
    expect(calls[0]).toMatchObject({ outcome: 'denied', spans: [{ passages: [{}] }, { passages: [] }] });
  });

  test('has stand-ins suspend and interrupt as the tools did', async () => {
    const interrupt = { stop: 'here' };
    const { tools } = countedTools(
      { name: 'suspends', readOnly: true, execute: (_, call) => call.suspend({ reason: 'later' }) },
      {
        name: 'interrupts',
        readOnly: true,
        execute: () => {
          throw interrupt;
        },
      },
    );
    const seen = new Set<string>();
    const watch = named('watch', (call, next) =>
      after(next(call), (outcome) => {
        seen.add(`${call.name} ${outcome.control?.type} ${outcome.isError}`);
        return outcome;
      }),
    );
    const isControlSignal = (thrown: unknown) => thrown === interrupt;
    const dispatcher = createDispatcher({ tools, middleware: [watch], isControlSignal });
    await measure(
      dispatcher,
      tools.map(({ name }) => ({ name })),
      QUICK,
    );
    expect([...seen]).toEqual(['suspends suspend false', 'interrupts interrupt false']);
  });

  test('counts bytes: a layer that allocates more costs more', async () => {
    const { tools } = countedTools({ name: 'read', readOnly: true });
    const kept: unknown[] = [];
    const hungry = named('hungry', (call, next) => {
      kept[0] = new Array(10_000).fill(0);
      return next(call);
    });
    const idle = named('idle', (call, next) => next(call));
    const { layers, dispatching } = await measure(
      createDispatcher({ tools, middleware: [hungry, idle] }),
      [READ],
      QUICK,
    );
    expect(layers[0]?.bytes).toBeGreaterThan(70_000);
    expect(Math.abs(layers[1]?.bytes ?? 0)).toBeLessThan(20_000);
    expect(dispatching.bytesPerCall).toBeGreaterThan(70_000);
  });

  test('takes fewer of the calls for timing layers where a pass over all of them would be slow', async () => {
    const clock = new ManualClock();
    const { tools } = countedTools({ name: 'read', readOnly: true });
    const dispatcher = createDispatcher({ tools, middleware: [taking('slow', clock, 20)], clock });
    const { sampled, calls } = await measure(dispatcher, Array(30).fill(READ), { repeats: 1, rounds: 1, clock });
    expect([sampled, calls.length]).toEqual([3, 30]);
  });

  test('does not dispatch thousands of times through a layer that waits', async () => {
    const clock = new ManualClock();
    const { tools } = countedTools({ name: 'read', readOnly: true });
    let passed = 0;
    const asks = named('asks', (call, next) => {
      passed++;
      clock.jump(5000);
      return next(call);
    });
    const dispatcher = createDispatcher({ tools, middleware: [asks], clock });
    await measure(dispatcher, Array(50).fill(READ), { repeats: 1, rounds: 2, clock });
    expect(passed).toBeLessThan(80);
  });

  test('repeats no call once its time is over', async () => {
    const clock = new ManualClock();
    const { tools, runs } = countedTools({ name: 'read', readOnly: true, execute: () => clock.jump(100) });
    const seen: MeasureProgress[] = [];
    const onProgress = (progress: MeasureProgress) => seen.push(progress);
    await measure(createDispatcher({ tools, clock }), [READ], {
      repeats: 1000,
      rounds: 1,
      limitMs: 250,
      clock,
      onProgress,
    });
    expect(runs.get('read')).toBe(5);
    expect(seen.filter(({ phase }) => phase === 'tools').at(-1)).toEqual({ phase: 'tools', done: 5, total: 5 });
  });

  test('begins no further round once its time is over, but has at least one', async () => {
    const clock = new ManualClock();
    const { tools } = countedTools({ name: 'read', readOnly: true });
    const dispatcher = createDispatcher({ tools, middleware: [taking('slow', clock, 20)], clock });
    const seen: MeasureProgress[] = [];
    const options = {
      repeats: 1,
      rounds: 1000,
      limitMs: 1,
      clock,
      onProgress: (progress: MeasureProgress) => seen.push(progress),
    };
    const { layers } = await measure(dispatcher, [READ], options);
    expect(seen.at(-2)?.done).toBeLessThan(3);
    expect(layers[0]?.takenAwayUs.median).toBe(20_000);
  });

  test('tells how far it is', async () => {
    const { tools } = countedTools({ name: 'read', readOnly: true }, { name: 'send' });
    const seen: MeasureProgress[] = [];
    const calls = [READ, { name: 'send' }];
    await measure(createDispatcher({ tools }), calls, { ...QUICK, onProgress: (progress) => seen.push(progress) });
    const done = (phase: string) =>
      seen.filter((progress) => progress.phase === phase).map((progress) => progress.done);
    expect(done('tools')).toEqual([1, 2, 3, 4, 5]);
    expect(done('layers')).toEqual([0, 0, 0, 0, 1, 2, 3]);
    expect(seen.every(({ phase, total }) => total === (phase === 'tools' ? 5 : 3))).toBe(true);
  });

  test('ends with the reason of its signal, in either phase, and stops the tool that runs', async () => {
    const stopped: string[] = [];
    const execute: Tool['execute'] = (_, call) =>
      new Promise((_resolve, reject) => {
        call.signal.addEventListener('abort', () => {
          stopped.push(call.name);
          reject(call.signal.reason);
        });
        controller.abort(new Error('enough'));
      });
    const { tools } = countedTools({ name: 'read', readOnly: true, execute });
    let controller = new AbortController();
    await expect(measure(createDispatcher({ tools }), [READ], { ...QUICK, signal: controller.signal })).rejects.toThrow(
      'enough',
    );
    expect(stopped).toEqual(['read']);

    controller = new AbortController();
    const onProgress = ({ phase }: MeasureProgress) => phase === 'layers' && controller.abort(new Error('enough'));
    const { tools: others } = countedTools({ name: 'read', readOnly: true });
    const options = { ...QUICK, signal: controller.signal, onProgress };
    await expect(measure(createDispatcher({ tools: others }), [READ], options)).rejects.toThrow('enough');
  });

  test('leaves the dispatcher as it was', async () => {
    const { tools, runs } = countedTools({ name: 'read', readOnly: true });
    const dispatcher: Dispatcher = createDispatcher({ tools, middleware: [named('only', (call, next) => next(call))] });
    await measure(dispatcher, [READ], QUICK);
    await dispatcher.dispatch(READ);
    expect(dispatcher.middlewareNames).toEqual(['only']);
    expect(runs.get('read')).toBe(5);
  });

  test.each<[unknown[], unknown, string]>([
    [[], {}, 'measure takes an array of calls, at least one.'],
    [undefined as never, {}, 'measure takes an array of calls, at least one.'],
    [[READ, { nme: 'x' }], {}, 'measure takes calls: number 2 has no name.'],
    [[READ], { repeats: 0 }, 'Option "repeats" of measure must be a whole number of at least 1; got 0.'],
    [
      [READ],
      { round: 1 },
      'measure has no option "round". Its options: repeats, rounds, limitMs, signal, onProgress, clock.',
    ],
    [[READ], { onProgress: true }, 'Option "onProgress" of measure must be a function'],
  ])('refuses %j with %j', async (calls, options, message) => {
    const measuring = measure(createDispatcher(), calls as ToolCallRequest[], options as MeasureOptions);
    await expect(measuring).rejects.toThrow(message);
  });
});
