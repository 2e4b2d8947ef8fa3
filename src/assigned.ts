import { hasLongValue } from './secrets.ts';

/** Where in a text a value is assigned to a name. */
export interface Assignment {
  readonly name: string;
  /** The quote around the name, with its backslashes; empty where there is none. */
  readonly mark: string;
  /** What stands between name and value. */
  readonly sign: string;
  /** Where the name begins, its quote included. */
  readonly at: number;
  /** Where to look on, if this is none: what seems to be a name, or to follow one, may hold another. */
  readonly next: number;
  /** Where the value begins. */
  readonly start: number;
}

/** Where a value stands, without its quotes; or with brackets, where it is no text. */
export interface Span {
  readonly start: number;
  readonly end: number;
  /** The quotes that what is put in its place needs. */
  readonly mark: string;
}

/** A quote, or what stands for one in HTML, in an address, in JSON. */
const ENTITY = '(?:&quot;|&#34;|%22|\\\\u0022)?';

/** A name in quotes, or without. */
const NAMED =
  '(?:(?<!\\\\)(?<mark>\\\\{0,31}["\'`])(?<quoted>[^"\'`\\\\\\r\\n]{2,64})\\k<mark>|(?<![\\w.-])(?<bare>[\\w.-]{2,200}))';

/** What says that a value follows, a type before it included; a comma does between the items of a list. */
const SIGN =
  '(?::[ \\t]{0,3}[A-Za-z_][\\w.<>|[\\]]{0,40}[ \\t]{1,9}=(?![=>])|:=|=>|=(?!=)|:|(?<=["\'`]),|%(?:25){0,2}3[AaDd]|\\\\u003[Dd])';

/** A name and the beginning of its value: `"apiKey": `, `DB_PASSWORD=`, `\"token\":`, `user[password]=`, `token: string = `. */
const ASSIGNMENT = new RegExp(
  `${NAMED}(?:\\[?\\]|(?:%5B)?%5D)?${ENTITY}(?<sign>[ \\t]{0,9}${SIGN}[ \\t]{0,9})${ENTITY}`,
  'g',
);

/** An option of a command, before its value. */
const FLAG = /(?<![\w-])(?<bare>--?[A-Za-z][\w-]{1,64})(?<sign>[ \t]{1,9})(?=[^\s-])/g;

/** A sentence that tells a secret. */
const STATED =
  /(?<bare>password|passphrase|passcode|secret|token|api[ _-]?key)(?<sign>[ \t]{1,3}(?:is|was)[ \t]{0,3}:?[ \t]+)/gi;

/** An element of XML or HTML. */
const ELEMENT = /<(?<bare>[\w.:-]{2,64})(?<sign>(?:\s[^<>]{0,400})?>)/g;

/** All ways to give a value to a name, in any text. */
export const ASSIGNMENTS: readonly RegExp[] = [ELEMENT, ASSIGNMENT, FLAG, STATED];

