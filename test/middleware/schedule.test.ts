import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test } from '@jest/globals';
import {
  AbortReason,
  after,
  createDispatcher,
  type Dispatcher,
  defineTool,
  type Middleware,
  type Tool,
  type ToolCall,
  type ToolCallRequest,
  ToolContext,
  toolError,
} from 'toolonion';
import { allowAll, permission, type ScheduleOptions, schedule, timeout, validation } from 'toolonion/middleware';
import { gate } from '../support/gate.ts';
import { ManualClock, turns } from '../support/manual-clock.ts';
import { expectNothingUnhandled } from '../support/unhandled.ts';
import { callOf, calls, Work } from '../support/work.ts';

expectNothingUnhandled();

function setUp(options: ScheduleOptions = {}) {
  const work = new Work();
  const waiting = gate();
  const tools: readonly Tool[] = [
    work.tool('read', { concurrencySafe: true }),
    work.tool('write'),
    work.tool('edit', { concurrencySafe: true, resourceKey: ({ key }) => key }),
    work.tool('maybe', { concurrencySafe: ({ isSafe }) => isSafe === true }),
  ];
  const dispatcher = createDispatcher({ tools, middleware: [validation(), waiting.layer, schedule(options)] });
  return { work, dispatcher, open: waiting.open };
}

