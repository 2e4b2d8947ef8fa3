import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createDispatcher, defineTool, type JsonObject, type JsonSchema, type StandardSchema, toJson } from 'toolonion';
import { type ApprovalRequest, allowAll, type StandardOptions, standard } from 'toolonion/middleware';
import { z } from 'zod';

/** A tool with a schema that remembers its arguments, within the usual layers. */
function setUp(inputSchema: JsonSchema | StandardSchema, options: Partial<StandardOptions> = {}) {
  const received: unknown[] = [];
  const tool = defineTool({
    name: 'tool',
    description: 'Remembers its arguments.',
    inputSchema: inputSchema as JsonSchema,
    execute: (input: unknown) => {
      received.push(structuredClone(input));
      return 'ok';
    },
  });
  const middleware = standard({ permission: { check: allowAll }, logging: false, ...options });
  const dispatcher = createDispatcher({ tools: [tool], middleware });
  const call = (given: unknown) => dispatcher.dispatch({ name: 'tool', arguments: given });
  return { received, call };
}

const object = (properties: Record<string, JsonSchema>, more: JsonSchema = {}): JsonSchema => ({
  type: 'object',
  properties,
  ...more,
});
const coerced = { validation: { coerce: true } };

describe('null for what is optional', () => {
  const schemas: readonly (readonly [string, JsonSchema | StandardSchema])[] = [
    ['a JSON Schema', object({ limit: { type: 'integer', default: 10 }, note: { type: 'string' } })],
    ['zod', z.object({ limit: z.number().int().default(10), note: z.string().optional() })],
    [
      'a JSON Schema with $ref and allOf',
      {
        ...object({ limit: { $ref: '#/$defs/limit', default: 10 } }),
        allOf: [object({ note: { $ref: '#/$defs/text' } })],
        $defs: { limit: { type: 'integer' }, text: { type: 'string' } },
      },
    ],
  ];

  test.each(schemas)('B01: counts as missing, so the default applies: %s', async (_, schema) => {
    const { received, call } = setUp(schema);
    const result = await call('{"limit":null,"note":null}');
    expect(received).toEqual([{ limit: 10 }]);
    expect(result.notes).toMatchObject([{ type: 'repaired', by: 'validation' }]);
    expect(result.notes[0]?.message).toContain('limit: null was left out; note: null was left out');
    expect(result.requested.input).toEqual({ limit: null, note: null });
  });

  test.each<[string, JsonSchema]>([
    ['a type', object({ a: { type: ['integer', 'null'], default: 1 } })],
    ['a branch', object({ a: { anyOf: [{ type: 'integer' }, { type: 'null' }] } })],
    ['an enum', object({ a: { enum: ['x', null] } })],
    ['nullable', object({ a: { type: 'integer', nullable: true } })],
    ['no type at all', object({ a: {} })],
    ['additional properties', { type: 'object' }],
  ])('B01: stays where the schema takes it: %s', async (_, schema) => {
    const { received, call } = setUp(schema);
    const result = await call({ a: null });
    expect([received, result.notes]).toEqual([[{ a: null }], []]);
  });

  test('B01: stays where the schema takes it, though something else is put right', async () => {
    const { received, call } = setUp(
      object({ a: { type: 'integer', nullable: true }, b: { type: ['string', 'null'] }, list: { type: 'array' } }),
    );
    await call({ a: null, b: null, list: '[]' });
    expect(received).toEqual([{ a: null, b: null, list: [] }]);
  });

  test.each<[string, JsonSchema, JsonObject, string]>([
    ['required', object({ a: { type: 'integer' } }, { required: ['a'] }), { a: null }, 'a: expected integer; got null'],
    [
      'required by a branch',
      object({ a: { type: 'integer' } }, { anyOf: [{ required: ['a'] }] }),
      { a: null },
      'a: expected integer; got null',
    ],
    [
      'an item of a list',
      object({ a: { type: 'array', items: { type: 'integer' } } }),
      { a: [null] },
      'a[0]: expected integer; got null',
    ],
    ['an unknown key', object({}, { additionalProperties: false }), { a: null }, 'unknown key "a"'],
  ])('B01: is an error where it is not optional: %s', async (_, schema, given, message) => {
    const { received, call } = setUp(schema);
    const { error } = await call(given);
    expect(error?.code).toBe('invalid_arguments');
    expect(error?.message).toContain(message);
    expect(received).toEqual([]);
  });

  test('B01: is an error where the host wants it so, for all tools or for this one', async () => {
    for (const dropNulls of [false, { byTool: { tool: false } }]) {
      const { call } = setUp(object({ limit: { type: 'integer' } }), { validation: { dropNulls } });
      expect((await call({ limit: null })).error?.code).toBe('invalid_arguments');
    }
  });

  test.each<[string, JsonSchema]>([
    ['an enum', object({ a: { type: 'string', enum: ['x'], nullable: true } })],
    ['a const', object({ a: { type: 'string', const: 'x', nullable: true } })],
    ['allOf', object({ a: { type: 'object', allOf: [{ type: 'object' }], nullable: true } })],
    ['anyOf', object({ a: { type: 'string', anyOf: [{ minLength: 1, type: 'string' }], nullable: true } })],
  ])('B01: stays where "nullable" takes it, whatever %s beside it takes', async (_, schema) => {
    const { received, call } = setUp(schema);
    expect((await call({ a: null })).notes).toEqual([]);
    expect(received).toEqual([{ a: null }]);
  });

  test('B02: is seen by schema and value, whatever the words of the fault', async () => {
    const schema = object({
      note: { type: 'string', minLength: 1 },
      tag: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
      deep: { type: 'object', properties: { list: { type: 'array', items: object({ n: { type: 'number' } }) } } },
    });
    const { received, call } = setUp(schema);
    await call({ note: null, tag: null, deep: { list: [{ n: null }, { n: 1 }] } });
    expect(received).toEqual([{ deep: { list: [{}, { n: 1 }] } }]);
  });
});

