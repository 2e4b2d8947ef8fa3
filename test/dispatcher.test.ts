import { AsyncLocalStorage } from 'node:async_hooks';
import { getEventListeners } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import {
  after,
  createDispatcher,
  type Dispatcher,
  type DispatcherOptions,
  defineTool,
  extensionKey,
  type Middleware,
  named,
  type Progress,
  settingKey,
  type ToolCall,
  ToolContext,
  type ToolDispatchResult,
  type ToolOutcome,
  ToolRegistry,
} from 'toolonion';
import { allowAll, standard } from 'toolonion/middleware';
import { ManualClock, turns } from './support/manual-clock.ts';
import { calls, Work } from './support/work.ts';

const echo = defineTool({
  name: 'echo',
  description: 'Gives back what it got.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  execute: ({ text = '' }) => text,
});

describe('a result', () => {
  test('tells the call id, the resolved name, how long it took and what was asked', async () => {
    const clock = new ManualClock();
    const slow = defineTool({
      name: 'slow',
      description: 'Takes 42 ms.',
      execute: (_, call) => new Promise((resolve) => call.clock.setTimeout(() => resolve('done'), 42)),
    });
    const pending = createDispatcher({ tools: [slow], clock }).dispatch({
      id: 'c1',
      name: 'slow',
      arguments: '{"a":1}',
    });
    await clock.advance(42);
    expect(await pending).toStrictEqual({
      toolCallId: 'c1',
      resolvedToolName: 'slow',
      content: 'done',
      isError: false,
      notes: [],
      durationMs: 42,
      requested: { id: 'c1', name: 'slow', input: { a: 1 }, rawArguments: '{"a":1}' },
    });
  });

  test('comes as a promise, even where everything was there at once', () => {
    const pending = createDispatcher({ tools: [echo] }).dispatch({ name: 'echo' });
    expect(typeof pending.then).toBe('function');
  });

  test('names what ran after routing, and still what was asked', async () => {
    const route: Middleware = (call, next) => {
      const tool = call.tools.get('echo');
      return next(tool === undefined ? call : call.with({ tool }));
    };
    const result = await createDispatcher({ tools: [echo], middleware: [route] }).dispatch({
      name: 'ekho',
      arguments: { text: 'hi' },
    });
    expect(result).toMatchObject({ resolvedToolName: 'echo', content: 'hi', requested: { name: 'ekho' } });
  });

  test('C01: for an unknown name tells the name and a bounded list of the tools there are', async () => {
    const tools = Array.from({ length: 1000 }, (_, index) =>
      defineTool({ name: `tool_${String(index).padStart(3, '0')}`, description: 'Works.', execute: () => 'done' }),
    );
    for (const name of ['creating:view', 'x'.repeat(100_000), 'a\u0000\u001b[31m']) {
      const { error, content, resolvedToolName } = await createDispatcher({ tools }).dispatch({ name });
      expect(error).toMatchObject({ code: 'not_found', executed: 'no' });
      expect(content).toContain(`"${name.slice(0, 1)}`);
      expect(content).toContain('tool_009, and 990 more');
      expect(content.length).toBeLessThan(500);
      expect(JSON.stringify(content)).not.toMatch(/\\u00[01]/);
      expect(resolvedToolName).toBe(name);
    }
  });

  test('A10: is safe to replay as JSON, whatever the arguments were', async () => {
    const dispatcher = createDispatcher({ tools: [echo] });
    for (const broken of ['{"a":', 'null', '[1]', '', undefined, null, 42, [1], { a: () => 1 }, { a: 10n }]) {
      const { requested } = await dispatcher.dispatch({ name: 'echo', arguments: broken });
      expect(JSON.parse(JSON.stringify(requested)).input).toEqual({});
    }
  });
});

describe('a nested result', () => {
  test('that a tool passes on is its own answer', async () => {
    const failing = defineTool({
      name: 'failing',
      description: 'Fails softly.',
      execute: () => ({ content: 'no such city', isError: true }),
    });
    const outer = defineTool({ name: 'outer', description: 'Asks another.', execute: (_, call) => ask(call) });
    const dispatcher: Dispatcher = createDispatcher({ tools: [failing, outer] });
    const ask = (call: ToolCall): Promise<ToolDispatchResult> =>
      dispatcher.dispatch({ name: 'failing' }, { parent: call });
    expect(await dispatcher.dispatch({ name: 'outer' })).toMatchObject({
      content: 'no such city',
      isError: true,
      resolvedToolName: 'outer',
    });
  });
});

