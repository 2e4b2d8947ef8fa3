import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { RE2JS } from 're2js';
import {
  createDispatcher,
  defineTool,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  type Tool,
  ToolRegistry,
} from 'toolonion';
import { allowAll, type StandardOptions, standard, validation } from 'toolonion/middleware';
import { compilations } from '../support/compilations.ts';
import { heapInUse } from '../support/garbage.ts';
import { root } from '../support/pages.ts';
import { runNode } from '../support/process.ts';

function toolOf(inputSchema: JsonSchema, name = 'tool', untrusted = false): Tool {
  return defineTool({
    name,
    description: '…',
    inputSchema,
    untrusted,
    execute: (input: unknown) => JSON.stringify(input),
  });
}

function dispatcherOf(tools: ToolRegistry | readonly Tool[], options: Partial<StandardOptions> = {}) {
  const middleware = standard({ permission: { check: allowAll }, logging: false, ...options });
  return createDispatcher({ tools, middleware });
}

/** What comes of a call of a tool with this schema. */
async function call(
  inputSchema: JsonSchema,
  given: JsonObject,
  options: StandardOptions['validation'] = {},
  untrusted = false,
) {
  const dispatcher = dispatcherOf([toolOf(inputSchema, 'tool', untrusted)], { validation: options });
  const { error, content } = await dispatcher.dispatch({ name: 'tool', arguments: given });
  return { code: error?.code ?? 'ok', content: String(content), cause: String(error?.cause) };
}

/** So many of something. */
function times<Item>(count: number, item: (index: number) => Item): Item[] {
  return Array.from({ length: count }, (_, index) => item(index));
}

const point: JsonSchema = { type: 'object', properties: { x: { type: 'number' } }, required: ['x'] };

test.each([
  'https://json-schema.org/draft/2020-12/schema',
  'http://json-schema.org/draft-07/schema#',
  'https://json-schema.org/draft-07/schema',
  'http://json-schema.org/draft-06/schema#',
  'http://json-schema.org/draft-04/schema#',
  'https://json-schema.org/draft/2019-09/schema',
  'https://example.com/of-our-own',
  '',
  undefined,
])('E01, E02: a schema of the dialect %j checks its calls', async ($schema) => {
  const schema = $schema === undefined ? point : { $schema, ...point };
  expect((await call(schema, { x: 1 })).code).toBe('ok');
  expect((await call(schema, { x: 'one' })).code).toBe('invalid_arguments');
});

test('E02: what draft-03 and draft-04 said in another way is read as it was meant', async () => {
  const schema: JsonObject = {
    $schema: 'http://json-schema.org/draft-04/schema#',
    id: 'http://example.com/args',
    type: 'object',
    properties: {
      n: { type: 'number', minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false, required: true },
    },
  };
  expect((await call(schema as JsonSchema, { n: 9 })).code).toBe('ok');
  for (const n of [0, 10]) expect((await call(schema as JsonSchema, { n })).code).toBe('invalid_arguments');
});

test.each<[string, JsonSchema, JsonObject, JsonObject]>([
  [
    'to its root',
    { type: 'object', properties: { child: { $ref: '#' }, n: { type: 'number' } } },
    { child: { n: 1 } },
    { child: { n: '' } },
  ],
  [
    'to its root, with an $id that is no address',
    { $id: 'urn:tree', type: 'object', properties: { child: { $ref: '#' }, n: { type: 'number' } } },
    { child: { n: 1 } },
    { child: { n: '' } },
  ],
  [
    'to a property',
    { type: 'object', properties: { a: { type: 'number' }, b: { $ref: '#/properties/a' } } },
    { b: 1 },
    { b: '' },
  ],
  [
    'by an anchor',
    { type: 'object', $defs: { n: { $anchor: 'n', type: 'number' } }, properties: { b: { $ref: '#n' } } },
    { b: 1 },
    { b: '' },
  ],
])('a schema may refer %s', async (_, schema, right, wrong) => {
  expect((await call(schema, right)).code).toBe('ok');
  expect((await call(schema, wrong)).code).toBe('invalid_arguments');
});

test('E03: five thousand registrations of equal schemas leave the heap as it was', async () => {
  const registry = new ToolRegistry();
  const dispatcher = dispatcherOf(registry);
  const renew = async (times: number) => {
    for (let time = 0; time < times; time++) {
      registry.register(toolOf(structuredClone(point)), { replace: true });
      await dispatcher.dispatch({ name: 'tool', arguments: { x: time } });
    }
  };
  await renew(500);
  const before = await heapInUse();
  await renew(5000);
  const grownBy = (await heapInUse()) - before;
  // One that is kept weighs about 3 KB: all of them would be 15 MB.
  expect(grownBy).toBeLessThan(2_000_000);
}, 120_000);

