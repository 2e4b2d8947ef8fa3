import { isPlainObject, type JsonSchema, mapSubschemas } from '../../src/index.ts';
import { withoutMisfits } from './misfits.ts';

/** What is to be known of where a schema comes from. */
export interface ForeignOptions {
  /** Whether a pattern can be run; of one that cannot, nothing is checked. */
  readonly takesPattern: (pattern: string) => boolean;
  /** Hears what is read in another way than it was written. */
  readonly warn: (message: string) => void;
}

/**
 * A schema as ajv can read it, which refuses some of what other validators, older drafts and OpenAPI let pass. All else stays as it is
 * and where it is.
 */
export function readable(schema: JsonSchema, options: ForeignOptions, inBranch = false): JsonSchema {
  if (inBranch && 'default' in schema) options.warn('a default inside anyOf, oneOf, not or if is not filled in');
  const read = mapSubschemas(schema, (subschema, [keyword = '']) =>
    readable(subschema, options, inBranch || BRANCHES.has(keyword)),
  );
  return STEPS.reduce((current, step) => step(current, options), read);
}

const STEPS = [withoutLeftovers, fitting, withNullable, withPatterns, withoutWrongDefault];

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

/** A default that does not fit would make the arguments wrong which leave it out. */
function withoutWrongDefault(schema: JsonSchema, { warn }: ForeignOptions): JsonSchema {
  if (!('default' in schema)) return schema;
  const { default: preset, ...rest } = schema;
  const types = [schema.type ?? []].flat();
  const list = schema['enum'];
  const isOfType = types.length === 0 || types.some((name) => isOf(name, preset));
  if (isOfType && (!Array.isArray(list) || typeof preset === 'object' || list.includes(preset))) return schema;
  warn('a default that does not fit its own schema is not filled in');
  return rest;
}

function isOf(type: unknown, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (value === null || type === 'null') return value === null && type === 'null';
  if (Array.isArray(value) || type === 'array') return Array.isArray(value) && type === 'array';
  return typeof value === type;
}

function withPatterns(schema: JsonSchema, { takesPattern, warn }: ForeignOptions): JsonSchema {
  const { pattern, patternProperties, ...rest } = schema;
  const patterns = isPlainObject(patternProperties) ? Object.keys(patternProperties) : [];
  const refused = [...(typeof pattern === 'string' ? [pattern] : []), ...patterns].filter(
    (each) => !takesPattern(each),
  );
  if (refused.length === 0) return schema;
  for (const each of refused) warn(`the pattern ${JSON.stringify(each.slice(0, 100))} is not checked`);
  const kept = patterns.some((each) => refused.includes(each))
    ? withoutOthers(rest)
    : { ...rest, ...given(schema, 'patternProperties') };
  return refused.includes(pattern as string) ? kept : { ...kept, ...given(schema, 'pattern') };
}

/** Which keys are left for these keywords is not known without the patterns. */
function withoutOthers(schema: JsonSchema): JsonSchema {
  const { additionalProperties: _, unevaluatedProperties: __, ...rest } = schema;
  return rest;
}

function given(schema: JsonSchema, keyword: string): JsonSchema {
  return schema[keyword] !== undefined ? { [keyword]: schema[keyword] } : {};
}
