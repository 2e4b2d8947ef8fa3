import { isPlainObject, type JsonSchema, mapSubschemas } from '../../src/index.ts';

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
  return [withoutLeftovers, withNullable, withPatterns].reduce((current, step) => step(current, options), read);
}

/** Where ajv fills in no defaults. */
const BRANCHES: ReadonlySet<string> = new Set(['anyOf', 'else', 'if', 'not', 'oneOf', 'then']);

/** Draft-03 said `required: true` of one property, draft-04 `id` and `exclusiveMinimum: true`. */
function withoutLeftovers(schema: JsonSchema, { warn }: ForeignOptions): JsonSchema {
  const { id, required, exclusiveMinimum, exclusiveMaximum, ...rest } = schema;
  if (id !== undefined) warn('"id" is left out');
  if (typeof required === 'boolean') warn('"required" is left out, as it is no list');
  return {
    ...rest,
    ...(required !== undefined && typeof required !== 'boolean' && { required }),
    ...exclusive('exclusiveMinimum', exclusiveMinimum, schema['minimum']),
    ...exclusive('exclusiveMaximum', exclusiveMaximum, schema['maximum']),
  };
}

/** As a flag it says that the bound beside it is not in the range; that stays, and does no harm. */
function exclusive(keyword: string, value: unknown, bound: unknown): JsonSchema {
  if (value === undefined || value === false || (value === true && typeof bound !== 'number')) return {};
  return { [keyword]: value === true ? bound : value };
}

/** OpenAPI 3.0 says `nullable` of a schema that need have no `type`, which ajv asks for. */
function withNullable(schema: JsonSchema, { warn }: ForeignOptions): JsonSchema {
  if (!('nullable' in schema) || schema.type !== undefined) return schema;
  const { nullable, ...rest } = schema;
  if (nullable !== true) return rest;
  warn('"nullable" beside no "type" is read as one more alternative, null');
  return { anyOf: [rest, { type: 'null' }] };
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
  return keyword in schema ? { [keyword]: schema[keyword] } : {};
}
