import { type JsonValue, setOwn } from './json.ts';

/** The first departure from JSON of its kind. */
export interface Slip {
  /** The index of the first character that is none. */
  readonly at: number;
  /** As in `not valid JSON: a trailing comma`. */
  readonly kind: string;
  /** Whether it leaves no doubt what was meant. */
  readonly plain: boolean;
}

/** What a text holds, read as far as its meaning is plain. */
export interface JsonReading {
  /** One value after the other; of JSON there is one, of blank text none. */
  readonly values: readonly JsonValue[];
  /** `cut_off`: the text stops in the middle of a value; `fault`: at `at` stands what cannot be understood. */
  readonly ending: 'complete' | 'cut_off' | 'fault';
  readonly at: number;
  readonly slips: readonly Slip[];
  /** The first whole number that a double cannot hold, as written. */
  readonly inexact: string | undefined;
}

/**
 * Reads JSON, and text whose departures from it are plain. Linear, whatever the text is, and without recursion; what nests deeper than
 * a million levels is a fault.
 */
export function readJson(text: string): JsonReading {
  const reader = new Reader(text);
  const { ending, at } = reader.run();
  const { values, slips, inexact } = reader;
  return { values, ending, at, slips: [...slips.values()], inexact };
}

/**
 * Where text that `JSON.parse` has refused first goes wrong: the index of the character, or the text's length where it only stops
 * too early. The engine's own message will not do: its wording differs from version to version, and it often names no position.
 */
export function jsonFaultIndex(text: string): number {
  return faultIndexOf(readJson(text));
}

/** The same for text that has been read. */
export function faultIndexOf({ ending, at, slips }: JsonReading): number {
  // A text value with a slip in it may stop too early all the same.
  const stops = ending === 'cut_off' && slips.every(({ kind }) => kind === CONTROL || kind === ESCAPE_SLIP);
  return stops ? at : (slips[0]?.at ?? at);
}

/** The slip of a text that holds one value after the other. */
export const SEVERAL = 'several values';
/** The slip of a text value, or a key, between quotes of another kind. */
export const SINGLE_QUOTES = 'single quotes';
const TRAILING_COMMA = 'a trailing comma';
const CONTROL = 'a control character in a text';
const ESCAPE_SLIP = 'an escape that JSON does not know';

