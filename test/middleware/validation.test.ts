import { describe, expect, test } from '@jest/globals';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import {
  createDispatcher,
  defineTool,
  forModel,
  type JsonSchema,
  type Middleware,
  named,
  type StandardResult,
  type StandardSchema,
  type Tool,
  type ToolDispatchResult,
  ToolRegistry,
} from 'toolonion';
import { outputLimit, timeout, type ValidationOptions, validation } from 'toolonion/middleware';
import * as v from 'valibot';
import * as z from 'zod';
import { compilations } from '../support/compilations.ts';
import { collectGarbage } from '../support/garbage.ts';
import { ManualClock, turns } from '../support/manual-clock.ts';

/** What came of one call of one tool: the result, and the arguments each run received. */
interface Ran {
  readonly result: ToolDispatchResult;
  readonly runs: readonly unknown[];
}

async function call(
  inputSchema: JsonSchema | StandardSchema,
  args: unknown,
  options?: ValidationOptions,
  inside: Middleware[] = [],
): Promise<Ran> {
  const runs: unknown[] = [];
  const tool = defineTool({
    name: 'work',
    description: 'Works.',
    inputSchema,
    execute: (input: unknown) => {
      runs.push(input);
      return 'done';
    },
  });
  const dispatcher = createDispatcher({ tools: [tool], middleware: [validation(options), ...inside] });
  return { result: await dispatcher.dispatch({ name: 'work', arguments: args }), runs };
}

/** The faults a message lists. */
function faults({ result }: Ran): readonly string[] {
  expect(result.error).toMatchObject({ code: 'invalid_arguments', executed: 'no', retryable: false });
  return String(result.content)
    .split('\n')
    .filter((line) => line.startsWith('- '))
    .map((line) => line.slice(2));
}

const point = {
  type: 'object',
  properties: { x: { type: 'number' }, y: { type: 'number', default: 0 } },
  required: ['x'],
  additionalProperties: false,
} as const;

describe('valid arguments', () => {
  test('reach the tool as they were sent, with the defaults of the schema', async () => {
    const { result, runs } = await call(point, { x: 1 });
    expect(result).toMatchObject({ content: 'done', notes: [], requested: { input: { x: 1 } } });
    expect(runs).toEqual([{ x: 1, y: 0 }]);
  });

  test('B04: are a private copy: neither the caller nor call.input ever sees a default', async () => {
    const seen: unknown[] = [];
    const look: Middleware = named('look', (call, next) => {
      seen.push(call.input, call.parsed);
      return next(call);
    });
    const args = { x: 1 };
    const { result } = await call(point, args, {}, [look]);
    expect(args).toEqual({ x: 1 });
    expect(seen).toEqual([{ x: 1 }, { x: 1, y: 0 }]);
    expect(result.requested.input).toEqual({ x: 1 });
  });

  test('may be frozen', async () => {
    const { runs } = await call(point, Object.freeze({ x: 1 }));
    expect(runs).toEqual([{ x: 1, y: 0 }]);
    expect(Object.isFrozen(runs[0])).toBe(false);
  });

  test('are given to each attempt afresh, whatever the tool did to the last ones', async () => {
    const received: unknown[] = [];
    const thrice: Middleware = named('thrice', async (call, next) => {
      await next(call);
      await next(call);
      return await next(call);
    });
    const inputs = [point, z.object({ x: z.number(), y: z.number().default(0) }), asynchronous({ x: 1, y: 0 })];
    for (const inputSchema of inputs) {
      received.length = 0;
      const tool = defineTool({
        name: 'work',
        description: 'Works.',
        inputSchema,
        execute: (input: { x?: number; y?: number }) => {
          received.push(structuredClone(input));
          delete input.x;
          input.y = 7;
          return 'done';
        },
      });
      const dispatcher = createDispatcher({ tools: [tool as Tool], middleware: [validation(), thrice] });
      const args = { x: 1 };
      expect((await dispatcher.dispatch({ name: 'work', arguments: args })).isError).toBe(false);
      expect(received).toEqual([
        { x: 1, y: 0 },
        { x: 1, y: 0 },
        { x: 1, y: 0 },
      ]);
      expect(args).toEqual({ x: 1 });
    }
  });

  test('B09: of a tool that takes any keys keep them all', async () => {
    const schema = { type: 'object', additionalProperties: { type: 'string' } };
    expect((await call(schema, { env: 'a', x: 'b' })).runs).toEqual([{ env: 'a', x: 'b' }]);
    expect(faults(await call(schema, { env: 1 }))).toEqual(['env: expected string; got the number 1']);
  });

  test('B13: keep a key named __proto__ as plain data', async () => {
    const { runs } = await call({ type: 'object' }, '{"__proto__":{"isAdmin":true}}');
    const [input] = runs as [object];
    expect(Object.getOwnPropertyNames(input)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(input)).toBe(Object.getPrototypeOf({}));
    expect((input as { isAdmin?: boolean }).isAdmin).toBeUndefined();
    const strict = { type: 'object', properties: { a: {} }, additionalProperties: false };
    expect(faults(await call(strict, '{"__proto__":1}'))).toEqual(['unknown key "__proto__"; known keys: "a"']);
  });

  test('may be a multiple that floating point only comes near to', async () => {
    const schema = { type: 'object', properties: { price: { multipleOf: 0.01 } } };
    expect((await call(schema, { price: 19.99 })).runs).toHaveLength(1);
    expect(faults(await call(schema, { price: 19.999 }))).toEqual([
      'price: must be multiple of 0.01; got the number 19.999',
    ]);
  });
});