describe('JSON in a text', () => {
  test.each<[string, JsonSchema, JsonObject, JsonObject]>([
    [
      'a list',
      object({ queries: { type: 'array', items: { type: 'string' } } }),
      { queries: '["a","b"]' },
      { queries: ['a', 'b'] },
    ],
    [
      'an object',
      object({ filter: object({ n: { type: 'number' } }) }),
      { filter: ' {"n":1}\n' },
      { filter: { n: 1 } },
    ],
    [
      'one in the other',
      object({ filter: object({ ids: { type: 'array', items: object({}) } }) }),
      { filter: '{"ids":"[{}]"}' },
      { filter: { ids: [{}] } },
    ],
    ['in a branch', object({ a: { anyOf: [{ type: 'array' }, { type: 'null' }] } }), { a: '[1]' }, { a: [1] }],
  ])('A05: is read where the schema takes no text: %s', async (_, schema, given, input) => {
    const { received, call } = setUp(schema);
    const result = await call(given);
    expect(received).toEqual([input]);
    expect(result.notes).toMatchObject([{ type: 'repaired', by: 'validation' }]);
    expect(result.requested.input).toEqual(given);
  });

  test.each<[string, JsonSchema, JsonObject]>([
    ['where a text may stand', object({ a: { type: ['array', 'string'] } }), { a: '[1]' }],
    [
      'where a branch takes a text',
      object({ a: { anyOf: [{ type: 'array' }, { type: 'string' }] } }),
      { a: '{"x":1}' },
    ],
    ['where nothing is said', object({}), { a: '[1]' }],
  ])('A05: stays a text %s', async (_, schema, given) => {
    const { received, call } = setUp(schema);
    const result = await call(given);
    expect([received, result.notes]).toEqual([[given], []]);
  });

  test.each<[string, JsonObject]>([
    ['of another kind', { a: '{"x":1}' }],
    ['of a scalar', { a: '5' }],
    ['that is broken', { a: '["a"' }],
    ['that is not JSON', { a: 'a, b' }],
    ['with a number nothing can hold', { a: '[12345678901234567890]' }],
    ['that nests too deep', { a: `${'['.repeat(300)}${']'.repeat(300)}` }],
  ])('A05: is left as it is, and told as it was sent: %s', async (_, given) => {
    const { received, call } = setUp(object({ a: { type: 'array' } }));
    const { error } = await call(given);
    expect(error?.code).toBe('invalid_arguments');
    expect(error?.message).toContain('a: expected array; got the text');
    expect(received).toEqual([]);
  });

  test('A05: is left as it is where the host wants it so', async () => {
    const { call } = setUp(object({ a: { type: 'array' } }), { validation: { unwrapText: false } });
    expect((await call({ a: '[1]' })).error?.code).toBe('invalid_arguments');
  });
});

test('types in capitals, as Google has them, are those by which arguments are put right', async () => {
  const { received, call } = setUp({
    type: 'OBJECT',
    properties: { list: { type: 'ARRAY' }, text: { type: 'STRING' } },
  });
  await call({ list: '[1]', text: null });
  expect(received).toEqual([{ list: [1] }]);
});

