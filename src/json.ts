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

/** A plain object of any realm: made by `{}`, `JSON.parse` or `Object.create(null)`. Total, for a revoked proxy too. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  try {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    const prototype: unknown = Object.getPrototypeOf(value);
    return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null;
  } catch {
    return false;
  }
}

/** What kind of value stands where JSON was expected, for messages: `an array`, `a Date`, `NaN`. Total. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return Number.isFinite(value) ? 'a number' : String(value);
  if (typeof value !== 'object') return `a ${typeof value}`;
  try {
    if (Array.isArray(value)) return 'an array';
    if (isPlainObject(value)) return 'an object';
    const tag = tagOf(value);
    return tag === 'Object' ? 'a class instance' : `${/^[AEIO]/.test(tag) ? 'an' : 'a'} ${tag}`;
  } catch {
    return 'an unreadable object';
  }
}

/** Characters of an object's own tag that are shown. */
const MAX_TAG = 40;

function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1).slice(0, MAX_TAG);
}

let visited = 0;

/**
 * A private deep copy of a JSON value; keys holding `undefined` are left out, as JSON does. Symbol keys come along, unread: to
 * look for them would double the price of a copy.
 *
 * @throws TypeError naming the place, for what JSON cannot hold, a cycle, or nesting deeper than 256 levels.
 */
export function copyJson(value: unknown): JsonValue {
  visited = 0;
  try {
    return copyAt(value, 0, '');
  } catch (thrown) {
    // What a getter or a proxy throws is not for the reader of the message.
    throw NotJson.is(thrown) ? thrown : new NotJson('the value cannot be read', thrown);
  }
}

class NotJson extends TypeError {
  readonly #own = true;

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
  }

  static is(value: unknown): boolean {
    return typeof value === 'object' && value !== null && #own in value;
  }
}