test('E04, E05: tools that share an $id each have their own schema, and one may be registered again', async () => {
  const $id = 'urn:args';
  const registry = new ToolRegistry([
    toolOf({ $id, type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }, 'one'),
    toolOf({ $id, type: 'object', properties: { b: { type: 'number' } }, required: ['b'] }, 'two'),
  ]);
  const dispatcher = dispatcherOf(registry);
  const codes = async (given: JsonObject) =>
    Promise.all(
      ['one', 'two'].map(async (name) => (await dispatcher.dispatch({ name, arguments: given })).error?.code ?? 'ok'),
    );
  expect(await codes({ a: 'x' })).toEqual(['ok', 'invalid_arguments']);
  expect(await codes({ b: 1 })).toEqual(['invalid_arguments', 'ok']);
  registry.register(toolOf({ $id, type: 'object', required: ['c'] }, 'one'), { replace: true });
  expect(await codes({ b: 1, c: 1 })).toEqual(['ok', 'ok']);
  expect(await codes({ a: 'x' })).toEqual(['invalid_arguments', 'invalid_arguments']);
});

describe('a schema that is not trusted', () => {
  const evil = '^(a+)+$';
  const text = `${'a'.repeat(40)}!`;
  const re2 = (pattern: string) => {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
    return { test: (given: string) => compiled.test(given) };
  };

  test.each<[string, JsonSchema, JsonObject]>([
    ['of a property', { type: 'object', properties: { s: { type: 'string', pattern: evil } } }, { s: text }],
    [
      'of keys',
      { type: 'object', patternProperties: { [evil]: { type: 'number' } }, additionalProperties: false },
      { [text]: 'x' },
    ],
    ['of the names of keys', { type: 'object', propertyNames: { pattern: evil } }, { [text]: 1 }],
    [
      'behind a reference',
      { type: 'object', $defs: { s: { pattern: evil } }, properties: { s: { anyOf: [{ $ref: '#/$defs/s' }] } } },
      { s: text },
    ],
  ])(
    'E07: has its patterns not run without an engine for them, and the host hears of it: %s',
    async (_, schema, given) => {
      const warnings: string[] = [];
      const onSchemaWarning = (message: string, { name }: Tool) => warnings.push(`${name}: ${message}`);
      expect((await call(schema, given, { onSchemaWarning }, true)).code).toBe('ok');
      expect(warnings).toEqual([`tool: the pattern "${evil}" is not checked`]);
    },
  );

  test('E07: has them run by an engine whose time is linear', async () => {
    const schema: JsonSchema = {
      type: 'object',
      properties: { s: { type: 'string', pattern: evil }, d: { type: 'string', pattern: '^\\d{4}\\-\\d{2}$' } },
      patternProperties: { '^x-': { type: 'number' } },
      additionalProperties: false,
    };
    const regExp = re2;
    expect((await call(schema, { s: text }, { regExp }, true)).code).toBe('invalid_arguments');
    expect((await call(schema, { s: 'aaa', d: '2024-02', 'x-a': 1 }, { regExp }, true)).code).toBe('ok');
    expect((await call(schema, { d: '2024' }, { regExp }, true)).code).toBe('invalid_arguments');
    expect((await call(schema, { 'x-a': 'b' }, { regExp }, true)).code).toBe('invalid_arguments');
    expect((await call(schema, { y: 1 }, { regExp }, true)).code).toBe('invalid_arguments');
    // The engine is for trusted tools as well: what they check may come from anywhere.
    expect((await call(schema, { s: text }, { regExp })).code).toBe('invalid_arguments');
  });

  test('E07: has a pattern left out that the engine cannot read; a trusted one is run by JavaScript', async () => {
    const schema: JsonSchema = { type: 'object', properties: { s: { type: 'string', pattern: '^(?=a)b' } } };
    const warnings: string[] = [];
    const options = { regExp: re2, onSchemaWarning: (message: string) => warnings.push(message) };
    expect((await call(schema, { s: 'x' }, options, true)).code).toBe('ok');
    expect((await call(schema, { s: 'x' }, options)).code).toBe('invalid_arguments');
    expect(warnings).toEqual([
      'the pattern "^(?=a)b" is not checked',
      'the engine given as regExp cannot read the pattern "^(?=a)b", so JavaScript\'s runs it',
    ]);
  });

  const nested = (levels: number): JsonSchema =>
    levels === 0
      ? { type: 'string' }
      : { anyOf: [nested(levels - 1), { type: 'object', properties: { a: nested(levels - 1) } }] };
  const inObject = (schema: JsonSchema): JsonSchema => ({ type: 'object', properties: { a: schema } });
  const chain = (length: number, schema: JsonSchema): JsonSchema =>
    length === 0 ? schema : { allOf: [chain(length - 1, schema)] };

  test.each<[string, JsonSchema, string]>([
    ['combinators nine deep', inObject(nested(9)), 'holds more than 1000 schemas'],
    ['too many levels', inObject(chain(40, {})), 'nests deeper than 32 levels'],
    [
      'too many properties',
      { type: 'object', properties: Object.fromEntries(Array.from({ length: 1001 }, (__, i) => [`p${i}`, {}])) },
      'holds more than 1000 schemas',
    ],
    [
      'too many keys that want others',
      { type: 'object', dependentRequired: Object.fromEntries(times(1001, (i) => [`p${i}`, ['p']])) },
      'holds more than 1000 schemas',
    ],
    ['too much text', { type: 'object', description: 'x'.repeat(200_001) }, 'characters; 200000 are allowed'],
    [
      'a reference out of it',
      { type: 'object', properties: { a: { $ref: 'https://example.com/a' } } },
      'where no schema is',
    ],
    [
      'a reference to what is no schema',
      { type: 'object', 'x-a': { pattern: 'a' }, properties: { a: { $ref: '#/x-a' } } },
      'refers at #/properties/a to #/x-a',
    ],
    [
      'a reference that can be read in two ways',
      { type: 'object', properties: { a: { $ref: '#/properties%2Fb' }, b: {} }, 'properties/b': { pattern: 'a' } },
      'cannot be read',
    ],
    ['a reference nobody can read', { type: 'object', properties: { a: { $ref: '#/%' } } }, 'cannot be read'],
    ['a reference that moves', { type: 'object', properties: { a: { $dynamicRef: '#a' } } }, 'uses $dynamicRef'],
    ['an $id within', { type: 'object', properties: { a: { $id: 'b' } } }, 'uses $id at #/properties/a'],
  ])('E08: is refused when its tool is defined, for %s', (_, schema, message) => {
    expect(() => toolOf(schema, 'tool', true)).toThrow(message);
    expect(() => toolOf(schema, 'tool', true)).toThrow(/^inputSchema of tool "tool", which is untrusted, /);
    expect(() => toolOf(schema)).not.toThrow();
    const outputSchema = { type: 'object', ...schema };
    expect(() => defineTool({ name: 't', description: '', outputSchema, untrusted: true })).toThrow(/^outputSchema/);
  });

  test('E08: may have names with a percent sign', async () => {
    const schema: JsonSchema = {
      type: 'object',
      properties: { '100%': { type: 'number' }, b: { $ref: '#/properties/100%25' } },
    };
    expect((await call(schema, { '100%': 1, b: 2 }, {}, true)).code).toBe('ok');
    expect((await call(schema, { b: 'x' }, {}, true)).code).toBe('invalid_arguments');
  });

  test('E08: may have an $id, a reference that is null, and the schemas of OpenAPI', async () => {
    const schema: JsonObject = {
      $id: 'https://example.com/theirs',
      type: 'object',
      components: { schemas: { N: { type: 'number', pattern: evil } } },
      properties: { a: { $ref: '#/components/schemas/N' }, b: { $ref: null, type: 'string' } },
    };
    expect((await call(schema as JsonSchema, { a: 1, b: text }, {}, true)).code).toBe('ok');
    expect((await call(schema as JsonSchema, { a: text }, {}, true)).code).toBe('invalid_arguments');
  });

  test('E08: is taken as it usually is', async () => {
    const schema = { $defs: { n: { type: 'number' } }, ...inObject(nested(5)) };
    expect((await call(schema, { a: 'x' }, {}, true)).code).toBe('ok');
    expect((await call(schema, { a: 5 }, {}, true)).code).toBe('invalid_arguments');
  });

  test.each<[string, JsonSchema, JsonObject]>([
    [
      'one that doubles with each reference',
      {
        type: 'object',
        $defs: Object.fromEntries(
          Array.from({ length: 41 }, (__, i) => [
            `d${i}`,
            i === 40 ? { type: 'object' } : { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
          ]),
        ),
        $ref: '#/$defs/d0',
      },
      {},
    ],
    ['one that goes on for ever', { type: 'object', allOf: [{ $ref: '#' }] }, {}],
  ])('has a bound of steps, whatever the arguments: %s', async (_, schema, given) => {
    const { code, content, cause } = await call(schema, given, {}, true);
    expect(code).toBe('internal');
    expect(content).toContain('no fault of the call');
    expect(cause).toMatch(/took more than 1000000 steps|call stack/);
  });
});

const named = (count: number, schema: JsonSchema | boolean) =>
  Object.fromEntries(times(count, (index) => [`p${index}`, schema] as const));

describe('what would take seconds, or more memory than there is, is bounded', () => {
  /** The quickest of three would be a second away from any of these without a bound. */
  const LIMIT_MS = 3000;

  async function quickly(schema: JsonSchema, given: JsonObject, untrusted: boolean) {
    const began = performance.now();
    const answer = await call(schema, given, {}, untrusted);
    expect(performance.now() - began).toBeLessThan(LIMIT_MS);
    return answer;
  }

  test.each<[string, JsonSchema, JsonObject, string]>([
    [
      'a schema that is referred to very often',
      {
        type: 'object',
        $defs: { wide: { properties: named(450, { minLength: 1 }) } },
        properties: named(450, { $ref: '#/$defs/wide' }),
      },
      {},
      'ok',
    ],
    [
      'lists within lists that have to be unique',
      { type: 'object', properties: { a: { allOf: times(900, () => ({ uniqueItems: true })) } } },
      { a: [times(200_000, () => 1)] },
      'internal',
    ],
    [
      'lists within lists to compare with',
      {
        type: 'object',
        $defs: {
          each: { const: [times(2000, () => 1)] },
          many: { allOf: times(400, () => ({ $ref: '#/$defs/each' })) },
        },
        properties: { a: { allOf: times(400, () => ({ $ref: '#/$defs/many' })) } },
      },
      { a: [times(2000, () => 1)] },
      'internal',
    ],
    [
      'names to look for in each item',
      {
        type: 'object',
        properties: { a: { items: { properties: named(900, true), required: times(9000, () => 'p') } } },
      },
      { a: times(400_000, () => ({ p: 1 })) },
      'internal',
    ],
    [
      'defaults to fill into each item',
      { type: 'object', properties: { a: { items: { properties: { p: { default: times(50_000, () => 1) } } } } } },
      { a: times(400_000, () => ({})) },
      'internal',
    ],
  ])('E07, E08: of an untrusted schema: %s', async (_, schema, given, code) => {
    expect((await quickly(schema, given, true)).code).toBe(code);
  });

  test('E07: patterns for keys are counted for each key', async () => {
    const schema = { type: 'object', patternProperties: Object.fromEntries(times(900, (i) => [`p${i}$`, {}])) };
    const given = Object.fromEntries(times(10_000, (index) => [`k${index}`, 1]));
    expect((await call(schema, given, { regExp: (pattern) => new RegExp(pattern) }, true)).code).toBe('internal');
  });

  const eight = { type: 'object', required: times(8, (index) => `k${index}`) };
  test.each<[string, JsonSchema, JsonObject]>([
    ['faults of each item', { properties: { a: { items: eight } } }, { a: times(600_000, () => ({})) }],
    [
      'faults behind a reference',
      {
        $defs: { text: { type: 'string', properties: { p: { $ref: '#/$defs/text' } } } },
        properties: { a: { items: { $ref: '#/$defs/text' } } },
      },
      { a: times(200_000, () => 1) },
    ],
    [
      'faults of each item in each alternative',
      { properties: { a: { anyOf: times(10, () => ({ items: eight })) } } },
      { a: times(200_000, () => ({})) },
    ],
    [
      'a key of megabytes before each fault',
      { additionalProperties: { items: { type: 'string' } } },
      { ['~'.repeat(2_000_000)]: times(200, () => 1) },
    ],
    [
      'values that are allowed, for each item',
      { properties: { a: { items: { enum: times(10_000, (b) => ({ a: { b } })) } } } },
      { a: times(20_000, () => ({ a: { b: -1 } })) },
    ],
  ])('the schema may be trusted, the arguments never are: %s', async (_, schema, given) => {
    const { code, content } = await quickly({ type: 'object', ...schema }, given, false);
    expect(code).toBe('invalid_arguments');
    expect(content.length).toBeLessThan(3000);
  });

  test('a branch that gathers too many faults leaves it to the others to accept', async () => {
    const lists = ['string', 'number'].map((type) => ({ items: { type } }));
    const schema: JsonSchema = { type: 'object', properties: { a: { anyOf: lists }, b: { default: 1 } } };
    const numbers = times(20_000, (index) => index);
    expect((await call(schema, { a: numbers })).content).toContain('"b":1');
    expect((await call(schema, { a: [...numbers, true] })).code).toBe('invalid_arguments');
  });
});

test('a list of allowed values takes what is equal to one of them', async () => {
  const values: JsonValue[] = [1, 'a', null, true, { a: 1, b: [2] }, ['x']];
  const schema: JsonSchema = { type: 'object', properties: { v: { enum: values } } };
  for (const v of [...values, 1.0, { b: [2], a: 1 }]) expect((await call(schema, { v })).code).toBe('ok');
  for (const v of ['1', 'null', { a: 1 }, '\0["x"]', '["x"]', false, ['x', 'x']])
    expect((await call(schema, { v })).code).toBe('invalid_arguments');
});

test('a hundred thousand items are compared without comparing each with each other', async () => {
  const schema: JsonSchema = { type: 'object', properties: { a: { type: 'array', uniqueItems: true } } };
  const many = Array.from({ length: 100_000 }, (_, index): JsonValue => ({ index }));
  expect((await call(schema, { a: many })).code).toBe('ok');
  for (const items of [
    [...many, { index: 7 }],
    [
      { a: 1, b: [2] },
      { b: [2], a: 1 },
    ],
    [1, 1.0],
    ['__proto__', '__proto__'],
  ])
    expect((await call(schema, { a: items })).content).toContain('must NOT have duplicate items');
  expect((await call(schema, { a: [1, '1', true, 'true', null, 'null', [1], ['1'], {}] })).code).toBe('ok');
});

test('E09: a thousand tools compile nothing until they are called, unless they are asked to', async () => {
  let dispatcher = dispatcherOf([]);
  let tools: readonly Tool[] = [];
  const registering = () => {
    tools = Array.from({ length: 1000 }, (_, index) => toolOf(point, `tool${index}`));
    dispatcher = dispatcherOf(tools);
  };
  expect(await compilations(registering)).toBe(0);
  expect(await compilations(() => dispatcher.dispatch({ name: 'tool7', arguments: { x: 1 } }))).toBe(1);
  expect(await compilations(() => validation().precompile(tools.slice(0, 3)))).toBe(3);
});

test.each<[string, JsonSchema]>([
  [
    'E10: keywords of a vendor',
    { ...point, 'x-order': 1, 'x-ui': { widget: 'map' }, deprecated: true, example: { x: 1 } },
  ],
  ['E10: loose writing', { ...point, minimum: 1, items: {}, additionalProperties: true }],
  [
    'E11: formats nobody knows',
    { type: 'object', properties: { x: { type: 'number', format: 'uint64' } }, required: ['x'] },
  ],
  [
    'E13: nullable without a type',
    { type: 'object', properties: { x: { nullable: true, anyOf: [{ type: 'number' }] } }, required: ['x'] },
  ],
  [
    'E13: a discriminator with a mapping',
    { ...point, discriminator: { propertyName: 'x', mapping: { a: '#/components/A' } } },
  ],
])('%s are no obstacle, and nothing is written to the console', async (_, schema) => {
  const written: unknown[] = [];
  const { console: original } = globalThis;
  globalThis.console = new Proxy(original, {
    get:
      () =>
      (...line: unknown[]) =>
        written.push(line),
  });
  try {
    expect((await call(schema, { x: 1 })).code).toBe('ok');
    expect((await call(schema, { x: 'one' })).code).toBe('invalid_arguments');
  } finally {
    globalThis.console = original;
  }
  expect(written).toEqual([]);
});

test('E11: of formats nobody knows the host hears once for each tool; those known are checked', async () => {
  const warnings: string[] = [];
  const onSchemaWarning = (message: string, tool: Tool) => {
    warnings.push(`${tool.name}: ${message}`);
    throw new Error('the host’s own trouble');
  };
  const schema: JsonSchema = {
    type: 'object',
    properties: { n: { format: 'uint64' }, at: { format: 'date-time' }, id: { format: 'uuid' } },
  };
  const dispatcher = dispatcherOf(
    ['one', 'two'].map((name) => toolOf(schema, name)),
    { validation: { onSchemaWarning } },
  );
  for (const name of ['one', 'two', 'one'])
    expect((await dispatcher.dispatch({ name, arguments: { n: 5 } })).isError).toBe(false);
  expect(warnings).toEqual([
    'one: unknown format "uint64" ignored in schema at path "#/properties/n"',
    'two: unknown format "uint64" ignored in schema at path "#/properties/n"',
  ]);
  for (const given of [{ at: 'today' }, { id: '1234' }])
    expect((await dispatcher.dispatch({ name: 'one', arguments: given })).error?.code).toBe('invalid_arguments');
});

test.each([
  ['^https\\:\\/\\/', 'https://a', 'ftp://a'],
  ['^\\d{4}\\-\\d{2}$', '2024-02', '2024'],
  ['^[\\w\\-\\.]+\\@x$', 'a-b.c@x', 'a b'],
])('E12: the pattern %s, with a needless escape, checks as it is meant', async (pattern, right, wrong) => {
  const schema: JsonSchema = { type: 'object', properties: { s: { type: 'string', pattern } } };
  expect((await call(schema, { s: right })).code).toBe('ok');
  expect((await call(schema, { s: wrong })).code).toBe('invalid_arguments');
});

test.each([
  ['\\Aabc\\Z', 'abc', 'x'],
  ['^abc\\z', 'abc', 'x'],
  ['(?i)^abc$', 'ABC', 'x'],
  ['^(?i)abc$', 'ABC', 'x'],
  ['^a++b$', 'aab', 'x'],
  ['^[a+]++b$', 'a+b', 'x'],
  ['^(?>a+)b$', 'aab', 'x'],
  ['^(?P<year>\\d{4})-(?P=year)$', '2024-2024', '2024-2025'],
  ['^[[:alpha:]_]+$', 'a_b', '1'],
  ['^\\pL+$', 'é', '1'],
  ['^[\\p{L}\\-\\:]+$', 'é-b:', '1'],
  ['^\\Qa.b\\E$', 'a.b', 'axb'],
  ['^\\h+$', ' \t', 'h'],
  ['/^abc$/i', 'ABC', 'x'],
])(
  'E12: the pattern %s of another language checks as it is meant, and the host hears of it',
  async (pattern, right, wrong) => {
    const schema: JsonSchema = { type: 'object', properties: { s: { type: 'string', pattern } } };
    const warnings: string[] = [];
    const onSchemaWarning = (message: string) => warnings.push(message);
    expect((await call(schema, { s: right }, { onSchemaWarning })).code).toBe('ok');
    expect((await call(schema, { s: wrong })).code).toBe('invalid_arguments');
    expect(warnings).toEqual([expect.stringMatching(/^the pattern ".*" is read as "\//)]);
  },
);

test('E12: a pattern that is none keeps only its own tool from its work, and is found at the start', async () => {
  const tools = [toolOf({ type: 'object', properties: { s: { pattern: '(' } } }, 'broken'), toolOf(point, 'whole')];
  const dispatcher = dispatcherOf(tools);
  expect((await dispatcher.dispatch({ name: 'broken', arguments: { s: 'x' } })).error?.code).toBe('internal');
  expect((await dispatcher.dispatch({ name: 'whole', arguments: { x: 1 } })).isError).toBe(false);
  expect(() => validation().precompile(tools)).toThrow(/"broken": .*\(/);
});

test.each<[string, JsonSchema, JsonValue, JsonValue]>([
  ['beside anyOf', { nullable: true, anyOf: [{ type: 'string' }] }, 'a', 5],
  ['beside oneOf', { nullable: true, oneOf: [{ type: 'string' }, { type: 'boolean' }] }, true, 5],
  ['beside enum', { nullable: true, enum: ['a'] }, 'a', 'b'],
  ['beside allOf', { nullable: true, allOf: [{ type: 'string' }] }, 'a', 5],
  ['beside $ref', { nullable: true, $ref: '#/$defs/text' }, 'a', 5],
  ['beside a type', { nullable: true, type: 'string' }, 'a', 5],
])('E13: nullable takes null, %s', async (_, schema, right, wrong) => {
  const whole: JsonSchema = {
    type: 'object',
    $defs: { text: { type: 'string' } },
    properties: { a: schema },
    required: ['a'],
  };
  for (const a of [null, right]) expect((await call(whole, { a })).code).toBe('ok');
  expect((await call(whole, { a: wrong })).code).toBe('invalid_arguments');
});

test.each<[string, JsonSchema, JsonValue, JsonValue]>([
  ['beside a type and enum', { nullable: true, type: 'string', enum: ['a'] }, 'a', 'b'],
  ['beside a type and const', { nullable: true, type: 'string', const: 'a' }, 'a', 'b'],
  ['beside a type and allOf', { nullable: true, type: 'object', allOf: [{ required: ['x'] }] }, { x: 1 }, {}],
  ['beside enum and anyOf', { nullable: true, enum: ['a'], anyOf: [{ type: 'string' }] }, 'a', 'b'],
  ['beside anyOf and oneOf', { nullable: true, anyOf: [{ type: 'string' }], oneOf: [{ minLength: 1 }] }, 'a', 5],
  ['beside oneOf that takes null', { nullable: true, oneOf: [{ type: 'string', nullable: true }] }, 'a', 5],
  ['beside a type in a list', { nullable: true, type: ['string'] }, 'a', 5],
  ['as false beside null', { nullable: false, type: ['string', 'null'] }, 'a', 5],
])('E13: nullable takes null whatever else is said, %s', async (_, schema, right, wrong) => {
  const whole: JsonSchema = { type: 'object', properties: { a: schema }, required: ['a'] };
  for (const a of [null, right]) expect((await call(whole, { a })).code).toBe('ok');
  expect((await call(whole, { a: wrong })).code).toBe('invalid_arguments');
});

test('E13: nullable beside a reference keeps the default', async () => {
  const a = { nullable: true, default: 'x', $ref: '#/components/schemas/Text' };
  const components = { schemas: { Text: { nullable: true, enum: ['x'] } } };
  expect((await call({ type: 'object', properties: { a }, components }, {})).content).toBe('{"a":"x"}');
});

const empty: readonly [string, unknown][] = [
  ...[null, {}].map((value): [string, unknown] => ['required', value]),
  ...[null, []].flatMap((value) =>
    [
      'properties',
      'additionalProperties',
      'anyOf',
      'oneOf',
      'enum',
      'items',
      'patternProperties',
      '$defs',
      'if',
      'type',
    ].map((keyword): [string, unknown] => [keyword, value]),
  ),
  ...[
    'pattern',
    'format',
    'minimum',
    'maxLength',
    'uniqueItems',
    'nullable',
    'not',
    '$ref',
    'dependencies',
    '$schema',
  ].map((keyword): [string, unknown] => [keyword, null]),
  ['multipleOf', 0],
  ['type', ''],
  ['type', 'any'],
  ['example', { $id: 'a b', $anchor: '!' }],
];

test.each(empty)('a schema whose %s is %j says nothing by it', async (keyword, value) => {
  const warnings: string[] = [];
  const onSchemaWarning = (message: string) => warnings.push(message);
  const properties = { a: { type: 'object', properties: { b: { [keyword]: value } } }, c: { type: 'string' } };
  const schema: JsonSchema = { type: 'object', properties };
  for (const b of ['x', 5, null, [1, 1]])
    expect((await call(schema, { a: { b } }, { onSchemaWarning })).code).toBe('ok');
  expect((await call(schema, { c: 5 })).code).toBe('invalid_arguments');
  expect(warnings.length > 0).toBe(!['example', '$schema'].includes(keyword));
});

test.each<[string, JsonSchema, JsonValue, JsonValue]>([
  ['numbers as texts', { type: 'string', minLength: '2' }, 'xx', 'x'],
  ['truth as text', { type: 'array', uniqueItems: 'true' }, [1, 2], [1, 1]],
  ['null for the type', { type: ['string', null] as unknown as string[] }, null, 5],
  ['null as one of the names', { type: 'object', required: ['x', null] as unknown as string[] }, { x: 1 }, {}],
  ['lists of items of both drafts', { prefixItems: [{ type: 'string' }], items: false }, ['x'], ['x', 1]],
  ['two $ids that are the same', { $id: 'urn:x', anyOf: [{ $id: 'urn:x', type: 'string' }] }, 'x', 5],
])('is read as it is meant: %s', async (_, a, right, wrong) => {
  const tuple = { items: [{ type: 'number' }], additionalItems: false };
  const schema: JsonSchema = { type: 'object', properties: { a, tuple }, dependentRequired: { b: ['a'] } };
  expect((await call(schema, { a: right, tuple: [1] })).code).toBe('ok');
  expect((await call(schema, { a: wrong })).code).toBe('invalid_arguments');
  for (const given of [{ tuple: ['x'] }, { tuple: [1, 2] }, { b: 1 }])
    expect((await call(schema, given)).code).toBe('invalid_arguments');
});

test.each<[string, JsonObject]>([
  ['null for a text', { type: 'string', default: null }],
  ['a text for a number', { type: 'integer', default: '5' }],
  ['what is not allowed', { enum: ['a'], default: '' }],
])('a default that its own schema refuses is not filled in: %s', async (_, a) => {
  const schema: JsonSchema = { type: 'object', properties: { a: a as JsonSchema, b: { type: 'null', default: null } } };
  expect((await call(schema, {})).content).toBe('{"b":null}');
  expect((await call({ ...schema, required: ['a'] }, {})).content).toContain('"a" is required, but missing');
});

describe('where no code may be made from text', () => {
  test('E14: it is no fault of the arguments, and the log says what to do', async () => {
    const { stdout, stderr } = await runNode(
      ['--disallow-code-generation-from-strings', '--import', 'tsx', join('test', 'support', 'no-code-generation.ts')],
      { cwd: root },
    );
    expect(stderr).toBe('');
    const [withAjv, right, wrong] = JSON.parse(stdout);
    expect(withAjv).toMatchObject({ code: 'internal' });
    expect(withAjv.content).not.toMatch(/invalid|code/i);
    expect(withAjv.cause).toContain('Give the layer another validator as "compile"');
    expect(right).toMatchObject({ code: 'ok', content: '{"x":1}' });
    expect(wrong.code).toBe('invalid_arguments');
    expect(wrong.content).toContain('x: Instance type "string" is invalid. Expected "number".');
  });
});

test('E15: what is listed for a provider keeps its $defs, and is not the object that was given', async () => {
  const inputSchema = {
    $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
    type: 'object',
    properties: { head: { $ref: '#/$defs/node' } },
  } as const;
  const given = structuredClone(inputSchema);
  const dispatcher = dispatcherOf([toolOf(given)]);
  await dispatcher.dispatch({ name: 'tool', arguments: { head: { next: {} } } });
  expect(dispatcher.tools.schemas[0]?.inputSchema).toEqual(inputSchema);
  expect(given).toEqual(inputSchema);
  expect(Object.isFrozen(given)).toBe(false);
});

test('E16: a tool that is called a thousand times is compiled once, whatever comes of its calls', async () => {
  const dispatcher = dispatcherOf([toolOf(point)], { validation: { coerce: true } });
  const calls = async () => {
    for (let index = 0; index < 1000; index++)
      await dispatcher.dispatch({ name: 'tool', arguments: { x: [1, '1', 'one'][index % 3] } });
  };
  expect(await compilations(calls)).toBe(1);
});

test('E18: wrong arguments are a result like any other, from which a model can put them right', async () => {
  const dispatcher = dispatcherOf([toolOf(point)]);
  const wrong = await dispatcher.dispatch({ name: 'tool', arguments: { x: 'one' } });
  expect(wrong).toMatchObject({
    isError: true,
    error: { code: 'invalid_arguments', executed: 'no', retryable: false },
  });
  expect(wrong.content).toContain('x: expected number; got the text "one"');
  expect((await dispatcher.dispatch({ name: 'tool', arguments: { x: 1 } })).isError).toBe(false);
});

test.each<[string, JsonSchema]>([
  [
    'in capitals',
    { type: 'OBJECT', properties: { x: { type: 'NUMBER' }, y: { type: 'ARRAY', items: { type: 'STRING' } } } },
  ],
  [
    'with null beside',
    {
      type: ['object', 'null'],
      properties: { x: { type: ['NUMBER', 'null'] }, y: { type: 'array', items: { type: 'string' } } },
    },
  ],
])('E13: types %s are read as they are meant', async (_, schema) => {
  expect((await call(schema, { x: 1, y: ['a'] })).code).toBe('ok');
  for (const wrong of [{ x: 'one' }, { y: 'a' }, { y: [1] }])
    expect((await call(schema, wrong)).code).toBe('invalid_arguments');
  expect(() => toolOf({ type: ['array', 'null'] })).toThrow('must describe an object');
});

test.each([[false], [true], [{}], ['x'], [5], [[]]])(
  'E18: a validator that answers %j, which is no result, lets nothing pass',
  async (answer) => {
    const { code, cause } = await call(point, { x: 1 }, { compile: () => () => answer as never });
    expect(code).toBe('internal');
    expect(cause).toContain('A validator must answer { value } or { issues }');
  },
);

test('E18: a validator that gives no reason is said to give none', async () => {
  const { code, content } = await call(point, { x: 1 }, { compile: () => () => ({ issues: [] }) });
  expect([code, content]).toEqual(['invalid_arguments', expect.stringContaining('the schema does not say why')]);
});

test.each([
  ['^\\p{L}+\\-x$', 'éé-x', 'é-y'],
  ['^\\p{L}+\\_\\p{N}+$', 'é_1', 'é-1'],
  ['^\\u{41}+\\-$', 'AA-', 'BB-'],
  ['^a{2}+\\-$', 'aa-', 'a-'],
])('E12: the pattern %s keeps what stands beside a needless escape', async (pattern, right, wrong) => {
  const schema: JsonSchema = { type: 'object', properties: { s: { type: 'string', pattern } } };
  expect((await call(schema, { s: right })).code).toBe('ok');
  expect((await call(schema, { s: wrong })).code).toBe('invalid_arguments');
});

test.each<[string, JsonSchema, JsonValue]>([
  ['not', { type: 'string', not: { pattern: '\\s' } }, 'abc'],
  ['not, behind a reference', { not: { $ref: '#/$defs/spaced' } }, 'abc'],
  ['oneOf', { oneOf: [{ pattern: '^\\d+$' }, { pattern: '^[a-z]+$' }] }, 'abc'],
  ['if', { if: { pattern: '^z' }, then: { maxLength: 1 } }, 'abc'],
  ['contains', { type: 'array', contains: { pattern: '^z' }, minContains: 0, maxContains: 1 }, ['a', 'b']],
  ['the names of keys', { not: { propertyNames: { pattern: '^_' } } }, { x: 1 }],
  ['unevaluated keys', { allOf: [{ patternProperties: { '^x': {} } }], unevaluatedProperties: false }, { x1: 1 }],
  ['a branch', { anyOf: [{ not: { pattern: 'a' } }, { type: 'integer' }] }, 'zzz'],
])('E07: where a pattern is not run, nothing that was right is refused: in %s', async (_, schema, a) => {
  const whole: JsonSchema = { type: 'object', $defs: { spaced: { pattern: '\\s' } }, properties: { a: schema } };
  expect((await call(whole, { a }, {}, true)).code).toBe('ok');
  expect((await call(whole, { a })).code).toBe('ok');
});

test.each<[JsonSchema]>([
  [{ type: 'string', format: 'uri', default: '' }],
  [{ type: 'string', minLength: 1, default: '' }],
  [{ type: 'array', minItems: 1, default: [] }],
  [{ type: 'number', minimum: 1, default: 0 }],
  [{ type: 'string', pattern: '^\\d+$', default: 'auto' }],
  [{ const: 'a', default: 'b' }],
  [{ $ref: '#/$defs/level', default: null }],
  [{ allOf: [{ $ref: '#/$defs/level' }], default: null }],
  [{ anyOf: [{ type: 'string' }], default: null }],
  [{ type: 'object', required: ['p'], default: {} }],
  [{ type: 'array', items: { type: 'integer' }, default: ['a'] }],
])('B11: a default that does not fit makes no call wrong that leaves it out: %j', async (schema) => {
  const whole: JsonSchema = {
    type: 'object',
    $defs: { level: { enum: ['low'] } },
    properties: { a: schema, n: { default: 5 } },
  };
  // Without an engine the pattern of a stranger says nothing.
  for (const untrusted of 'pattern' in schema ? [false] : [false, true]) {
    const warnings: string[] = [];
    const onSchemaWarning = (message: string) => warnings.push(message);
    expect(await call(whole, {}, { onSchemaWarning }, untrusted)).toMatchObject({ code: 'ok', content: '{"n":5}' });
    expect(warnings).toContain('a default that does not fit its own schema is not filled in');
  }
});

test('B11: a default that fits is filled in, whatever stands beside it', async () => {
  const properties = {
    a: { enum: ['low', 'high'], default: 'low' },
    b: { $ref: '#/$defs/level', default: 'low' },
    c: { type: 'integer', minimum: 1, maximum: 9, default: 3 },
    constructor: { type: 'string', default: 'x' },
  };
  const whole: JsonSchema = { type: 'object', $defs: { level: { enum: ['low'] } }, properties };
  for (const untrusted of [false, true])
    expect((await call(whole, {}, {}, untrusted)).content).toBe('{"a":"low","b":"low","c":3}');
});

test('E13: a format that is no text says nothing', async () => {
  const schema: JsonSchema = { type: 'object', properties: { a: { type: 'string', format: 5 } } };
  expect((await call(schema, { a: 'x' })).code).toBe('ok');
});

test.each([[false], [true]])(
  'B11: defaults within defaults are each looked at once, untrusted: %p',
  async (untrusted) => {
    let schema: JsonSchema = { type: 'string', maxLength: 3, default: 'abc' };
    for (let level = 0; level < 28; level++)
      schema = { type: 'object', minProperties: 0, properties: { a: schema }, default: {} };
    const whole: JsonSchema = { type: 'object', properties: { a: schema } };
    expect((await call(whole, {}, {}, untrusted)).code).toBe('ok');
  },
);
