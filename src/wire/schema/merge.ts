import { isPlainObject } from '../../json.ts';
import { isEqual, isRemark, listed, type Schema } from './parts.ts';
import { typesOf } from './types.ts';

/** How two values of one rule are said as one; undefined where they cannot. */
const MERGED: Readonly<Record<string, (one: unknown, other: unknown) => unknown>> = {
  required: (one, other) => [...new Set([...listed(one), ...listed(other)])],
  properties: mergedProperties,
  type: mergedTypes,
  enum: (one, other) => {
    const both = listed(one).filter((value) => listed(other).some((each) => isEqual(value, each)));
    return both.length === 0 ? undefined : both;
  },
  ...Object.fromEntries(
    ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'].map((keyword) => [keyword, larger]),
  ),
  ...Object.fromEntries(
    ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'].map((keyword) => [keyword, smaller]),
  ),
};

/** Rules that mean something together only. */
const CONDITION = ['if', 'then', 'else'];

/** One schema that says what both say; undefined where there is none. Remarks are those of the first. */
export function mergedWith(schema: Schema, other: unknown): Schema | undefined {
  if (!isPlainObject(other)) return other === true ? schema : undefined;
  const rules = Object.keys(schema).filter((keyword) => !isRemark(keyword));
  // A rule beside a reference would be lost.
  if ('$ref' in other && rules.length > 0) return undefined;
  if ('$ref' in schema && Object.keys(other).some((keyword) => !isRemark(keyword))) return undefined;
  if ([schema, other].every((each) => CONDITION.some((keyword) => keyword in each))) return undefined;
  if (excludes(schema, other) || excludes(other, schema)) return undefined;
  const merged: Schema = { ...schema };
  for (const [keyword, value] of Object.entries(other)) {
    const own = Object.hasOwn(merged, keyword) ? merged[keyword] : undefined;
    if (own !== undefined && (isRemark(keyword) || isEqual(own, value))) continue;
    const both = own === undefined ? value : Object.hasOwn(MERGED, keyword) ? MERGED[keyword]?.(own, value) : undefined;
    if (both === undefined) return undefined;
    merged[keyword] = both;
  }
  return merged;
}

/** Whether a closed object excludes properties of the other. */
function excludes(closed: Schema, { properties }: Schema): boolean {
  if (closed['additionalProperties'] !== false || !isPlainObject(properties)) return false;
  const own = isPlainObject(closed['properties']) ? closed['properties'] : {};
  return Object.keys(properties).some((name) => !Object.hasOwn(own, name));
}

function mergedProperties(one: unknown, other: unknown): unknown {
  if (!isPlainObject(one) || !isPlainObject(other)) return undefined;
  const entries = Object.entries(other).map(([name, each]) => {
    const own = Object.hasOwn(one, name) ? one[name] : true;
    return [name, isPlainObject(own) ? mergedWith(own, each) : own === true ? each : undefined] as const;
  });
  if (entries.some(([, each]) => each === undefined)) return undefined;
  return { ...one, ...Object.fromEntries(entries) };
}

function mergedTypes(one: unknown, other: unknown): unknown {
  const [ours, theirs] = [typesOf({ type: one }), typesOf({ type: other })];
  const both = ours.flatMap((type) => {
    if (theirs.includes(type)) return [type];
    const isWhole =
      (type === 'integer' && theirs.includes('number')) || (type === 'number' && theirs.includes('integer'));
    return isWhole ? ['integer'] : [];
  });
  return both.length < 2 ? both[0] : [...new Set(both)];
}

function larger(one: unknown, other: unknown): unknown {
  return typeof one === 'number' && typeof other === 'number' ? Math.max(one, other) : undefined;
}

function smaller(one: unknown, other: unknown): unknown {
  return typeof one === 'number' && typeof other === 'number' ? Math.min(one, other) : undefined;
}
