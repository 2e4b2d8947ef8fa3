import { type JsonSchema, mapSubschemas } from '../../src/index.ts';
import { withoutMisfits } from './misfits.ts';

/** What is to be known of where a schema comes from. */
export interface ForeignOptions {
  /** Whether a default that has to be checked fits the schema it stands in. */
  readonly fits: (preset: unknown, schema: JsonSchema) => boolean;
  /** Hears what is read in another way than it was written. */
  readonly warn: (message: string) => void;
}

/**
 * A schema as ajv can read it, which refuses some of what other validators, older drafts and OpenAPI let pass. All else stays as it is
 * and where it is.
 */
export function readable(schema: JsonSchema, options: ForeignOptions, inBranch = false): JsonSchema {
  if (inBranch && 'default' in schema) options.warn('a default inside anyOf, oneOf, not or if is not filled in');
  const read = mapSubschemas(schema, (subschema, [keyword = '', name = '']) => {
    const isInherited = keyword === 'properties' && name in Object.prototype;
    return readable(isInherited ? withoutDefault(subschema) : subschema, options, inBranch || BRANCHES.has(keyword));
  });
  return STEPS.reduce((current, step) => step(current, options), read);
}

const STEPS = [fitting, withoutLeftovers, withNullable, withoutWrongDefault];

function fitting(schema: JsonSchema, { warn }: ForeignOptions): JsonSchema {
  return withoutMisfits(schema, warn);
}

/** Where ajv fills in no defaults. */
const BRANCHES: ReadonlySet<string> = new Set(['anyOf', 'else', 'if', 'not', 'oneOf', 'then']);

/** Draft-03 said `required: true` of one property, draft-04 `id` and `exclusiveMinimum: true`; an example may be a schema, `$id` and all. */
function withoutLeftovers(schema: JsonSchema, { warn }: ForeignOptions): JsonSchema {
  const { id, required, exclusiveMinimum, exclusiveMaximum, example: _, examples: __, ...rest } = schema;
  if (id !== undefined) warn('"id" is left out');
  if (typeof required === 'boolean') warn('"required" is left out, as it is no list');
  return {
    ...rest,
    ...(required !== undefined && typeof required !== 'boolean' && { required }),
    ...exclusive('exclusiveMinimum', exclusiveMinimum, schema['minimum']),
    ...exclusive('exclusiveMaximum', exclusiveMaximum, schema['maximum']),
  };
}

/** A list of `items`, as drafts before 2020-12 have it, under the name it has there. */
export function withPrefixItems(schema: JsonSchema): JsonSchema {
  const { items, additionalItems, ...rest } = mapSubschemas(schema, withPrefixItems);
  if (!Array.isArray(items))
    return { ...rest, ...given({ items }, 'items'), ...given({ additionalItems }, 'additionalItems') };
  return { ...rest, prefixItems: items, ...(additionalItems !== undefined && { items: additionalItems }) };
}

/** As a flag it says that the bound beside it is not in the range; that stays, and does no harm. */
function exclusive(keyword: string, value: unknown, bound: unknown): JsonSchema {
  if (value === undefined || value === false || (value === true && typeof bound !== 'number')) return {};
  return { [keyword]: value === true ? bound : value };
}

/** Keywords that may refuse null, whatever the type. */
const OTHERS: readonly string[] = ['$ref', 'allOf', 'anyOf', 'const', 'enum', 'if', 'not', 'oneOf'];

/** OpenAPI 3.0 says `nullable` of a schema that need have no `type`, which ajv asks for, and means it whatever else is said. */
function withNullable(schema: JsonSchema, { warn }: ForeignOptions): JsonSchema {
  if (!('nullable' in schema)) return schema;
  const { nullable, ...rest } = schema;
  if (nullable !== true) return rest;
  const others = OTHERS.filter((keyword) => keyword in rest);
  const { type, enum: values, anyOf } = rest;
  if (type === undefined) warn('"nullable" beside no "type" is read as one more alternative, null');
  // Not left to ajv, which writes into the list.
  const typed = { ...rest, ...(type !== undefined && { type: [...new Set([type, 'null'].flat())] }) };
  if (type !== undefined && others.length === 0) return typed;
  if (others.join() === 'enum' && Array.isArray(values)) return { ...typed, enum: [...new Set([...values, null])] };
  if (others.join() === 'anyOf' && type === undefined && Array.isArray(anyOf))
    return { ...rest, anyOf: [...anyOf, { type: 'null' }] };
  const { default: preset, $defs, definitions, ...judged } = rest;
  const kept = Object.entries({ default: preset, $defs, definitions }).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(kept), anyOf: [judged, { type: 'null' }] };
}

/** ajv takes what every object inherits under a name, such as `constructor`, for a value that is there. */
function withoutDefault({ default: _, ...rest }: JsonSchema): JsonSchema {
  return rest;
}

/** A default that does not fit would make the arguments wrong which leave it out. */
function withoutWrongDefault(schema: JsonSchema, { fits, warn }: ForeignOptions): JsonSchema {
  if (!('default' in schema)) return schema;
  const { default: preset, ...rest } = schema;
  const isFit = isPlain(rest) ? isOf([schema.type ?? []].flat(), preset) : fits(preset, rest);
  if (isFit) return schema;
  warn('a default that does not fit its own schema is not filled in');
  return rest;
}

/** Keywords beside which a default fits if it is of the type. */
const PLAIN: ReadonlySet<string> = new Set(['$comment', 'deprecated', 'description', 'title', 'type']);

function isPlain(schema: JsonSchema): boolean {
  return Object.keys(schema).every((keyword) => PLAIN.has(keyword) || keyword.startsWith('x-'));
}

function isOf(types: readonly unknown[], value: unknown): boolean {
  return types.length === 0 || types.some((type) => isOfType(type, value));
}

function isOfType(type: unknown, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (value === null || type === 'null') return value === null && type === 'null';
  if (Array.isArray(value) || type === 'array') return Array.isArray(value) && type === 'array';
  return typeof value === type;
}

function given(schema: JsonSchema, keyword: string): JsonSchema {
  return schema[keyword] !== undefined ? { [keyword]: schema[keyword] } : {};
}
