import { isPlainObject } from '../../json.ts';

/** A schema that is being made. */
export type Schema = Record<string, unknown>;

/** Something that a schema says and a provider is not told, or not as a rule. */
export interface SchemaLoss {
  /** JSON Pointer of the schema that says it. */
  readonly place: string;
  readonly keyword: string;
  /** What became of it, in a sentence. */
  readonly message: string;
}

/** What became of what many schemas say. */
export const IN_DESCRIPTION = 'It is told in the description, as no rule.';
export const UNFIT = 'It is not told, for it does not go with the rest.';

/** That a schema is told as it is, and why its provider cannot hold its model to it. */
export function notHeldTo(place: string, keyword: string, why: string): SchemaLoss {
  return { place, keyword, message: `The schema is told as it is, and not held to: ${why}` };
}

/** Keywords that are no rule and of no use to a model. */
const SILENT =
  /^(?:\$schema|\$defs|definitions|\$id|\$anchor|\$comment|\$dynamic\w+|\$recursive\w+|title|readOnly|writeOnly|deprecated|x-.*)$/;

/** Characters of a rule that still stands in a description. */
const LONGEST_RULE = 200;

/** A rule as a description has it; undefined where that is of no use, or too long. */
export function ruleText(keyword: string, value: unknown): string | undefined {
  const rule = `${keyword}: ${JSON.stringify(value)}`;
  return SILENT.test(keyword) || rule.length > LONGEST_RULE ? undefined : rule;
}

export function listed(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function withRules(description: unknown, rules: readonly string[]): string {
  return [description, `(${rules.join('; ')})`].filter(Boolean).join(' ');
}

export function typesOf({ type }: Schema): readonly unknown[] {
  return Array.isArray(type) ? type : type === undefined ? [] : [type];
}

export function isObject(schema: Schema): boolean {
  return typesOf(schema).includes('object');
}

/** Whether a keyword is no rule. */
export function isRemark(keyword: string): boolean {
  return SILENT.test(keyword) || keyword === 'description' || keyword === 'default';
}

/** One schema that says what both say; undefined where there is none. */
export function mergedWith(schema: Schema, other: unknown): Schema | undefined {
  if (!isPlainObject(other)) return other === true ? schema : undefined;
  // A rule beside a reference would be lost.
  if ('$ref' in schema || ('$ref' in other && Object.keys(schema).some((keyword) => !isRemark(keyword))))
    return undefined;
  const merged: Schema = { ...schema };
  for (const [keyword, value] of Object.entries(other)) {
    const own = merged[keyword];
    if (own === undefined || keyword === 'description') merged[keyword] ??= value;
    else if (keyword === 'required' && Array.isArray(own) && Array.isArray(value))
      merged[keyword] = [...new Set([...own, ...value])];
    else if (keyword === 'properties' && isPlainObject(own) && isPlainObject(value)) {
      if (Object.keys(value).some((name) => Object.hasOwn(own, name) && !isEqual(own[name], value[name])))
        return undefined;
      merged[keyword] = { ...own, ...value };
    } else if (!isEqual(own, value)) return undefined;
  }
  return merged;
}

export function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