describe('invalid arguments', () => {
  test.each([[''], ['   '], [undefined], [null], ['null']])(
    'A01: are those that are nothing (%j) where the schema requires a key, which is named',
    async (nothing) => {
      expect(faults(await call(point, nothing))).toEqual(['"x" is required, but missing']);
    },
  );

  test('E18: are an answer of their own, and the tool does not run', async () => {
    const { result, runs } = await call(point, { x: 'one' });
    expect(result).toMatchObject({
      content:
        'The arguments of tool "work" are invalid:\n- x: expected number; got the text "one"\nSend the call again with these put right.',
      isError: true,
      error: { code: 'invalid_arguments', executed: 'no' },
    });
    expect(runs).toEqual([]);
  });

  test('B04: leave the arguments as they were, nothing half-done', async () => {
    const args = { z: 1 };
    const { result } = await call(point, args);
    expect(args).toEqual({ z: 1 });
    expect(result.requested.input).toEqual({ z: 1 });
  });

  test('are told all at once: where, what was expected, what was there', async () => {
    const schema = {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 3 },
        size: { enum: ['small', 'large'] },
        kind: { const: 'file' },
        tags: { type: 'array', items: { type: ['string', 'null'] } },
        deep: { type: 'object', properties: { 'a key': { type: 'object', required: ['id'] } } },
        none: false,
      },
      required: ['path'],
    };
    const args = { name: 'ab', size: 'huge', kind: 5, tags: ['a', {}], deep: { 'a key': {} }, none: 1 };
    expect(faults(await call(schema, args))).toEqual([
      '"path" is required, but missing',
      'name: must NOT have fewer than 3 characters; got the text "ab"',
      'size: expected one of "small", "large"; got the text "huge"',
      'kind: expected "file"; got the number 5',
      'tags[1]: expected string or null; got an object',
      'deep["a key"]: "id" is required, but missing',
      'none: nothing is allowed here; got the number 1',
    ]);
  });

  test('B07: with an unknown key are told that key and the known ones', async () => {
    expect(faults(await call(point, { x: 1, z: 2 }))).toEqual(['unknown key "z"; known keys: "x", "y"']);
    const none = { type: 'object', additionalProperties: false };
    expect(faults(await call(none, { z: 2 }))).toEqual(['unknown key "z"; known keys: none']);
    const split = { allOf: [{ properties: { a: {} } }], unevaluatedProperties: false };
    expect(faults(await call(split, { a: 1, z: 2 }))).toEqual(['unknown key "z"']);
  });

  test('B12: are judged by own properties only', async () => {
    expect(faults(await call({ type: 'object', required: ['constructor', 'toString'] }, {}))).toEqual([
      '"constructor" is required, but missing',
      '"toString" is required, but missing',
    ]);
    expect(faults(await call({ type: 'object', required: ['__proto__'] }, {}))).toEqual([
      '"__proto__" is required, but missing',
    ]);
    const typed = {
      type: 'object',
      properties: { constructor: { type: 'string' } },
      dependentRequired: { valueOf: ['x'] },
    };
    expect((await call(typed, {})).runs).toEqual([{}]);
  });

  test('make a message of bounded size, however many and however large they are', async () => {
    const schema = { type: 'object', properties: { list: { type: 'array', items: { type: 'number' } } } };
    const many = await call(schema, { list: new Array(10_000).fill('x'.repeat(10)) });
    expect(faults(many)).toHaveLength(9);
    expect(faults(many).at(-1)).toBe('and 9992 more');
    // Nobody needs them counted.
    const countless = await call(schema, { list: new Array(100_000).fill('x'.repeat(10)) });
    expect(faults(countless)).toEqual(['list[0]: expected number; got the text "xxxxxxxxxx"', 'and more']);
    expect(String(many.result.content).length).toBeLessThan(1000);

    const large = await call(schema, { list: 'x'.repeat(1_000_000) });
    expect(faults(large)).toEqual([`list: expected array; got the text "${'x'.repeat(60)}…"`]);

    const keys = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`${'k'.repeat(200)}${index}`, 1]));
    const wide = await call(
      { type: 'object', properties: keys, additionalProperties: false } as unknown as JsonSchema,
      {
        [`${'?'.repeat(10_000)}`]: 1,
      },
    );
    expect(String(wide.result.content).length).toBeLessThan(500);
  });

  test('make a message of the size the host asks for', async () => {
    const schema = { type: 'object', required: ['a', 'b', 'c'] };
    expect(faults(await call(schema, {}, { maxFaults: 1, maxFaultCharacters: 20 }))).toEqual([
      '"a" is required, b…',
      'and 2 more',
    ]);
  });

  test('make a message of valid Unicode', async () => {
    const schema = { type: 'object', additionalProperties: false, properties: { a: { enum: ['b'] } } };
    const { result } = await call(schema, { a: `${'x'.repeat(59)}😀`, '\ud83d': 1 });
    expect(String(result.content).isWellFormed()).toBe(true);
  });
});

