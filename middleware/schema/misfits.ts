import { isPlainObject, type JsonSchema } from '../../src/index.ts';

/** What the value of a keyword is read as; undefined where it is not of its kind. */
type Reading = (value: unknown) => unknown;

/** Keywords by what they take. ajv compiles no schema in which one of them has anything else, such as null. */
const READINGS: ReadonlyMap<string, readonly [takes: string, read: Reading]> = new Map(
  (
    [
      ['text', text, ['$id', '$ref', 'format', 'pattern']],
      [
        'number',
        number,
        [
          ...['exclusiveMaximum', 'exclusiveMinimum', 'maximum', 'minimum', 'maxContains', 'minContains', 'maxItems'],
          ...['minItems', 'maxLength', 'minLength', 'maxProperties', 'minProperties'],
        ],
      ],
      ['number above 0', positive, ['multipleOf']],
      ['true or false', truth, ['nullable', 'uniqueItems']],
      ['type', type, ['type']],
      ['list of texts', texts, ['required']],
      ['list of values', list, ['enum']],
      ['list of schemas', schemas, ['allOf', 'anyOf', 'oneOf', 'prefixItems']],
      ['list of schemas or schema', (value: unknown) => schemas(value) ?? schema(value), ['items']],
      [
        'schema',
        schema,
        [
          ...['additionalItems', 'additionalProperties', 'contains', 'else', 'if', 'not', 'propertyNames', 'then'],
          ...['unevaluatedItems', 'unevaluatedProperties'],
        ],
      ],
      ['object', named, ['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties']],
      ['object', (value: unknown) => (isPlainObject(value) ? value : undefined), ['dependencies', 'dependentRequired']],
    ] as const
  ).flatMap(([takes, read, keywords]) => keywords.map((keyword) => [keyword, [takes, read] as const] as const)),
);

/**
 * A schema without what is empty where its keyword wants something, as `null`, or `[]` for an object; what is only written in another
 * way, such as "5", is read. Anything else stays for ajv to refuse: who checks nothing of it would check less than was meant.
 */
export function withoutMisfits(given: JsonSchema, warn: (message: string) => void): JsonSchema {
  const entries = Object.entries(given).flatMap(([keyword, value]) => {
    const [takes, read = undefined] = READINGS.get(keyword) ?? [];
    const found = read === undefined ? value : read(value);
    // A format that is none says nothing; of others nobody knows what was meant.
    const isKept = found === undefined && !isEmpty(value) && keyword !== 'format';
    if (found === value || isKept) return [[keyword, value] as const];
    warn(`"${keyword}" is ${found === undefined ? `left out, as it is no ${takes}` : 'read as it is probably meant'}`);
    return found === undefined ? [] : [[keyword, found] as const];
  });
  return Object.fromEntries(entries);
}

function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === null || value === '' || value === 0;
}

function text(value: unknown): unknown {
  return typeof value === 'string' ? value : undefined;
}

function number(value: unknown): unknown {
  if (typeof value === 'string' && /^-?\d+(?:\.\d+)?$/.test(value)) return Number(value);
  return typeof value === 'number' ? value : undefined;
}

function positive(value: unknown): unknown {
  const found = number(value);
  return typeof found === 'number' && found > 0 ? found : undefined;
}

function truth(value: unknown): unknown {
  if (value === 'true' || value === 'false') return value === 'true';
  return typeof value === 'boolean' ? value : undefined;
}

/** All of them, for draft-03 had `any`. */
const ANY: readonly string[] = ['array', 'boolean', 'null', 'number', 'object', 'string'];

/** Google has them in capitals. A name that is no type stays, for nobody knows what it means. */
function type(value: unknown): unknown {
  if (!Array.isArray(value)) return value === 'any' ? ANY : text(value || undefined) && typeName(value);
  if (value.includes('any')) return ANY;
  const names = value.map(typeName);
  return names.some((name, index) => name !== value[index]) ? names : list(value);
}

/** The name of a type as it is meant. */
export function typeName(name: unknown): unknown {
  if (name === null) return 'null';
  const lower = String(name).toLowerCase();
  return lower === 'integer' || ANY.includes(lower) ? lower : name;
}

function list(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) && value.length > 0 ? value : undefined;
}

function texts(value: unknown): unknown {
  if (!Array.isArray(value)) return undefined;
  const found = value.filter((each) => typeof each === 'string');
  return found.length === value.length ? value : found;
}

function schema(value: unknown): unknown {
  return isPlainObject(value) || typeof value === 'boolean' ? value : undefined;
}

/** What is no schema says nothing. */
function schemas(value: unknown): unknown {
  const found = list(value);
  return found?.every((each) => schema(each) !== undefined) ? found : found?.map((each) => schema(each) ?? true);
}

function named(value: unknown): unknown {
  if (!isPlainObject(value)) return undefined;
  const found = Object.entries(value).map(([name, each]) => [name, schema(each) ?? true] as const);
  return found.every(([name, each]) => each === value[name]) ? value : Object.fromEntries(found);
}
