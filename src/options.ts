import { MAX_DELAY_MS } from './clock.ts';
import { isPlainObject, kindOf } from './json.ts';
import { wildcard } from './wildcard.ts';

/** Checks one option's value: true, or what is allowed, as in `must be …`. */
export type OptionCheck = (value: unknown) => true | string;

/** Checks by the name of an option. */
export type OptionChecks = Readonly<Record<string, OptionCheck>>;

/**
 * Checks the options of a middleware when it is made. An option that is undefined counts as not given.
 *
 * @throws TypeError naming the option, what was given and what is allowed.
 */
export function checkOptions(owner: string, options: unknown, checks: OptionChecks): void {
  if (!isPlainObject(options)) throw new TypeError(`${owner} takes its options as an object.`);
  for (const [name, value] of Object.entries(options)) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (check === undefined) {
      throw new TypeError(
        `${owner} has no option "${name}". Its options: ${Object.keys(checks).join(', ') || 'none'}.`,
      );
    }
    const allowed = value === undefined || check(value);
    if (allowed !== true) throw new TypeError(`Option "${name}" of ${owner} must be ${allowed}; got ${shown(value)}.`);
  }
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 60));
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : kindOf(value);
}

/** `true` or `false`. */
export const isBoolean: OptionCheck = (value) => typeof value === 'boolean' || 'true or false';

/** A function. */
export const isFunction: OptionCheck = (value) => typeof value === 'function' || 'a function';

/** A time limit: milliseconds that a timer can hold, or Infinity for none. */
export const isLimitMs: OptionCheck = (value) =>
  (typeof value === 'number' && value > 0 && (value <= MAX_DELAY_MS || value === Number.POSITIVE_INFINITY)) ||
  `milliseconds above 0 and up to ${MAX_DELAY_MS} (24.8 days), or Infinity`;

/** One of some words. */
export function isOneOf(...words: readonly string[]): OptionCheck {
  return (value) => words.includes(value as string) || `one of ${words.map((word) => `"${word}"`).join(', ')}`;
}

/** An array whose items all pass `check`; `allowed` names it in the message. */
export function isListOf(check: (item: unknown) => boolean, allowed: string): OptionCheck {
  return (value) => (Array.isArray(value) && value.every((item) => check(item))) || allowed;
}

/** A whole number of at least `least`. */
export function isCount(least: number): OptionCheck {
  return (value) =>
    (Number.isSafeInteger(value) && (value as number) >= least) || `a whole number of at least ${least}`;
}

/** A whole number of at least `least`, or Infinity for no limit. */
export function isLimit(least: number): OptionCheck {
  return (value) =>
    value === Number.POSITIVE_INFINITY ||
    isCount(least)(value) === true ||
    `a whole number of at least ${least}, or Infinity`;
}

/** Other values for some tools. */
export interface ByTool<Value> {
  readonly default?: Value;
  /** By name. `*` stands for any characters; a tool's own name goes before a pattern, and of patterns the first that fits counts. */
  readonly byTool: Readonly<Record<string, Value>>;
}

/** An option for all tools, or with other values for some. */
export type PerTool<Value> = Value | ByTool<Value>;

function isByTool(option: unknown): option is ByTool<unknown> {
  return isPlainObject(option) && isPlainObject(option['byTool']);
}

/** Checks each value of a per-tool option. */
export function perToolCheck(check: OptionCheck): OptionCheck {
  return (option) => {
    if (!isByTool(option)) return check(option);
    const { default: rest, byTool, ...others } = option;
    if (Object.keys(others).length > 0) return 'one value, or { default, byTool } and nothing else';
    for (const [owner, value] of [['default', rest] as const, ...Object.entries(byTool)]) {
      const allowed = value === undefined || check(value);
      if (allowed !== true) return `${allowed}, for each tool ("${owner}" has ${shown(value)})`;
    }
    return true;
  };
}

/** Reads a per-tool option: a function from a tool's name to its value. Any name is safe: the look-up is in a Map. */
export function perTool<Value>(option: PerTool<Value> | undefined, fallback: Value): (toolName: string) => Value {
  if (!isByTool(option)) {
    const value = option ?? fallback;
    return () => value;
  }
  const { default: rest = fallback, byTool } = option as ByTool<Value>;
  const values = new Map(Object.entries(byTool).filter(([, value]) => value !== undefined));
  const patterns = [...values]
    .filter(([name]) => name.includes('*'))
    .map(([name, value]) => [wildcard(name), value] as const);
  // Most have none.
  if (patterns.length === 0) return (toolName) => values.get(toolName) ?? rest;
  return (toolName) => values.get(toolName) ?? patterns.find(([fits]) => fits(toolName))?.[1] ?? rest;
}