describe('ids', () => {
  const idOf = async (dispatcher: Dispatcher, id?: unknown) =>
    (await dispatcher.dispatch({ id: id as string, name: 'echo' })).toolCallId;

  test('D02: the model’s own is kept, and one is made where it is missing, empty or no text', async () => {
    let made = 0;
    const dispatcher = createDispatcher({ tools: [echo], generateId: () => `made ${++made}` });
    expect(await idOf(dispatcher, 'c1')).toBe('c1');
    expect(await idOf(dispatcher)).toBe('made 1');
    expect(await idOf(dispatcher, '')).toBe('made 2');
    expect(await idOf(dispatcher, 7)).toBe('made 3');
    expect(await idOf(dispatcher, null)).toBe('made 4');
  });

  test('C12: a name that is missing or no text is an invalid call with an id of its own', async () => {
    const dispatcher = createDispatcher({ tools: [echo] });
    for (const name of ['', undefined, null, 7, {}]) {
      const result = await dispatcher.dispatch({ id: '', name: name as string, arguments: '{"a":1}' });
      expect(result).toMatchObject({ isError: true, error: { code: 'invalid_call', executed: 'no' } });
      expect(result.toolCallId).not.toBe('');
    }
  });

  test('one that is in flight already is replaced, and a note says so', async () => {
    const waiting = defineTool({
      name: 'waiting',
      description: 'Waits for a turn.',
      execute: () => new Promise((resolve) => setImmediate(() => resolve('done'))),
    });
    const dispatcher = createDispatcher({ tools: [waiting] });
    const results = await Promise.all([1, 2, 3].map(() => dispatcher.dispatch({ id: 'c1', name: 'waiting' })));
    expect(new Set(results.map((result) => result.toolCallId)).size).toBe(3);
    expect(results.map((result) => result.notes.map((note) => note.type))).toEqual([
      [],
      ['id_replaced'],
      ['id_replaced'],
    ]);
    expect(await dispatcher.dispatch({ id: 'c1', name: 'waiting' })).toMatchObject({ toolCallId: 'c1', notes: [] });
  });

  test.each([1, 16, 17, 100])(
    'an id is taken as long as its call is one of %i under way, and free afterwards',
    async (count) => {
      const work = new Work();
      const dispatcher = createDispatcher({ tools: [work.tool('read')], generateId: () => 'made' });
      const asked = calls(...Array.from({ length: count }, (_, n) => `read call_${n}`));
      const idOfAnother = async (id: string) => (await dispatcher.dispatch({ id, name: 'gone' })).toolCallId;
      const idsNow = () => Promise.all(asked.map(({ id = '' }) => idOfAnother(id)));
      const underWay = asked.map((call) => dispatcher.dispatch(call));
      await turns();
      expect(await idsNow()).toEqual(asked.map(() => 'made'));
      // The last, the first, and what has taken the place of one that has gone.
      const order = [...asked.keys()].reverse();
      const ended = new Set<string>();
      for (const n of new Set([...order.slice(0, 1), ...order.slice(-1), ...order])) {
        work.end(`call_${n}`);
        await underWay[n];
        ended.add(`call_${n}`);
        expect((await idsNow()).filter((id) => id !== 'made')).toEqual(
          asked.flatMap(({ id = '' }) => (ended.has(id) ? [id] : [])),
        );
      }
    },
  );

  test('a derived dispatcher knows the ids in flight of the one it came from', async () => {
    const waiting = defineTool({ name: 'waiting', description: 'Waits.', execute: () => turns(1) });
    const dispatcher = createDispatcher({ tools: [waiting] });
    const first = dispatcher.dispatch({ id: 'c1', name: 'waiting' });
    const second = dispatcher.with({ middleware: [] }).dispatch({ id: 'c1', name: 'waiting' });
    expect((await second).toolCallId).not.toBe((await first).toolCallId);
  });

  test('a generator of ids that throws, or gives something else, is passed over with a warning', async () => {
    for (const generateId of [
      () => {
        throw new Error('no ids');
      },
      () => 5,
      () => '',
    ]) {
      const warnings: string[] = [];
      const options = {
        tools: [echo],
        generateId: generateId as () => string,
        onWarning: (message: string) => warnings.push(message),
      };
      const result = await createDispatcher(options).dispatch({ name: 'echo' });
      expect(result).toMatchObject({ isError: false, toolCallId: expect.stringMatching(/^.{21}$/) });
      expect(warnings[0]).toMatch(/generateId/);
    }
  });

  test('a generator of ids that repeats itself does not hang anything', async () => {
    const waiting = defineTool({ name: 'waiting', description: 'Waits.', execute: () => turns(1) });
    const dispatcher = createDispatcher({ tools: [waiting], generateId: () => 'same' });
    const results = await Promise.all([1, 2].map(() => dispatcher.dispatch({ name: 'waiting' })));
    expect(new Set(results.map((result) => result.toolCallId)).size).toBe(2);
  });
});

