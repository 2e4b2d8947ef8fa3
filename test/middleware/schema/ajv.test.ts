import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createDispatcher, defineTool, type JsonSchema, type JsonValue } from 'toolonion';
import { validation } from 'toolonion/middleware';
import { ajvCheck } from 'toolonion/middleware/schema/ajv';
import { Faults } from 'toolonion/middleware/schema/faults';

/** Whether a value has what a schema asks for. */
function accepts(schema: JsonSchema, value: JsonValue): boolean {
  return !(ajvCheck(schema)(value) instanceof Faults);
}

const written: unknown[] = [];
const consoles = ['log', 'warn', 'error'] as const;
const originals = consoles.map((name) => console[name]);

beforeEach(() => {
  written.length = 0;
  for (const name of consoles) console[name] = (...line: unknown[]) => written.push(line);
});

afterEach(() => {
  consoles.forEach((name, index) => {
    console[name] = originals[index] as () => void;
  });
  expect(written).toEqual([]);
});

describe('the draft', () => {
  const tuple07 = { items: [{ type: 'string' }] };
  const tuple2020 = { prefixItems: [{ type: 'string' }] };

  test.each([
    'http://json-schema.org/draft-07/schema#',
    'http://json-schema.org/draft-07/schema',
    'https://json-schema.org/draft-07/schema#',
    'https://json-schema.org/draft-07/schema',
    'http://json-schema.org/draft-06/schema#',
    'http://json-schema.org/draft-04/schema#',
  ])('E01, E02: of %s is read as draft-07', ($schema) => {
    expect(accepts({ $schema, ...tuple07 }, ['a'])).toBe(true);
    expect(accepts({ $schema, ...tuple07 }, [1])).toBe(false);
    expect(accepts({ $schema, ...tuple2020 }, [1])).toBe(true);
  });

  test.each([
    'https://json-schema.org/draft/2020-12/schema',
    'https://json-schema.org/draft/2020-12/schema#',
    'http://json-schema.org/draft/2020-12/schema',
  ])('E01, E02: of %s is read as 2020-12, and nothing else', ($schema) => {
    expect(accepts({ $schema, ...tuple2020 }, ['a'])).toBe(true);
    expect(accepts({ $schema, ...tuple2020 }, [1])).toBe(false);
    expect(() => ajvCheck({ $schema, ...tuple07 })).toThrow(/items/);
  });

  test.each([
    undefined,
    'https://json-schema.org/draft/2019-09/schema',
    'https://example.com/dialect',
    'http://json-schema.org/schema#',
  ])('E01: of %s is read as 2020-12, or as draft-07 where that fails', (dialect) => {
    const named = dialect === undefined ? {} : { $schema: dialect };
    expect(accepts({ ...named, ...tuple2020 }, [1])).toBe(false);
    expect(accepts({ ...named, ...tuple07 }, [1])).toBe(false);
    expect(accepts({ ...named, type: 'object', dependentRequired: { a: ['b'] } }, { a: 1 })).toBe(false);
  });

  test('of a part of a schema makes no difference', () => {
    const $schema = 'http://json-schema.org/draft-07/schema#';
    expect(
      accepts({ $defs: { name: { $schema, $id: 'urn:test:name', type: 'string' } }, $ref: '#/$defs/name' }, 1),
    ).toBe(false);
  });

  test('may be referred to: a tool can take a schema', () => {
    expect(
      accepts({ properties: { schema: { $ref: 'http://json-schema.org/draft-07/schema#' } } }, { schema: { type: 1 } }),
    ).toBe(false);
    expect(
      accepts(
        { properties: { schema: { $ref: 'https://json-schema.org/draft/2020-12/schema' } } },
        { schema: { type: 1 } },
      ),
    ).toBe(false);
  });
});