/** Values as they stand without quotes: usually; in a line of an environment, of a header; in JSON, YAML, an element. */
const BARE = /[^\s"'`,;&<>()[\]{}\\]+/y;
const WORD = /[^\s"'`]+/y;
const LINE = /(?:=\\*"[^"\r\n]*"|[^\r\n"'`\\])+/y;
const LITERAL = /[^\s,}\]"'`\\]+/y;
const BLOCK = /[|>][+-]?[ \t]*(?:\r?\n[ \t]+[^\r\n]*)+/y;
const ELEMENT_TEXT = /[^<]+(?=<\/)/y;

const QUOTE = /\\{0,31}["'`]/y;
/** White space of a text, or of one that was written into JSON. */
const SPACE = /(?:\s|\\{1,31}[nrt]){1,99}/y;
const NAME = /[\w .:@-]{2,64}/y;

/** What names a way to authenticate, before what does. */
const SCHEME = /^(?:bearer|basic|token|digest|negotiate|api-?key|bot)$/i;

/** Words of messages, where a secret could stand. */
const NO_SECRET = new RegExp(
  '^(?:null|undefined|none|nil|true|false|yes|no|ok|required|missing|invalid|expired|empty|optional|unset|hidden|redacted|' +
    'string|str|number|boolean|object|array|any|unknown|is|was|are|to|or|and|for|with|as|in|on|from|if|when|not|must|should|' +
    'can|cannot|will|flag|option|argument|instead|\\*+|\\.+|\\$)$',
  'i',
);

/** What refers to a value that stands elsewhere: a variable, a property. */
const REFERENCE = /^(?:\$[A-Z_][A-Z0-9_]*|%[A-Z_]+%|[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][A-Za-z_$]*)+)$/;

/** What a match of one of the patterns has found. */
export function assignmentOf(text: string, match: RegExpExecArray): Assignment {
  const { quoted, bare = '', mark = '', sign = '' } = match.groups ?? {};
  const end = match.index + match[0].length;
  const start = mark === '' ? end : end + at(SPACE, text, end).length;
  const next = match.index + (mark === '' ? bare.length : mark.length);
  // A sentence is found by the end of the name.
  const beginning =
    mark === '' ? (/[\w-]*$/.exec(text.slice(Math.max(0, match.index - 60), match.index))?.[0] ?? '') : '';
  return { name: beginning + (quoted ?? bare), mark, sign: sign.trim(), at: match.index, next, start };
}

/** The name that stands in the place of the value. */
export function nameAt(text: string, { start }: Assignment): string {
  return at(NAME, text, start + at(QUOTE, text, start).length).trim();
}

/** The value; nothing, where it is none, or looks like the next word of a sentence: `token: expected …`. */
export function spanOf(text: string, assignment: Assignment, trusted = false): Span | undefined {
  const { mark, sign, start } = assignment;
  if (isElement(sign)) return spanned(start, at(ELEMENT_TEXT, text, start).length);
  const quote = at(QUOTE, text, start);
  if (quote !== '' && mark === '' && isClosing(text, assignment, quote)) return undefined;
  if (quote !== '') {
    const end = quotedEnd(text, start + quote.length, quote);
    return sign === ',' && !isPair(text, assignment, end + quote.length)
      ? undefined
      : { start: start + quote.length, end, mark: '' };
  }
  if (sign === ',') return undefined;
  if (
    /[[{]/.test(text.charAt(start)) &&
    (mark !== '' || /^[[{]\s{0,9}\\{0,31}["'`]/.test(text.slice(start, start + 50)))
  )
    return { start, end: balancedEnd(text, start, mark.slice(0, -1)), mark };
  return mark !== '' && sign !== '=' ? literalOf(text, start, mark) : bareOf(text, assignment, trusted);
}

function isElement(sign: string): boolean {
  return sign.endsWith('>') && sign !== '=>';
}

/** Whether a quote ends the text that the name stands in: `input("Password: ")`. */
function isClosing(text: string, { at, sign, start }: Assignment, quote: string): boolean {
  const next = text.charAt(start + quote.length);
  if (quote === text.slice(at - quote.length, at)) return true;
  return !isAssigning(sign) && (next === '' || '),;]}'.includes(next));
}

function spanned(start: number, length: number): Span | undefined {
  return length === 0 ? undefined : { start, end: start + length, mark: '' };
}

/** Whether name and value are a list of two, which may have been cut, and not two options of a command. */
function isPair(text: string, { name, mark, at, start }: Assignment, end: number): boolean {
  if (mark === '' || (name.startsWith('-') && text.charAt(start + mark.length) === '-')) return false;
  const before = text.slice(Math.max(0, at - 50), at);
  return /\[(?:\s|\\+[nrt])*$/.test(before) && /^(?:\s|\\+[nrt])*(?:\]|$)/.test(text.slice(end, end + 50));
}

/** A number, or what else JSON has without quotes. */
function literalOf(text: string, start: number, mark: string): Span | undefined {
  const literal = at(LITERAL, text, start);
  if (NO_SECRET.test(literal) || isElsewhere(literal, text.charAt(start + literal.length))) return undefined;
  return literal === '' ? undefined : { start, end: start + literal.length, mark };
}

/** Whether a value is got from somewhere else, as in a program. */
function isElsewhere(value: string, next: string): boolean {
  return REFERENCE.test(value) || /^[A-Za-z_$][\w$.]*\(/.test(value + next);
}

function bareOf(text: string, assignment: Assignment, trusted: boolean): Span | undefined {
  const { name, sign, start } = assignment;
  const value = at(BARE, text, start);
  const end = start + value.length;
  if (isAssigning(sign)) {
    if (NO_SECRET.test(value)) return undefined;
    if (isOfEnvironment(text, assignment)) return spanned(start, at(WORD, text, start).length);
    if (isElsewhere(value, text.charAt(end))) return undefined;
    return spanned(start, value.length + (SCHEME.test(value) ? followingLength(text, end) : 0));
  }
  if (sign !== '' && hasLongValue(name)) return lineOf(text, start);
  if (isPlaceholder(value, sign) || isTag(text, assignment)) return undefined;
  const block = at(BLOCK, text, start);
  if (block !== '') return spanned(start, block.length);
  if (NO_SECRET.test(value) || isElsewhere(value, text.charAt(end))) return undefined;
  const looksSecret = value.length >= 16 || (value.length >= 6 && /\d/.test(value));
  return trusted || sign === '' || looksSecret || isLine(text, assignment, end)
    ? spanned(start, value.length)
    : undefined;
}

function isAssigning(sign: string): boolean {
  return sign !== '=>' && /=$|3d$/i.test(sign);
}

/** Whether it is a line of an environment, where a value may hold any character: `DB_PASSWORD=p(w`. */
function isOfEnvironment(text: string, { name, sign, at, start }: Assignment): boolean {
  if (sign !== '=' || !/^[A-Z0-9_]+$/.test(name) || start !== at + name.length + 1) return false;
  return /(?:^|[\r\n])(?:export |set )?$/.test(text.slice(Math.max(0, at - 8), at));
}

/** The name of what an option takes, as help texts have it. */
function isPlaceholder(value: string, sign: string): boolean {
  return sign === '' && /^[A-Z][A-Z_-]*$/.test(value);
}

/** The tag of an image, the line of a file: `team/auth:1.2.3`. */
function isTag(text: string, { name, at, start }: Assignment): boolean {
  return text.charAt(at - 1) === '/' && start === at + name.length + 1;
}

function followingLength(text: string, end: number): number {
  const space = at(SPACE, text, end).length;
  return space + at(BARE, text, end + space).length;
}

/** The value of a header, if it looks like one. By its beginning: many that do not could stand in one long line. */
function lineOf(text: string, start: number): Span | undefined {
  const [beginning = ''] = text.slice(start, start + 200).split(/[\r\n]/, 1);
  if (!/[\d=]|^\S{16,}|^[\w-]{1,20} \S{16,}/.test(beginning)) return undefined;
  return spanned(start, at(LINE, text, start).trimEnd().length);
}

/** Whether name and value are all of a line, as in YAML. */
function isLine(text: string, { at }: Assignment, end: number): boolean {
  return (
    /(?:^|[\r\n])[ \t>*-]{0,20}$/.test(text.slice(Math.max(0, at - 21), at)) &&
    /^[ \t]{0,20}(?:[\r\n]|$)/.test(text.slice(end, end + 21))
  );
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

const BRACKET = /[[\]{}"'`]/g;

/** Where a list or an object ends: behind its bracket, or at the end of the text. */
function balancedEnd(text: string, start: number, slashes: string): number {
  let depth = 0;
  for (let from = start; ; ) {
    BRACKET.lastIndex = from;
    const found = BRACKET.exec(text);
    if (found === null) return text.length;
    from = found.index + 1;
    if (/["'`]/.test(found[0])) from = quotedEnd(text, from, slashes + found[0]) + slashes.length + 1;
    else depth += /[[{]/.test(found[0]) ? 1 : -1;
    if (depth <= 0) return from;
  }
}

/** What matches at a place; empty, where nothing does. */
function at(pattern: RegExp, text: string, index: number): string {
  pattern.lastIndex = index;
  return pattern.exec(text)?.[0] ?? '';
}