describe('coercion', () => {
  const scalars = object({
    n: { type: 'number' },
    i: { type: 'integer' },
    flag: { type: 'boolean' },
    s: { type: 'string' },
  });

  test('B05: is off unless it is asked for', async () => {
    const { call } = setUp(scalars);
    expect((await call({ n: '5' })).error?.code).toBe('invalid_arguments');
  });

  test('B05: makes numbers and truth values of texts that are just that', async () => {
    const { received, call } = setUp(scalars, coerced);
    for (const given of [{ n: '5' }, { n: '-1.5e3' }, { n: '0' }, { i: '7.0' }, { flag: 'false' }, { flag: 'True' }])
      expect((await call(given)).error).toBeUndefined();
    expect(received).toEqual([{ n: 5 }, { n: -1500 }, { n: 0 }, { i: 7 }, { flag: false }, { flag: true }]);
  });

  test.each<[JsonObject]>([
    [{ n: '0x10' }],
    [{ n: 'Infinity' }],
    [{ n: 'NaN' }],
    [{ n: '' }],
    [{ n: ' 5' }],
    [{ n: '12abc' }],
    [{ n: '1e400' }],
    [{ n: '9007199254740993' }],
    [{ n: '05' }],
    [{ n: '+5' }],
    [{ n: '1,000' }],
    [{ n: true }],
    [{ n: null, i: null, x: 1 }],
    [{ i: '1.5' }],
    [{ flag: 'yes' }],
    [{ flag: '1' }],
    [{ flag: 0 }],
    [{ s: 5 }],
    [{ s: false }],
  ])('B05: makes nothing of what is not: %j', async (given) => {
    const { received, call } = setUp(scalars, { validation: { coerce: true, dropNulls: false } });
    expect((await call(given)).error?.code).toBe('invalid_arguments');
    expect(received).toEqual([]);
  });

  test('B03: never makes anything of null, and leaves alone what a branch takes', async () => {
    const schema = object({
      a: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      b: { type: ['number', 'string'] },
      c: { anyOf: [{ type: 'number' }, { type: 'string', pattern: '^v' }] },
      d: { oneOf: [{ const: 1 }, { const: '1' }] },
      n: { type: 'number' },
    });
    const { received, call } = setUp(schema, coerced);
    await call({ a: null, b: '5', d: '1', n: '5' });
    expect(received).toEqual([{ a: null, b: '5', d: '1', n: 5 }]);
    // A text may stand there, if not this one: it is not for a converter to say that a number was meant.
    expect((await call({ c: '5' })).error?.code).toBe('invalid_arguments');
    const { call: strict } = setUp(
      object({ s: { type: 'string' }, b: { type: 'boolean' } }, { required: ['s', 'b'] }),
      coerced,
    );
    expect((await strict({ s: null, b: null })).error?.message).toMatch(
      /s: expected string; got null\n.*b: expected boolean; got null/,
    );
  });

  test('B03: leaves alone what a branch takes whose key has an equal object', async () => {
    const schema = object({
      n: { type: 'number' },
      v: { anyOf: [object({ t: { const: { k: 1 } }, x: { type: 'string' } }), object({ x: { type: 'array' } })] },
    });
    const { received, call } = setUp(schema, coerced);
    await call({ v: { t: { k: 1 }, x: '[1]' }, n: '5' });
    expect(received).toEqual([{ v: { t: { k: 1 }, x: '[1]' }, n: 5 }]);
  });

  test('B03: follows the key that tells objects apart', async () => {
    const branch = (kind: string, type: string) =>
      object({ kind: { const: kind }, value: { type } }, { required: ['kind', 'value'] });
    const { received, call } = setUp(
      { type: 'object', oneOf: [branch('text', 'string'), branch('count', 'integer')] },
      coerced,
    );
    await call({ kind: 'count', value: '5' });
    await call({ kind: 'text', value: '5' });
    expect(received).toEqual([
      { kind: 'count', value: 5 },
      { kind: 'text', value: '5' },
    ]);
  });

  test('B04: is done on a private copy, which the tool gets, and which the gate judges', async () => {
    const seen: unknown[] = [];
    const approver = ({ input }: ApprovalRequest) => {
      seen.push(input);
      return true;
    };
    const check = () => ({ type: 'ask', prompt: '?' }) as const;
    const { received, call } = setUp(object({ offset: { type: 'number' }, limit: { type: 'number' } }), {
      ...coerced,
      permission: { check, approver },
    });
    const given = Object.freeze({ offset: '500', limit: '100' });
    const { requested } = await call(given);
    expect(received).toEqual([{ offset: 500, limit: 100 }]);
    expect(seen).toEqual([{ offset: 500, limit: 100 }]);
    expect(requested.input).toEqual({ offset: '500', limit: '100' });
    expect(given).toEqual({ offset: '500', limit: '100' });
  });

  test('B04: is never half-done: one that cannot be converted stops the call', async () => {
    const { received, call } = setUp(object({ a: { type: 'number' }, b: { type: 'number' } }), coerced);
    const given = { a: '1', b: 'zz' };
    const { error, requested } = await call(given);
    expect(error?.message).toContain('b: expected number; got the text "zz"');
    expect([given, requested.input, received]).toEqual([{ a: '1', b: 'zz' }, { a: '1', b: 'zz' }, []]);
  });

  test('holds for a Standard Schema as well', async () => {
    const { received, call } = setUp(z.object({ n: z.number(), on: z.boolean(), tags: z.array(z.string()) }), coerced);
    await call({ n: '5', on: 'true', tags: '["a"]' });
    expect(received).toEqual([{ n: 5, on: true, tags: ['a'] }]);
  });
});