describe('dispatchAll', () => {
  test('H10: a tool that throws has one result and one event of its end, whatever it throws, as has one that answers', async () => {
    const ends: string[] = [];
    const count = named('count', (call, next) =>
      after(next(call), (outcome) => {
        ends.push(`${call.name} ${outcome.error?.code ?? 'ok'}`);
        return outcome;
      }),
    );
    const thrown = [new Error('no'), undefined, null, 'text', { code: 'ENOENT' }, new DOMException('no', 'AbortError')];
    const failing = thrown.flatMap((value, index) => [
      defineTool({
        name: `atOnce${index}`,
        description: 'Throws.',
        execute: () => {
          throw value;
        },
      }),
      defineTool({ name: `later${index}`, description: 'Rejects.', execute: () => Promise.reject(value) }),
    ]);
    const tools = [echo, ...failing];
    const results = await createDispatcher({ tools, middleware: [count] }).dispatchAll(
      tools.map(({ name }) => ({ name })),
    );
    expect(results.map(({ isError }) => isError)).toEqual([false, ...failing.map(() => true)]);
    expect(ends).toEqual(results.map(({ resolvedToolName, error }) => `${resolvedToolName} ${error?.code ?? 'ok'}`));
  });

  test('D04: results of calls without an id, which end in another order, belong to their calls', async () => {
    const clock = new ManualClock();
    const slow = defineTool({
      name: 'slow',
      description: 'Takes as long as it is told.',
      inputSchema: { type: 'object', properties: { ms: { type: 'number' } }, required: ['ms'] },
      execute: ({ ms }) => new Promise((resolve) => clock.setTimeout(() => resolve(`after ${ms}`), ms)),
    });
    const dispatcher = createDispatcher({ tools: [slow], clock });
    const ended: string[] = [];
    const calls = [30, 10, 20].map(async (ms) => {
      const result = await dispatcher.dispatch({ name: 'slow', arguments: { ms } });
      ended.push(String(result.content));
      return result;
    });
    await clock.advance(40);
    const results = await Promise.all(calls);
    expect(ended).toEqual(['after 10', 'after 20', 'after 30']);
    expect(results.map(({ content, requested }) => [content, requested.input])).toEqual(
      [30, 10, 20].map((ms) => [`after ${ms}`, { ms }]),
    );
    expect(new Set(results.map(({ toolCallId }) => toolCallId)).size).toBe(3);
    const inOrder = dispatcher.dispatchAll([30, 10].map((ms) => ({ name: 'slow', arguments: { ms } })));
    await clock.advance(60);
    expect((await inOrder).map(({ content }) => content)).toEqual(['after 30', 'after 10']);
  });

  test('K03: gives a result for each call, in order, whatever became of the others', async () => {
    const fails = defineTool({
      name: 'fails',
      description: 'Fails.',
      execute: () => {
        throw new Error('secret');
      },
    });
    const results = await createDispatcher({ tools: [echo, fails] }).dispatchAll([
      { id: 'a', name: 'echo', arguments: { text: '1' } },
      { id: 'b', name: 'fails' },
      { id: 'c', name: 'gone' },
      { id: 'd', name: 'echo', arguments: { text: '2' } },
    ]);
    expect(results.map(({ toolCallId, content, error }) => [toolCallId, error?.code ?? content])).toEqual([
      ['a', '1'],
      ['b', 'execution_failed'],
      ['c', 'not_found'],
      ['d', '2'],
    ]);
  });

  test('takes no list for no calls, and a call without its list for one', async () => {
    const dispatcher = createDispatcher({ tools: [echo] });
    for (const none of [undefined, null, []]) expect(await dispatcher.dispatchAll(none as never)).toEqual([]);
    const [only] = await dispatcher.dispatchAll({ name: 'echo', arguments: { text: 'x' } } as never);
    expect(only?.content).toBe('x');
    const results = await dispatcher.dispatchAll([null, 7] as never);
    expect(results.map((result) => result.error?.code)).toEqual(['invalid_call', 'invalid_call']);
  });

  test('D01: two calls with one id both run, and the second says which id it was given', async () => {
    const results = await createDispatcher({ tools: [echo] }).dispatchAll([
      { id: 'c1', name: 'echo', arguments: { text: '1' } },
      { id: 'c1', name: 'echo', arguments: { text: '2' } },
    ]);
    expect(results.map((result) => result.content)).toEqual(['1', '2']);
    expect(results[0]?.toolCallId).toBe('c1');
    expect(results[1]?.notes[0]?.message).toContain('"c1"');
  });

  test('an abort half-way keeps what is done and answers the rest as not started', async () => {
    const controller = new AbortController();
    const aborting = defineTool({
      name: 'aborting',
      description: 'Aborts the batch.',
      execute: () => {
        controller.abort(new Error('enough'));
        return 'done';
      },
    });
    const results = await createDispatcher({ tools: [echo, aborting] }).dispatchAll(
      [{ name: 'echo', arguments: { text: '1' } }, { name: 'aborting' }, { name: 'echo' }, { name: 'echo' }],
      { signal: controller.signal },
    );
    expect(results.map((result) => [result.error?.code ?? 'ok', result.error?.executed])).toEqual([
      ['ok', undefined],
      ['ok', undefined],
      ['cancelled', 'no'],
      ['cancelled', 'no'],
    ]);
  });
});

