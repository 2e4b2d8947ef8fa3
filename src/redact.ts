import { types } from 'node:util';
import { ASSIGNMENTS, type Assignment, assignmentOf, nameAt, type Span, spanOf } from './assigned.ts';
import { type JsonObject, type JsonValue, setOwn, toJson } from './json.ts';
import { checkOptions, isListOf } from './options.ts';
import {
  isNameHolder,
  isSecretName,
  isSecretParameter,
  isValueHolder,
  KEY_BEGINNING,
  KEY_END,
  normalKey,
  SECRET_SHAPES,
} from './secrets.ts';

/** What stands in the place of a value that was taken out. */
export const REDACTED = '[REDACTED]';

/** What to take out. */
export interface RedactOptions {
  /** More names of keys whose values are secret: only their letters and digits count, in any case. Default: none. */
  readonly keys?: readonly string[];
  /** More patterns; each match inside any text is taken out. Default: none. */
  readonly patterns?: readonly RegExp[];
}

/** Runs after which what still changes is taken out whole. */
const MAX_RUNS = 4;

/** Characters of base64 below which it says nothing secret. */
const SHORTEST = 12;

/** Most keys: too short for a secret, and nothing is assigned in it. */
const PLAIN_KEY = /^[\w$-]{0,12}$/;

/** How far behind a secret's name, in the place of a value, its value may stand. */
const HOLDER_REACH = 300;

/** Characters a parameter of an address has to have to be secret, where its name says little. */
const LONG_PARAMETER = 16;

const BASE64 = /^[A-Za-z0-9+/\r\n]+(?:={1,2}\s{0,9})?$/;

/**
 * Makes a redactor: a plain JSON copy of any value, without the secrets in it. Total: it never throws, and what it cannot read it
 * takes out. What has been redacted stays as it is when it is redacted again.
 *
 * @throws TypeError naming the option and what is allowed.
 */
export function redactor(options: RedactOptions = {}): (value: unknown) => JsonValue {
  checkOptions('redactor', options, {
    keys: isListOf((key) => typeof key === 'string', 'an array of names'),
    patterns: isListOf(types.isRegExp, 'an array of regular expressions'),
  });
  const redaction = new Redaction(options);
  return (value) => {
    try {
      return redaction.of(toJson(value));
    } catch {
      return REDACTED;
    }
  };
}

class Redaction {
  readonly #keys: ReadonlySet<string>;
  readonly #patterns: readonly RegExp[];
  #changed = false;

  constructor({ keys = [], patterns = [] }: RedactOptions) {
    this.#keys = new Set(keys.map(normalKey));
    this.#patterns = patterns.map(everywhere);
  }

  of(value: JsonValue): JsonValue {
    let cleaned = value;
    // Where something was taken out, something else may come to light.
    for (let run = 0; run < MAX_RUNS; run++) {
      this.#changed = false;
      cleaned = this.#clean(cleaned);
      if (!this.#changed) return cleaned;
    }
    return REDACTED;
  }

  #clean(value: JsonValue): JsonValue {
    if (typeof value === 'string') return this.#text(value);
    if (typeof value !== 'object' || value === null) return value;
    return Array.isArray(value) ? this.#list(value) : this.#object(value as JsonObject);
  }

