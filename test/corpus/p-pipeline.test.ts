import { describe, expect, test } from '@jest/globals';
import {
  compose,
  createDispatcher,
  type DispatcherOptions,
  type DispatchOptions,
  defineTool,
  fail,
  type JsonSchema,
  type JsonValue,
  type Middleware,
  type Next,
  named,
  PermissionCheck,
  type StandardSchema,
  type ToolCall,
  type ToolDispatchResult,
  type ToolOutcome,
} from 'toolonion';
import { allowAll, type CallLogger, type StandardOptions, standard, timeout, validation } from 'toolonion/middleware';
import { z } from 'zod';
import { turns } from '../support/manual-clock.ts';
import { expectNothingUnhandled } from '../support/unhandled.ts';

type Execute = (input: unknown, call: ToolCall) => unknown;

const standardOnion = (options: Partial<StandardOptions> = {}) =>
  standard({ permission: { check: allowAll }, logging: false, ...options });

interface Tried extends Partial<DispatcherOptions> {
  readonly execute: Execute;
  readonly inputSchema?: JsonSchema | StandardSchema;
  readonly arguments?: unknown;
  readonly options?: DispatchOptions;
}

/** Dispatches one call of a tool, `work`. */
function run({ execute, inputSchema = { type: 'object' }, arguments: given, options, ...rest }: Tried) {
  const tool = defineTool({ name: 'work', description: 'Works.', inputSchema, execute });
  const dispatcher = createDispatcher({ middleware: standardOnion(), tools: [tool], ...rest });
  return dispatcher.dispatch({ name: 'work', arguments: given }, options);
}

/** Every way a tool can answer that takes its time. */
const LATER: readonly (readonly [string, Execute])[] = [
  ['answers later', async () => 'done'],
  ['fails later', () => Promise.reject(new Error('secret'))],
  [
    'is a generator',
    async function* () {
      yield 'done';
    },
  ],
  [
    'is a generator that throws',
    async function* () {
      yield 'do';
      throw new Error('secret');
    },
  ],
  ['is a thenable', () => ({ then: (resolve: (value: string) => void) => setImmediate(resolve, 'done') })],
  ['never answers', () => new Promise(() => {})],
];

/** And those that take none. */
const AT_ONCE: readonly (readonly [string, Execute])[] = [
  ['answers at once', () => 'done'],
  [
    'fails at once',
    () => {
      throw new Error('secret');
    },
  ],
];

const unhandled = expectNothingUnhandled();