describe('in a batch', () => {
  test('safe calls run together, and one that is not is a barrier both ways', async () => {
    const { work, dispatcher } = setUp();
    const batch = dispatcher.dispatchAll(calls('read a', 'read b', 'write c', 'read d', 'read e'));
    await turns();
    expect(work.running).toEqual(['a', 'b']);
    work.end('a');
    await turns();
    expect(work.running).toEqual(['b']);
    work.end('b');
    await turns();
    expect(work.running).toEqual(['c']);
    work.end('c');
    await turns();
    expect(work.running).toEqual(['d', 'e']);
    work.end('e', 'd');
    expect((await batch).map(({ content }) => content)).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  test('calls with equal keys run in their order, others beside them', async () => {
    const { work, dispatcher } = setUp();
    const batch = dispatcher.dispatchAll(
      calls('edit a key=f', 'edit b key=f', 'edit c key=g', 'read d', 'edit e key=f', 'edit h'),
    );
    await turns();
    expect(work.running).toEqual(['a', 'c', 'd', 'h']);
    work.end('a');
    await turns();
    expect(work.running).toEqual(['c', 'd', 'h', 'b']);
    work.end('b', 'c', 'd', 'h');
    await turns();
    expect(work.running).toEqual(['e']);
    work.end('e');
    expect((await batch).map(({ content }) => content)).toEqual(['a', 'b', 'c', 'd', 'e', 'h']);
  });

  test('an earlier call that is on its way holds up those behind it, unless it is safe for all arguments', async () => {
    const { work, dispatcher, open } = setUp();
    const batch = dispatcher.dispatchAll(calls('read held1', 'read a', 'maybe held2 safe', 'read b'));
    await turns();
    expect(work.running).toEqual(['a']);
    open('held2');
    await turns();
    expect(work.running).toEqual(['a', 'held2', 'b']);
    open('held1');
    await turns();
    work.end('a', 'b', 'held1', 'held2');
    expect((await batch).map(({ isError }) => isError)).toEqual([false, false, false, false]);
  });

  test('one that is safe and has keys holds up only those that may have the same', async () => {
    const { work, dispatcher, open } = setUp();
    const batch = dispatcher.dispatchAll(calls('edit held1 key=f', 'edit a key=f', 'read b', 'edit c key=g'));
    await turns();
    expect(work.running).toEqual(['b']);
    open('held1');
    await turns();
    expect(work.running).toEqual(['b', 'held1', 'c']);
    work.end('held1');
    await turns();
    work.end('a', 'b', 'c');
    expect((await batch).map(({ content }) => content)).toEqual(['held1', 'a', 'b', 'c']);
  });

  test('a call that is answered before it comes here holds up nobody any longer', async () => {
    const { work, dispatcher } = setUp();
    const refusals: readonly ToolCallRequest[] = [
      { id: 'none', name: 'nobody' },
      { id: 'bad', name: 'write', arguments: { id: 7 } },
      { id: 'torn', name: 'write', arguments: '{"id":' },
    ];
    const batch = dispatcher.dispatchAll([...refusals, ...calls('read a')]);
    await turns();
    work.end('a');
    expect((await batch).map(({ error }) => error?.code)).toEqual([
      'not_found',
      'invalid_arguments',
      'truncated_arguments',
      undefined,
    ]);
  });

  test('a call that comes to another tool than it asked for is judged by that one', async () => {
    const { work, dispatcher, open } = setUp();
    const write = dispatcher.tools.get('write') as Tool;
    const reroute: Middleware = (call, next) => next(call.id === 'held1' ? call.with({ tool: write }) : call);
    const [first, ...others] = dispatcher.middleware as [Middleware, Middleware, Middleware];
    const rerouting = dispatcher.with({ middleware: [first, reroute, ...others] });
    const batch = rerouting.dispatchAll(calls('read held1', 'read a', 'read b'));
    await turns();
    expect(work.running).toEqual(['a', 'b']);
    open('held1');
    await turns();
    const later = rerouting.dispatchAll(calls('read c'));
    await turns();
    expect(work.running).toEqual(['a', 'b']);
    work.end('a', 'b');
    await turns();
    expect(work.running).toEqual(['held1']);
    work.end('held1');
    await turns();
    work.end('c');
    expect((await batch).map(({ content }) => content)).toEqual(['held1', 'a', 'b']);
    await later;
  });
});

describe('what tools say', () => {
  const throws = (): never => {
    throw new Error('no');
  };

  test.each<[string, Partial<Parameters<Work['tool']>[1]>]>([
    ['a flag that throws', { concurrencySafe: throws }],
    ['a flag that promises', { concurrencySafe: (async () => true) as unknown as () => boolean }],
    ['a flag that promises and fails', { concurrencySafe: (async () => throws()) as unknown as () => boolean }],
    ['a key that throws', { concurrencySafe: true, resourceKey: throws }],
    ['a key that is no text', { concurrencySafe: true, resourceKey: (() => 7) as unknown as () => string }],
    [
      'a key that promises and fails',
      { concurrencySafe: true, resourceKey: (async () => throws()) as unknown as () => string },
    ],
    ['nothing', {}],
  ])('%s makes a call one that runs alone', async (_, traits) => {
    const work = new Work();
    const tools = [work.tool('odd', traits), work.tool('read', { concurrencySafe: true })];
    const dispatcher = createDispatcher({ tools, middleware: [validation(), schedule()] });
    const batch = dispatcher.dispatchAll(calls('read a', 'odd b', 'odd c', 'read d'));
    await work.runOneByOne('a', 'b', 'c', 'd');
    expect((await batch).map(({ content }) => content)).toEqual(['a', 'b', 'c', 'd']);
  });

  test('is asked of validated arguments, with their defaults', async () => {
    const seen: unknown[] = [];
    const tool = defineTool({
      name: 'tool',
      description: 'Reads.',
      inputSchema: { type: 'object', properties: { n: { type: 'number', default: 7 } } },
      concurrencySafe: (input) => seen.push(input) > 0,
      resourceKey: (input) => String(seen.push(input)),
      execute: () => 'x',
    });
    await createDispatcher({ tools: [tool], middleware: [validation(), schedule()] }).dispatch({ name: 'tool' });
    expect(seen).toEqual([{ n: 7 }, { n: 7 }]);
  });
});

describe('of single calls', () => {
  test('those of one session are kept apart like those of a batch, those of others run beside them', async () => {
    const { work, dispatcher } = setUp();
    const other = new ToolContext();
    const [a, b, c] = calls('write a', 'write b', 'write c') as [ToolCallRequest, ToolCallRequest, ToolCallRequest];
    const results = [dispatcher.dispatch(a), dispatcher.dispatch(b), dispatcher.dispatch(c, { context: other })];
    await turns();
    expect(work.running).toEqual(['a', 'c']);
    work.end('a');
    await turns();
    work.end('b', 'c');
    await Promise.all(results);
  });

  test('the host says what they share their order with', async () => {
    const { work, dispatcher } = setUp({ scope: ({ id }) => id });
    const results = calls('write a', 'write b').map((call) => dispatcher.dispatch(call));
    await turns();
    expect(work.running).toEqual(['a', 'b']);
    work.end('a', 'b');
    await Promise.all(results);
  });

  test('one with a key of another session waits for it all the same', async () => {
    const { work, dispatcher } = setUp();
    const [a, b] = calls('edit a key=f', 'edit b key=f') as [ToolCallRequest, ToolCallRequest];
    const results = [dispatcher.dispatch(a), dispatcher.dispatch(b, { context: new ToolContext() })];
    await turns();
    expect(work.running).toEqual(['a']);
    work.end('a');
    await turns();
    work.end('b');
    await Promise.all(results);
  });

  test('a scope that throws for a call on its way fails that call alone', async () => {
    const { work, dispatcher, open } = setUp({
      scope: ({ id }) => {
        if (id === 'held1') throw new Error('no');
        return 'all';
      },
    });
    const batch = dispatcher.dispatchAll(calls('write held1', 'write b'));
    await turns();
    work.end('b');
    open('held1');
    expect((await batch).map(({ error }) => error?.code)).toEqual(['internal', undefined]);
  });

  test('a scope that throws fails its own call', async () => {
    const { work, dispatcher } = setUp({
      scope: ({ id }) => {
        if (id === 'a') throw new Error('no');
        return 'all';
      },
    });
    const results = calls('write a', 'write b').map((call) => dispatcher.dispatch(call));
    await turns();
    work.end('b');
    expect((await Promise.all(results)).map(({ error }) => error?.code)).toEqual(['internal', undefined]);
  });
});

describe('slots', () => {
  test('never more than so many run, first come, first served, the batch’s own limit included', async () => {
    const { work, dispatcher } = setUp({ concurrency: 3 });
    const ids = Array.from({ length: 9 }, (_, n) => `r${n}`);
    const all = ids.map((id) => `read ${id}`);
    const batch = dispatcher.dispatchAll(calls(...all), { concurrency: 2 });
    const more = dispatcher.dispatchAll(calls('read x', 'read y'));
    await turns();
    expect(work.running).toEqual(['r0', 'r1', 'x']);
    work.end('x');
    await turns();
    expect(work.running).toEqual(['r0', 'r1', 'y']);
    work.end('y');
    for (const id of ids) {
      await turns();
      work.end(id);
    }
    expect(work.most).toBe(3);
    expect(work.events.filter((event) => event.startsWith('+r'))).toEqual(ids.map((id) => `+${id}`));
    await Promise.all([batch, more]);
  });

  test('are not held by calls that are on their way, nor by those that wait for a key', async () => {
    const { work, dispatcher, open } = setUp({ concurrency: 1 });
    const batch = dispatcher.dispatchAll(calls('read held1', 'edit a key=f', 'edit b key=f', 'edit c key=g'));
    await turns();
    expect(work.running).toEqual(['a']);
    work.end('a');
    await turns();
    expect(work.running).toHaveLength(1);
    open('held1');
    for (let left = 3; left > 0; left--) {
      await turns();
      work.end(...work.running);
    }
    expect((await batch).every(({ isError }) => !isError)).toBe(true);
    expect(work.most).toBe(1);
  });
});

describe('an abort', () => {
  test('answers those that wait as not started, at once, and keeps what is finished', async () => {
    const { work, dispatcher } = setUp();
    const controller = new AbortController();
    const batch = dispatcher.dispatchAll(calls('read a', 'read b', 'write c', 'read d'), { signal: controller.signal });
    await turns();
    work.end('a');
    await turns();
    controller.abort();
    expect((await batch).map(({ content, error }) => [error?.code ?? content, error?.executed])).toEqual([
      ['a', undefined],
      ['cancelled', 'stopped'],
      ['cancelled', 'no'],
      ['cancelled', 'no'],
    ]);
    expect(work.events).toEqual(['+a', '+b', '-a', '-b']);
  });

  test('of one that waits lets the others go on as if it had not been there', async () => {
    const { work, dispatcher } = setUp({ concurrency: 1 });
    const controller = new AbortController();
    const { signal } = controller;
    const kinds = ['write', 'edit', 'read'];
    for (const kind of kinds) {
      const [a, b, c] = calls('edit a key=f', `${kind} b key=f`, 'edit c key=f') as ToolCallRequest[];
      const results = [
        dispatcher.dispatch(a as ToolCallRequest),
        dispatcher.dispatch(b as ToolCallRequest, { signal }),
        dispatcher.dispatch(c as ToolCallRequest),
      ];
      await turns();
      controller.abort();
      expect((await results[1])?.error).toMatchObject({ code: 'cancelled', executed: 'no' });
      expect(work.running).toEqual(['a']);
      work.end('a');
      await turns();
      work.end('c');
      await Promise.all(results);
    }
  });

  test('at any point leaves nothing behind: the next call runs', async () => {
    for (let point = 0; point < 12; point++) {
      const { work, dispatcher, open } = setUp({ concurrency: 2 });
      const controller = new AbortController();
      const batch = dispatcher.dispatchAll(
        calls('edit held1 key=f', 'edit a key=f', 'read b', 'write c', 'maybe held2', 'read d'),
        { signal: controller.signal, concurrency: 2 },
      );
      const steps = [() => open('held1'), () => open('held2'), () => {}, () => {}];
      for (let step = 0; step < point; step++) {
        steps[step]?.();
        await turns(2);
        if (work.running.length > 0 && step > 3) work.end(work.running[0] as string);
      }
      controller.abort();
      expect(await batch).toHaveLength(6);
      const next = dispatcher.dispatchAll(calls('write x', 'edit y key=f'));
      for (const id of ['x', 'y']) {
        await turns();
        work.end(id);
      }
      expect((await next).map(({ content }) => content)).toEqual(['x', 'y']);
    }
  });
});

describe('waiting', () => {
  test('is told apart from execution, and no time limit counts it', async () => {
    const clock = new ManualClock();
    const work = new Work();
    const dispatcher = createDispatcher({
      tools: [work.tool('write')],
      clock,
      middleware: [schedule(), timeout({ limitMs: 100 })],
    });
    const batch = dispatcher.dispatchAll(calls('write a', 'write b'));
    await clock.advance(90);
    work.end('a');
    await clock.advance(90);
    work.end('b');
    const [a, b] = await batch;
    expect(a).not.toHaveProperty('queuedMs');
    expect(a).toMatchObject({ content: 'a', durationMs: 90 });
    expect(b).toMatchObject({ content: 'b', durationMs: 180, queuedMs: 90 });
    expect(clock.pending).toBe(0);
  });

  test('keeps the AsyncLocalStorage of each caller, in the tool, in layers, and in hooks', async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen: (readonly [string, string | undefined])[] = [];
    const see = (place: string) => seen.push([place, storage.getStore()]);
    const work = new Work();
    const tool = defineTool({
      name: 'tool',
      description: 'Looks around.',
      execute: async (_input, call) => {
        see('tool');
        call.report({ message: 'on it' });
        await turns(2);
        see('tool later');
        return 'x';
      },
    });
    const layer: Middleware = (call, next) =>
      after(next(call), (outcome) => {
        see('layer');
        return outcome;
      });
    const dispatcher = createDispatcher({ tools: [tool, work.tool('write')], middleware: [schedule(), layer] });
    const first = dispatcher.dispatch(callOf('write a'));
    const others = ['one', 'two'].map((name) =>
      storage.run(name, () =>
        dispatcher.dispatchAll([{ name: 'tool' }, { name: 'tool' }], {
          onProgress: () => see('progress'),
          onResult: () => see('result'),
        }),
      ),
    );
    await turns();
    storage.run('nobody', () => work.end('a'));
    await Promise.all([first, ...others]);
    const places = ['layer', 'progress', 'result', 'tool', 'tool later'];
    const twiceEach = (name: string) => places.flatMap((place) => [`${name} ${place}`, `${name} ${place}`]);
    const all = seen.slice(1).map(([place, name]) => `${name} ${place}`);
    expect(all.sort()).toEqual([...twiceEach('one'), ...twiceEach('two')]);
  });
});

describe('a call that a tool makes', () => {
  /** A dispatcher whose tool `nest` makes the calls it is given, all at once or as a batch. */
  function nesting(options: ScheduleOptions, batch: boolean) {
    const running: string[] = [];
    const log: string[] = [];
    const inputSchema = {
      type: 'object',
      properties: { id: { type: 'string' }, key: { type: 'string' }, nested: { type: 'array' } },
    } as const;
    const execute = async ({ id, nested = [] }: { id?: string; nested?: unknown[] }, call: ToolCall) => {
      running.push(id ?? '');
      log.push(`${running.join('')}`);
      await turns(2);
      const requests = nested as ToolCallRequest[];
      const results = batch
        ? await dispatcher.dispatchAll(requests, { parent: call })
        : await Promise.all(requests.map((request) => dispatcher.dispatch(request, { parent: call })));
      running.splice(running.indexOf(id ?? ''), 1);
      return [id, ...results.map(({ content, error }) => error?.code ?? content)].join(' ');
    };
    const tool = (name: string, concurrencySafe: boolean) =>
      defineTool({
        name,
        description: 'Makes calls.',
        inputSchema,
        concurrencySafe,
        resourceKey: ({ key }) => key,
        execute,
      });
    const dispatcher: Dispatcher = createDispatcher({
      tools: [tool('safe', true), tool('alone', false)],
      middleware: [validation(), permission({ check: allowAll }), schedule(options)],
    });
    return { dispatcher, log };
  }

  const nest = (name: string, id: string, nested: readonly ToolCallRequest[] = [], key?: string): ToolCallRequest => ({
    name,
    arguments: { id, nested, ...(key !== undefined && { key }) },
  });

  test.each([
    ['at once', false],
    ['as a batch', true],
  ])('K07: runs in its parent’s slot, so that nothing hangs, made %s', async (_, batch) => {
    const { dispatcher } = nesting({ concurrency: 1 }, batch);
    const deep = nest('alone', 'a', [
      nest('alone', 'b', [nest('safe', 'c'), nest('alone', 'd', [nest('safe', 'e')])]),
      nest('safe', 'f'),
    ]);
    const results = await dispatcher.dispatchAll([deep, nest('safe', 'g'), deep]);
    expect(results.map(({ content }) => content)).toEqual(['a b c d e f', 'g', 'a b c d e f']);
  });

  test('takes a free slot beside its parent’s, and no more than there are', async () => {
    const { dispatcher, log } = nesting({ concurrency: 2 }, true);
    const nested = ['b', 'c', 'd'].map((id) => nest('safe', id));
    await dispatcher.dispatch(nest('safe', 'a', nested));
    expect(Math.max(...log.map((running) => running.replace('a', '').length))).toBe(2);
  });

  test('is kept apart from its siblings, as their tools want it', async () => {
    const { dispatcher, log } = nesting({}, true);
    await dispatcher.dispatch(nest('alone', 'a', [nest('alone', 'b'), nest('safe', 'c'), nest('safe', 'd')]));
    expect(log).toEqual(['a', 'ab', 'ac', 'acd']);
  });

  test('passes the key that its parent holds', async () => {
    const { dispatcher } = nesting({}, false);
    const result = await dispatcher.dispatch(nest('safe', 'a', [nest('safe', 'b', [], 'f')], 'f'));
    expect(result.content).toBe('a b');
  });

  test('goes before a call that has the key but waits for its parent’s slot', async () => {
    const { dispatcher } = nesting({ concurrency: 1 }, true);
    const results = await dispatcher.dispatchAll([
      nest('safe', 'a', [nest('safe', 'b', [], 'f'), nest('safe', 'c', [], 'f')]),
      nest('safe', 'd', [], 'f'),
      nest('safe', 'e', [], 'f'),
    ]);
    expect(results.map(({ content }) => content)).toEqual(['a b c', 'd', 'e']);
  });

  test('is refused where two would wait for each other’s keys for ever, and can be called again', async () => {
    const { dispatcher } = nesting({}, true);
    const results = await dispatcher.dispatchAll([
      nest('safe', 'a', [nest('safe', 'b', [], 'g')], 'f'),
      nest('safe', 'c', [nest('safe', 'd', [], 'f')], 'g'),
    ]);
    expect(results.map(({ content }) => content).sort()).toEqual(['a b', 'c execution_failed']);
    const again = await dispatcher.dispatch(nest('safe', 'd', [], 'f'));
    expect(again.content).toBe('d');
  });

  test('is refused in a circle of three as well, and deeper down', async () => {
    const { dispatcher } = nesting({ concurrency: 3 }, true);
    const through = (key: string) => [nest('safe', 'x', [nest('safe', 'y', [], key)])];
    const results = await dispatcher.dispatchAll([
      nest('safe', 'a', through('g'), 'f'),
      nest('safe', 'b', through('h'), 'g'),
      nest('safe', 'c', through('f'), 'h'),
    ]);
    expect(results.filter(({ content }) => String(content).includes('execution_failed'))).toHaveLength(1);
  });
});

test('a layer outside may call again, and waits anew for its turn', async () => {
  for (const failFast of [false, true]) {
    const { work, dispatcher } = setUp({ concurrency: 1 });
    const again: Middleware = async (call, next) => {
      await next(call);
      return next(call);
    };
    const repeating = dispatcher.with({ middleware: [again, ...dispatcher.middleware] });
    const batch = repeating.dispatchAll(calls('write a', 'write b'), { failFast });
    for (let runs = 0; runs < 4; runs++) {
      await turns();
      work.end(...work.running);
    }
    expect((await batch).map(({ content }) => content)).toEqual(['a', 'b']);
  }
});

test('a layer outside that gives up on a call frees its place', async () => {
  const { work, dispatcher } = setUp();
  const givingUp: Middleware = (call, next) => {
    const scope = call.abortScope();
    const outcome = scope.follow(next(scope.call));
    if (call.id === 'b') scope.abort(new AbortReason(toolError('timeout', 'Enough.')));
    return outcome;
  };
  const impatient = dispatcher.with({ middleware: [givingUp, ...dispatcher.middleware] });
  const batch = impatient.dispatchAll(calls('write a', 'write b', 'write c'));
  await turns();
  work.end('a');
  await turns();
  work.end('c');
  expect((await batch).map(({ content, error }) => error?.code ?? content)).toEqual(['a', 'timeout', 'c']);
});

test('wrong options are told', () => {
  for (const options of [{ concurrency: 0 }, { concurrency: 1.5 }, { scope: 'session' }, { limit: 3 }])
    expect(() => schedule(options as ScheduleOptions)).toThrow(/^(Option "|schedule has no option)/);
});
