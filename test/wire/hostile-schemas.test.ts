// Schemas of strangers: broken, endless, huge, or meant to mislead.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createDispatcher, defineTool, type JsonSchema } from 'toolonion';
import { validation } from 'toolonion/middleware';
import { anthropic, gemini, openaiChat } from 'toolonion/wire';
import { argumentSchema } from './schemas.ts';

const text = { type: 'string' };
const wanted = (a: unknown) => ({ type: 'object', properties: { a }, required: ['a'] });

function defined(inputSchema: unknown, strict = true) {
  const tools = [{ name: 'work', description: '', inputSchema: inputSchema as JsonSchema }];
  const [openai, claude, google] = [openaiChat, anthropic, gemini].map(({ definitions }) =>
    definitions(tools, { strict }),
  );
  const [chat] = openaiChat.definitions(tools, { strict }).tools;
  const [message] = anthropic.definitions(tools, { strict }).tools;
  const [declared] = gemini.definitions(tools, { strict }).tools[0]?.functionDeclarations ?? [];
  return [
    {
      title: 'openaiChat',
      schema: chat?.function.parameters,
      isStrict: chat?.function.strict === true,
      losses: openai?.losses,
    },
    { title: 'anthropic', schema: message?.input_schema, isStrict: message?.strict === true, losses: claude?.losses },
    { title: 'gemini', schema: declared?.parametersJsonSchema, isStrict: undefined, losses: google?.losses },
  ] as const;
}

const endless = Object.fromEntries(
  Array.from({ length: 40 }, (_, n) => [
    `d${n}`,
    { anyOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] },
  ]),
);
const chain = Object.fromEntries(
  Array.from({ length: 6000 }, (_, n) => [`d${n}`, wanted({ $ref: `#/$defs/d${(n + 1) % 6000}` })]),
);
const net = Object.fromEntries(
  Array.from({ length: 300 }, (_, n) => [
    `d${n}`,
    {
      type: 'object',
      properties: Object.fromEntries(
        Array.from({ length: 30 }, (__, m) => [`p${m}`, { $ref: `#/$defs/d${(n * 7 + m) % 300}` }]),
      ),
      required: Array.from({ length: 30 }, (__, m) => `p${m}`),
    },
  ]),
);
const deep = Array.from({ length: 400 }).reduce<unknown>((inner) => ({ type: 'array', items: inner }), text);

const HOSTILE: readonly [what: string, schema: unknown][] = [
  ['a type that is a name of every object', { type: 'constructor', minimum: 1 }],
  ['types that are none', wanted({ type: ['string', 'any'] })],
  ['no types', wanted({ type: [] })],
  ['a reference that is no text', wanted({ $ref: { toString: 1 } })],
  ['a pattern that is no text', wanted({ ...text, pattern: { toString: 1 } })],
  ['a type that is no text', wanted({ type: { toString: 1 }, minimum: 1 })],
  ['properties that are none', { type: 'object', properties: null }],
  ['properties within that are none', wanted({ type: 'object', properties: null })],
  ['branches that are none', wanted({ anyOf: null })],
  ['no branches', wanted({ anyOf: [] })],
  ['lists of what is required that are none', { ...wanted(text), required: { a: true } }],
  ['branches at the root that are none', { ...wanted(text), oneOf: [null, true, 7], allOf: 'x', anyOf: {} }],
  [
    'branches that are the same, within each other',
    { ...wanted({ type: 'object', anyOf: [{ $ref: '#/$defs/d0' }] }), $defs: endless },
  ],
  ['the same at the root', { anyOf: [{ $ref: '#/$defs/d0' }], $defs: endless }],
  [
    'allOf within each other, at the root',
    {
      allOf: [{ $ref: '#/$defs/d0' }],
      $defs: Object.fromEntries(Object.entries(endless).map(([name, { anyOf }]) => [name, { allOf: anyOf }])),
    },
  ],
  ['a ring of references', { ...wanted({ $ref: '#/$defs/d0' }), $defs: chain }],
  ['a net of references', { ...wanted({ $ref: '#/$defs/d0' }), $defs: net }],
  ['depth', wanted(deep)],
  ['many branches', { anyOf: Array.from({ length: 3000 }, (_, n) => wanted({ const: n })) }],
  [
    'many properties',
    {
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: 30_000 }, (_, n) => [`p${n}`, { ...text, minLength: 1 }])),
    },
  ],
  [
    'names of every object',
    { type: 'object', properties: JSON.parse('{"__proto__":{"type":"string"},"constructor":{"type":"string"}}') },
  ],
  ['a reference to itself at the root', { $ref: '#' }],
  [
    'references in a ring at the root',
    { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
  ],
];