describe('a middleware that forgets next', () => {
  const FORGETFUL: readonly (readonly [string, (call: ToolCall, next: Next) => unknown])[] = [
    ['to return it', (call, next) => void next(call)],
    ['to return or await it', async (call, next) => void next(call)],
    ['to return what follows it', (call, next) => void Promise.resolve(next(call)).then((outcome) => outcome)],
    [
      'and waits for something else',
      async (call, next) => {
        next(call);
        await turns(0);
      },
    ],
  ];

  test('P01: ends the call with an internal error that names it, and leaves no unhandled rejection', async () => {
    for (const [what, forgetful] of FORGETFUL) {
      for (const [how, execute] of [...LATER, ...AT_ONCE]) {
        for (const place of ['outside', 'inside'] as const) {
          const culprit = named('culprit', forgetful as Middleware);
          const middleware = place === 'outside' ? [culprit, ...standardOnion()] : [...standardOnion(), culprit];
          const result = await run({ execute, middleware });
          expect([what, how, result.error?.code]).toEqual([what, how, 'internal']);
          expect(result.content).toMatch(/^Middleware "culprit" answered /);
          expect(result.content).not.toContain('secret');
          await turns();
          expect(unhandled).toEqual([]);
        }
      }
    }
  });

  test.each<readonly [string, Middleware]>([
    [
      'answers by itself',
      (call, next) => {
        next(call);
        return fail(call, 'denied', 'No.');
      },
    ],
    ['answers a copy of the promise', async (call, next) => ({ ...(next(call) as ToolOutcome) })],
  ])('and %s: the same, as long as the tool has not answered', async (_, layer) => {
    for (const [, execute] of LATER) {
      const { error, content } = await run({ execute, middleware: [...standardOnion(), named('culprit', layer)] });
      expect(error?.code).toBe('internal');
      expect(content).toMatch(/^Middleware "culprit" answered /);
    }
  });

  test('is named by its place where it has no name', async () => {
    const forget = (
      () => (call: ToolCall, next: Next) =>
        void next(call)
    )() as unknown as Middleware;
    for (const [, execute] of [...LATER, ...AT_ONCE]) {
      const { content } = await run({ execute, middleware: [...standardOnion(), forget, timeout()] });
      expect(content).toMatch(/^Middleware "#6" answered /);
    }
    const throwing = (() => () => {
      throw new Error('secret');
    })();
    expect((await run({ execute: () => 1, middleware: [throwing] })).content).toMatch(/middleware "#1" failed/);
    const inventive = (
      () => (_: ToolCall, next: Next) =>
        next({} as ToolCall)
    )();
    const { content } = await run({ execute: () => 1, middleware: [timeout(), inventive] });
    expect(content).toMatch(/^Middleware "#2" gave next\(\) something else/);
  });

  test.each([
    ['an onion of its own', (call: ToolCall, next: Next) => compose([async (c, n) => n(c)], next)(call)],
    ['an onion of nothing', (call: ToolCall, next: Next) => compose([timeout()], next)(call)],
  ])('for %s is told how layers are put together', async (_, layer) => {
    let runs = 0;
    const { error, content } = await run({ execute: () => ++runs, middleware: [named('outer', layer)] });
    expect(error?.code).toBe('internal');
    expect(content).toMatch(/To make one layer of two, let it call the first with a next that calls the second/);
    expect(runs).toBe(0);
  });
});

describe('a middleware that calls next twice', () => {
  const TWICE: readonly (readonly [string, (call: ToolCall, next: Next) => unknown])[] = [
    [
      'and returns nothing',
      (call, next) => {
        next(call);
        next(call);
      },
    ],
    [
      'and returns the first',
      (call, next) => {
        const first = next(call);
        next(call);
        return first;
      },
    ],
    [
      'and returns the second',
      (call, next) => {
        next(call);
        return next(call);
      },
    ],
    ['and waits for both', async (call, next) => (await Promise.all([next(call), next(call)]))[0]],
    ['and takes the quicker', (call, next) => Promise.race([next(call), next(call)])],
    [
      'with another call',
      (call, next) => {
        next(call);
        return next(call.with({ input: { again: true } }));
      },
    ],
    [
      'and once more when it has answered',
      (call, next) => {
        const first = next(call);
        void Promise.resolve(first).then(() => next(call));
        next(call);
        return first;
      },
    ],
  ];

  test('P02: ends the call with the same internal error each time, and the tool runs once', async () => {
    for (const [what, twice] of TWICE) {
      for (const [how, execute] of LATER) {
        const contents = new Set<string>();
        for (const middleware of [
          [named('culprit', twice as Middleware), ...standardOnion()],
          [...standardOnion(), named('culprit', twice as Middleware)],
          [...standardOnion(), named('culprit', twice as Middleware), named('inner', async (c, n) => await n(c))],
        ]) {
          let runs = 0;
          const counted: Execute = (input, call) => (runs++, execute(input, call));
          const { error, content } = await run({ execute: counted, middleware });
          expect([what, how, error?.code, error?.executed, runs]).toEqual([what, how, 'internal', 'unknown', 1]);
          contents.add(content as string);
        }
        expect([...contents]).toEqual(['Middleware "culprit" called next() again before its first call had settled.']);
        await turns();
        expect(unhandled).toEqual([]);
      }
    }
  });

  test('and answers nothing has the same error for a tool that answers at once, whose outcome has settled', async () => {
    const twice = named('culprit', ((call: ToolCall, next: Next) => {
      next(call);
      next(call);
    }) as unknown as Middleware);
    for (const [, execute] of AT_ONCE) {
      const { error, content } = await run({ execute, middleware: [...standardOnion(), twice] });
      expect(error).toMatchObject({ code: 'internal', executed: 'yes' });
      expect(content).toBe('Middleware "culprit" answered nothing. Did it forget to return next(call)?');
    }
  });
});

