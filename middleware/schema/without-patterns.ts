import { isPlainObject, type JsonSchema, mapSubschemas } from '../../src/index.ts';

/** What would refuse more where less is checked within, and what means nothing without it. */
const TURNING: readonly (readonly [keyword: string, others: readonly string[]])[] = [
  ['not', []],
  ['oneOf', []],
  ['if', ['then', 'else']],
  ['contains', ['minContains', 'maxContains']],
];

/** Which keys and items are left for these is not known without the patterns. */
const REST: readonly string[] = ['unevaluatedItems', 'unevaluatedProperties'];

/**
 * A schema that lets pass whatever it did, without the patterns that cannot be run: with each goes what asks for the contrary of what
 * it stands in.
 *
 * @param warn Hears of each pattern that is left out.
 */
export function withoutPatterns(
  schema: JsonSchema,
  takes: (pattern: string) => boolean,
  warn: (message: string) => void,
): JsonSchema {
  const refused = new Set([...patternsIn(schema)].filter((pattern) => !takes(pattern)));
  for (const pattern of refused) warn(`the pattern ${JSON.stringify(pattern.slice(0, 100))} is not checked`);
  return refused.size === 0 ? schema : laxer(schema, refused);
}

function laxer(schema: JsonSchema, refused: ReadonlySet<string>): JsonSchema {
  const left = new Map(Object.entries(mapSubschemas(schema, (subschema) => laxer(subschema, refused))));
  if (refused.has(schema['pattern'] as string)) left.delete('pattern');
  if (ownPatterns({ ...schema, pattern: '' }).some((pattern) => refused.has(pattern)))
    for (const keyword of ['patternProperties', 'additionalProperties']) left.delete(keyword);
  for (const [keyword, others] of TURNING)
    if (isDoubtful(schema[keyword], refused)) for (const each of [keyword, ...others]) left.delete(each);
  for (const keyword of REST) left.delete(keyword);
  return Object.fromEntries(left);
}

/** Whether less is checked in a schema, or in one of a list, than it says; what it refers to may be such a one. */
function isDoubtful(schemas: unknown, refused: ReadonlySet<string>): boolean {
  return [schemas].flat().some((schema) => {
    if (!isPlainObject(schema)) return false;
    if ('$ref' in schema || ownPatterns(schema).some((pattern) => refused.has(pattern))) return true;
    let isWithin = false;
    mapSubschemas(schema, (subschema) => {
      isWithin ||= isDoubtful(subschema, refused);
      return subschema;
    });
    return isWithin;
  });
}

function patternsIn(schema: JsonSchema): Set<string> {
  const patterns = new Set(ownPatterns(schema));
  mapSubschemas(schema, (subschema) => {
    for (const pattern of patternsIn(subschema)) patterns.add(pattern);
    return subschema;
  });
  return patterns;
}

function ownPatterns({ pattern, patternProperties }: JsonSchema): readonly string[] {
  const keys = isPlainObject(patternProperties) ? Object.keys(patternProperties) : [];
  return typeof pattern === 'string' && pattern !== '' ? [pattern, ...keys] : keys;
}