describe('keys the schema does not know', () => {
  test('B07: are told, with the known ones and the nearest, and nothing runs', async () => {
    const { received, call } = setUp(object({ patchOptions: {}, path: {} }, { additionalProperties: false }));
    const { error } = await call({ options: {}, path: 'x' });
    expect(error?.message).toContain(
      'unknown key "options"; known keys: "patchOptions", "path"; did you mean "patchOptions"?',
    );
    expect(received).toEqual([]);
  });

  test('B07: that a schema library takes away are noted for the model', async () => {
    const { call } = setUp(z.object({ name: z.string() }));
    const { notes } = await call({ name: 'x', value: '#F00' });
    expect(notes).toMatchObject([{ type: 'dropped_keys', forModel: true, message: expect.stringContaining('value') }]);
  });

  const renamed = z.object({ x: z.string() }).transform(({ x }) => ({ y: x }));
  test.each<[string, StandardSchema, JsonObject, unknown]>([
    ['null as well', z.object({ a: renamed.nullable() }), { a: { x: '1' } }, { a: { y: '1' } }],
    ['any name', z.object({ a: z.record(z.string(), renamed) }), { a: { k: { x: '1' } } }, { a: { k: { y: '1' } } }],
    ['a place in a tuple', z.object({ a: z.tuple([renamed]) }), { a: [{ x: '1' }] }, { a: [{ y: '1' }] }],
    ['one of several kinds', z.object({ a: z.union([z.string(), renamed]) }), { a: { x: '1' } }, { a: { y: '1' } }],
  ])('B07: that a transform uses were not dropped, where the schema has %s', async (_, schema, given, received) => {
    const tool = setUp(schema);
    expect((await tool.call(given)).notes).toEqual([]);
    expect(tool.received).toEqual([received]);
  });

  test('B07: of another branch are dropped, and noted', async () => {
    const { received, call } = setUp(
      z.object({ v: z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]) }),
    );
    const { notes } = await call({ v: { a: 'x', b: 'y' } });
    expect(received).toEqual([{ v: { a: 'x' } }]);
    expect(notes).toMatchObject([{ type: 'dropped_keys', message: expect.stringContaining('left out: v.b.') }]);
  });

  test('B08: that clients add are left out where the host says so and the schema names no such key', async () => {
    const options = { prepareArguments: { ignoreKeys: ['_*', 'toolCallId'] } };
    const given = { path: 'x', _meta: {}, _call: 'c', toolCallId: 'c1' };
    const closed = setUp(object({ path: { type: 'string' } }, { additionalProperties: false }), options);
    const { notes, requested } = await closed.call(given);
    expect(closed.received).toEqual([{ path: 'x' }]);
    expect(notes).toMatchObject([
      { type: 'ignored_keys', message: expect.stringContaining('_meta, _call, toolCallId') },
    ]);
    expect(requested.input).toEqual(given);

    const declared = setUp({ type: 'object', allOf: [object({ _meta: {} })], properties: { toolCallId: {} } }, options);
    await declared.call({ _meta: 1, toolCallId: 'c1', _x: 1 });
    expect(declared.received).toEqual([{ _meta: 1, toolCallId: 'c1' }]);

    const without = setUp(object({ path: { type: 'string' } }, { additionalProperties: false }));
    expect((await without.call(given)).error?.code).toBe('invalid_arguments');
  });

  test('B09: reach a tool that takes any, judged by their schema', async () => {
    const { received, call } = setUp({ type: 'object', additionalProperties: { type: 'string' } });
    await call({ env: 'a', x: 'b', __proto__x: 'c' });
    expect(received).toEqual([{ env: 'a', x: 'b', __proto__x: 'c' }]);
    expect((await call({ env: 5 })).error?.message).toContain('env: expected string; got the number 5');
  });
});