const NOT_AT_THE_ROOT = ['$ref', 'allOf', 'anyOf', 'oneOf', 'not', 'enum'];

test.each(HOSTILE)('%s: one tool takes no time and leaves the others', (_, schema) => {
  for (const strict of [true, false])
    for (const { schema: told } of defined(schema, strict)) {
      expect(told).toMatchObject({ type: 'object' });
      expect(NOT_AT_THE_ROOT.filter((keyword) => keyword in (told as object))).toEqual([]);
    }
});

test('nothing is at the root that providers refuse there, whatever a schema says', () => {
  const check = (given: JsonSchema, allOf: JsonSchema, type: unknown) => {
    for (const strict of [true, false])
      for (const { schema } of defined({ ...given, type, allOf: [allOf, { oneOf: [allOf, given] }] }, strict)) {
        expect(schema).toMatchObject({ type: 'object' });
        expect(NOT_AT_THE_ROOT.filter((keyword) => keyword in (schema as object))).toEqual([]);
      }
  };
  const types = fc.constantFrom('object', ['object', 'null'], 'array', undefined);
  fc.assert(fc.property(argumentSchema, argumentSchema, types, check), { numRuns: 150 });
});

describe('strict is not told', () => {
  const closed = (kind: string) => ({
    type: 'object',
    properties: { kind: { const: kind }, [kind]: text },
    required: ['kind', kind],
    additionalProperties: false,
  });
  const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } };

  test.each<[what: string, schema: unknown]>([
    ['a map at the root', { type: 'object', additionalProperties: text }],
    ['an object of anything at the root', { type: 'object', additionalProperties: true }],
    ['names by a pattern', wanted({ type: 'object', patternProperties: { '^x': text }, additionalProperties: false })],
    ['what is required, but no property', { type: 'object', properties: { x: text }, required: ['z'] }],
    [
      'a part that does not go with the rest',
      { type: 'object', properties: { a: text }, allOf: [{ properties: { a: { type: 'number' } } }] },
    ],
    ['a reference that leads nowhere', { $ref: '#/$defs/nowhere', $defs: {} }],
    ['a list', { type: 'array', items: text }],
    ['values of another type', wanted({ ...text, enum: [1] })],
    ['a type that is none', wanted({ type: 'any' })],
  ])('for %s', (_, schema) => {
    for (const { isStrict, losses } of defined(schema).slice(0, 2)) {
      expect(isStrict).toBe(false);
      expect(losses?.length).toBeGreaterThan(0);
    }
  });

  test('to OpenAI for arguments that are one of several: what is missing would be null, and the tool would refuse it', () => {
    const [openai, claude] = defined({ type: 'object', oneOf: [closed('a'), closed('b')] });
    expect([openai.isStrict, claude.isStrict]).toEqual([false, true]);
    expect(claude.schema).toMatchObject({ properties: { a: text, b: text }, required: ['kind'] });
  });

  test('to OpenAI where branches differ in what they require', () => {
    const either = {
      type: 'object',
      properties: { x: text, y: text },
      anyOf: [{ required: ['x'] }, { required: ['y'] }],
    };
    expect(defined(wanted(either))[0].isStrict).toBe(false);
  });

  test('to Anthropic for a schema that holds itself by a property that is called as definitions are', () => {
    const schema = { type: 'object', properties: { definitions: { type: 'array', items: { $ref: '#' } } } };
    expect(defined(schema)[1].isStrict).toBe(false);
  });

  test('to Anthropic only for what is referred to', () => {
    const [openai, claude] = defined({ ...wanted(text), $defs: { node, open: { type: 'object' } } });
    expect([openai.isStrict, claude.isStrict]).toEqual([true, true]);
    expect(claude.schema).not.toHaveProperty('$defs');
  });
});

