/** Makes a regular expression of a `pattern`. @throws where it cannot; flags: `u`. */
export type RegExpEngine = (pattern: string, flags: string) => { test(text: string): boolean };

/** What runs the patterns of a schema. */
export interface PatternOptions {
  /** Whether nothing in the schema may hold up the process: patterns need an engine, and a check may take so many steps. Default: false. */
  readonly untrusted?: boolean;
  /** What runs patterns. Default: the regular expressions of JavaScript, and nothing where the schema is untrusted. */
  readonly regExp?: RegExpEngine;
  /** Hears what is read in another way than it was written. Default: nobody. */
  readonly warn?: (message: string) => void;
}

/** The engine for a schema: the host's own, or JavaScript's where the schema is trusted. */
export function regExpOf({ untrusted = false, regExp, warn = () => {} }: PatternOptions): RegExpEngine {
  if (regExp === undefined) return untrusted ? refused : native(warn);
  return (pattern, flags) => {
    try {
      const engine = regExp(pattern, flags);
      // ajv takes patterns for the same that are the same as text.
      return { test: (text) => engine.test(text), toString: () => pattern };
    } catch (fault) {
      if (untrusted) throw fault;
      warn(`the engine given as regExp cannot read the pattern ${brief(pattern)}, so JavaScript's runs it`);
      return native(warn)(pattern, flags);
    }
  };
}

function refused(): never {
  throw new Error('The patterns of an untrusted schema are run by an engine given as regExp only.');
}

/**
 * Patterns as they are meant: one with a needless escape is not valid with the `u` flag, one of another language perhaps not at all,
 * or does not mean the same.
 */
function native(warn: (message: string) => void): RegExpEngine {
  return (pattern, flags) => {
    const [quoted, ownFlags] = unquoted(pattern) ?? [pattern, ''];
    const plain = expression(quoted, flags + ownFlags);
    const [source, theirFlags] = inJavaScript(quoted);
    const allFlags = ownFlags + theirFlags;
    const found = plain ?? expression(source, flags + allFlags) ?? expression(source, allFlags) ?? new RegExp(pattern);
    if (found.source !== pattern) warn(`the pattern ${brief(pattern)} is read as ${brief(String(found))}`);
    return found;
  };
}

function brief(pattern: string): string {
  return JSON.stringify(pattern.slice(0, 100));
}

function expression(source: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(source, flags);
  } catch {
    return undefined;
  }
}

/** Whether an engine can run a pattern. */
export function takes(regExp: RegExpEngine, pattern: string): boolean {
  try {
    regExp(pattern, 'u');
    return true;
  } catch {
    return false;
  }
}

/** What other languages write in a pattern, and what JavaScript does not know. */
const TOKENS =
  /\\Q([\s\S]*?)(?:\\E|$)|\\p([A-Z])|\\(?:[pP]|u)\{[^{}]*\}|\\([\s\S])|\[:(\w+):\]|\(\?P<(?=\w)|\(\?P=(\w+)\)|\(\?>|(\{\d+(?:,\d*)?\}|[*+?])\+|[\s\S]/g;

/** What an escape of another language stands for, outside of a class and within one. */
const ESCAPES: ReadonlyMap<string, readonly [string, string]> = new Map([
  ['A', ['^', 'A']],
  ['Z', ['$', 'Z']],
  ['z', ['$', 'z']],
  ['h', ['[ \\t]', ' \\t']],
  ['-', ['-', '\\-']],
]);

/** The content of a class that POSIX names. */
const CLASSES: ReadonlyMap<string, string> = new Map([
  ['alnum', 'A-Za-z0-9'],
  ['alpha', 'A-Za-z'],
  ['digit', '0-9'],
  ['lower', 'a-z'],
  ['upper', 'A-Z'],
  ['space', '\\s'],
  ['word', '\\w'],
  ['xdigit', '0-9A-Fa-f'],
]);

/** A pattern and its flags as JavaScript writes them, where it was written as Python, Java, Go or PHP do; without needless escapes. */
function inJavaScript(pattern: string): readonly [source: string, flags: string] {
  const [, start = '', flags = '', rest = pattern] = /^(\^?)\(\?([ims]+)\)([\s\S]*)$/.exec(pattern) ?? [];
  let isInClass = false;
  const source = (start + rest).replace(TOKENS, (token, ...found: (string | undefined)[]) => {
    const [literal, property, escaped, posix, name, quantifier] = found;
    if (literal !== undefined) return literal.replace(/[$()*+./?[\\\]^{|}-]/g, '\\$&');
    if (property !== undefined) return `\\p{${property}}`;
    if (escaped !== undefined) return unescaped(escaped, isInClass);
    if (posix !== undefined && isInClass) return CLASSES.get(posix) ?? token;
    if (isInClass) {
      isInClass = !token.includes(']');
      return token;
    }
    if (name !== undefined) return `\\k<${name}>`;
    isInClass = token.startsWith('[');
    if (token === '(?P<') return '(?<';
    return token === '(?>' ? '(?:' : (quantifier ?? token);
  });
  return [source, flags];
}

function unescaped(character: string, isInClass: boolean): string {
  const meant = ESCAPES.get(character);
  if (meant !== undefined) return meant[isInClass ? 1 : 0];
  return /[A-Za-z\d$()*+./?[\\\]^{|}]/.test(character) ? `\\${character}` : character;
}

/** A regular expression as JavaScript's own text of it, `/^a$/i`, which as a pattern fits nothing. */
function unquoted(pattern: string): readonly [source: string, flags: string] | undefined {
  const [, source, flags = ''] = /^\/(\^[\s\S]*\$)\/([gimsuy]*)$/.exec(pattern) ?? [];
  return source === undefined ? undefined : [source, flags.replace(/[guy]/g, '')];
}