/** A value frozen all the way down, as libraries for state hand it out. */
function frozen<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) {
    Object.freeze(value);
    for (const item of Object.values(value)) frozen(item);
  }
  return value;
}

describe('arguments that are frozen', () => {
  const ARGUMENTS: readonly (readonly [string, unknown])[] = [
    ['all the way down', frozen({ list: [1, { deep: true }], text: 'a' })],
    ['on top', Object.freeze({ list: [1, { deep: true }], text: 'a' })],
    ['inside', { list: frozen([1, { deep: true }]), text: 'a' }],
    ['by a seal', Object.seal({ list: Object.seal([1, { deep: true }]), text: 'a' })],
    ['without a prototype', frozen(Object.assign(Object.create(null), { list: [1, { deep: true }], text: 'a' }))],
  ];

  const jsonSchema: JsonSchema = {
    type: 'object',
    properties: { list: { type: 'array' }, text: { type: 'string' }, size: { type: 'number', default: 3 } },
  };
  const zod = z.object({ list: z.array(z.unknown()), text: z.string(), size: z.number().default(3) }).loose();

  /** A tool that treats its arguments as its own, and answers with what it received. */
  const scribbling: Execute = (input) => {
    const before = structuredClone(input);
    const own = input as { list: unknown[]; text?: string; mine?: boolean };
    own.list.push('mine');
    (own.list[1] as { deep: boolean }).deep = false;
    own.mine = true;
    delete own.text;
    return before;
  };

  const rewriting: Middleware = named('rewriting', (call, next) => {
    const { text, ...rest } = call.input as { readonly text: string };
    return next(call.with({ input: { ...rest, text: `${text}!` } }));
  });
  const copying: Middleware = named('copying', (call, next) => {
    const input = call.copyInput() as { text: string };
    input.text += '!';
    return next(call.with(frozen({ input })));
  });
  const editing: StandardOptions['permission'] = {
    check: (call) => {
      const input = call.input as { readonly text: string };
      if (input.text.endsWith('!')) return PermissionCheck.allow();
      return PermissionCheck.modify(frozen({ ...input, text: `${input.text}!` }));
    },
  };
  const revalidating: Middleware = named('revalidating', async (call, next) => {
    const { text, ...rest } = call.input as { readonly text: string };
    const checked = await call.validate(frozen({ ...rest, text: `${text}!` }));
    return next(checked.valid ? call.with({ input: checked.input, parsed: checked.parsed }) : call);
  });
  const again: Middleware = named('again', async (call, next) => {
    await next(call);
    return next(call);
  });

  const ONIONS: readonly (readonly [string, readonly Middleware[]])[] = [
    ['before they are checked', [rewriting, ...standardOnion()]],
    ['in a copy, before they are checked', [copying, ...standardOnion()]],
    ['in the gate', standardOnion({ permission: editing })],
    ['after they were checked', [...standardOnion(), revalidating]],
    ['and the tool is run twice', [rewriting, ...standardOnion(), again]],
  ];

  test.each(ONIONS)(
    'P04: can be rewritten %s, by a tool that scribbles on them, and stay as they were',
    async (_, middleware) => {
      for (const [, given] of ARGUMENTS) {
        for (const inputSchema of [jsonSchema, zod]) {
          const before = structuredClone(given);
          const request = frozen({ name: 'work', id: 'c1' });
          const tool = defineTool({ name: 'work', description: 'Works.', inputSchema, execute: scribbling as never });
          const dispatcher = createDispatcher({ tools: [tool], middleware });
          const result = await dispatcher.dispatch(Object.freeze({ ...request, arguments: given }));
          expect(result.error).toBeUndefined();
          expect(result.structured).toEqual({ list: [1, { deep: true }], text: 'a!', size: 3 });
          expect(structuredClone(given)).toEqual(before);
          expect(result.requested.input).toEqual(before);
        }
      }
    },
  );

  test('can be scribbled on where no layer checks them', async () => {
    for (const [, given] of ARGUMENTS) {
      for (const middleware of [[], [again], [timeout()]]) {
        const before = structuredClone(given);
        const result = await run({ execute: scribbling, middleware, arguments: given });
        expect(result.structured).toEqual(before);
        expect(structuredClone(given)).toEqual(before);
        expect(result.requested.input).toEqual(before);
      }
    }
  });
});