describe('calls nobody can run are answered here', () => {
  const middleware = [
    validation(),
    named('gate', () => {
      throw new Error('must not be reached');
    }),
  ];
  const tools = [
    defineTool({ name: 'work', description: 'Works.', execute: () => 'done' }),
    defineTool({ name: 'shown', description: 'Is shown only.' }),
  ];
  const dispatcher = createDispatcher({ tools, middleware });

  test.each([
    [{ name: 'wrok' }, 'not_found'],
    [{ name: '' }, 'invalid_call'],
    [{ name: 'shown' }, 'disabled'],
    [{ name: 'work', arguments: '{"a":' }, 'truncated_arguments'],
    [{ name: 'work', arguments: '{a}' }, 'invalid_arguments'],
    [{ name: 'work', arguments: '[1]' }, 'invalid_arguments'],
    [{ name: '__proto__' }, 'not_found'],
  ])('%j: %s', async (request, code) => {
    expect((await dispatcher.dispatch(request)).error).toMatchObject({ code, executed: 'no' });
  });
});

/** A Standard Schema that takes its time and answers with fresh data. */
function asynchronous(value: object, issues?: { message: string }[]): StandardSchema<unknown, object> {
  const shown = () => ({ type: 'object' });
  return {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: async () => (issues === undefined ? { value: structuredClone(value) } : { issues }),
      jsonSchema: { input: shown, output: shown },
    },
  };
}

