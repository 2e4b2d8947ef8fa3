import { canonicalJson } from './canonical.ts';
import { copyJson, isPlainObject, type JsonObject, kindOf, MAX_DEPTH } from './json.ts';
import { faultIndexOf, type JsonReading, readJson, SEVERAL, SINGLE_QUOTES } from './json-reader.ts';

/** Why arguments could not be read. */
export class MalformedArguments {
  /**
   * `truncated`: the text stops in the middle; `syntax`: not JSON; `several_objects`: different ones, one after the other;
   * `not_an_object`; `not_json`: an object with a value in it that JSON or a number cannot hold.
   */
  readonly reason: 'truncated' | 'syntax' | 'several_objects' | 'not_an_object' | 'not_json';
  /** For the model: what was wrong, and where. */
  readonly message: string;
  /** The arguments as they came, where they came as text. */
  readonly rawArguments: string | undefined;

  constructor(reason: MalformedArguments['reason'], message: string, rawArguments?: string) {
    this.reason = reason;
    this.message = message;
    this.rawArguments = rawArguments;
  }
}

/** Arguments that are no JSON, but leave no doubt. */
export class RepairedArguments {
  readonly input: JsonObject;
  /** What was wrong, as in `a trailing comma`. */
  readonly repairs: readonly string[];

  constructor(input: JsonObject, repairs: readonly string[]) {
    this.input = input;
    this.repairs = repairs;
  }
}

/** What became of a call's arguments. */
export type ReadArguments = JsonObject | MalformedArguments | RepairedArguments;

/** What stands for arguments that are missing or cannot be read. */
export const NOTHING: JsonObject = Object.freeze({});

/**
 * Reads a call's arguments: JSON text of an object, or an object, which is copied. No arguments at all (missing, null, blank text)
 * are `{}`. Text that is refused so may be repaired.
 *
 * Never repaired are text that stops too early, and what could mean two things.
 *
 * @param mayRepair Asked only about text that is not the JSON of an object.
 */
export function readArguments(
  value: unknown,
  toolName: string,
  mayRepair: (toolName: string) => boolean,
): ReadArguments {
  if (typeof value === 'string') return readText(value, toolName, mayRepair);
  if (value === undefined || value === null) return NOTHING;
  if (!isPlainObject(value)) return notAnObject(value);
  try {
    return copyJson(value) as JsonObject;
  } catch (error) {
    return new MalformedArguments('not_json', `In them, ${messageOf(error)}.`);
  }
}

/** Characters in which nothing can nest too deep (that takes two brackets a level), nor a number be too large without an exponent. */
const MAX_SAFE_LENGTH = Math.min(2 * MAX_DEPTH, 308);
/** What may be a number that a double cannot hold, too large or with too many digits; and what is so at half the price. */
const SUSPECT_NUMBER = /\d(?:[eE]\+?\d{3}|\d{15})/;
const LONG_NUMBER = /\d[\deE][\d+]\d\d/;
const MANY_DIGITS = /\d{16}/;

function readText(text: string, toolName: string, mayRepair: (toolName: string) => boolean): ReadArguments {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text.trim() === '' ? NOTHING : readLoosely(text, mayRepair(toolName), 0);
  }
  if (value === null) return NOTHING;
  if (typeof value === 'string') return readLoosely(text, mayRepair(toolName), 0);
  if (!isPlainObject(value)) return notAnObject(value, text);
  const isSafe = text.length <= MAX_SAFE_LENGTH && !(LONG_NUMBER.test(text) && SUSPECT_NUMBER.test(text));
  return (isSafe ? undefined : unfitIn(value, text)) ?? (value as JsonObject);
}

/** Times arguments may be JSON within JSON text. */
const MAX_ENCODINGS = 3;