describe('arguments that a middleware changes', () => {
  /** What each part of the pipeline sees. */
  interface Sightings {
    readonly [who: string]: JsonValue | undefined;
  }

  const schema: JsonSchema = { type: 'object', properties: { path: { type: 'string', pattern: '^/safe/' } } };
  const asynchronous = z.object({ path: z.string().refine(async (path) => path.startsWith('/safe/')) });

  async function sightings(inputSchema: JsonSchema | StandardSchema, change: Middleware) {
    const seen: Record<string, JsonValue | undefined> = {};
    const look = (who: string): Middleware =>
      named(who, (call, next) => {
        seen[who] = call.input;
        return next(call);
      });
    const line = (values: { readonly input?: JsonValue }) => {
      seen['log'] = values.input;
    };
    const logger = { isLevelEnabled: () => true, info: line, warn: line, error: line } as unknown as CallLogger;
    const onion = standardOnion({
      logging: { logger, values: true },
      permission: {
        check: (call) => {
          seen['rule'] = call.input;
          return PermissionCheck.ask('Write?');
        },
        approver: ({ input }) => {
          seen['approver'] = input;
          return true;
        },
      },
    });
    const execute: Execute = (input) => {
      seen['tool'] = structuredClone(input) as JsonValue;
      return 'written';
    };
    const middleware = [look('outside'), change, ...onion, look('cache key')];
    const result = await run({ execute, inputSchema, middleware, arguments: { path: '/etc/passwd' } });
    return { result, seen: seen as Sightings };
  }

  test('P05: are seen by everything further inside: the check, the rule, the approver, the key, the log and the tool', async () => {
    for (const inputSchema of [schema, asynchronous]) {
      const change: Middleware = named('change', (call, next) => next(call.with({ input: { path: '/safe/notes' } })));
      const { result, seen } = await sightings(inputSchema, change);
      expect(result).toMatchObject({ content: 'written', requested: { input: { path: '/etc/passwd' } } });
      const { outside, ...inside } = seen;
      expect(outside).toEqual({ path: '/etc/passwd' });
      const changed = { path: '/safe/notes' };
      expect(inside).toEqual({
        rule: changed,
        approver: changed,
        'cache key': changed,
        log: changed,
        tool: changed,
      });

      // Nor does anything judge the arguments as they were.
      const unchanged = await sightings(
        inputSchema,
        named('pass', (call, next) => next(call)),
      );
      expect(unchanged.result.error?.code).toBe('invalid_arguments');
      expect(unchanged.seen).not.toHaveProperty('tool');
    }
  });

  const WRONG: readonly (readonly [string, (call: ToolCall) => void])[] = [
    ['sets call.input', (call) => Object.assign(call, { input: { path: '/safe/notes' } })],
    ['sets a key of call.input', (call) => Object.assign(call.input as object, { path: '/safe/notes' })],
    ['takes a key away from call.input', (call) => delete (call.input as { path?: string }).path],
    ['sets call.parsed', (call) => Object.assign(call, { parsed: { path: '/safe/notes' } })],
    ['sets call.tool', (call) => Object.assign(call, { tool: undefined })],
  ];

  test.each(WRONG)(
    'in a way that would be lost, as one that %s: an internal error names it, and nothing runs',
    async (_, wrong) => {
      const change: Middleware = named('change', (call, next) => {
        wrong(call);
        return next(call);
      });
      const { result, seen } = await sightings({ type: 'object' }, change);
      expect(result.error).toMatchObject({ code: 'internal', executed: 'no' });
      expect(result.content).toMatch(/middleware "change" failed/);
      expect(Object.keys(seen)).toEqual(['outside']);
    },
  );
});