describe('a Standard Schema', () => {
  const schemas: readonly (readonly [string, StandardSchema])[] = [
    ['zod', z.object({ x: z.number(), y: z.number().default(0) })],
    ['valibot', toStandardJsonSchema(v.object({ x: v.number(), y: v.optional(v.number(), 0) }))],
    ['arktype', type({ x: 'number', y: 'number = 0' }) as unknown as StandardSchema],
  ];

  test.each(schemas)('of %s gives the tool what it makes of the arguments', async (_, schema) => {
    const args = Object.freeze({ x: 1 });
    const { result, runs } = await call(schema, args);
    expect(result).toMatchObject({ content: 'done', notes: [], requested: { input: { x: 1 } } });
    expect(runs).toEqual([{ x: 1, y: 0 }]);
  });

  test.each(schemas)('of %s tells the model where the arguments are wrong', async (_, schema) => {
    const [fault, ...others] = faults(await call(schema, { x: 'one' }));
    expect(fault).toMatch(/^x: .*number/);
    expect(others).toEqual([]);
  });

  test('may take its time', async () => {
    expect((await call(asynchronous({ a: 1 }), {})).runs).toEqual([{ a: 1 }]);
    expect(faults(await call(asynchronous({}, [{ message: 'No such city.' }]), {}))).toEqual(['No such city.']);
    const zod = z.object({ x: z.string().refine(async (text) => text !== 'no', 'must not be no') });
    expect((await call(zod, { x: 'yes' })).runs).toEqual([{ x: 'yes' }]);
    expect(faults(await call(zod, { x: 'no' }))).toEqual(['x: must not be no']);
  });

  test('that never answers is waited for until the caller aborts', async () => {
    const schema = asynchronous({});
    const silent = { '~standard': { ...schema['~standard'], validate: () => new Promise<never>(() => {}) } };
    const tool = defineTool({ name: 'work', description: 'Works.', inputSchema: silent, execute: () => 'done' });
    const controller = new AbortController();
    const dispatcher = createDispatcher({ tools: [tool], middleware: [validation()] });
    const result = dispatcher.dispatch({ name: 'work' }, { signal: controller.signal });
    controller.abort();
    expect((await result).error).toMatchObject({ code: 'cancelled', executed: 'no' });
  });

  test('B07: does not let keys vanish unseen: the model reads of those that were dropped', async () => {
    const schema = z.object({ a: z.string().optional(), list: z.array(z.object({ b: z.number() })).optional() });
    const { result, runs } = await call(schema, {
      A: 'x',
      list: [
        { b: 1, c: 2 },
        { b: 2, c: 3 },
      ],
    });
    expect(runs).toEqual([{ list: [{ b: 1 }, { b: 2 }] }]);
    expect(result.content).toBe('done');
    expect(result.notes).toEqual([
      {
        type: 'dropped_keys',
        by: 'validation',
        message: "The tool's schema knows no arguments of these names, so they were left out: A, list.c.",
        forModel: true,
      },
    ]);
    expect(forModel(result)).toContain('left out: A, list.c.');
    const valibot = toStandardJsonSchema(v.object({ a: v.string() }));
    expect((await call(valibot, { a: 'x', b: 1 })).result.notes).toMatchObject([{ type: 'dropped_keys' }]);
    const arktype = type({ a: 'string', '+': 'delete' }) as unknown as StandardSchema;
    expect((await call(arktype, { a: 'x', b: 1 })).result.notes).toMatchObject([{ type: 'dropped_keys' }]);
  });

  test('is not blamed for keys that the tool itself takes out of its arguments', async () => {
    const tool = defineTool({
      name: 'work',
      description: 'Works.',
      inputSchema: z.looseObject({ a: z.string().optional() }),
      execute: (input) => {
        for (const key of Object.keys(input)) delete input[key];
        return 'done';
      },
    });
    const dispatcher = createDispatcher({ tools: [tool], middleware: [validation()] });
    expect((await dispatcher.dispatch({ name: 'work', arguments: { a: 'x', b: 1 } })).notes).toEqual([]);
  });

  test('may give its keys other names', async () => {
    const schema = z.object({ file_path: z.string() }).transform(({ file_path }) => ({ path: file_path }));
    const { result, runs } = await call(schema, { file_path: 'a' });
    expect(runs).toEqual([{ path: 'a' }]);
    expect(result.notes).toEqual([]);
  });

  test('names ten dropped keys, and counts the others', async () => {
    const args = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`key${index}`, 1]));
    const { result } = await call(z.object({}), args);
    expect(result.notes[0]?.message).toMatch(/: key0, .*key9, and 490 more\.$/);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('secret');
      },
    ],
    ['rejects', () => Promise.reject(new Error('secret'))],
    ['answers nothing', () => undefined],
    ['answers nothing later', async () => undefined],
  ] as readonly (readonly [string, () => unknown])[])('that %s is not the fault of the call', async (_, validate) => {
    const schema = asynchronous({});
    const broken = { '~standard': { ...schema['~standard'], validate: validate as () => StandardResult<object> } };
    const { result, runs } = await call(broken, { a: 1 });
    expect(result).toMatchObject({
      content:
        'The arguments of tool "work" could not be checked: its input schema failed, which is no fault of the call. Use another tool.',
      error: { code: 'internal', executed: 'no' },
    });
    expect(result.error?.cause).toBeDefined();
    expect(JSON.stringify(result)).not.toContain('secret');
    expect(runs).toEqual([]);
  });

  test('that fails at a second attempt does not make it look as if the tool had run', async () => {
    let checks = 0;
    const schema = asynchronous({});
    const validate = async () => {
      if (++checks > 1) throw new Error('secret');
      return { value: {} };
    };
    const twice: Middleware = named('twice', async (call, next) => {
      await next(call);
      return await next(call);
    });
    const { result, runs } = await call({ '~standard': { ...schema['~standard'], validate } }, {}, {}, [twice]);
    expect(result.error?.code).toBe('internal');
    expect(runs).toHaveLength(1);
  });
});