/** Text that is not the JSON of an object. */
function readLoosely(text: string, mayRepair: boolean, encodings: number): MalformedArguments | RepairedArguments {
  const reading = readJson(text);
  const { ending, slips, values } = reading;
  const [value = null] = values;
  if (ending === 'cut_off') return new MalformedArguments('truncated', 'They stop in the middle.', text);
  if (ending === 'fault' || slips.some(({ plain }) => !plain || !mayRepair)) return syntaxError(text, reading);
  const repairs = slips.map(({ kind }) =>
    kind === SEVERAL ? `the same object ${values.length} times, taken once` : kind,
  );
  if (values.length === 0) return new RepairedArguments(NOTHING, repairs);
  if (values.length === 1 && mayRepair) {
    if (value === null) return new RepairedArguments(NOTHING, repairs);
    if (typeof value === 'string' && encodings < MAX_ENCODINGS) return decoded(text, value, reading, encodings);
  }
  if (!values.every(isPlainObject))
    return notAnObject(
      values.find((each) => !isPlainObject(each)),
      text,
    );
  const unfit = unfitIn(values, text);
  if (unfit !== undefined) return unfit;
  if (new Set(values.map(canonicalJson)).size > 1) return severalObjects(values.length, text);
  return new RepairedArguments(value as JsonObject, repairs);
}

/** Arguments that were made JSON once more than they should. */
function decoded(
  text: string,
  inner: string,
  reading: JsonReading,
  encodings: number,
): MalformedArguments | RepairedArguments {
  const within = 'JSON within a JSON text';
  const read = readLoosely(inner, true, encodings + 1);
  if (read instanceof RepairedArguments) {
    const isDoubtful = reading.slips.some(({ kind }) => kind === SINGLE_QUOTES) && meansAnother(text, read, encodings);
    return isDoubtful ? syntaxError(text, reading) : new RepairedArguments(read.input, [within, ...read.repairs]);
  }
  // What does not even begin as an object is just a text.
  return /^\s*\{/.test(inner) ? new MalformedArguments(read.reason, read.message, text) : notAnObject(inner, text);
}

/** Whether a text in single quotes is also, and otherwise, to be read as in a shell, where a backslash is a part of what is quoted. */
function meansAnother(text: string, { input }: RepairedArguments, encodings: number): boolean {
  if (!text.includes('\\')) return false;
  const other = readLoosely(text.slice(text.indexOf("'") + 1, text.lastIndexOf("'")), true, encodings + 1);
  return other instanceof RepairedArguments && canonicalJson(other.input) !== canonicalJson(input);
}

function unfitIn(value: unknown, text: string): MalformedArguments | undefined {
  try {
    copyJson(value);
  } catch (error) {
    // Of text nothing but a number can be so.
    const fault = messageOf(error).replace(/is or holds -?Infinity/, 'is or holds a number that is too large');
    return new MalformedArguments('not_json', `In them, ${fault}.`, text);
  }
  const inexact = MANY_DIGITS.test(text) ? readJson(text).inexact : undefined;
  if (inexact === undefined) return undefined;
  const message = `In them, the number ${shown(inexact)} has more digits than a number can hold; if it is an id, send it as text.`;
  return new MalformedArguments('not_json', message, text);
}

/** Digits of a number that are shown. */
const MAX_DIGITS = 40;

function shown(number: string): string {
  return number.length > MAX_DIGITS ? `${number.slice(0, MAX_DIGITS)}…` : number;
}

function notAnObject(value: unknown, text?: string): MalformedArguments {
  return new MalformedArguments('not_an_object', `They are ${kindOf(value)}.`, text);
}

function severalObjects(count: number, text: string): MalformedArguments {
  return new MalformedArguments('several_objects', `They are ${count} different objects, one after the other.`, text);
}

/** Characters of broken arguments that are shown on either side of the fault. */
const ECHOED = 30;

function syntaxError(text: string, reading: JsonReading): MalformedArguments {
  const at = faultIndexOf(reading);
  const near = JSON.stringify(text.slice(Math.max(0, at - ECHOED), at + ECHOED).toWellFormed());
  return new MalformedArguments('syntax', `They are not valid JSON, near character ${at}: ${near}.`, text);
}

function messageOf(error: unknown): string {
  return (error as Error).message;
}