describe('an abort by the caller', () => {
  const hanging = (signals: AbortSignal[] = []) =>
    defineTool({
      name: 'hanging',
      description: 'Never answers.',
      execute: (_, call) => {
        signals.push(call.signal);
        return new Promise(() => {});
      },
    });

  test('G10: before the call runs nothing, asks nobody, and the layers outside still see the outcome', async () => {
    const seen: string[] = [];
    const watch: Middleware = (call, next) =>
      after(
        next(call),
        (outcome) => (seen.push(`${call.aborted} ${outcome.error?.code} ${outcome.error?.executed}`), outcome),
      );
    const onion = standard({
      logging: watch,
      permission: { check: () => ({ type: 'ask', prompt: '?' }), approver: () => (seen.push('asked'), true) },
    });
    const dispatcher = createDispatcher({ tools: [hanging()], middleware: onion });
    const result = await dispatcher.dispatch({ name: 'hanging' }, { signal: AbortSignal.abort(new Error('enough')) });
    expect(result.error).toMatchObject({ code: 'cancelled', executed: 'no' });
    expect(seen).toEqual(['true cancelled no']);
  });

  test('G08: reaches the tool through every layer, with the caller’s reason', async () => {
    const signals: AbortSignal[] = [];
    const controller = new AbortController();
    const dispatcher = createDispatcher({
      tools: [hanging(signals)],
      middleware: standard({ logging: false, permission: { check: allowAll } }),
    });
    const pending = dispatcher.dispatch({ name: 'hanging' }, { signal: controller.signal });
    const reason = new Error('enough');
    controller.abort(reason);
    await pending;
    expect(signals[0]?.reason).toBe(reason);
  });

  test('D05: is answered even if the tool never settles, and tells that its effect is unknown', async () => {
    const controller = new AbortController();
    const pending = createDispatcher({ tools: [hanging()] }).dispatch(
      { name: 'hanging' },
      { signal: controller.signal },
    );
    controller.abort();
    expect((await pending).error).toMatchObject({ code: 'cancelled', executed: 'unknown', retryable: false });
  });

  test('G09: tells a tool that stopped from one that may still be running', async () => {
    const controller = new AbortController();
    const heedful = defineTool({
      name: 'heedful',
      description: 'Stops when told.',
      execute: (_, call) =>
        new Promise((_, reject) => call.signal.addEventListener('abort', () => reject(call.signal.reason))),
    });
    const pending = createDispatcher({ tools: [heedful] }).dispatch({ name: 'heedful' }, { signal: controller.signal });
    controller.abort();
    expect((await pending).error).toMatchObject({ code: 'cancelled', executed: 'stopped' });
  });

  test('leaves alone what a tool answers all the same, in time', async () => {
    const controller = new AbortController();
    const partial = defineTool({
      name: 'partial',
      description: 'Gives what it has.',
      execute: (_, call) => new Promise((resolve) => call.signal.addEventListener('abort', () => resolve('half'))),
    });
    const pending = createDispatcher({ tools: [partial] }).dispatch({ name: 'partial' }, { signal: controller.signal });
    controller.abort();
    expect(await pending).toMatchObject({ content: 'half', isError: false });
  });

  test('by the tool itself, while it runs, counts as well', async () => {
    const controller = new AbortController();
    const suicidal = defineTool({
      name: 'suicidal',
      description: 'Aborts its own call.',
      execute: () => {
        controller.abort();
        return new Promise(() => {});
      },
    });
    const result = await createDispatcher({ tools: [suicidal] }).dispatch(
      { name: 'suicidal' },
      { signal: controller.signal },
    );
    expect(result.error).toMatchObject({ code: 'cancelled', executed: 'unknown' });
  });

  test('G05: a thousand calls in turn and fifty at once leave no listener on its signal', async () => {
    const controller = new AbortController();
    const waiting = defineTool({
      name: 'waiting',
      description: 'Waits.',
      execute: (_, call) => turns(call.signal.aborted ? 0 : 1),
    });
    const middleware = standard({ logging: false, permission: { check: allowAll } });
    const dispatcher = createDispatcher({ tools: [waiting], middleware });
    const run = () => dispatcher.dispatch({ name: 'waiting' }, { signal: controller.signal });
    for (let call = 0; call < 1000; call++) await run();
    const parallel = Array.from({ length: 50 }, run);
    // One for all of them: Node warns of a leak at eleven.
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
    await Promise.all(parallel);
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  });

  test('G05: listeners a tool forgets go with its call, not onto the caller’s signal', async () => {
    const controller = new AbortController();
    const careless = defineTool({
      name: 'careless',
      description: 'Forgets its listener.',
      execute: async (_, call) => call.signal.addEventListener('abort', () => {}),
    });
    await createDispatcher({ tools: [careless] }).dispatch({ name: 'careless' }, { signal: controller.signal });
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  });

  test('G03: what the tool answers later goes to onLate once, success or failure', async () => {
    for (const settle of ['resolve', 'reject'] as const) {
      const late: ToolOutcome[] = [];
      const controller = new AbortController();
      let finish = () => {};
      const slow = defineTool({
        name: 'slow',
        description: 'Answers late.',
        execute: () =>
          new Promise((resolve, reject) => {
            finish = settle === 'resolve' ? () => resolve('late') : () => reject(new Error('late'));
          }),
      });
      const dispatcher = createDispatcher({ tools: [slow], onLate: (outcome) => late.push(outcome) });
      const pending = dispatcher.dispatch({ name: 'slow' }, { signal: controller.signal });
      controller.abort();
      await pending;
      finish();
      await turns();
      expect(late.map((outcome) => outcome.error?.code ?? outcome.content)).toEqual([
        settle === 'resolve' ? 'late' : 'execution_failed',
      ]);
    }
  });
});

