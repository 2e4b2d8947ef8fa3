import { describe, expect, test } from '@jest/globals';
import {
  type BatchOptions,
  createDispatcher,
  defineTool,
  type Middleware,
  named,
  type ToolCallRequest,
  type ToolDispatchResult,
  ToolOutput,
} from 'toolonion';
import { schedule, timeout, validation } from 'toolonion/middleware';
import { ManualClock, turns } from './support/manual-clock.ts';
import { expectNothingUnhandled } from './support/unhandled.ts';
import { callOf, calls, Work } from './support/work.ts';

expectNothingUnhandled();

function setUp(...middleware: readonly Middleware[]) {
  const work = new Work();
  const warnings: string[] = [];
  const dispatcher = createDispatcher({
    tools: [
      work.tool('read', { concurrencySafe: true }),
      work.tool('write'),
      work.tool('edit', { concurrencySafe: true, resourceKey: ({ key }) => key }),
      work.tool('maybe', { concurrencySafe: () => true }),
      defineTool({ name: 'throws', description: 'Throws.', execute: () => Promise.reject(new Error('no')) }),
      defineTool({ name: 'soft', description: 'Fails softly.', execute: () => ToolOutput.error('no') }),
      defineTool({ name: 'suspends', description: 'Waits.', execute: (_, call) => call.suspend({ reason: 'wait' }) }),
    ],
    middleware,
    onWarning: (message) => warnings.push(message),
  });
  return { work, dispatcher, warnings };
}

function endings(results: readonly ToolDispatchResult[]): readonly string[] {
  return results.map(({ content, error }) => (error ? `${error.code} ${error.executed}` : String(content)));
}

describe('without a schedule layer', () => {
  test('those run together whose tools say that they always may; all others run alone', async () => {
    const { work, dispatcher } = setUp();
    const batch = dispatcher.dispatchAll(calls('read a', 'read b', 'edit c', 'maybe d', 'write e', 'read f', 'read g'));
    const waves = [['a', 'b'], ['c'], ['d'], ['e'], ['f', 'g']];
    for (const wave of waves) {
      await turns();
      expect(work.running).toEqual(wave);
      work.end(...wave);
    }
    expect(endings(await batch)).toEqual(waves.flat());
  });

  test('no more than the limit run, and what waits is told apart', async () => {
    const { work, dispatcher } = setUp();
    const batch = dispatcher.dispatchAll(calls('read a', 'read b', 'read c'), { concurrency: 2 });
    await turns();
    expect(work.running).toEqual(['a', 'b']);
    work.end('b');
    await turns();
    work.end('c', 'a');
    expect((await batch).map(({ queuedMs }) => queuedMs !== undefined)).toEqual([false, false, true]);
  });

  test('a call no tool takes waits as well: a layer may find it one', async () => {
    const reroute: Middleware = (call, next) =>
      next(call.tool === undefined ? call.with({ tool: call.tools.get('write') as never }) : call);
    const { work, dispatcher } = setUp(reroute);
    const batch = dispatcher.dispatchAll(calls('read a', 'writes b', 'read c'));
    await work.runOneByOne('a', 'b', 'c');
    await batch;
  });

  test('a call that is aborted while it waits is seen by all layers', async () => {
    const seen: string[] = [];
    const { work, dispatcher } = setUp(
      named('log', async (call, next) => {
        const outcome = await next(call);
        seen.push(`${call.id} ${outcome.error?.code ?? 'ok'}`);
        return outcome;
      }),
    );
    const controller = new AbortController();
    const batch = dispatcher.dispatchAll(calls('write a', 'write b'), { signal: controller.signal });
    await turns();
    work.end('a');
    await turns(1);
    controller.abort();
    expect(endings(await batch)).toEqual(['a', 'cancelled stopped']);
    expect(seen).toEqual(['a ok', 'b cancelled']);
  });
});