describe('what is registered', () => {
  const definition = () => ({
    name: 'work',
    description: 'Works.',
    inputSchema: {
      type: 'object',
      properties: { n: { type: 'number', enum: [1, 2] }, list: { type: 'array', items: { type: 'string' } } },
      required: ['n'],
      $defs: { spare: { type: 'string' } },
    },
    execute: (): unknown => 'as registered',
  });

  const CHANGES: readonly (readonly [string, (given: ReturnType<typeof definition>) => void])[] = [
    ['a property of its schema', ({ inputSchema }) => Object.assign(inputSchema.properties.n, { type: 'string' })],
    ['the list of what is required', ({ inputSchema }) => void inputSchema.required.splice(0)],
    ['an enum', ({ inputSchema }) => void inputSchema.properties.n.enum.push(3)],
    ['its properties', ({ inputSchema }) => Object.assign(inputSchema, { properties: {} })],
    ['its whole schema', (given) => Object.assign(given, { inputSchema: { type: 'object' } })],
    ['its function', (given) => Object.assign(given, { execute: () => 'another' })],
    ['its name', (given) => Object.assign(given, { name: 'other' })],
  ];

  /** How a tool behaves: what comes of a few calls. */
  async function behaviour(dispatch: (input: unknown) => Promise<ToolDispatchResult>) {
    const results = await Promise.all([{ n: 1 }, { n: 3 }, { n: 'x' }, {}].map(dispatch));
    return results.map(({ error, content }) => error?.code ?? content);
  }

  const AS_REGISTERED = ['as registered', 'invalid_arguments', 'invalid_arguments', 'invalid_arguments'];

  test.each(CHANGES)(
    'P06: stays as it was where the host changes %s afterwards, before the first call or later',
    async (_, change) => {
      for (const when of ['before', 'after']) {
        const given = definition();
        const tool = defineTool(given as never);
        const shown = structuredClone(tool.schema);
        const dispatcher = createDispatcher({ tools: [tool], middleware: standardOnion() });
        const dispatch = (input: unknown) => dispatcher.dispatch({ name: 'work', arguments: input });
        if (when === 'after') expect(await behaviour(dispatch)).toEqual(AS_REGISTERED);
        change(given);
        expect(await behaviour(dispatch)).toEqual(AS_REGISTERED);
        expect(tool.schema).toEqual(shown);
      }
    },
  );

  test('and its object is left alone: neither frozen nor changed, and welcome if it is frozen', async () => {
    const given = definition();
    const tools = [defineTool(given as never)];
    await createDispatcher({ tools, middleware: standardOnion() }).dispatch({ name: 'work', arguments: { n: 1 } });
    expect(JSON.stringify(given)).toBe(JSON.stringify(definition()));
    for (const part of [given, given.inputSchema, given.inputSchema.properties, given.inputSchema.required])
      expect(Object.isFrozen(part)).toBe(false);

    const dispatcher = createDispatcher({
      tools: [defineTool(frozen(definition()) as never)],
      middleware: standardOnion(),
    });
    expect(await behaviour((input) => dispatcher.dispatch({ name: 'work', arguments: input }))).toEqual(AS_REGISTERED);
  });

  test('and so are lists and options the host gave, whatever becomes of them', async () => {
    const tools = [defineTool({ name: 'work', description: 'Works.', execute: () => 'as registered' })];
    const middleware: Middleware[] = [...standardOnion()];
    const byTool = { work: 20 };
    const options = { limitMs: { byTool } };
    middleware.push(timeout(options));
    const dispatcher = createDispatcher({ tools, middleware });
    tools.length = 0;
    middleware.length = 0;
    byTool.work = Number.NaN;
    Object.assign(options, { limitMs: Number.NaN });
    expect((await dispatcher.dispatch({ name: 'work' })).content).toBe('as registered');
    expect(dispatcher.middleware.map(({ name }) => name)).toEqual(dispatcher.middlewareNames);
    expect(dispatcher.middlewareNames).toHaveLength(6);
  });
});

