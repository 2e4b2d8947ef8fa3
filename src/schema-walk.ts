import { isPlainObject } from './json.ts';
import type { JsonSchema } from './schema.ts';

/** Keywords whose value is a schema, or a list of schemas. */
const SCHEMAS: ReadonlySet<string> = new Set([
  'additionalItems',
  'additionalProperties',
  'allOf',
  'anyOf',
  'contains',
  'else',
  'if',
  'items',
  'not',
  'oneOf',
  'prefixItems',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
]);

/** Keywords whose value holds a schema under each name. */
const NAMED_SCHEMAS: ReadonlySet<string> = new Set([
  '$defs',
  'definitions',
  'dependencies',
  'dependentSchemas',
  'patternProperties',
  'properties',
]);

/** A copy of a schema in which each schema right within it is another. Booleans and what is no schema stay as they are. */
export function mapSubschemas(
  schema: JsonSchema,
  map: (subschema: JsonSchema, place: readonly string[]) => unknown,
): JsonSchema {
  const mapped = (value: unknown, ...place: readonly string[]) => (isPlainObject(value) ? map(value, place) : value);
  const namedIn = (value: Record<string, unknown>, ...place: readonly string[]) =>
    Object.fromEntries(Object.entries(value).map(([name, each]) => [name, mapped(each, ...place, name)]));
  const entries = Object.entries(schema).map(([keyword, value]) => {
    if (SCHEMAS.has(keyword) && Array.isArray(value))
      return [keyword, value.map((each, index) => mapped(each, keyword, String(index)))];
    if (SCHEMAS.has(keyword)) return [keyword, mapped(value, keyword)];
    // OpenAPI's place for schemas, to which what is made of it may still refer.
    if (keyword === 'components' && isPlainObject(value) && isPlainObject(value['schemas']))
      return [keyword, { ...value, schemas: namedIn(value['schemas'], keyword, 'schemas') }];
    if (!NAMED_SCHEMAS.has(keyword) || !isPlainObject(value)) return [keyword, value];
    return [keyword, namedIn(value, keyword)];
  });
  return Object.fromEntries(entries);
}