const SCALAR = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)$/;
const NUMBER_CUT_OFF = /^(?:-|-?(?:0|[1-9]\d*)(?:\.|(?:\.\d+)?[eE][+-]?))$/;
const WORDS = ['true', 'false', 'null', 'True', 'False', 'None'];
/** As Python writes them. */
const PYTHON: ReadonlyMap<string, JsonValue> = new Map([
  ['True', true],
  ['False', false],
  ['None', null],
]);
const WORD = /[-+.\w]*/y;
const NAME = /[A-Za-z_$][\w$-]*/y;
const SPACE = /[ \t\n\r]*/y;
const ODD_SPACE = /[\s\uFEFF]+/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;
const ESCAPE_CUT_OFF = /^\\(?:u[\da-fA-F]{0,3})?$/;
const FENCE = /```\w*/y;
/** What marks the parts of a model's own writing: `<|call|>`, `</tool_call>`, `<end_of_turn>`. */
const CONTROL_TOKEN = /<\/?[|\uFF5C]?[\w\u2581]{1,40}[|\uFF5C]?>/y;

/** Each level costs memory, and a model that is caught in a loop can open millions. */
const MAX_OPEN = 1_000_000;

/** What has to come. */
type Expected = 'value' | 'key' | ':' | ',';

/** An object or list that is not complete. */
interface Open {
  readonly into: JsonValue[] | Record<string, JsonValue>;
  readonly closer: '}' | ']';
  key: string;
}

class Reader {
  readonly values: JsonValue[] = [];
  /** By kind, in the order of the text. */
  readonly slips = new Map<string, Slip>();
  inexact: string | undefined = undefined;
  readonly #text: string;
  /** Innermost last. */
  readonly #open: Open[] = [];
  #next: Expected = 'value';
  #at = 0;
  /** There is something beside what may stand around a value. */
  #hasBegun = false;
  /** The text ends within a text value. */
  #unclosed = false;

  constructor(text: string) {
    this.#text = text;
  }

  run(): Pick<JsonReading, 'ending' | 'at'> {
    let before = '';
    for (;;) {
      this.#skipSpace();
      const at = this.#at;
      const character = this.#text[at];
      if (character === undefined) break;
      const taken = this.#open.length === 0 ? this.#outside(character) : this.#inside(character, before);
      if (!taken) return { ending: 'fault', at };
      before = character;
    }
    this.#endList();
    return { ending: this.#isComplete ? 'complete' : 'cut_off', at: this.#text.length };
  }

  get #isComplete(): boolean {
    const isBetween = this.#next === ',' || !this.#hasBegun;
    return this.#open.length === 0 && isBetween && !this.#unclosed;
  }

  /** A comma behind the last value, and nothing after it. */
  #endList(): void {
    const several = this.slips.get(SEVERAL);
    if (several === undefined || this.#next !== 'value' || this.#open.length > 0 || this.#unclosed) return;
    this.#next = ',';
    if (this.values.length > 1) return;
    this.slips.delete(SEVERAL);
    this.slips.set(TRAILING_COMMA, { ...several, kind: TRAILING_COMMA });
  }

  #skipSpace(): void {
    this.#at += this.#matched(SPACE).length;
    const odd = this.#matched(ODD_SPACE).length;
    if (odd > 0) this.#slip(odd, 'white space of another kind');
  }

  /** Around the values: what does not belong to them, and whether another one begins. */
  #outside(character: string): boolean {
    const fence = character === '`' ? this.#matched(FENCE).length : 0;
    if (fence > 0) return this.#slip(fence, 'a code fence');
    const token = character === '<' ? this.#matched(CONTROL_TOKEN).length : 0;
    if (token > 0) return this.#slip(token, 'a control token');
    if (this.#next === 'value') return this.#value(character);
    if (character !== '{' && character !== ',') return false;
    // A comma between them is the same slip.
    this.#next = 'value';
    return this.#slip(character === ',' ? 1 : 0, SEVERAL) && (character === ',' || this.#value(character));
  }

  /** Takes one token; false where it may not stand here. */
  #inside(character: string, before: string): boolean {
    const { closer } = this.#open.at(-1) as Open;
    if (character === closer) return this.#close(before);
    switch (this.#next) {
      case ',':
        return character === ',' && this.#take(1, closer === '}' ? 'key' : 'value');
      case ':':
        return character === ':' && this.#take(1, 'value');
      case 'key':
        return this.#key(character);
      case 'value':
        return this.#value(character);
    }
  }

  #close(before: string): boolean {
    if (this.#next !== ',' && before !== '{' && before !== '[') {
      if (before !== ',') return false;
      this.#slip(0, TRAILING_COMMA);
    }
    const { into } = this.#open.pop() as Open;
    this.#at++;
    return this.#put(into);
  }

  #key(character: string): boolean {
    const open = this.#open.at(-1) as Open;
    if (character === '"' || character === "'") {
      open.key = this.#string(character);
    } else {
      const name = this.#matched(NAME);
      if (name === '') return false;
      open.key = name;
      this.#slip(name.length, 'a key without quotes');
    }
    this.#next = ':';
    return true;
  }

  #value(character: string): boolean {
    this.#hasBegun = true;
    if (character === '"' || character === "'") return this.#put(this.#string(character));
    if (character === '{') return this.#begin({ into: {}, closer: '}', key: '' }, 'key');
    if (character === '[') return this.#begin({ into: [], closer: ']', key: '' }, 'value');
    return this.#scalar();
  }

  #begin(open: Open, next: Expected): boolean {
    if (this.#open.length === MAX_OPEN) return false;
    this.#open.push(open);
    return this.#take(1, next);
  }

  #put(value: JsonValue): true {
    const open = this.#open.at(-1);
    if (open === undefined) this.values.push(value);
    else if (Array.isArray(open.into)) open.into.push(value);
    else setOwn(open.into, open.key, value);
    this.#next = ',';
    return true;
  }

  #take(length: number, next: Expected): true {
    this.#at += length;
    this.#next = next;
    return true;
  }

  #slip(length: number, kind: string): true {
    this.#note(kind, this.#at);
    this.#at += length;
    return true;
  }

  #note(kind: string, at: number, plain = true): void {
    const known = this.slips.get(kind);
    // What leaves a doubt outweighs what leaves none, wherever it stands.
    if (known === undefined || (known.plain && !plain)) this.slips.set(kind, { at, kind, plain });
  }

  #scalar(): boolean {
    const word = this.#matched(WORD);
    if (SCALAR.test(word)) {
      this.#at += word.length;
      const value: JsonValue = JSON.parse(word);
      if (typeof value === 'number' && isInexact(word, value)) this.inexact ??= word;
      return this.#put(value);
    }
    const python = PYTHON.get(word);
    if (python !== undefined) return this.#slip(word.length, `a word of Python's, ${word}`) && this.#put(python);
    const end = this.#at + word.length === this.#text.length;
    return end && isCutOff(word) && this.#take(word.length, 'value');
  }

  /** Takes a text value, up to its quote or the end. */
  #string(quote: '"' | "'"): string {
    const text = this.#text;
    const begin = this.#at + 1;
    if (quote === "'") this.#slip(0, SINGLE_QUOTES);
    let end = begin;
    for (; end < text.length; end++) {
      const code = text.charCodeAt(end);
      if (code === quote.charCodeAt(0)) break;
      if (code === BACKSLASH) end += this.#escapeLength(end) - 1;
      else if (code < FIRST_PRINTABLE) this.#note(CONTROL, end);
    }
    this.#unclosed = end >= text.length;
    this.#at = Math.min(end + 1, text.length);
    return this.#unclosed ? '' : unescaped(text.slice(begin, end));
  }

  #escapeLength(at: number): number {
    ESCAPE.lastIndex = at;
    const found = ESCAPE.exec(this.#text);
    if (found !== null) return found[0].length;
    const plain = this.#text[at + 1] === "'";
    if (!ESCAPE_CUT_OFF.test(this.#text.slice(at, at + 6))) this.#note(ESCAPE_SLIP, at, plain);
    return 2;
  }

  #matched(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text)?.[0] ?? '';
  }
}