test('in sequence each call runs alone, in order, failures and all', async () => {
  for (const layers of [[], [validation(), schedule()]]) {
    const { work, dispatcher } = setUp(...layers);
    const batch = dispatcher.dispatchAll(calls('read a', 'throws b', 'read c'), { mode: 'sequential' });
    await turns();
    expect(work.running).toEqual(['a']);
    work.end('a');
    await turns();
    expect(work.running).toEqual(['c']);
    work.end('c');
    expect(endings(await batch)).toEqual(['a', 'execution_failed yes', 'c']);
  }
});

test('a throw is contained alike, wherever in a batch it comes from, alone, and in sequence', async () => {
  const { dispatcher } = setUp();
  const failed = { code: 'execution_failed', executed: 'yes' };
  for (const mode of ['parallel', 'sequential'] as const) {
    for (const names of [['throws'], ['throws', 'soft'], ['soft', 'throws'], ['throws', 'throws']]) {
      const results = await dispatcher.dispatchAll(
        names.map((name) => ({ name })),
        { mode },
      );
      for (const [place, name] of names.entries())
        expect(results[place]).toMatchObject(name === 'throws' ? { error: failed } : { isError: true, content: 'no' });
    }
  }
});

describe('failFast', () => {
  const layers: readonly (readonly [string, readonly Middleware[]])[] = [
    ['without a schedule layer', []],
    ['with one', [named('outer', async (call, next) => next(call)), schedule()]],
  ];

  test.each(layers)('%s: the first failure stops what runs and what has not begun', async (_, middleware) => {
    const { work, dispatcher } = setUp(...middleware);
    const all = dispatcher.dispatchAll(calls('read a', 'throws b', 'write c', 'read d'), { failFast: true });
    await turns();
    work.end('a');
    const results = await all;
    expect(endings(results)).toEqual(['a', 'execution_failed yes', 'cancelled no', 'cancelled no']);
    expect(results[2]?.content).toBe(
      'Another call of the same turn failed: that of tool "throws". It had not started.',
    );
    expect(work.events).toEqual(['+a', '-a']);
  });

  test.each(layers)('%s: K08: siblings that run are aborted by their signal', async (_, middleware) => {
    const work = new Work();
    const tools = [
      work.tool('read', { concurrencySafe: true }),
      defineTool({
        name: 'fails',
        description: 'Fails.',
        concurrencySafe: true,
        execute: async () => {
          await turns();
          return ToolOutput.error('no');
        },
      }),
    ];
    const dispatcher = createDispatcher({ tools, middleware });
    const results = await dispatcher.dispatchAll(calls('read a', 'fails b', 'read c'), { failFast: true });
    expect(endings(results)).toEqual(['cancelled stopped', 'no', 'cancelled stopped']);
    expect(work.events).toEqual(['+a', '+c', '-a', '-c']);
  });

  test('holds in sequence, for a call that cannot be read, and not for one that was suspended', async () => {
    const { dispatcher } = setUp();
    const inTurn = await dispatcher.dispatchAll(calls('suspends a', 'soft b', 'write c'), {
      failFast: true,
      mode: 'sequential',
    });
    expect(endings(inTurn)).toEqual(['wait', 'no', 'cancelled no']);
    const broken = await dispatcher.dispatchAll([null as never, ...calls('write a')], { failFast: true });
    expect(endings(broken)).toEqual(['invalid_call no', 'cancelled no']);
  });

  test('a sibling that hangs, in its tool or in a layer, holds nothing up', async () => {
    const hangs = () => new Promise<never>(() => {});
    for (const layer of [[], [named('hangs', (call, next) => (call.name === 'stuck' ? hangs() : next(call)))]]) {
      const tools = ['stuck', 'fails'].map((name) =>
        defineTool({
          name,
          description: name,
          concurrencySafe: true,
          execute: () => (name === 'stuck' ? hangs() : ToolOutput.error('no')),
        }),
      );
      const dispatcher = createDispatcher({ tools, middleware: layer });
      const results = await dispatcher.dispatchAll([{ name: 'stuck' }, { name: 'fails' }], { failFast: true });
      expect(results.map(({ error }) => error?.code)).toEqual(['cancelled', undefined]);
    }
  });
});