describe('a nested dispatch', () => {
  const session = new ToolContext({ cwd: '/session' });

  function nest(inner: (call: ToolCall, dispatcher: Dispatcher) => unknown, options: DispatcherOptions = {}) {
    const outer = defineTool({
      name: 'outer',
      description: 'Calls another tool.',
      execute: (_, call) => inner(call, dispatcher),
    });
    const where = defineTool({ name: 'where', description: 'Tells where.', execute: (_, call) => call.context.cwd });
    const hanging = defineTool({
      name: 'hanging',
      description: 'Never answers.',
      execute: (_, call) => {
        call.signal.addEventListener('abort', () => aborted.push(call.signal.reason));
        return new Promise(() => {});
      },
    });
    const aborted: unknown[] = [];
    const dispatcher: Dispatcher = createDispatcher({ tools: [outer, where, hanging, echo], ...options });
    return { dispatcher, aborted };
  }

  test('has the context of the call it belongs to', async () => {
    const { dispatcher } = nest(async (call, own) => (await own.dispatch({ name: 'where' }, { parent: call })).content);
    expect((await dispatcher.dispatch({ name: 'outer' }, { context: session })).content).toBe('/session');
  });

  test('is aborted with the call it belongs to, though nobody gave it a signal', async () => {
    const controller = new AbortController();
    let inner: Promise<ToolDispatchResult> | undefined;
    const { dispatcher, aborted } = nest((call, own) => {
      inner = own.dispatch({ name: 'hanging' }, { parent: call });
      return inner;
    });
    const outer = dispatcher.dispatch({ name: 'outer' }, { signal: controller.signal });
    const reason = new Error('enough');
    controller.abort(reason);
    await outer;
    expect((await inner)?.error?.code).toBe('cancelled');
    expect(aborted).toEqual([reason]);
  });

  test.each([1, 2])(
    'that may still be running, %s deep, leaves unknown what became of the call it belongs to',
    async (deep) => {
      const controller = new AbortController();
      const pass = async (call: ToolCall, name: string) => {
        const { content } = await dispatcher.dispatch({ name }, { parent: call });
        call.signal.throwIfAborted();
        return String(content);
      };
      const nests = (name: string, inner: string) =>
        defineTool({ name, description: 'Makes a call.', execute: (_input, call) => pass(call, inner) });
      const tools = [
        nests('outer', deep === 1 ? 'stuck' : 'middle'),
        nests('middle', 'stuck'),
        defineTool({ name: 'stuck', description: 'Hangs.', execute: () => new Promise<string>(() => {}) }),
      ];
      const dispatcher: Dispatcher = createDispatcher({ tools });
      const outer = dispatcher.dispatch({ name: 'outer' }, { signal: controller.signal });
      await turns();
      controller.abort();
      expect((await outer).error).toMatchObject({ code: 'cancelled', executed: 'unknown' });
    },
  );

  test('of a call that was aborted already is cancelled before it starts', async () => {
    const controller = new AbortController();
    let inner: ToolDispatchResult | undefined;
    const { dispatcher } = nest(async (call, own) => {
      controller.abort();
      inner = await own.dispatch({ name: 'where' }, { parent: call });
    });
    await dispatcher.dispatch({ name: 'outer' }, { signal: controller.signal });
    expect(inner?.error).toMatchObject({ code: 'cancelled', executed: 'no' });
  });

  test('does not confuse the guard of the call around it', async () => {
    const again: Middleware = async (call, next) => {
      await next(call);
      return next(call);
    };
    const { dispatcher } = nest(
      async (call, own) => (await own.dispatch({ name: 'echo', arguments: { text: 'x' } }, { parent: call })).content,
      { middleware: [again, async (call, next) => next(call)] },
    );
    expect(await dispatcher.dispatch({ name: 'outer' })).toMatchObject({ content: 'x', isError: false });
  });
});