const BACKSLASH = 0x5c;
const FIRST_PRINTABLE = 0x20;

/** Whether a scalar stops too early. */
function isCutOff(word: string): boolean {
  return NUMBER_CUT_OFF.test(word) || (word !== '' && WORDS.some((each) => each.startsWith(word)));
}

/**
 * Whether a whole number is another one as a double. One that a program wrote from a double may have other last digits than that, and
 * is it.
 */
function isInexact(word: string, held: number): boolean {
  if (Number.isSafeInteger(held) || /[.eE]/.test(word)) return false;
  return !Number.isFinite(held) || (BigInt(word) !== BigInt(held) && String(held) !== word);
}

/** What stands between the quotes of a text value; empty where it has an escape of no meaning. */
function unescaped(body: string): string {
  try {
    return JSON.parse(`"${body}"`);
  } catch {
    return repaired(body);
  }
}

function repaired(body: string): string {
  try {
    return JSON.parse(`"${body.replace(NOT_JSON, asJson)}"`);
  } catch {
    return '';
  }
}

/** An escape, which may be none of JSON's, or a character that has to be one. */
const NOT_JSON = /\\[\s\S]|["\p{Cc}]/gu;

function asJson(part: string): string {
  if (part.length === 1) return JSON.stringify(part).slice(1, -1);
  return part === "\\'" ? "'" : part;
}