describe('B11: a default within a branch', () => {
  const schema = object({ a: { anyOf: [object({ status: { default: 503 } }), { type: 'string' }] } });

  test('B11: is not filled in, harms nothing, and the host can hear of it', async () => {
    const warnings: string[] = [];
    const { received, call } = setUp(schema, { validation: { onSchemaWarning: (message) => warnings.push(message) } });
    await call({ a: {} });
    await call({ a: {} });
    expect(received).toEqual([{ a: {} }, { a: {} }]);
    expect(warnings).toEqual(['a default inside anyOf, oneOf, not or if is not filled in']);
  });
});

test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])(
  'B12: a required %s is missing where it is not the object’s own',
  async (name) => {
    const { received, call } = setUp({ type: 'object', required: [name] });
    expect((await call({})).error?.message).toContain(`"${name}" is required`);
    expect((await call(`{"${name}":1}`)).error).toBeUndefined();
    expect(JSON.stringify(received)).toBe(`[{"${name}":1}]`);
  },
);

test.each([
  ['that takes anything', { type: 'object' }, true],
  ['that takes nothing else', { type: 'object', additionalProperties: false }, false],
  ['with other values to put right', object({ n: { type: 'number' }, l: { type: 'array' } }), true],
])('B13: a key named __proto__ is plain data for a schema %s', async (_, schema, isTaken) => {
  const received: unknown[] = [];
  const tool = defineTool({
    name: 'tool',
    description: '',
    inputSchema: schema,
    execute: (input) => void received.push(input),
  });
  const dispatcher = createDispatcher({
    tools: [tool],
    middleware: standard({
      permission: { check: allowAll },
      logging: false,
      validation: { coerce: true },
      prepareArguments: { nul: 'remove', ignoreKeys: ['_x'], transform: (input) => ({ ...input }) },
    }),
  });
  const text = '{"__proto__":{"isAdmin":true},"n":"1","l":"[]","_x":"\\u0000"}';
  const given = isTaken ? text : '{"__proto__":{"isAdmin":true}}';
  const result = await dispatcher.dispatch({ name: 'tool', arguments: given });
  expect(result.isError).toBe(!isTaken);
  for (const input of [...received, result.requested.input]) {
    expect(Object.getPrototypeOf(input)).toBe(Object.prototype);
    expect((input as { isAdmin?: unknown }).isAdmin).toBeUndefined();
    expect(Object.keys(input as object)).toContain('__proto__');
  }
});

test('what is put right is put right once: a second check changes nothing', async () => {
  const schema = object({
    n: { type: 'number' },
    list: { type: 'array', items: { type: 'integer' } },
    deep: object({ flag: { type: 'boolean' }, text: { type: 'string' } }),
  });
  const messy = fc.record(
    {
      n: fc.oneof(fc.double({ noNaN: true }).map(String), fc.constant(null), fc.jsonValue()),
      list: fc.oneof(
        fc.array(fc.oneof(fc.integer(), fc.integer().map(String))).map((list) => JSON.stringify(list)),
        fc.jsonValue(),
      ),
      deep: fc.oneof(
        fc.record({ flag: fc.constantFrom('true', 'FALSE', null, 1), text: fc.jsonValue() }),
        fc.jsonValue(),
      ),
    },
    { requiredKeys: [] },
  );
  const { received, call } = setUp(schema, coerced);
  await fc.assert(
    fc.asyncProperty(messy, async (given) => {
      received.length = 0;
      const sent = JSON.stringify(given);
      const first = await call(toJson(given));
      expect(JSON.stringify(given)).toBe(sent);
      if (first.isError) return expect(received).toEqual([]);
      const [input] = received;
      const second = await call(input);
      expect(received).toEqual([input, input]);
      return expect(second.notes).toEqual([]);
    }),
    { numRuns: 500 },
  );
});
