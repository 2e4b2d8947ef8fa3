import { canonicalJson } from '../../canonical.ts';
import { isPlainObject, type JsonValue } from '../../json.ts';

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
export const NOWHERE = 'It is not told, for it leads nowhere.';

/** That a schema is told as it is, and why its provider cannot hold its model to it. */
export function notHeldTo(place: string, keyword: string, why: string): SchemaLoss {
  return { place, keyword, message: `The schema is told as it is, and not held to: ${why}` };
}

/** Keywords that are no rule and of no use to a model. */
const SILENT =
  /^(?:\$schema|\$defs|definitions|\$id|\$anchor|\$comment|\$dynamic\w+|\$recursive\w+|title|examples?|readOnly|writeOnly|deprecated|x-.*)$/;

/** Whether a keyword is no rule. */
export function isRemark(keyword: string): boolean {
  return SILENT.test(keyword) || keyword === 'description' || keyword === 'default';
}

/** Characters of a rule that still stands in a description. */
const LONGEST_RULE = 200;

/** A rule as a description has it; undefined where that is of no use, or too long. */
export function ruleText(keyword: string, value: unknown): string | undefined {
  const rule = `${keyword}: ${JSON.stringify(value)}`;
  return SILENT.test(keyword) || rule.length > LONGEST_RULE ? undefined : rule;
}

export function withRules(description: unknown, rules: readonly string[]): string {
  return [description, `(${rules.join('; ')})`].filter(Boolean).join(' ');
}

/** A list, or what is none as an empty one. */
export function listed(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** An object, or what is none as an empty one. */
export function named(value: unknown): Schema {
  return isPlainObject(value) ? value : {};
}

export function isEqual(one: unknown, other: unknown): boolean {
  return one === other || canonicalJson(one as JsonValue) === canonicalJson(other as JsonValue);
}

/** A name within a JSON Pointer. */
export function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