describe('onResult', () => {
  test('K05: hears each result as it comes, with its place; on an abort only the stalled call is lost', async () => {
    const { work, dispatcher } = setUp();
    const controller = new AbortController();
    const heard: (readonly [number, ToolDispatchResult])[] = [];
    const batch = dispatcher.dispatchAll(calls('read a', 'read b', 'read c'), {
      signal: controller.signal,
      onResult: (result, place) => heard.push([place, result]),
    });
    await turns();
    work.end('c');
    await turns();
    work.end('b');
    await turns();
    expect(heard.map(([place]) => place)).toEqual([2, 1]);
    controller.abort();
    const results = await batch;
    expect(endings(results)).toEqual(['cancelled stopped', 'b', 'c']);
    for (const [place, result] of heard) expect(results[place]).toBe(result);
    expect(heard).toHaveLength(3);
  });

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no'))],
    ['hangs', () => new Promise(() => {})],
  ])('one that %s touches no call', async (what, observer) => {
    const { dispatcher, warnings } = setUp();
    const results = await dispatcher.dispatchAll(calls('soft a', 'nobody b'), { onResult: observer });
    expect(endings(results)).toEqual(['no', 'not_found no']);
    await turns();
    expect(warnings).toEqual(what === 'hangs' ? [] : ['onResult failed', 'onResult failed']);
  });
});

describe('earlier', () => {
  const requests = calls('write a', 'suspends b', 'soft c', 'suspends d');

  test('D06: only what was suspended or is missing runs again, and only that is told', async () => {
    const { work, dispatcher } = setUp();
    const first = dispatcher.dispatchAll(requests);
    await turns();
    work.end('a');
    const before = await first;
    expect(before.map(({ control }) => control?.type)).toEqual([undefined, 'suspend', undefined, 'suspend']);

    const approved = new Set<string>();
    const resuming = dispatcher.with({
      middleware: [
        (call, next) => next(approved.has(call.id) ? call.with({ tool: call.tools.get('write') as never }) : call),
      ],
    });
    const told: number[] = [];
    const resume = async (earlier: readonly (ToolDispatchResult | undefined)[]) => {
      const onResult = (_: unknown, place: number) => told.push(place);
      const batch = resuming.dispatchAll(requests, { earlier, onResult });
      await turns();
      work.end(...work.running);
      return batch;
    };
    approved.add('b');
    const second = await resume(before);
    expect(endings(second)).toEqual(['a', 'b', 'no', 'wait']);
    expect(second[0]).toBe(before[0]);
    approved.add('d');
    const third = await resume(JSON.parse(JSON.stringify(second)));
    expect(endings(third)).toEqual(['a', 'b', 'no', 'd']);
    expect(told).toEqual([1, 3, 3]);
    expect(work.events).toEqual(['+a', '-a', '+b', '-b', '+d', '-d']);
  });

  test('an earlier result stands though its tool is gone, and its id is taken', async () => {
    const { work, dispatcher } = setUp();
    const first = dispatcher.dispatchAll(calls('write a'));
    await turns();
    work.end('a');
    const [done] = await first;
    const results = await createDispatcher().dispatchAll(calls('write a', 'write a'), { earlier: [done] });
    expect(results[0]).toBe(done);
    expect(results[1]).toMatchObject({ error: { code: 'not_found' }, notes: [{ type: 'id_replaced' }] });
  });

  test.each<[string, unknown]>([
    ['null for arguments', { id: 'a', name: 'soft', arguments: null }],
    ['no arguments', { id: 'a', name: 'soft' }],
    ['text that was repaired', { id: 'a', name: 'soft', arguments: "{'id': 'a',}" }],
    ['text that cannot be read', { id: 'a', name: 'soft', arguments: '{' }],
    ['arguments that were cut off', { id: 'a', name: 'soft', arguments: { id: 'a' }, truncated: true }],
    ['an id that is no text', { id: 7, name: 'soft' }],
    ['a name no tool has', { id: 'a', name: 'nobody' }],
  ])('the result of a call with %s stands for the same call', async (_, request) => {
    const { dispatcher } = setUp();
    const calls = [request as ToolCallRequest];
    const before = await dispatcher.dispatchAll(calls);
    expect((await dispatcher.dispatchAll(calls, { earlier: before }))[0]).toBe(before[0]);
  });

  test('two calls with one id have two ids, whichever of them has its result already', async () => {
    const { dispatcher } = setUp();
    const twice = calls('soft x', 'soft x');
    const [first, second] = await dispatcher.dispatchAll(twice);
    const earlier: readonly (ToolDispatchResult | undefined)[][] = [
      [first, undefined],
      [undefined, { ...(second as ToolDispatchResult), toolCallId: 'x' }],
    ];
    for (const results of earlier) {
      const ids = (await dispatcher.dispatchAll(twice, { earlier: results })).map(({ toolCallId }) => toolCallId);
      expect(new Set(ids).size).toBe(2);
    }
  });

  const done = { toolCallId: 'a', resolvedToolName: 'soft', content: 'x', isError: false, notes: [], durationMs: 0 };
  test.each<[string, unknown]>([
    ['another call', { ...done, requested: { id: 'b', name: 'soft', input: {} } }],
    ['other arguments', { ...done, requested: { id: 'a', name: 'soft', input: { id: 'b' } } }],
    [
      'another text',
      { ...done, requested: { id: 'a', name: 'soft', input: { id: 'a' }, rawArguments: '{ "id":"a"}' } },
    ],
    ['rubbish', { content: 7 }],
    ['no call', { ...done, requested: null }],
    ['text', 'done'],
  ])('the result of %s stands for none: the call is refused, and nothing runs', async (_, result) => {
    const { dispatcher, work } = setUp();
    const [only] = await dispatcher.dispatchAll(calls('soft a'), { earlier: [result as ToolDispatchResult] });
    expect(only).toMatchObject({ error: { code: 'invalid_call', executed: 'no' } });
    expect(work.events).toEqual([]);
  });
});