describe('a control signal', () => {
  class Interrupt extends Error {}
  const interrupt = new Interrupt('the runtime’s own');
  const isControlSignal = (thrown: unknown) => thrown === interrupt;

  /** What a careful host puts around its tools. */
  const catchAll: Middleware = named('catchAll', async (call, next) => {
    try {
      const outcome = await next(call);
      return outcome.isError ? fail(call, 'execution_failed', 'Something went wrong.') : outcome;
    } catch (cause) {
      return fail(call, 'execution_failed', 'Something went wrong.', { cause });
    }
  });

  type Stop = (call: ToolCall) => never;
  const suspend = (call: ToolCall) => call.suspend({ reason: 'a signature', payload: { form: 7 } });
  const KINDS: readonly (readonly [string, Stop])[] = [
    [
      'suspend',
      (call) => {
        throw suspend(call);
      },
    ],
    [
      'interrupt',
      () => {
        throw interrupt;
      },
    ],
  ];

  const THROWN: readonly (readonly [string, (stop: Stop) => Execute])[] = [
    ['throws it', (stop) => (_, call) => stop(call)],
    ['rejects with it', (stop) => async (_, call) => stop(call)],
    ['rejects with it later', (stop) => (_, call) => turns(1).then(() => stop(call))],
    [
      'throws it from a generator',
      (stop) =>
        async function* (_: unknown, call: ToolCall) {
          yield 'a';
          stop(call);
        },
    ],
    [
      'throws it from a synchronous generator',
      (stop) =>
        function* (_: unknown, call: ToolCall) {
          yield 'a';
          stop(call);
        },
    ],
  ];

  const onion = () => [catchAll, ...standardOnion(), catchAll];

  /** What stands in a result that was stopped. */
  const STOPPED: Readonly<Record<string, object>> = {
    suspend: { type: 'suspend', request: { reason: 'a signature', payload: { form: 7 } } },
    interrupt: { type: 'interrupt', signal: interrupt },
  };

  test('P07: passes a layer that catches everything, and is no error, however the tool gives it', async () => {
    for (const [kind, stop] of KINDS) {
      for (const [how, tool] of THROWN) {
        const result = await run({ execute: tool(stop), middleware: onion(), isControlSignal });
        expect([kind, how, result.isError, result.error]).toEqual([kind, how, false, undefined]);
        expect(result.control).toMatchObject(STOPPED[kind] as object);
        if (result.control?.type === 'interrupt') expect(result.control.signal).toBe(interrupt);
      }
    }
  });

  const RETURNED: readonly (readonly [string, Execute])[] = [
    ['returns it', (_, call) => suspend(call)],
    ['answers it later', async (_, call) => suspend(call)],
    [
      'returns it from a generator',
      async function* (_, call) {
        yield 'a';
        return suspend(call);
      },
    ],
    [
      'yields it',
      async function* (_, call) {
        yield 'a';
        yield suspend(call);
        throw new Error('went on');
      },
    ],
    [
      'yields a promise of it',
      function* (_, call) {
        yield Promise.resolve(suspend(call));
        throw new Error('went on');
      },
    ],
  ];

  test.each(RETURNED)('stops a call whose tool %s', async (_, execute) => {
    const result = await run({ execute, middleware: onion() });
    expect(result).toMatchObject({ isError: false, content: 'a signature', control: STOPPED['suspend'] });
  });

  test('that is yielded lets the generator run its finally', async () => {
    let closed = 0;
    const result = await run({
      execute: async function* (_, call) {
        try {
          yield suspend(call);
        } finally {
          closed++;
        }
      },
    });
    await turns();
    expect(result.control?.type).toBe('suspend');
    expect(closed).toBe(1);
  });

  const HANDED_ON: readonly (readonly [string, (result: ToolDispatchResult) => unknown])[] = [
    ['its result', (result) => result],
    ['a copy of its result', (result) => ({ ...result })],
    ['its control', ({ control }) => control],
    [
      'its control, thrown',
      ({ control }) => {
        throw control;
      },
    ],
  ];

  test.each(HANDED_ON)(
    'of a call made by a tool stops that one, too, where the tool hands on %s',
    async (_, handOn) => {
      for (const [kind, stop] of KINDS) {
        const inner = defineTool({ name: 'inner', description: 'Stops.', execute: (_input, call) => stop(call) });
        const outer = defineTool({
          name: 'outer',
          description: 'Calls inner.',
          execute: async (_input, call) => handOn(await dispatcher.dispatch({ name: 'inner' }, { parent: call })),
        });
        const dispatcher = createDispatcher({ tools: [inner, outer], middleware: onion(), isControlSignal });
        const result = await dispatcher.dispatch({ name: 'outer' });
        expect(result).toMatchObject({ resolvedToolName: 'outer', isError: false, control: STOPPED[kind] });
        expect(result.error).toBeUndefined();
      }
    },
  );

  const BY_LAYERS: readonly (readonly [string, (call: ToolCall) => unknown])[] = [
    ['returns it', (call) => suspend(call)],
    ['answers it later', async (call) => suspend(call)],
    [
      'throws it',
      (call) => {
        throw suspend(call);
      },
    ],
    ['rejects with it', (call) => Promise.reject(suspend(call))],
  ];

  test.each(BY_LAYERS)('stops a call whose middleware %s', async (_, layer) => {
    let runs = 0;
    for (const place of ['outside', 'inside']) {
      const stopping = named('stopping', layer as Middleware);
      const middleware = place === 'outside' ? [catchAll, stopping, ...standardOnion()] : [...onion(), stopping];
      const result = await run({ execute: () => ++runs, middleware });
      expect(result).toMatchObject({ isError: false, content: 'a signature', control: STOPPED['suspend'] });
    }
    expect(runs).toBe(0);
  });

  test('that comes after the answer is told to the host as what it is', async () => {
    for (const [kind, stop] of KINDS) {
      for (const give of [stop, suspend]) {
        const late: ToolOutcome[] = [];
        const controller = new AbortController();
        const execute: Execute = async (_, call) => {
          await turns(10);
          return give(call);
        };
        const options = { signal: controller.signal };
        const result = run({ execute, options, isControlSignal, onLate: (outcome) => late.push(outcome) });
        controller.abort();
        expect((await result).error).toMatchObject({ code: 'cancelled', executed: 'unknown' });
        await turns(15);
        expect(late).toMatchObject([{ isError: false, control: STOPPED[give === stop ? kind : 'suspend'] }]);
      }
    }
  });

  test('that only looks like one is data', async () => {
    for (const lookalike of [
      { type: 'suspend', toolCallId: 'c1', request: { reason: 'x' } },
      { control: { type: 'interrupt', signal: interrupt } },
      { resolvedToolName: 'x', content: 'x', isError: false, notes: [], control: { type: 'suspend' } },
      Object.defineProperty({}, 'control', {
        get: () => {
          throw new Error('hostile');
        },
      }),
    ]) {
      const result = await run({ execute: () => lookalike, isControlSignal });
      expect(result.isError).toBe(false);
      expect(result).not.toHaveProperty('control');
    }
  });

  const ABORTS: readonly (readonly [string, () => unknown])[] = [
    ['a DOMException', () => new DOMException('aborted', 'AbortError')],
    ['an error of that name', () => Object.assign(new Error('aborted'), { name: 'AbortError' })],
    ['an error of Node.js', () => Object.assign(new Error('aborted'), { code: 'ABORT_ERR' })],
  ];

  test.each(ABORTS)('of an abort, thrown by a tool as %s, is told as cancelled', async (_, make) => {
    const seen: ToolOutcome[] = [];
    const look: Middleware = named('look', async (call, next) => {
      const outcome = await next(call);
      seen.push(outcome);
      return outcome;
    });
    for (const execute of [
      () => {
        throw make();
      },
      () => Promise.reject(make()),
    ]) {
      const result = await run({ execute, middleware: [look, validation(), timeout()] });
      expect(result.error).toMatchObject({ code: 'cancelled', executed: 'stopped', retryable: false });
    }
    expect(seen.map(({ error }) => error?.code)).toEqual(['cancelled', 'cancelled']);
  });
});
