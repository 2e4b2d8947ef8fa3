import { copyJson, isPlainObject, type JsonObject, kindOf, MAX_DEPTH } from './json.ts';
import { jsonFaultIndex } from './json-fault.ts';

/** Why arguments could not be read. */
export class MalformedArguments {
  /** `truncated`: the text stops in the middle; `syntax`: not JSON; `not_an_object`; `not_json`: an object JSON cannot hold. */
  readonly reason: 'truncated' | 'syntax' | 'not_an_object' | 'not_json';
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

/** What stands for arguments that are missing or cannot be read. */
export const NOTHING: JsonObject = Object.freeze({});

/**
 * Reads a call's arguments strictly: JSON text of an object, or an object, which is copied. No arguments at all (missing, null,
 * blank text) are `{}`. Nothing is repaired here.
 */
export function readArguments(value: unknown): JsonObject | MalformedArguments {
  if (typeof value === 'string') return readText(value);
  if (value === undefined || value === null) return NOTHING;
  if (!isPlainObject(value)) return new MalformedArguments('not_an_object', `They are ${kindOf(value)}.`);
  try {
    return copyJson(value) as JsonObject;
  } catch (error) {
    return new MalformedArguments('not_json', `In them, ${messageOf(error)}.`);
  }
}

/** Characters in which nothing can nest too deep (that takes two brackets a level), nor a number be too large without an exponent. */
const MAX_SAFE_LENGTH = Math.min(2 * MAX_DEPTH, 308);
/** What makes `JSON.parse` give Infinity, among other things. */
const LARGE_EXPONENT = /\d[eE]\+?\d{3}/;

function readText(text: string): JsonObject | MalformedArguments {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text.trim() === '' ? NOTHING : syntaxError(text);
  }
  if (value === null) return NOTHING;
  if (!isPlainObject(value)) return new MalformedArguments('not_an_object', `They are ${kindOf(value)}.`, text);
  if (text.length > MAX_SAFE_LENGTH || LARGE_EXPONENT.test(text)) {
    try {
      copyJson(value);
    } catch (error) {
      return new MalformedArguments('not_json', `In them, ${messageOf(error)}.`, text);
    }
  }
  return value as JsonObject;
}

/** Characters of broken arguments that are shown on either side of the fault. */
const ECHOED = 30;

function syntaxError(text: string): MalformedArguments {
  const at = jsonFaultIndex(text);
  if (at === text.length) return new MalformedArguments('truncated', 'They stop in the middle.', text);
  const near = JSON.stringify(text.slice(Math.max(0, at - ECHOED), at + ECHOED).toWellFormed());
  return new MalformedArguments('syntax', `They are not valid JSON, near character ${at}: ${near}.`, text);
}

function messageOf(error: unknown): string {
  return (error as Error).message;
}