describe("strangers' schemas", () => {
  test('E10: may hold keywords nobody knows, and be written loosely', () => {
    const schema = {
      type: 'object',
      'x-order': 1,
      properties: { a: { 'x-ui': {}, type: ['string', 'number'], minLength: 1 } },
      minimum: 1,
    };
    expect(accepts(schema, { a: 'x' })).toBe(true);
    expect(accepts(schema, { a: {} })).toBe(false);
  });

  test('E11: may name formats nobody knows; those known are checked', () => {
    expect(accepts({ type: 'integer', format: 'uint64' }, 5)).toBe(true);
    expect(accepts({ type: 'string', format: 'google-duration' }, 'x')).toBe(true);
  });

  test.each([
    ['date', '2024-02-29', ['2023-02-29', '2024-2-1', '2024-02-30', 'today']],
    [
      'date-time',
      '2024-02-29T23:59:60.5+02:00',
      ['2024-02-29', '2024-02-29T24:00:00Z', '2023-02-29T10:00:00Z', '2024-02-29T10:00:00'],
    ],
    ['email', 'a.b+c@example.com', ['a', 'a@', 'a b@c', 'a@b@c']],
    ['ipv4', '127.0.0.1', ['127.0.0.256', '::1']],
    ['ipv6', '::1', ['127.0.0.1', ':::']],
    ['uri', 'https://example.com/a?b#c', ['/a', 'example', 'http://']],
    ['uuid', '123e4567-e89b-12d3-a456-426614174000', ['123e4567e89b12d3a456426614174000', 'x']],
  ])('E11: the format %s is checked', (format, right, wrong) => {
    expect(accepts({ format }, right)).toBe(true);
    expect(wrong.filter((text) => accepts({ format }, text))).toEqual([]);
    expect(accepts({ format }, 5)).toBe(true);
  });

  test('E12: may hold patterns with needless escapes', () => {
    expect(accepts({ pattern: '^\\d{4}\\-\\d{2}$' }, '2024-02')).toBe(true);
    expect(accepts({ pattern: '^\\d{4}\\-\\d{2}$' }, '2024')).toBe(false);
    expect(accepts({ pattern: '^https\\:\\/\\/' }, 'https://x')).toBe(true);
    expect(accepts({ patternProperties: { '^x\\-': { type: 'number' } } }, { 'x-a': 'b' })).toBe(false);
    expect(accepts({ pattern: '^😀{2}$' }, '😀😀')).toBe(true);
    expect(() => ajvCheck({ pattern: '(' })).toThrow(/\(/);
  });

  test('E13: may hold what OpenAPI leaves behind', () => {
    const discriminator = { propertyName: 'kind', mapping: { a: '#/components/schemas/A' } };
    expect(accepts({ discriminator, oneOf: [{ properties: { kind: { const: 'a' } } }] }, { kind: 'a' })).toBe(true);
    expect(accepts({ type: 'string', nullable: true }, null)).toBe(true);
  });

  test('E15: keep what a $ref points to', () => {
    const schema = {
      $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' }, n: { type: 'number' } } } },
      $ref: '#/$defs/node',
    };
    expect(accepts(schema, { n: 1, next: { n: 2, next: {} } })).toBe(true);
    expect(accepts(schema, { n: 1, next: { n: 'x' } })).toBe(false);
  });

  test.each([
    'urn:args',
    'urn:test:args',
    'args',
    '/a/b',
    '#args',
    'https://example.com/args',
    'http://json-schema.org/draft-07/schema#',
    '',
  ])('E04: may have the $id %p, and again', ($id) => {
    expect(accepts({ $id, properties: { a: { type: 'string' } } }, { a: 1 })).toBe(false);
    expect(accepts({ $id, properties: { a: { type: 'number' } } }, { a: 1 })).toBe(true);
  });

  test('cannot make a check answer with a promise, which would look like a yes', () => {
    expect(accepts({ $async: true, type: 'object', required: ['a'] }, {})).toBe(false);
    expect(() => ajvCheck({ properties: { a: { $async: true, type: 'string' } } })).toThrow(/async/);
  });

  test('that lead nowhere fail when they are compiled', () => {
    expect(() => ajvCheck({ $ref: 'https://example.com/nowhere' })).toThrow(/nowhere/);
    expect(() => ajvCheck({ type: 'strin' })).toThrow(/strin/);
  });
});

describe('defaults', () => {
  test('are filled in, deeply, and each time anew', () => {
    const check = ajvCheck({
      properties: { list: { default: [] }, deep: { properties: { n: { default: 1 } }, default: {} } },
    });
    const [first, second] = [check({}), check({})] as [{ list: unknown[] }, { list: unknown[] }];
    expect(first).toEqual({ list: [], deep: { n: 1 } });
    first.list.push(1);
    expect(second).toEqual({ list: [], deep: { n: 1 } });
    expect(check({})).toEqual({ list: [], deep: { n: 1 } });
  });

  test('can be left out: the value is not touched', () => {
    const check = ajvCheck({ properties: { n: { default: 1 } }, required: ['n'] }, { defaults: false });
    expect(check(Object.freeze({}))).toBeInstanceOf(Faults);
    const value = Object.freeze({ n: 2 });
    expect(check(value)).toBe(value);
  });

  test('B11: in a branch are not filled in, and harm nothing', () => {
    const schema = { anyOf: [{ properties: { status: { default: 503 } } }, { type: 'string' }] };
    expect(ajvCheck(schema)({})).toEqual({});
  });

  test('never stand in for a null that the schema accepts or refuses', () => {
    expect(ajvCheck({ properties: { n: { type: ['number', 'null'], default: 1 } } })({ n: null })).toEqual({
      n: null,
    });
    expect(accepts({ properties: { n: { type: 'number', default: 1 } } }, { n: null })).toBe(false);
  });
});

describe('values', () => {
  test('B03, B05: are never coerced', () => {
    expect(accepts({ properties: { n: { type: 'number' } } }, { n: '5' })).toBe(false);
    expect(accepts({ properties: { b: { type: 'boolean' } } }, { b: 'false' })).toBe(false);
    expect(accepts({ properties: { s: { type: 'string' } } }, { s: null })).toBe(false);
    expect(accepts({ properties: { a: { type: 'array' } } }, { a: 'x' })).toBe(false);
  });

  test('that nest as deep as arguments may are checked', async () => {
    const schema = {
      $defs: { node: { properties: { a: { $ref: '#/$defs/node' } }, additionalProperties: false } },
      $ref: '#/$defs/node',
    };
    const deep = (levels: number, leaf: JsonValue): JsonValue => (levels === 0 ? leaf : { a: deep(levels - 1, leaf) });
    expect(accepts(schema, deep(250, {}))).toBe(true);
    const faults = ajvCheck(schema)(deep(250, { b: 1 })) as Faults;
    expect(faults.list[0]?.path.length).toBeLessThanOrEqual(121);
  });

  test('a schema that refers to itself without end fails, and blames nobody', async () => {
    const tool = defineTool({
      name: 'work',
      description: 'Works.',
      inputSchema: { allOf: [{ $ref: '#' }] },
      execute: () => 1,
    });
    const dispatcher = createDispatcher({ tools: [tool], middleware: [validation()] });
    const result = await dispatcher.dispatch({ name: 'work' });
    expect(result.error).toMatchObject({ code: 'internal', executed: 'no' });
  });
});

describe('faults', () => {
  test('are listed without repetition, so many of them, and each so long', () => {
    const list = ['a', 'a', 'b', 'c'].map((path) => ({ path, message: 'is wrong' }));
    expect(new Faults(list, 4).describe(2, 100)).toBe('- a: is wrong\n- b: is wrong\n- and 1 more');
    expect(new Faults(list, 4).describe(9, 5)).toBe('- a: …\n- b: …\n- c: …');
    expect(new Faults([{ path: '', message: 'is wrong' }], 1).describe(1, 100)).toBe('- is wrong');
  });

  test('of a name of a key tell that it is one', () => {
    const schema = { properties: { map: { propertyNames: { pattern: '^[a-z]+$', maxLength: 3 } } } };
    const faults = ajvCheck(schema)({ map: { abc: 1, 'A1-7': 1 } }) as Faults;
    expect(faults.describe(9, 100).split('\n')).toEqual([
      '- map: key "A1-7": must NOT have more than 3 characters; got the text "A1-7"',
      '- map: key "A1-7": must match pattern "^[a-z]+$"; got the text "A1-7"',
    ]);
    expect((ajvCheck({ propertyNames: false })({ a: 1 }) as Faults).describe(9, 100)).toBe(
      '- key "a": nothing is allowed here; got the text "a"',
    );
  });

  test('are found for each value anew', () => {
    const check = ajvCheck({ type: 'string' });
    expect(check(1)).toBeInstanceOf(Faults);
    expect(check('a')).toBe('a');
    expect((check({}) as Faults).describe(1, 100)).toBe('- expected string; got an object');
  });
});