function copyAt(value: unknown, depth: number, place: string): JsonValue {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (depth > MAX_DEPTH) throw unfit(place, `nests deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return copyList(value, depth, place);
  if (!isPlainObject(value)) throw unfit(place, `is or holds ${kindOf(value)}`);
  count(1, place);
  // A spread and a repair of what is nested: several times quicker than a property at a time, and right for `__proto__`.
  const copy = { ...value } as Record<string, JsonValue | undefined>;
  for (const key in copy) {
    visited++;
    const item = copy[key];
    if (typeof item === 'string' || (typeof item === 'number' && Number.isFinite(item))) continue;
    if (item === undefined) delete copy[key];
    else if (Object.hasOwn(copy, key)) copy[key] = copyAt(item, depth + 1, place || key);
  }
  return copy as JsonObject;
}

function copyList(list: readonly unknown[], depth: number, place: string): JsonValue {
  count(list.length, place);
  const copy: JsonValue[] = [];
  for (let index = 0; index < list.length; index++) copy.push(copyAt(list[index], depth + 1, place));
  return copy;
}

function count(values: number, place: string): void {
  visited += values + 1;
  if (visited > MAX_VALUES) throw unfit(place, `holds more than ${MAX_VALUES} values`);
}

function unfit(place: string, fault: string): NotJson {
  return new NotJson(`${place || 'the value'} ${fault}`);
}

/** A deep copy of what is known to be JSON, and not too deep: every call needs one, so nothing is checked again. */
export function cloneJson<Value extends JsonValue>(value: Value): Value;
export function cloneJson(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(cloneJson);
  const copy = { ...value } as Record<string, JsonValue>;
  for (const key in copy) {
    const item = copy[key];
    if (typeof item === 'object' && item !== null && Object.hasOwn(copy, key)) copy[key] = cloneJson(item);
  }
  return copy;
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

/** Characters one result may hold, each value counted as 32 and its text: as JSON, which may need six for one, it fits a string. */
const MAX_CHARACTERS = 64 * 1024 * 1024;
const PER_VALUE = 32;
const TOO_LARGE = '[Too large]';

/**
 * Plain JSON for whatever a tool produced. Total: it never throws and always ends.
 *
 * Dates become ISO text, Map and Set arrays, bigint and RegExp text, bytes base64, errors `{ name, message }`; `toJSON` is
 * honoured; functions, symbols and `undefined` are dropped from objects and are `null` in arrays, as are NaN and ±Infinity. A
 * cycle, an unreadable property, too great a depth or size leave a bracketed remark in their place, and so does an object that
 * keeps what it holds to itself: `[Promise]`, `[Response]`, `[Headers]`.
 */
export function toJson(value: unknown): JsonValue {
  return new ResultWalk().convert(value, '') ?? null;
}

class ResultWalk {
  readonly #ancestors: object[] = [];
  #characters = 0;

  /** `asked`: the value comes from a `toJSON`, which is called once and not again on what it gave, as JSON does. */
  convert(value: unknown, key: string | number, asked = false): JsonValue | undefined {
    this.#characters += PER_VALUE;
    switch (typeof value) {
      case 'string':
        return this.#text(value);
      case 'boolean':
        return value;
      case 'number':
        return Number.isFinite(value) ? value : null;
      case 'bigint':
        return this.#text(value.toString());
      case 'object':
        return value === null ? null : this.#bounded(value, key, asked);
      default:
        return undefined;
    }
  }

  get #isFull(): boolean {
    return this.#characters > MAX_CHARACTERS;
  }

  #text(text: string): string {
    this.#characters += text.length;
    return this.#isFull ? TOO_LARGE : text;
  }

  #bounded(value: object, key: string | number, asked: boolean): JsonValue | undefined {
    if (this.#ancestors.includes(value)) return '[Circular]';
    if (this.#ancestors.length >= MAX_RESULT_DEPTH) return '[Nested too deep]';
    if (this.#isFull) return TOO_LARGE;
    this.#ancestors.push(value);
    try {
      return this.#object(value, key, asked);
    } catch {
      return '[Unreadable]';
    } finally {
      this.#ancestors.pop();
    }
  }

  #object(value: object, key: string | number, asked: boolean): JsonValue | undefined {
    if (Array.isArray(value)) return this.#list(value);
    // The usual case, which none of the questions about others, each with its price, has to be asked.
    const plain = isPlainObject(value);
    const simple = plain ? undefined : this.#simple(value);
    if (simple !== undefined) return simple;
    const toJSON: unknown = asked ? undefined : Reflect.get(value, 'toJSON');
    if (typeof toJSON === 'function') {
      const json: unknown = Reflect.apply(toJSON, value, [String(key)]);
      if (json !== value) return this.convert(json, key, true);
    }
    return plain ? this.#properties(value) : (this.#collected(value) ?? this.#instance(value));
  }

  // The built-in methods are called, not the value's own, which a subclass may have replaced.
  #simple(value: object): JsonValue | undefined {
    if (types.isDate(value)) return Number.isNaN(getTime.call(value)) ? null : toISOString.call(value);
    if (ArrayBuffer.isView(value)) return this.#bytes(value);
    if (types.isAnyArrayBuffer(value)) return this.#bytes(new Uint8Array(value));
    if (types.isBoxedPrimitive(value)) return this.convert(value.valueOf(), '');
    if (types.isRegExp(value)) return this.#text(regExpText.call(value));
    if (types.isPromise(value)) return promiseRemark(value);
    if (isNodeStream(value)) return streamRemark(value);
    if (!isErrorLike(value)) return undefined;
    return { name: this.#text(String(value.name)), message: this.#text(String(value.message)) };
  }

  #collected(value: object): JsonValue | undefined {
    if (types.isMap(value)) return this.#list([...entriesOf.call(value)]);
    return types.isSet(value) ? this.#list([...valuesOf.call(value)]) : undefined;
  }

  /** `{}` would be a lie about an object of a kind of its own that shows nothing. */
  #instance(value: object): JsonValue {
    const copy = this.#properties(value);
    const tag = tagOf(value);
    return tag === 'Object' || Object.keys(copy).length > 0 ? copy : `[${tag}]`;
  }

  #properties(value: object): Record<string, JsonValue> {
    const copy: Record<string, JsonValue> = {};
    for (const name of Object.keys(value)) {
      this.#characters += name.length;
      const item = this.#property(value, name);
      if (item !== undefined) setOwn(copy, name, item);
    }
    return copy;
  }

  #list(items: readonly unknown[]): JsonValue[] {
    const copy: JsonValue[] = [];
    for (let index = 0; index < items.length; index++) {
      if (this.#isFull) {
        copy.push(TOO_LARGE);
        break;
      }
      copy.push(this.convert(items[index], index) ?? null);
    }
    return copy;
  }

  #bytes(view: ArrayBufferView): string {
    const { buffer, byteOffset, byteLength } = view;
    if (byteLength > MAX_CHARACTERS) return TOO_LARGE;
    return this.#text(Buffer.from(buffer, byteOffset, byteLength).toString('base64'));
  }

  #property(value: object, name: string): JsonValue | undefined {
    try {
      return this.convert(Reflect.get(value, name), name);
    } catch {
      return '[Unreadable]';
    }
  }
}

const { getTime, toISOString } = Date.prototype;
const entriesOf = Map.prototype.entries;
const valuesOf = Set.prototype.values;
const regExpText = RegExp.prototype.toString;
const thenOf = Promise.prototype.then;

/** A stream of Node's, as a tool opens one. */
export interface NodeStream {
  on(event: 'error', listener: () => void): unknown;
  destroy(): unknown;
}

/** Whether a value is such a stream. Total. */
export function isNodeStream(value: unknown): value is NodeStream {
  try {
    const { on, pipe, destroy } = value as Record<'on' | 'pipe' | 'destroy', unknown>;
    return [on, pipe, destroy].every((method) => typeof method === 'function');
  } catch {
    return false;
  }
}

/** Closes a stream that nobody reads: it must not stay open, nor its failure end the process. */
export function closeStream(stream: NodeStream): void {
  stream.on('error', () => {});
  stream.destroy();
}

function streamRemark(stream: NodeStream): string {
  closeStream(stream);
  return '[Stream]';
}

/** Nobody can wait for a promise that was forgotten in an answer; that it fails must not end the process. */
function promiseRemark(promise: Promise<unknown>): string {
  thenOf.call(promise, undefined, () => {});
  return '[Promise]';
}

/** An Error of any realm, DOMException included. Total. */
export function isErrorLike(value: unknown): value is Error {
  if (types.isNativeError(value)) return true;
  try {
    return (
      typeof value === 'object' && value !== null && Object.prototype.toString.call(value) === '[object DOMException]'
    );
  } catch {
    return false;
  }
}
