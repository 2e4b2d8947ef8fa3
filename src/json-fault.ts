/**
 * Where text that `JSON.parse` has refused first goes wrong: the index of the character, or the text's length where it only stops
 * too early. The engine's own message will not do: its wording differs from version to version, and it often names no position.
 */
export function jsonFaultIndex(text: string): number {
  const scan = new Scan(text);
  const at = scan.run();
  const cutOff = at === text.length && !scan.complete;
  return cutOff ? at : (scan.slip ?? at);
}

const SCALAR = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)$/;
const SCALAR_CUT_OFF = /^(?:-|-?(?:0|[1-9]\d*)(?:\.|(?:\.\d+)?[eE][+-]?)|t|tr|tru|f|fa|fal|fals|n|nu|nul)$/;
const WORD = /[-+.\w]*/y;
const SPACE = /[ \t\n\r]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;
const ESCAPE_CUT_OFF = /^\\(?:u[\da-fA-F]{0,3})?$/;

/** What has to come. */
type Expected = 'value' | 'key' | ':' | ',';

/** One walk over the text, without recursion: how deep it nests is up to whoever sent it. */
class Scan {
  /** The first fault within a text value, after which it can go on. */
  slip: number | undefined = undefined;
  readonly #text: string;
  /** The brackets that have to come, innermost last. */
  readonly #closers: string[] = [];
  #next: Expected = 'value';
  #at = 0;
  /** The text ends within a text value. */
  #unclosed = false;

  constructor(text: string) {
    this.#text = text;
  }

  get complete(): boolean {
    return this.#closers.length === 0 && this.#next === ',' && !this.#unclosed;
  }

  /** Goes on to the first fault outside a text value, or to the end. */
  run(): number {
    let before = '';
    for (;;) {
      this.#at += this.#matched(SPACE).length;
      const character = this.#text[this.#at];
      if (character === undefined || !this.#step(character, before)) return this.#at;
      before = character;
    }
  }

  /** Takes one token; false where it may not stand here. */
  #step(character: string, before: string): boolean {
    const closer = this.#closers.at(-1);
    if (character === closer && (this.#next === ',' || before === '{' || before === '[')) {
      this.#closers.pop();
      return this.#take(1, ',');
    }
    if (this.#next === ',') return character === ',' && closer !== undefined && this.#take(1, memberOf(closer));
    if (this.#next === ':') return character === ':' && this.#take(1, 'value');
    if (character === '"') return this.#take(this.#stringLength(), this.#next === 'key' ? ':' : ',');
    if (this.#next === 'key') return false;
    if (character === '{' || character === '[') {
      const opened = character === '{' ? '}' : ']';
      this.#closers.push(opened);
      return this.#take(1, memberOf(opened));
    }
    return this.#scalar();
  }

  #take(length: number, next: Expected): true {
    this.#at += length;
    this.#next = next;
    return true;
  }

  #scalar(): boolean {
    const word = this.#matched(WORD);
    if (SCALAR.test(word)) return this.#take(word.length, ',');
    const end = this.#at + word.length === this.#text.length;
    return end && SCALAR_CUT_OFF.test(word) && this.#take(word.length, 'value');
  }

  #stringLength(): number {
    const text = this.#text;
    let at = this.#at + 1;
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) return at + 1 - this.#at;
      if (code === BACKSLASH) at += this.#escapeLength(at) - 1;
      else if (code < FIRST_PRINTABLE) this.slip ??= at;
    }
    this.#unclosed = true;
    return text.length - this.#at;
  }

  #escapeLength(at: number): number {
    ESCAPE.lastIndex = at;
    const found = ESCAPE.exec(this.#text);
    if (found !== null) return found[0].length;
    if (!ESCAPE_CUT_OFF.test(this.#text.slice(at, at + 6))) this.slip ??= at;
    return 2;
  }

  #matched(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text)?.[0] ?? '';
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const FIRST_PRINTABLE = 0x20;

function memberOf(closer: string): 'key' | 'value' {
  return closer === '}' ? 'key' : 'value';
}