  #hide(value: JsonValue): JsonValue {
    if (value !== REDACTED) this.#changed = true;
    return REDACTED;
  }

  #isSecret(name: string, value: JsonValue): boolean {
    return this.#keys.has(normalKey(name)) || isSecretName(name, value);
  }

  #object(value: JsonObject): JsonValue {
    const entries = Object.entries(value);
    const named = entries.some(
      ([key, name]) => typeof name === 'string' && isNameHolder(key) && isLabel(name) && this.#isSecret(name, ''),
    );
    const copy: Record<string, JsonValue> = {};
    for (const [key, item] of entries) {
      const shown = this.#patterns.length === 0 && PLAIN_KEY.test(key) ? key : this.#prose(key);
      const secret = this.#isSecret(key, item) || (named && isValueHolder(key));
      setOwn(copy, shown, secret ? this.#hide(item) : this.#clean(item));
    }
    return copy;
  }

  #list(list: readonly JsonValue[]): JsonValue {
    const [key, held = null] = list;
    // The entry of a Map, or a header.
    if (list.length === 2 && isWord(key) && !isOption(held) && this.#isSecret(key, held))
      return [this.#clean(key), this.#hide(held)];
    let inPrivateKey = false;
    return list.map((item, index) => {
      const hidden = inPrivateKey || this.#isValueOf(list[index - 1], item, index % 2 === 1 && list.length % 2 === 0);
      if (typeof item === 'string') inPrivateKey = inPrivateKey ? !KEY_END.test(item) : isOpenKey(item);
      return hidden ? this.#hide(item) : this.#clean(item);
    });
  }

  /** Whether an item of a list is the value of the one before it, as in the arguments of a command and in raw headers. */
  #isValueOf(before: JsonValue | undefined, item: JsonValue, paired: boolean): boolean {
    if (typeof before !== 'string' || typeof item !== 'string') return false;
    const names = isOption(before) ? !isOption(item) : paired && RAW_HEADER.test(before);
    return names && this.#isSecret(before, item);
  }

  /** Text may be JSON, which may hold text that is JSON. Where there is nothing to take out, it keeps its layout. */
  #text(text: string): string {
    const held = /^\s*["[{]/.test(text) ? parsed(text) : undefined;
    if (held !== undefined) {
      const [cleaned, changed] = this.#aside(() => this.#clean(held));
      // A key that JSON text holds twice is not in what was parsed.
      return changed ? JSON.stringify(cleaned) : this.#prose(text);
    }
    const decoded = text.length < SHORTEST ? undefined : decodedText(text);
    return decoded !== undefined && this.#aside(() => this.#text(decoded))[1] ? REDACTED : this.#prose(text);
  }

  /** What a step gives, and whether it, and not one before it, changed something. */
  #aside<Value>(step: () => Value): readonly [Value, boolean] {
    const before = this.#changed;
    this.#changed = false;
    const value = step();
    const changed = this.#changed;
    this.#changed ||= before;
    return [value, changed];
  }

  #prose(text: string): string {
    let cleaned = SECRET_SHAPES.reduce((rest, shape) => rest.replace(shape, shown), text);
    for (const pattern of this.#patterns) cleaned = cleaned.replace(pattern, hidden);
    for (const pattern of ASSIGNMENTS) cleaned = this.#withoutAssigned(cleaned, pattern);
    if (cleaned === text) return text;
    this.#changed = true;
    // A pattern may have cut a character in half.
    return text.isWellFormed() ? cleaned.toWellFormed() : cleaned;
  }

  /** Takes out what is assigned to a secret's name. */
  #withoutAssigned(text: string, pattern: RegExp): string {
    const kept: string[] = [];
    let from = 0;
    // Up to where a value belongs to a name that was a value itself.
    let reach = 0;
    pattern.lastIndex = 0;
    for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
      const assignment = assignmentOf(text, match);
      pattern.lastIndex = assignment.next;
      const span = this.#secretSpan(text, assignment, match.index < reach);
      if (assignment.sign !== ',' && isNameHolder(assignment.name)) reach = this.#reachOf(text, assignment);
      if (span === undefined || span.end <= span.start) continue;
      kept.push(text.slice(from, span.start), span.mark, REDACTED, span.mark);
      from = span.end;
      pattern.lastIndex = from;
    }
    return kept.length === 0 ? text : kept.join('') + text.slice(from);
  }

  #secretSpan(text: string, assignment: Assignment, named: boolean): Span | undefined {
    const { name, sign, at } = assignment;
    if (named && isValueHolder(name)) return spanOf(text, assignment, true);
    if (sign === '=' && /[?&#]/.test(text.charAt(at - 1)) && isSecretParameter(name)) {
      const span = spanOf(text, assignment);
      return span && span.end - span.start >= LONG_PARAMETER ? span : undefined;
    }
    // Most names are told apart before anybody looks for a value.
    if (!this.#isSecret(name, '')) return undefined;
    const span = spanOf(text, assignment);
    return span && this.#isSecret(name, text.slice(span.start, span.end)) ? span : undefined;
  }

  /** How far a secret's name reaches that stands in the place of a value: `"name": "token", "value": …`. */
  #reachOf(text: string, assignment: Assignment): number {
    const name = nameAt(text, assignment);
    if (!isLabel(name) || !this.#isSecret(name, '')) return 0;
    const { start } = assignment;
    const end = text.slice(start, start + HOLDER_REACH).search(/[{}]/);
    return start + (end < 0 ? HOLDER_REACH : end);
  }
}

const RAW_HEADER = /^(?:(?:proxy-)?authorization|(?:set-)?cookie|x-[\w-]{1,40})$/i;

/** Whether a text could be the name of something, rather than prose. */
function isWord(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && /^\S{1,64}$/.test(value);
}

/** An option of a command. */
function isOption(value: JsonValue): boolean {
  return typeof value === 'string' && /^--?[A-Za-z][\w-]{0,64}$/.test(value);
}

/** The same for people: of a field in a form. */
function isLabel(text: string): boolean {
  return text.length <= 64 && /^\S+(?: \S+){0,2}$/.test(text);
}

function isOpenKey(text: string): boolean {
  return KEY_BEGINNING.test(text) && !KEY_END.test(text);
}

/** What text in base64 says, if that is text. */
function decodedText(text: string): string | undefined {
  if (!BASE64.test(text)) return undefined;
  // Enough to tell most pictures.
  if (!isReadable(Buffer.from(text.slice(0, 400), 'base64').subarray(0, 200).toString('latin1'))) return undefined;
  const decoded = Buffer.from(text, 'base64').toString();
  return isReadable(decoded) ? decoded : undefined;
}

function isReadable(text: string): boolean {
  return !/[^\P{Cc}\t\n\r\x80-\x9f]|\ufffd/u.test(text);
}

/** What a shape leaves of its match: its group, where it has one. */
function shown(_match: string, before: unknown): string {
  return typeof before === 'string' ? before + REDACTED : REDACTED;
}

function hidden(match: string): string {
  return match === '' ? '' : REDACTED;
}

/** The pattern for all matches, but for what stands for a value already. */
function everywhere({ source, flags }: RegExp): RegExp {
  return new RegExp(`\\[REDACTED\\]|(?:${source})`, `${flags.replace(/[gy]/g, '')}g`);
}

function parsed(text: string): JsonValue | undefined {
  try {
    return toJson(JSON.parse(text.trim()));
  } catch {
    return undefined;
  }
}
