import { types } from 'node:util';
import { type JsonValue, setOwn, toJson } from './json.ts';
import { checkOptions } from './options.ts';

/** What stands in the place of a value that was taken out. */
export const REDACTED = '[REDACTED]';

/** What to take out. */
export interface RedactOptions {
  /** More names of keys whose values are secret: matched in any case, with or without `-`, `_`, `.` and spaces. Default: none. */
  readonly keys?: readonly string[];
  /** More patterns; each match inside any text is taken out. Default: none. */
  readonly patterns?: readonly RegExp[];
}

/** Names of secrets as they stand alone, normalised. Not all that ends in `token` is one: there are tokens for the next page. */
const SECRET_KEYS = ['auth', 'pwd', 'token', 'idtoken'];

/** How the names of secrets end, normalised: `DB_PASSWORD`, `X-Api-Key`, `Set-Cookie`, `stripeSecretKey`. */
const SECRET_ENDING =
  /(?:password|passwd|passphrase|secret|(?:api|private|secret|access|session|signing)key|(?:access|auth|refresh|bearer|session|security|api|github)token|authorization|cookie|credentials?|connectionstring)\d*$/;

/** Shapes of secrets that give themselves away. Each is linear in the length of the text. */
const SECRET_SHAPES: readonly RegExp[] = [
  /\bbearer\s+[A-Za-z0-9._~+/=-]{8,}/gi,
  // Base64, not the next word of a sentence.
  /\b[Bb]asic\s+(?=[A-Za-z+/]*(?:\d|=|[a-z][A-Z]))[A-Za-z0-9+/]{8,}={0,2}/g,
  /\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}/g,
  /\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}/g,
  /\bgh[pousr]_[A-Za-z0-9]{36,}/g,
  /\bgithub_pat_[A-Za-z0-9_]{22,}/g,
  /\bglpat-[A-Za-z0-9_-]{20,}/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  /\bAIza[A-Za-z0-9_-]{35}/g,
  /\b(?:AKIA|ASIA|AGPA)[A-Z0-9]{16}\b/g,
  /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,9999}\.[A-Za-z0-9_-]{8,99999}\.[A-Za-z0-9_-]{0,9999}/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@"'<>]{0,200}:[^\s/@"'<>]{1,200}@/gi,
];

