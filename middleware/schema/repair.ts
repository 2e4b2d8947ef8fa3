import {
  copyJson,
  isPlainObject,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  readJson,
} from '../../src/index.ts';
import { pathOf } from './faults.ts';
import { AllowedTypes, ARRAY, BOOLEAN, FRACTION, INTEGER, NULL, OBJECT, typeOf } from './types.ts';

/** What may be put right. */
export interface Repairs {
  /** JSON in a text where a list or an object has to be, and no text may. */
  readonly unwrapText: boolean;
  /** `null` under a key that may be missing, where no null may be. */
  readonly dropNulls: boolean;
  /** A text that is a number or a truth value, where no text may be. */
  readonly coerce: boolean;
}

/** A value, and what was done to it. */
export interface Repaired {
  readonly value: JsonValue;
  /** As in `limit: null was left out`. Holds no values. */
  readonly done: readonly string[];
}

/**
 * A copy of a value that a schema has refused, with what is only written in another way put right: where no schema that speaks of a
 * place accepts the type of what is there, and only there. Undefined where there is nothing to do.
 */
export function repairBySchema(value: JsonValue, schema: JsonSchema, repairs: Repairs): Repaired | undefined {
  const repair = new Repair(schema, repairs);
  try {
    const repaired = repair.walk(value, schema, []);
    return repair.done.length === 0 ? undefined : { value: repaired, done: repair.done };
  } catch {
    // A schema that goes on for ever, or text that nests too deep: left as it is.
    return undefined;
  }
}

class Repair {
  readonly done: string[] = [];
  readonly #types: AllowedTypes;
  readonly #repairs: Repairs;

  constructor(root: JsonSchema, repairs: Repairs) {
    this.#types = new AllowedTypes(root);
    this.#repairs = repairs;
  }

  walk(given: JsonValue, schema: unknown, path: readonly string[]): JsonValue {
    const value = typeof given === 'string' ? this.#text(given, this.#types.of(schema), path) : given;
    if (Array.isArray(value)) return value.map((item, index) => this.#within(item, schema, index, value, path));
    return isPlainObject(value) ? this.#object(value as JsonObject, schema, path) : value;
  }

  #within(
    item: JsonValue,
    schema: unknown,
    step: string | number,
    value: JsonValue,
    path: readonly string[],
  ): JsonValue {
    return this.walk(item, this.#types.at(schema, step, value), [...path, String(step)]);
  }

  #object(value: JsonObject, schema: unknown, path: readonly string[]): JsonValue {
    const entries = Object.entries(value).flatMap(([key, item]) => {
      if (item === null && this.#isDroppable(schema, key, value)) {
        this.#note([...path, key], 'null was left out');
        return [];
      }
      return [[key, this.#within(item, schema, key, value, path)] as const];
    });
    return Object.fromEntries(entries);
  }

  #isDroppable(schema: unknown, key: string, value: JsonObject): boolean {
    if (!this.#repairs.dropNulls || this.#types.requires(schema, key, value)) return false;
    const allowed = this.#types.of(this.#types.at(schema, key, value));
    // Where nothing at all may be, the key is one nobody knows.
    return allowed !== 0 && (allowed & NULL) === 0;
  }

  #text(text: string, allowed: number, path: readonly string[]): JsonValue {
    if ((allowed & typeOf(text)) !== 0) return text;
    const { unwrapText, coerce } = this.#repairs;
    const held = unwrapText ? heldIn(text, allowed) : undefined;
    if (held !== undefined) this.#note(path, `a text of JSON became ${Array.isArray(held) ? 'a list' : 'an object'}`);
    const scalar = coerce && held === undefined ? scalarIn(text, allowed) : undefined;
    if (scalar !== undefined) this.#note(path, `a text became a ${typeof scalar}`);
    return held ?? scalar ?? text;
  }

  #note(path: readonly string[], what: string): void {
    this.done.push(`${pathOf(path)}: ${what}`);
  }
}

/** The list or object a text is the JSON of, where one may stand. */
function heldIn(text: string, allowed: number): JsonValue | undefined {
  if ((allowed & (ARRAY | OBJECT)) === 0 || !/^\s*[[{]/.test(text)) return undefined;
  const value = valueIn(text);
  return value === undefined || (allowed & typeOf(value)) === 0 ? undefined : copyJson(value);
}

/** A truth value, or a number as JSON writes it, with nothing around it. */
function scalarIn(text: string, allowed: number): number | boolean | undefined {
  if ((allowed & BOOLEAN) !== 0 && /^(?:true|false)$/i.test(text)) return text.toLowerCase() === 'true';
  if ((allowed & (INTEGER | FRACTION)) === 0 || !/^-?\d\S*$/.test(text)) return undefined;
  const number = valueIn(text);
  const isHeld = typeof number === 'number' && Number.isFinite(number);
  return isHeld && (allowed & typeOf(number)) !== 0 ? number : undefined;
}

/** What a text is the JSON of, if a number can hold each of its numbers. */
function valueIn(text: string): JsonValue | undefined {
  const { values, ending, slips, inexact } = readJson(text);
  return ending === 'complete' && slips.length === 0 && inexact === undefined ? values[0] : undefined;
}