describe('arguments that are edited further inside', () => {
  const edit = (input: object): Middleware =>
    named('edit', async (call, next) => {
      const checked = await call.validate(input as never);
      return checked.valid
        ? next(call.with({ input: checked.input, parsed: checked.parsed }))
        : { ...(await next(call)), content: checked.error.message };
    });

  test('P05: are validated in the same way', async () => {
    expect((await call(point, { x: 1 }, {}, [edit({ x: 2 })])).runs).toEqual([{ x: 2, y: 0 }]);
    const { result } = await call(point, { x: 1 }, {}, [edit({ x: 'two' })]);
    expect(result.content).toContain('x: expected number; got the text "two"');
    expect((await call(asynchronous({ a: 1 }), {}, {}, [edit({})])).runs).toEqual([{ a: 1 }]);
  });
});

describe('compiling', () => {
  function tool(name: string, inputSchema: JsonSchema = point): Tool {
    return defineTool({
      name,
      description: 'Works.',
      inputSchema,
      execute: (input: unknown) => JSON.stringify(input),
    }) as Tool;
  }

  test('E09: waits for the first call of each tool: a thousand tools compile nothing', async () => {
    let dispatcher = createDispatcher();
    expect(
      await compilations(() => {
        const tools = Array.from({ length: 1000 }, (_, index) => tool(`tool${index}`));
        dispatcher = createDispatcher({ tools, middleware: [validation()] });
      }),
    ).toBe(0);
    expect(await compilations(() => dispatcher.dispatch({ name: 'tool7', arguments: { x: 1 } }))).toBe(1);
  });

  test('E16: happens once for a tool, however often it is called, and rightly or not', async () => {
    const dispatcher = createDispatcher({ tools: [tool('work')], middleware: [validation()] });
    const calls = async () => {
      for (let index = 0; index < 1000; index++)
        await dispatcher.dispatch({ name: 'work', arguments: { x: index % 2 ? 1 : 'one' } });
    };
    expect(await compilations(calls)).toBe(1);
  });

  test('can be asked for at the start, and then is done', async () => {
    const layer = validation();
    const tools = [tool('a'), tool('b')];
    expect(await compilations(() => layer.precompile(tools))).toBe(2);
    const dispatcher = createDispatcher({ tools, middleware: [layer] });
    expect(await compilations(() => dispatcher.dispatch({ name: 'a', arguments: { x: 1 } }))).toBe(0);
    expect(dispatcher.middlewareNames).toEqual(['validation']);
    layer.precompile(dispatcher.tools);
  });

  test('at the start names each tool whose schema cannot be used, and why', () => {
    const wrong = { properties: { a: { type: 'strin' } } };
    const tools = [tool('a'), tool('b', wrong), tool('c', { $ref: '#/$defs/none' }), tool('d')];
    expect(() => validation().precompile(tools)).toThrow(
      /^The input schema of these tools cannot be used:\n"b": .*strin\n"c": .*none.*$/,
    );
  });

  test('E02: that fails is not the fault of the call', async () => {
    const { result, runs } = await call({ properties: { a: { type: 'strin' } } }, { a: 1 });
    expect(result).toMatchObject({
      content:
        'The arguments of tool "work" could not be checked: its input schema failed, which is no fault of the call. Use another tool.',
      error: { code: 'internal', executed: 'no', retryable: false },
    });
    expect(String(result.error?.cause)).toContain('strin');
    expect(runs).toEqual([]);
  });

  test('E14: where no code may be made from text fails without blaming the arguments', async () => {
    const { Function: original } = globalThis;
    globalThis.Function = function Forbidden() {
      throw new EvalError('Code generation from strings disallowed for this context');
    } as unknown as FunctionConstructor;
    try {
      const { result } = await call(point, { x: 1 });
      expect(result.error?.code).toBe('internal');
      expect(result.content).not.toContain('invalid');
      expect(result.content).not.toContain('Code generation');
    } finally {
      globalThis.Function = original;
    }
  });

  test('E04, E05: tools that share an $id are independent, and one may be replaced', async () => {
    const registry = new ToolRegistry([
      tool('a', { $id: 'urn:args', type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }),
      tool('b', {
        $id: 'urn:args',
        type: 'object',
        properties: { b: { $id: 'urn:test:inner', type: 'number' } },
        required: ['b'],
      }),
    ]);
    const dispatcher = createDispatcher({ tools: registry, middleware: [validation()] });
    const code = async (name: string, args: object) =>
      (await dispatcher.dispatch({ name, arguments: args })).error?.code;
    expect(await code('a', { a: 'x' })).toBeUndefined();
    expect(await code('b', { b: 1 })).toBeUndefined();
    expect(await code('a', { b: 1 })).toBe('invalid_arguments');
    expect(await code('b', { a: 'x' })).toBe('invalid_arguments');
    registry.register(
      tool('a', {
        $id: 'urn:args',
        type: 'object',
        properties: { c: { $id: 'urn:test:inner', type: 'boolean' } },
        required: ['c'],
      }),
      { replace: true },
    );
    expect(await code('a', { c: true })).toBeUndefined();
    expect(await code('a', { a: 'x' })).toBe('invalid_arguments');
    expect(await code('b', { b: 1 })).toBeUndefined();
  });

  test('E03: keeps nothing of a tool that was replaced', async () => {
    const registry = new ToolRegistry([tool('work')]);
    const dispatcher = createDispatcher({ tools: registry, middleware: [validation()] });
    const gone: WeakRef<object>[] = [];
    for (let index = 0; index < 20; index++) {
      const next = tool('work', structuredClone(point) as JsonSchema);
      // A part of the schema: whoever keeps a copy of the whole keeps this.
      gone.push(new WeakRef(next.schema.inputSchema.properties as object));
      registry.register(next, { replace: true });
      expect((await dispatcher.dispatch({ name: 'work', arguments: { x: 1 } })).isError).toBe(false);
    }
    registry.register(tool('work'), { replace: true });
    await dispatcher.dispatch({ name: 'work', arguments: { x: 1 } });
    await collectGarbage();
    expect(gone.filter((schema) => schema.deref() !== undefined).length).toBeLessThanOrEqual(1);
  });
});