describe('registries', () => {
  test('C10: a call keeps the tools it met, and a change counts for the next one', async () => {
    const registry = new ToolRegistry([echo]);
    const seen: boolean[] = [];
    const watch: Middleware = async (call, next) => {
      registry.unregister('echo');
      seen.push(call.tools.has('echo'));
      return next(call);
    };
    const dispatcher = createDispatcher({ tools: registry, middleware: [watch] });
    expect((await dispatcher.dispatch({ name: 'echo', arguments: { text: 'x' } })).content).toBe('x');
    expect((await dispatcher.dispatch({ name: 'echo' })).error?.code).toBe('not_found');
    expect(seen).toEqual([true, false]);
  });

  test('C06: names of what every object has are names like any other', async () => {
    const dispatcher = createDispatcher({
      tools: [echo],
      middleware: standard({ logging: false, permission: { check: allowAll } }),
    });
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      expect((await dispatcher.dispatch({ name })).error?.code).toBe('not_found');
      const tool = defineTool({ name, description: 'An odd name.', execute: () => name });
      expect((await dispatcher.with({ tools: [tool] }).dispatch({ name })).content).toBe(name);
    }
  });

  test('H12: a tool that is only shown to the model cannot be run, and is a result like any other', async () => {
    const shown = defineTool({ name: 'shown', description: 'Run elsewhere.' });
    const result = await createDispatcher({ tools: [shown] }).dispatch({ name: 'shown' });
    expect(result.error).toMatchObject({ code: 'disabled', executed: 'no', retryable: false });
  });
});

describe('with', () => {
  test('C09: changes what it is given and keeps all else', async () => {
    const late: unknown[] = [];
    const clock = new ManualClock();
    const base = createDispatcher({
      tools: [echo],
      clock,
      context: new ToolContext({ cwd: '/base' }),
      generateId: () => 'made',
      onLate: (outcome) => late.push(outcome),
      middleware: [async (call, next) => next(call)],
    });
    const where = defineTool({
      name: 'where',
      description: 'Tells where.',
      execute: (_, call) => `${call.context.cwd} ${call.clock === clock}`,
    });
    const derived = base.with({ tools: [where] });
    expect(await derived.dispatch({ name: 'where' })).toMatchObject({ content: '/base true', toolCallId: 'made' });
    expect(derived.middlewareNames).toEqual(base.middlewareNames);
    expect(base.tools.names).toEqual(['echo']);
    expect(derived.tools.names).toEqual(['where']);
  });

  test('takes the layers a dispatcher has, and more around them, while its own list stays as it is', async () => {
    const layers = [named('inner', (call, next) => next(call))];
    const base = createDispatcher({ tools: [echo], middleware: layers });
    const answer = named('outer', (call, next) => after(next(call), (outcome) => ({ ...outcome, content: 'around' })));
    const derived = base.with({ middleware: [answer, ...base.middleware] });
    layers.length = 0;
    expect(derived.middlewareNames).toEqual(['outer', 'inner']);
    expect(base.middleware.map(({ name }) => name)).toEqual(['inner']);
    expect(Object.isFrozen(base.middleware)).toBe(true);
    expect((await derived.dispatch({ name: 'echo' })).content).toBe('around');
  });
});