describe('ids', () => {
  test('D02: of calls that run together are unique, whatever the model and the host’s generator do', async () => {
    let made = 0;
    const dispatcher = createDispatcher({
      tools: [
        defineTool({ name: 'tool', description: 'Is.', concurrencySafe: true, execute: async (_, call) => call.id }),
      ],
      generateId: () => `c${made++ % 3}`,
    });
    const requests = [undefined, '', 'c1', 'c1', undefined, 'c0', '', 'c2', 7 as unknown as string].map((id) => ({
      ...(id !== undefined && { id }),
      name: 'tool',
    }));
    const results = await dispatcher.dispatchAll([...requests, null as never]);
    const ids = results.map(({ toolCallId }) => toolCallId);
    expect(new Set(ids).size).toBe(10);
    expect([ids[2], ids[5], ids[7]]).toEqual(['c1', 'c0', 'c2']);
    expect(results.slice(0, 9).map(({ content }) => content)).toEqual(ids.slice(0, 9));
  });
});

describe('options', () => {
  test.each<[string, unknown, string]>([
    ['mode', { mode: 'fast' }, 'Option "mode" of dispatchAll must be one of "parallel", "sequential"'],
    ['concurrency', { concurrency: 0 }, 'Option "concurrency" of dispatchAll must be a whole number of at least 1'],
    ['concurrency that is text', { concurrency: '4' }, 'Option "concurrency"'],
    ['failFast', { failFast: 'yes' }, 'Option "failFast" of dispatchAll must be true or false'],
    ['onResult', { onResult: 7 }, 'Option "onResult" of dispatchAll must be a function'],
    ['earlier', { earlier: {} }, 'Option "earlier" of dispatchAll must be an array of results'],
    ['signal', { signal: 7 }, 'Option "signal" of dispatchAll must be an AbortSignal'],
    [
      'earlier, for more calls',
      { earlier: [undefined, undefined, undefined] },
      'must have a place for each call, not 3 for 2',
    ],
    ['another', { parallel: true }, 'dispatchAll has no option "parallel". Its options: signal, '],
    ['no object', 'fast', 'dispatchAll takes its options as an object'],
  ])('a wrong %s refuses each call, and says what is allowed', async (_, options, message) => {
    const { dispatcher, work } = setUp();
    const results = await dispatcher.dispatchAll(calls('write a', 'write b'), options as BatchOptions);
    expect(endings(results)).toEqual(['invalid_call no', 'invalid_call no']);
    expect(results[0]?.content).toContain(message);
    expect(work.events).toEqual([]);
  });
});

