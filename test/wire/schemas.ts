import fc from 'fast-check';

const words = fc.constantFrom('a', 'b', 'c');
const text = fc.constantFrom('A word.', 'x'.repeat(250));

/** What any schema may say beside what it is. */
const beside = fc.record(
  { title: words, description: text, default: fc.constantFrom(null, 1, 'a'), 'x-own': fc.constant(1) },
  { requiredKeys: [] },
);
const string = fc.record(
  {
    type: fc.constant('string'),
    minLength: fc.constantFrom(1),
    maxLength: fc.constantFrom(1, 300),
    pattern: fc.constantFrom('^a', '^(?=a)'),
    format: fc.constantFrom('date', 'uri', 'own'),
  },
  { requiredKeys: ['type'] },
);
const number = fc.record(
  {
    type: fc.constantFrom('number', 'integer'),
    minimum: fc.constantFrom(-1, 1),
    exclusiveMinimum: fc.constantFrom(0, 1.5),
    exclusiveMaximum: fc.constantFrom(2, 5),
    multipleOf: fc.constant(2),
  },
  { requiredKeys: ['type'] },
);
const fixed = fc.oneof(
  fc.record({ enum: fc.uniqueArray(fc.constantFrom('a', 'b', 1, 1.5, null, true), { minLength: 1 }) }),
  fc.record({ const: fc.constantFrom('a', 1, null, false) }),
  fc.record({ type: fc.constant(['string', 'null']), enum: fc.constantFrom(['a'], ['a', null]) }),
);
const listed = fc.constantFrom(['string', 'null'], ['object', 'string'], ['array', 'number', 'null']);

interface Tree {
  schema: Record<string, unknown>;
}

const { schema: node } = fc.letrec<Tree>((tie) => {
  const within = tie('schema');
  const object = fc.record(
    {
      type: fc.constant('object'),
      properties: fc.dictionary(words, within, { maxKeys: 3 }),
      required: fc.uniqueArray(words, { maxLength: 2 }),
      additionalProperties: fc.oneof(fc.boolean(), within),
      minProperties: fc.constant(1),
    },
    { requiredKeys: ['type'] },
  );
  const array = fc.record(
    {
      type: fc.constant('array'),
      items: within,
      minItems: fc.constantFrom(1, 2),
      maxItems: fc.constant(3),
      uniqueItems: fc.boolean(),
    },
    { requiredKeys: ['type'] },
  );
  const several = fc.record({ type: listed, properties: fc.dictionary(words, within, { maxKeys: 1 }), items: within });
  const branches = fc.array(within, { minLength: 1, maxLength: 3 });
  const union = fc.oneof(
    fc.record({ anyOf: branches }),
    fc.record({ oneOf: branches }),
    fc.record({ allOf: branches }),
    fc.record({ not: within }),
    fc.record({ anyOf: branches, oneOf: branches }),
  );
  const reference = fc.record({ $ref: fc.constantFrom('#/$defs/a', '#/$defs/b', '#', '#/properties/a') });
  const kinds = [string, number, fixed, object, array, several, union, reference, fc.constant({})];
  return {
    schema: fc
      .tuple(
        fc.oneof({ maxDepth: 3, withCrossShrink: true }, ...(kinds as [typeof string])),
        fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: beside }),
      )
      .map(([kind, more]) => ({ ...kind, ...more })),
  };
});

/** Schemas of arguments, with all that tools of the wild have. */
export const argumentSchema = fc
  .record(
    {
      type: fc.constant('object' as const),
      properties: fc.dictionary(words, node, { minKeys: 1, maxKeys: 3 }),
      required: fc.uniqueArray(words, { maxLength: 2 }),
      additionalProperties: fc.boolean(),
      anyOf: fc.array(node, { minLength: 1, maxLength: 2 }),
      $defs: fc.record({ a: node, b: node }),
      $schema: fc.constant('https://json-schema.org/draft/2020-12/schema'),
    },
    { requiredKeys: ['type', 'properties', '$defs'] },
  )
  .filter((schema) => JSON.stringify(schema).length < 20_000);

/** A value that a schema might take. */
export const value = fc.oneof(
  fc.constantFrom<unknown>(
    'a',
    'ab',
    '',
    1,
    2,
    4,
    1.5,
    null,
    true,
    [],
    ['a'],
    [1, 2],
    {},
    { a: 'a' },
    { a: 1, b: 'b' },
  ),
);

/** Schemas of arguments that every dialect can say whole. */
export const tameSchema = fc.record(
  {
    type: fc.constant('object' as const),
    properties: fc.dictionary(
      words,
      fc.letrec<Tree>((tie) => ({
        schema: fc.oneof(
          { maxDepth: 2 },
          fc.record({ type: fc.constantFrom('string', 'integer', 'number', 'boolean', 'null') }),
          fc.record({ type: fc.constantFrom(['string', 'null'], ['integer', 'boolean']) }),
          fc.record({ enum: fc.uniqueArray(fc.constantFrom('a', 'b', 1, 2), { minLength: 1 }) }),
          fc.record({ const: fc.constantFrom('a', 1) }),
          fc.record(
            { type: fc.constant('array'), items: tie('schema'), minItems: fc.constant(1) },
            { requiredKeys: ['type', 'items'] },
          ),
          fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
          fc.record({ $ref: fc.constant('#/$defs/a') }),
          fc.record(
            {
              type: fc.constant('object'),
              properties: fc.dictionary(words, tie('schema'), { minKeys: 1, maxKeys: 2 }),
              required: fc.constantFrom([], ['a']),
              additionalProperties: fc.constant(false),
            },
            { requiredKeys: ['type', 'properties'] },
          ),
        ),
      })).schema,
      { minKeys: 1, maxKeys: 3 },
    ),
    required: fc.constantFrom([], ['a']),
    $defs: fc.constant({ a: { type: 'object', properties: { a: { type: 'string' } } } }),
  },
  { requiredKeys: ['type', 'properties', '$defs'] },
);