describe('what a host attaches', () => {
  test('settings reach the layers, typed by their key, the last one counting', async () => {
    const budget = settingKey<number>();
    const seen: (number | undefined)[] = [];
    const layer: Middleware = (call, next) => (seen.push(call.setting(budget)), next(call));
    const dispatcher = createDispatcher({ tools: [echo], middleware: [layer] });
    await dispatcher.dispatch({ name: 'echo' });
    await dispatcher.dispatch({ name: 'echo' }, { settings: [budget(1), budget(2)] });
    expect(seen).toEqual([undefined, 2]);
  });

  test('extensions of the context reach the tool, typed by their key', async () => {
    const database = extensionKey<{ name: string }>();
    const tool = defineTool({
      name: 'tool',
      description: 'A tool.',
      execute: (_, call) => call.context.extension(database)?.name,
    });
    const context = new ToolContext({ extensions: [database({ name: 'db' })] });
    expect((await createDispatcher({ tools: [tool], context }).dispatch({ name: 'tool' })).content).toBe('db');
  });

  test('a layer may change the context for what is inside', async () => {
    const layer: Middleware = (call, next) => next(call.with({ context: call.context.with({ cwd: '/inner' }) }));
    const where = defineTool({ name: 'where', description: 'Tells where.', execute: (_, call) => call.context.cwd });
    expect((await createDispatcher({ tools: [where], middleware: [layer] }).dispatch({ name: 'where' })).content).toBe(
      '/inner',
    );
  });

  test('G04: progress is heard while the tool runs, and ignored after the answer', async () => {
    const heard: Progress[] = [];
    let call: ToolCall | undefined;
    const tool = defineTool({
      name: 'tool',
      description: 'A tool.',
      execute: async (_, own) => {
        call = own;
        own.report({ message: 'half', progress: 1, total: 2 });
        return 'done';
      },
    });
    await createDispatcher({ tools: [tool] }).dispatch(
      { name: 'tool' },
      { onProgress: (progress) => heard.push(progress) },
    );
    call?.report({ message: 'too late' });
    expect(heard).toEqual([{ message: 'half', progress: 1, total: 2 }]);
  });

  test('an observer that throws or rejects is told to onWarning', async () => {
    const failures: (() => unknown)[] = [
      () => Promise.reject(new Error('observer')),
      () => {
        throw new Error('observer');
      },
    ];
    for (const onProgress of failures) {
      const warnings: string[] = [];
      const tool = defineTool({ name: 'tool', description: 'A tool.', execute: (_, call) => call.report({}) });
      const dispatcher = createDispatcher({ tools: [tool], onWarning: (message) => warnings.push(message) });
      await dispatcher.dispatch({ name: 'tool' }, { onProgress: onProgress as () => void });
      await turns();
      expect(warnings).toEqual(['onProgress failed']);
    }
  });

  test('an observer that throws fails nobody', async () => {
    const warnings: string[] = [];
    const tool = defineTool({ name: 'tool', description: 'A tool.', execute: (_, call) => (call.report({}), 'done') });
    const dispatcher = createDispatcher({ tools: [tool], onWarning: (message) => warnings.push(message) });
    const onProgress = () => {
      throw new Error('observer');
    };
    expect((await dispatcher.dispatch({ name: 'tool' }, { onProgress })).content).toBe('done');
  });

  test('a hook that throws or rejects is told to onWarning', async () => {
    for (const fails of [
      () => Promise.reject(new Error('hook')),
      () => {
        throw new Error('hook');
      },
    ]) {
      const warnings: string[] = [];
      const controller = new AbortController();
      let finish = () => {};
      const slow = defineTool({
        name: 'slow',
        description: 'Slow.',
        execute: () =>
          new Promise<void>((resolve) => {
            finish = resolve;
          }),
      });
      const dispatcher = createDispatcher({
        tools: [slow],
        onLate: fails as () => void,
        onWarning: (message) => warnings.push(message),
      });
      const pending = dispatcher.dispatch({ name: 'slow' }, { signal: controller.signal });
      controller.abort();
      await pending;
      finish();
      await turns();
      expect(warnings).toEqual(['onLate failed']);
    }
  });

  test('the caller’s AsyncLocalStorage is there in layers and tool', async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const layer: Middleware = async (call, next) => {
      const outcome = await next(call);
      seen.push(storage.getStore());
      return outcome;
    };
    const tool = defineTool({
      name: 'tool',
      description: 'A tool.',
      execute: async () => (await turns(1), seen.push(storage.getStore())),
    });
    const dispatcher = createDispatcher({ tools: [tool], middleware: [layer] });
    await Promise.all(['a', 'b'].map((name) => storage.run(name, () => dispatcher.dispatch({ name: 'tool' }))));
    expect(seen.sort()).toEqual(['a', 'a', 'b', 'b']);
  });
});

