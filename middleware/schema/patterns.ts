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
export function inJavaScript(pattern: string): readonly [source: string, flags: string] {
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
export function unquoted(pattern: string): readonly [source: string, flags: string] | undefined {
  const [, source, flags = ''] = /^\/(\^[\s\S]*\$)\/([gimsuy]*)$/.exec(pattern) ?? [];
  return source === undefined ? undefined : [source, flags.replace(/[guy]/g, '')];
}
