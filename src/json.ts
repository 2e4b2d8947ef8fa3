import { types } from 'node:util';

/** Any value JSON can hold. Readonly, because nothing that travels through a dispatch is mutated. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

/** A JSON object, as tool arguments are. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** How deep arguments may nest before they are refused: far beyond any real tool, far below a stack overflow. */
export const MAX_DEPTH = 256;

/** Values one copy may visit; a few shared references can unfold to more than any memory holds. */
const MAX_VALUES = 2_000_000;

/** A plain object of any realm: made by `{}`, `JSON.parse` or `Object.create(null)`. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** What kind of value stands where JSON was expected, for messages: `an array`, `a Date`, `NaN`. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return Number.isFinite(value) ? 'a number' : String(value);
  if (Array.isArray(value)) return 'an array';
  if (typeof value !== 'object') return `a ${typeof value}`;
  if (isPlainObject(value)) return 'an object';
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  return tag === 'Object' ? 'a class instance' : `a ${tag}`;
}

let visited = 0;

/**
 * A private deep copy of a JSON value; keys holding `undefined` are left out, as JSON does.
 *
 * @throws TypeError naming the place, for what JSON cannot hold, a cycle, or nesting deeper than 256 levels.
 */
export function copyJson(value: unknown): JsonValue {
  visited = 0;
  return copyAt(value, 0, '');
}

function copyAt(value: unknown, depth: number, place: string): JsonValue {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' || value === null)
    return value;
  if (depth > MAX_DEPTH) throw new TypeError(`${place || 'the value'} nests deeper than ${MAX_DEPTH} levels`);
  if (++visited > MAX_VALUES) throw new TypeError(`${place || 'the value'} holds more than ${MAX_VALUES} values`);
  if (Array.isArray(value)) {
    const copy: JsonValue[] = [];
    for (let index = 0; index < value.length; index++) copy.push(copyAt(value[index], depth + 1, place));
    return copy;
  }
  if (!isPlainObject(value)) throw new TypeError(`${place || 'the value'} is or holds ${kindOf(value)}`);
  // A spread and a repair of what is nested: several times quicker than a property at a time, and right for `__proto__`.
  const copy = { ...value } as Record<string, JsonValue | undefined>;
  for (const key in copy) {
    const item = copy[key];
    if (typeof item === 'string' || typeof item === 'number') continue;
    if (item === undefined) delete copy[key];
    else copy[key] = copyAt(item, depth + 1, place || key);
  }
  return copy as JsonObject;
}

/** Sets an own property, `__proto__` included: an assignment would change the prototype instead. */
export function setOwn(target: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    target[key] = value;
  }
}

/** Depth at which `toJson` stops descending and says so. */
const MAX_RESULT_DEPTH = 200;

/**
 * Plain JSON for whatever a tool produced. Total: it never throws and always ends.
 *
 * Dates become ISO text, Map and Set arrays, bigint text, bytes base64, errors `{ name, message }`; `toJSON` is honoured;
 * functions, symbols and `undefined` are dropped from objects and are `null` in arrays, as are NaN and ±Infinity. A cycle,
 * an unreadable property, too great a depth or size leave a bracketed remark in their place.
 */
export function toJson(value: unknown): JsonValue {
  return new ResultWalk().convert(value, '') ?? null;
}

class ResultWalk {
  readonly #ancestors: object[] = [];
  #visited = 0;

  convert(value: unknown, key: string): JsonValue | undefined {
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return value;
      case 'number':
        return Number.isFinite(value) ? value : null;
      case 'bigint':
        return value.toString();
      case 'object':
        return value === null ? null : this.#bounded(value, key);
      default:
        return undefined;
    }
  }

  #bounded(value: object, key: string): JsonValue | undefined {
    if (this.#ancestors.includes(value)) return '[Circular]';
    if (this.#ancestors.length >= MAX_RESULT_DEPTH) return '[Nested too deep]';
    if (this.#visited >= MAX_VALUES) return '[Too many values]';
    this.#ancestors.push(value);
    try {
      return this.#object(value, key);
    } catch {
      return '[Unreadable]';
    } finally {
      this.#ancestors.pop();
    }
  }

  #object(value: object, key: string): JsonValue | undefined {
    if (Array.isArray(value)) return this.#list(value);
    if (types.isDate(value)) return Number.isNaN(value.getTime()) ? null : value.toISOString();
    if (types.isMap(value) || types.isSet(value)) return this.#list([...value]);
    if (ArrayBuffer.isView(value)) return base64(value);
    if (types.isAnyArrayBuffer(value)) return base64(new Uint8Array(value));
    if (isErrorLike(value)) return { name: String(value.name), message: String(value.message) };
    const toJSON: unknown = Reflect.get(value, 'toJSON');
    if (typeof toJSON === 'function') return this.convert(Reflect.apply(toJSON, value, [key]), key);
    if (types.isBoxedPrimitive(value)) return this.convert(value.valueOf(), key);
    const copy: Record<string, JsonValue> = {};
    for (const name of Object.keys(value)) {
      this.#visited++;
      const item = this.#property(value, name);
      if (item !== undefined) setOwn(copy, name, item);
    }
    return copy;
  }

  #list(items: readonly unknown[]): JsonValue[] {
    const copy: JsonValue[] = [];
    for (let index = 0; index < items.length; index++) {
      if (++this.#visited > MAX_VALUES) return [...copy, '[Too many values]'];
      copy.push(this.convert(items[index], String(index)) ?? null);
    }
    return copy;
  }

  #property(value: object, name: string): JsonValue | undefined {
    try {
      return this.convert(Reflect.get(value, name), name);
    } catch {
      return '[Unreadable]';
    }
  }
}

/** An Error of any realm, DOMException included. */
export function isErrorLike(value: unknown): value is Error {
  return (
    types.isNativeError(value) ||
    (typeof value === 'object' && value !== null && Object.prototype.toString.call(value) === '[object DOMException]')
  );
}

function base64(view: ArrayBufferView): string {
  return Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString('base64');
}