/** A name and the beginning of its value, within any text: `"apiKey": "`, `DB_PASSWORD=`, `\"token\":\"`. */
const ASSIGNMENT =
  /(?:(\\{0,8}["'])([\w .-]{2,64})\1|(?<![\w.-])([\w.-]{2,64}))([ \t]{0,9}[=:][ \t]{0,9})(?=(\\{0,8}["'])?)/g;

/** A value without quotes. */
const BARE_VALUE = /[^\s"'`,;&<>()[\]{}\\]+/y;

/** Deepest JSON-in-text that is looked into. */
const MAX_NESTED_TEXT = 3;

/**
 * Makes a redactor: a plain JSON copy of any value, without the secrets in it. Total: it never throws, and what it cannot read it
 * takes out.
 *
 * @throws TypeError naming the option and what is allowed.
 */
export function redactor(options: RedactOptions = {}): (value: unknown) => JsonValue {
  checkOptions('redactor', options, {
    keys: (keys) => isListOf(keys, (key) => typeof key === 'string') || 'an array of names',
    patterns: (patterns) => isListOf(patterns, types.isRegExp) || 'an array of regular expressions',
  });
  const redaction = new Redaction(options);
  return (value) => {
    try {
      return redaction.clean(toJson(value), 0);
    } catch {
      return REDACTED;
    }
  };
}

function isListOf(values: unknown, check: (value: unknown) => boolean): boolean {
  return Array.isArray(values) && values.every(check);
}

class Redaction {
  readonly #keys: ReadonlySet<string>;
  readonly #shapes: readonly RegExp[];

  constructor({ keys = [], patterns = [] }: RedactOptions) {
    this.#keys = new Set([...SECRET_KEYS, ...keys.map(normalKey)]);
    this.#shapes = [...SECRET_SHAPES, ...patterns.map(everywhere)];
  }

  clean(value: JsonValue, nested: number): JsonValue {
    if (typeof value === 'string') return this.#text(value, nested);
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return this.#list(value, nested);
    const copy: Record<string, JsonValue> = {};
    for (const [key, item] of Object.entries(value as Record<string, JsonValue>)) {
      setOwn(copy, this.#prose(key), this.#isSecret(key) ? REDACTED : this.clean(item, nested));
    }
    return copy;
  }

  #list(list: readonly JsonValue[], nested: number): JsonValue {
    const cleaned = list.map((item) => this.clean(item, nested));
    const [key] = cleaned;
    // The entry of a Map, or a header.
    return cleaned.length === 2 && isName(key) && this.#isSecret(key) ? [key, REDACTED] : cleaned;
  }

  #isSecret(key: string): boolean {
    const name = normalKey(key);
    return this.#keys.has(name) || SECRET_ENDING.test(name);
  }

  /** Text may be JSON, which may hold text that is JSON. Where there is nothing to take out, it keeps its layout. */
  #text(text: string, nested: number): string {
    const held = nested < MAX_NESTED_TEXT && /^\s*["[{]/.test(text) ? parsed(text) : undefined;
    if (held === undefined) return this.#prose(text);
    const cleaned = JSON.stringify(this.clean(held, nested + 1));
    return cleaned === JSON.stringify(held) ? this.#withoutShapes(text) : cleaned;
  }

  #prose(text: string): string {
    return this.#withoutShapes(this.#withoutAssigned(text));
  }

  #withoutShapes(text: string): string {
    return this.#shapes.reduce((cleaned, shape) => cleaned.replace(shape, hidden), text);
  }

  /** Takes out what is assigned to a secret's name. */
  #withoutAssigned(text: string): string {
    const kept: string[] = [];
    let from = 0;
    for (const match of text.matchAll(ASSIGNMENT)) {
      const [whole, , quoted, bare, sign = '', quote = ''] = match;
      if (match.index < from || !this.#isSecret(quoted ?? bare ?? '')) continue;
      const start = match.index + whole.length + quote.length;
      const end = quote === '' ? bareEnd(text, start, sign) : quotedEnd(text, start, quote);
      if (end === start) continue;
      kept.push(text.slice(from, start), REDACTED);
      from = end;
    }
    return from === 0 ? text : [...kept, text.slice(from)].join('');
  }
}

/** Whether a value could be the name of another, rather than prose. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 64;
}

function hidden(match: string): string {
  return match === '' ? '' : REDACTED;
}

/** Where a value without quotes ends; where it starts, if it looks like a word of a sentence: `token: expected …`. */
function bareEnd(text: string, start: number, sign: string): number {
  BARE_VALUE.lastIndex = start;
  const value = BARE_VALUE.exec(text)?.[0] ?? '';
  return sign === '=' || value.length >= 16 || (value.length >= 6 && /\d/.test(value)) ? start + value.length : start;
}

/**
 * Where a value in quotes ends: at the same quote, or at the end of the text. Each time JSON is written into JSON the backslashes
 * double and one more joins them, so by their number a closing quote differs from one that belongs to the value.
 */
function quotedEnd(text: string, start: number, quote: string): number {
  const slashes = quote.length - 1;
  const mark = quote.slice(slashes);
  for (let at = text.indexOf(mark, start); at >= 0; at = text.indexOf(mark, at + 1)) {
    let first = at;
    while (first > start && text[first - 1] === '\\') first--;
    const before = at - first;
    if (before <= slashes || (before - slashes) % (2 * slashes + 2) === 0) return at - Math.min(before, slashes);
  }
  return text.length;
}

function everywhere(pattern: RegExp): RegExp {
  return new RegExp(pattern.source, `${pattern.flags.replace(/[gy]/g, '')}g`);
}

function normalKey(key: string): string {
  return key.toLowerCase().replace(/[-_\s.]/g, '');
}

function parsed(text: string): JsonValue | undefined {
  try {
    return toJson(JSON.parse(text));
  } catch {
    return undefined;
  }
}