describe('control signals', () => {
  test.each<[string, (call: ToolCall) => unknown]>([
    ['nothing', (call) => call.suspend(undefined as never)],
    [
      'what throws when it is read',
      (call) =>
        call.suspend({
          get reason(): string {
            throw new Error('no reading');
          },
        }),
    ],
  ])('suspending with %s fails like any tool, at once or later', async (_, suspend) => {
    const atOnce = defineTool({ name: 'atOnce', description: 'Suspends.', execute: (_input, call) => suspend(call) });
    const later = defineTool({
      name: 'later',
      description: 'Suspends.',
      execute: async (_input, call) => suspend(call),
    });
    const dispatcher = createDispatcher({ tools: [atOnce, later] });
    for (const name of ['atOnce', 'later']) {
      expect((await dispatcher.dispatch({ name })).error).toMatchObject({ code: 'execution_failed', executed: 'yes' });
    }
  });

  test('suspending without a reason is a suspension with empty content', async () => {
    const tool = defineTool({
      name: 'wait',
      description: 'Waits.',
      execute: async (_, call) => call.suspend({ payload: 1 } as never),
    });
    const result = await createDispatcher({ tools: [tool] }).dispatch({ name: 'wait' });
    expect(result).toMatchObject({
      content: '',
      isError: false,
      control: { type: 'suspend', request: { payload: 1 } },
    });
  });

  test('a tool that suspends is no failure, and every layer passes the signal on by identity', async () => {
    for (const how of ['return', 'throw', 'reject'] as const) {
      const tool = defineTool({
        name: 'tool',
        description: 'A tool.',
        execute: (_, call) => {
          const signal = call.suspend({ reason: 'Needs a signature.', payload: 7 });
          if (how === 'return') return signal;
          if (how === 'reject') return Promise.reject(signal);
          throw signal;
        },
      });
      const dispatcher = createDispatcher({
        tools: [tool],
        middleware: standard({ logging: false, permission: { check: allowAll } }),
      });
      const result = await dispatcher.dispatch({ id: 'c1', name: 'tool' });
      expect(result).toMatchObject({ isError: false, content: 'Needs a signature.' });
      expect(result.error).toBeUndefined();
      expect(result.control).toEqual({
        type: 'suspend',
        toolCallId: 'c1',
        request: { reason: 'Needs a signature.', payload: 7 },
      });
    }
  });

  test('P07: a runtime’s own interrupt comes out as it was thrown, from tool or layer', async () => {
    class Interrupt extends Error {}
    const interrupt = new Interrupt('later');
    const throwing = () => {
      throw interrupt;
    };
    const tool = defineTool({ name: 'tool', description: 'A tool.', execute: throwing });
    for (const middleware of [[], [throwing as unknown as Middleware]]) {
      const dispatcher = createDispatcher({
        tools: [tool],
        middleware,
        isControlSignal: (thrown) => thrown === interrupt,
      });
      const { control } = await dispatcher.dispatch({ name: 'tool' });
      expect(control?.type === 'interrupt' && control.signal === interrupt).toBe(true);
    }
  });

  test('data that merely looks like a signal is data', async () => {
    const tool = defineTool({
      name: 'tool',
      description: 'A tool.',
      execute: () => ({ type: 'suspend', toolCallId: 'x', request: {} }),
    });
    expect((await createDispatcher({ tools: [tool] }).dispatch({ name: 'tool' })).control).toBeUndefined();
  });
});

describe('bad use by the host', () => {
  test('wrong options throw at construction, naming the option and what is allowed', () => {
    const wrong: readonly (readonly [unknown, RegExp])[] = [
      [{ tool: [] }, /no option "tool"\. Its options: tools/],
      [{ tools: {} }, /"tools" of createDispatcher must be a ToolRegistry or an array/],
      [{ middleware: [null] }, /"middleware" .* array of middleware functions/],
      [{ clock: {} }, /"clock" .* now, setTimeout and clearTimeout/],
      [{ context: {} }, /"context" .* a ToolContext/],
      [{ generateId: 'x' }, /"generateId" .* a function; got "x"/],
      [null, /takes its options as an object/],
    ];
    for (const [options, message] of wrong) {
      expect(() => createDispatcher(options as DispatcherOptions)).toThrow(message);
      if (options !== null) expect(() => createDispatcher().with(options as DispatcherOptions)).toThrow();
    }
    expect(() => createDispatcher({ tools: [echo, echo] })).toThrow(/"echo" is already registered/);
  });

  test('wrong dispatch options are an invalid call that names them; nothing runs, nothing rejects', async () => {
    const dispatcher = createDispatcher({ tools: [echo] });
    const wrong = { signal: {}, context: {}, settings: {}, parent: {}, onProgress: 1 };
    for (const [option, value] of Object.entries(wrong)) {
      const result = await dispatcher.dispatch({ name: 'echo' }, { [option]: value } as object);
      expect(result).toMatchObject({ isError: true, error: { code: 'invalid_call', executed: 'no' } });
      expect(result.content).toContain(`"${option}"`);
    }
    for (const request of [undefined, null, 7, 'x']) {
      expect((await dispatcher.dispatch(request as never)).error?.code).toBe('invalid_call');
    }
  });

  test('the id is kept where it can be read, so that the model gets its answer', async () => {
    const result = await createDispatcher().dispatch({ id: 'c1', name: 'echo' }, { settings: [() => {}] as never });
    expect(result).toMatchObject({
      toolCallId: 'c1',
      error: { code: 'invalid_call' },
      requested: { id: 'c1', name: 'echo' },
    });
  });

  test('a getter that throws in a request is an invalid call', async () => {
    const request = {
      name: 'echo',
      get arguments(): unknown {
        throw new Error('getter');
      },
    };
    expect((await createDispatcher({ tools: [echo] }).dispatch(request)).error?.code).toBe('invalid_call');
  });
});