describe('drain', () => {
  test('lets finish what is under way, batches and nested calls included, and refuses the rest', async () => {
    const { work, dispatcher } = setUp();
    const nested = defineTool({
      name: 'nested',
      description: 'Calls another.',
      execute: async (_, call) => {
        await turns(3);
        return endings(await dispatcher.dispatchAll(calls('write n'), { parent: call })).join();
      },
    });
    const all = dispatcher.with({ tools: [...dispatcher.tools, nested] });
    const inTurn = all.dispatchAll(calls('write a', 'write b'), { mode: 'sequential' });
    const waiting = all.dispatchAll(calls('write c', 'write d'));
    const outer = all.dispatch({ name: 'nested' });
    let isDrained = false;
    const drained = all.drain().then((report) => {
      isDrained = true;
      return report;
    });
    const late = await all.dispatch(callOf('write x'));
    expect(late).toMatchObject({ error: { code: 'cancelled', executed: 'no', retryable: false } });
    expect(late.content).toBe('The host is shutting down. It had not started.');
    expect(endings(await dispatcher.dispatchAll(calls('read y')))).toEqual(['cancelled no']);
    for (let round = 0; round < 2; round++) {
      await turns();
      expect(isDrained).toBe(false);
      work.end(...work.running);
    }
    expect(endings(await inTurn)).toEqual(['a', 'b']);
    expect(endings(await waiting)).toEqual(['c', 'd']);
    expect((await outer).content).toBe('n');
    expect(await drained).toEqual({ aborted: 0, running: 0, unanswered: 0 });
    expect(await all.drain({ limitMs: 5 })).toEqual({ aborted: 0, running: 0, unanswered: 0 });
  });

  test('aborts what takes longer than its limit, and tells what may still be running', async () => {
    const clock = new ManualClock();
    const { work, dispatcher } = setUp();
    const stuck = defineTool({ name: 'stuck', description: 'Hangs.', execute: () => new Promise(() => {}) });
    const timed = dispatcher.with({ clock, tools: [...dispatcher.tools, stuck], middleware: [timeout()] });
    const batch = timed.dispatchAll(calls('write a', 'write b'), { mode: 'sequential' });
    const alone = timed.dispatch({ name: 'stuck' });
    const drained = timed.drain({ limitMs: 1000 });
    await clock.advance(999);
    expect(work.running).toEqual(['a']);
    await clock.advance(1);
    expect(endings(await batch)).toEqual(['cancelled stopped', 'cancelled no']);
    expect((await alone).error).toMatchObject({ code: 'cancelled', executed: 'unknown' });
    expect(await drained).toEqual({ aborted: 2, running: 1, unanswered: 0 });
    expect(clock.pending).toBe(0);
  });

  test('is not held up by a layer that hangs, and tells of the call that has no result', async () => {
    const clock = new ManualClock();
    const { dispatcher } = setUp(() => new Promise(() => {}));
    const timed = dispatcher.with({ clock });
    void timed.dispatch({ name: 'soft' });
    const drained = timed.drain({ limitMs: 1 });
    await clock.advance(1);
    await turns(20);
    expect(await drained).toEqual({ aborted: 1, running: 0, unanswered: 1 });
  });

  test('with nothing under way is over at once; a wrong option is told', async () => {
    const { dispatcher } = setUp();
    await expect(dispatcher.drain({ limitMs: 0 })).rejects.toThrow('Option "limitMs" of drain must be milliseconds');
    await expect(dispatcher.drain({ limit: 1 } as never)).rejects.toThrow('drain has no option "limit"');
    expect(endings(await dispatcher.dispatchAll(calls('soft a')))).toEqual(['no']);
    expect(await dispatcher.drain()).toEqual({ aborted: 0, running: 0, unanswered: 0 });
  });
});