test('an option it does not have, or a value that is not allowed, is refused', () => {
  expect(() => validation({ max: 1 } as ValidationOptions)).toThrow(/has no option "max"/);
  expect(() => validation({ maxFaults: 0 })).toThrow(/"maxFaults" of validation must be a whole number of at least 1/);
  expect(() => validation({ maxFaultCharacters: 5 })).toThrow(/"maxFaultCharacters" .* at least 20/);
});

test('a valid synchronous call stays synchronous all the way to the tool', () => {
  let ran = false;
  const tool = defineTool({
    name: 'work',
    description: 'Works.',
    execute: () => {
      ran = true;
      return 'done';
    },
  });
  const middleware = [validation(), outputLimit(), timeout()];
  void createDispatcher({ tools: [tool], middleware }).dispatch({ name: 'work' });
  expect(ran).toBe(true);
});

describe('an asynchronous schema', () => {
  const hanging = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: () => new Promise<never>(() => {}),
    },
  } as const;
  const tool = defineTool({
    name: 'tool',
    description: 'A tool.',
    inputSchema: hanging,
    jsonSchema: { type: 'object' },
    execute: () => 'ran',
  });

  test('that never answers fails the call at its limit, and leaves no timer', async () => {
    const clock = new ManualClock();
    const dispatcher = createDispatcher({ tools: [tool], middleware: [validation({ limitMs: 100 })], clock });
    const pending = dispatcher.dispatch({ name: 'tool' });
    await clock.advance(100);
    expect((await pending).error).toMatchObject({ code: 'internal', executed: 'no' });
    expect(clock.pending).toBe(0);
  });

  test('is no longer waited for once the caller leaves', async () => {
    const clock = new ManualClock();
    const controller = new AbortController();
    const dispatcher = createDispatcher({ tools: [tool], middleware: [validation()], clock });
    const pending = dispatcher.dispatch({ name: 'tool' }, { signal: controller.signal });
    await turns(1);
    controller.abort();
    expect((await pending).error).toMatchObject({ code: 'cancelled', executed: 'no' });
    await turns();
    expect(clock.pending).toBe(0);
  });
});

test('a schema that answers with what only looks like a promise is waited for, and heard', async () => {
  const thenable = (result: object) => ({ then: (resolve: (result: object) => void) => resolve(result) });
  const answers = (result: object) => ({
    '~standard': { version: 1 as const, vendor: 'test', validate: () => thenable(result) as never },
  });
  for (const [result, code] of [
    [{ issues: [{ message: 'no' }] }, 'invalid_arguments'],
    [{ value: { n: 1 } }, undefined],
  ] as const) {
    const tool = defineTool({
      name: 'work',
      description: '…',
      inputSchema: answers(result),
      jsonSchema: { type: 'object' },
      execute: (input) => JSON.stringify(input),
    });
    const dispatcher = createDispatcher({ tools: [tool], middleware: [validation()] });
    const { error, content } = await dispatcher.dispatch({ name: 'work' });
    expect(error?.code).toBe(code);
    if (code === undefined) expect(content).toBe('{"n":1}');
  }
});