describe('what is told', () => {
  test('of branches that a property tells apart, nulls are understood', async () => {
    const branch = (kind: string) => ({
      type: 'object',
      properties: { kind: { const: kind }, x: text, [kind]: text },
      required: ['kind', kind],
      additionalProperties: false,
    });
    const inputSchema = wanted({ oneOf: [branch('a'), branch('b')] }) as JsonSchema;
    expect(defined(inputSchema)[0]).toMatchObject({ isStrict: true });
    const tool = defineTool({ name: 'work', description: '', inputSchema, execute: (input) => JSON.stringify(input) });
    const input = { a: { kind: 'a', a: '1', x: null } };
    const { content } = await createDispatcher({ tools: [tool], middleware: [validation()] }).dispatch({
      name: 'work',
      arguments: input,
    });
    expect(content).toBe('{"a":{"kind":"a","a":"1"}}');
  });

  test('keeps apart what has one name among $defs and definitions, and finds references of all kinds', () => {
    const schema = {
      type: 'object',
      properties: {
        a: { anyOf: [{ $ref: '#/$defs/x' }, { $ref: '#/definitions/x' }] },
        b: { $ref: '#/$defs/a%20b' },
        c: { $ref: '#/properties/d/items' },
        d: { type: 'array', items: { type: 'boolean' } },
      },
      required: ['a', 'b', 'c', 'd'],
      $defs: { x: text, 'a b': { type: 'integer' } },
      definitions: { x: { type: 'number' } },
    };
    for (const { schema: told, isStrict, losses } of defined(schema)) {
      expect([isStrict ?? true, losses]).toEqual([true, []]);
      expect(told).toMatchObject({
        properties: {
          a: { anyOf: [{ $ref: '#/$defs/x' }, { $ref: '#/$defs/x_2' }] },
          b: { $ref: '#/$defs/a b' },
          c: { $ref: '#/$defs/properties_d_items' },
        },
        $defs: {
          x: text,
          x_2: { type: 'number' },
          'a b': { type: 'integer' },
          properties_d_items: { type: 'boolean' },
        },
      });
    }
  });

  test('lists no value of another type', () => {
    for (const { schema } of defined(wanted({ ...text, enum: ['a', null, 1] })))
      expect(schema).toMatchObject({ properties: { a: { type: 'string', enum: ['a'] } } });
    expect(defined(wanted({ ...text, nullable: true, enum: ['a', null] }))[0].schema).toMatchObject({
      properties: { a: { anyOf: [{ type: 'string', enum: ['a'] }, { type: 'null' }] } },
    });
  });

  test('has a rule only where that is one', () => {
    const rules = { type: 'integer', minimum: '0', exclusiveMinimum: true, multipleOf: Number.NaN };
    const [openai] = defined(wanted(rules));
    expect(openai.schema).toMatchObject({ properties: { a: { type: 'integer' } } });
    expect(Object.keys(openai.schema?.['properties'] as object)).toEqual(['a']);
    expect(openai.losses?.map(({ keyword }) => keyword)).toEqual(['minimum', 'exclusiveMinimum', 'multipleOf']);
  });

  test('to Gemini of a tuple are its places', () => {
    const [, , google] = defined(wanted({ type: 'array', items: [text, { type: 'number' }], additionalItems: false }));
    expect(google.schema).toMatchObject({
      properties: { a: { type: 'array', prefixItems: [text, { type: 'number' }] } },
    });
    const [, , closed] = defined(wanted({ type: 'array', prefixItems: [text], items: false }));
    expect(closed.schema).toMatchObject({ properties: { a: { prefixItems: [text], description: '(items: false)' } } });
  });

  test('to Gemini without a reference that leads nowhere', () => {
    const [, , google] = defined(wanted({ $ref: '#/$defs/nowhere', description: 'A.' }));
    expect(google.schema).toEqual(wanted({ description: 'A.' }));
    expect(google.losses).toMatchObject([
      { place: '/properties/a', keyword: '$ref', message: 'It is not told, for it leads nowhere.' },
    ]);
  });

  test('of a property that branches narrow is what it is in all of them, and what in each', () => {
    const mode = { type: 'string', description: 'How.' };
    const branch = (kind: string) => ({ properties: { mode: { const: kind } }, required: ['mode'] });
    const [openai] = defined({ type: 'object', properties: { mode }, oneOf: [branch('a'), branch('b')] }, false);
    expect(openai.schema).toMatchObject({
      properties: { mode: { ...mode, anyOf: [{ const: 'a' }, { const: 'b' }] } },
      required: ['mode'],
    });
  });

  test('is not required where a branch says nothing', () => {
    const [openai] = defined({ anyOf: [true, wanted(text)] }, false);
    expect(openai.schema).not.toHaveProperty('required');
  });

  test('names the place where the schema says it', () => {
    const [openai] = defined(wanted({ oneOf: [{ ...text, minLength: 1 }] }));
    expect(openai.losses).toContainEqual(
      expect.objectContaining({ place: '/properties/a/oneOf/0', keyword: 'minLength' }),
    );
  });

  test('to OpenAI of a list of many long values is the description, if any', () => {
    const values = Array.from({ length: 400 }, (_, n) => `${n}`.padStart(51, 'x'));
    const [openai] = defined(wanted({ ...text, enum: values }));
    expect([openai.isStrict, openai.schema?.['properties']]).toEqual([true, { a: text }]);
  });
});
