import { type JsonObject, type JsonValue, setOwn } from './json.ts';

/** Which end of a text is kept: the beginning, the end, or some of both. */
export type Keep = 'head' | 'tail' | 'both';

/** What a limit counts: UTF-16 code units, as `length` does, or bytes of UTF-8. */
export type SizeUnit = 'characters' | 'bytes';

/** The size of a text. */
export function sizeOf(text: string, unit: SizeUnit): number {
  return unit === 'bytes' ? Buffer.byteLength(text) : text.length;
}

/** The longest beginning of a text within a size, no character cut in half. */
function headOf(text: string, size: number, unit: SizeUnit): string {
  if (sizeOf(text, unit) <= size) return text;
  let end = unit === 'bytes' ? lengthWithin(text, size) : Math.max(0, Math.floor(size));
  if (isHighSurrogate(text.charCodeAt(end - 1))) end--;
  return text.slice(0, end);
}

/** The longest end of a text within a size, no character cut in half. */
function tailOf(text: string, size: number, unit: SizeUnit): string {
  if (sizeOf(text, unit) <= size) return text;
  let start =
    unit === 'bytes' ? text.length - lengthWithin(text, size, true) : text.length - Math.max(0, Math.floor(size));
  if (isLowSurrogate(text.charCodeAt(start))) start++;
  return text.slice(start);
}

/** How many code units from one end fit into so many bytes. */
function lengthWithin(text: string, bytes: number, fromEnd = false): number {
  // No code unit takes more than three bytes, so at least a third fits; a bisection finds the rest.
  let fits = Math.floor(Math.max(0, bytes) / 3);
  let tooMany = Math.min(text.length, Math.max(0, Math.floor(bytes))) + 1;
  while (tooMany - fits > 1) {
    const middle = (fits + tooMany) >> 1;
    const part = fromEnd ? text.slice(text.length - middle) : text.slice(0, middle);
    if (Buffer.byteLength(part) <= bytes) fits = middle;
    else tooMany = middle;
  }
  return fits;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}

/**
 * What stands where something was left out, given how much, and how much of it all stands before: it names the size, and how to get
 * less or the rest.
 */
export type Marker = (leftOut: number, total: number, unit: SizeUnit, before: number) => string;

/** How a text is cut. */
export interface CutOptions {
  readonly limit: number;
  readonly unit: SizeUnit;
  readonly keep: Keep;
  readonly marker: Marker;
}

/**
 * Cuts texts that belong together to one limit, the marker included. Each stays at its place; those left out whole are empty.
 * The result is well-formed Unicode, wherever the cut falls; texts within the limit that are well-formed are given back as they are.
 */
export function cutTexts(texts: readonly string[], options: CutOptions): readonly string[] {
  const { limit, unit, keep, marker } = options;
  const total = sumOf(texts, unit);
  const whole = texts.every((text) => text.isWellFormed()) ? texts : texts.map((text) => text.toWellFormed());
  if (total <= limit) return whole;
  const room = limit - sizeOf(marker(total, total, unit, total), unit);
  const heads = keep === 'tail' ? texts.map(() => '') : keepFrom(whole, keep === 'both' ? room / 2 : room, unit);
  const before = sumOf(heads, unit);
  const rest = keep === 'head' ? 0 : room - before;
  const tails = keepFrom([...whole].reverse(), rest, unit, true).reverse();
  const kept = before + sumOf(tails, unit);
  // Another number may make the host's marker longer than it was measured.
  const mark = headOf(marker(total - kept, total, unit, before), limit - kept, unit).toWellFormed();
  // The marker stands in the first text that lost something. Joining copies; a mere slice would keep the whole text alive.
  const at = whole.findIndex((text, index) => text !== heads[index]);
  return whole.map((_, index) => [heads[index], index === at ? mark : '', tails[index]].join(''));
}

function keepFrom(texts: readonly string[], size: number, unit: SizeUnit, ends = false): string[] {
  let room = Math.max(0, Math.floor(size));
  return texts.map((text) => {
    const kept = ends ? tailOf(text, room, unit) : headOf(text, room, unit);
    // Nothing of the next text may follow one that was cut.
    room = kept === text ? room - sizeOf(kept, unit) : 0;
    return kept;
  });
}

function sumOf(texts: readonly string[], unit: SizeUnit): number {
  return texts.reduce((sum, text) => sum + sizeOf(text, unit), 0);
}

/** Bounds of one attempt to make JSON smaller. */
interface Bounds {
  readonly items: number;
  readonly text: number;
  readonly depth: number;
}

/** Deepest nesting that is tried. */
const MAX_SHOWN_DEPTH = 64;

/** JSON text of at most `limit`: of a value that is larger with fewer items, shorter texts, and remarks that say so. */
export function shrinkJson(value: JsonValue, limit: number, unit: SizeUnit): string {
  const whole = isJsonLonger(value, limit) ? undefined : JSON.stringify(value);
  if (whole !== undefined && sizeOf(whole, unit) <= limit) return whole;
  let bounds: Bounds = { items: Math.ceil(limit / 4), text: Math.ceil(limit / 2), depth: MAX_SHOWN_DEPTH };
  while (bounds.items > 0) {
    const clipped = new Clip(bounds, limit).of(value, bounds.depth);
    const text = clipped === undefined ? undefined : JSON.stringify(clipped);
    if (text !== undefined && sizeOf(text, unit) <= limit) return text;
    const { items, text: length, depth } = bounds;
    bounds = { items: items >> 1, text: Math.max(8, length >> 1), depth: Math.max(1, depth - 8) };
  }
  return '"…"';
}

/** One attempt. It gives up, with undefined, as soon as it is sure to be too long: many attempts on a large value stay cheap. */
class Clip {
  readonly #items: number;
  readonly #text: number;
  #room: number;

  constructor({ items, text }: Bounds, limit: number) {
    this.#items = items;
    this.#text = text;
    this.#room = limit;
  }

  of(value: JsonValue, depth: number): JsonValue | undefined {
    if (typeof value === 'string') return this.#take(this.#string(value));
    if (typeof value !== 'object' || value === null) return this.#take(value);
    if (depth <= 0) return this.#take('…');
    if (this.#take(null) === undefined) return undefined;
    return Array.isArray(value) ? this.#list(value, depth) : this.#object(value as Record<string, JsonValue>, depth);
  }

  /** Every value takes at least a character and a comma of the room there is. */
  #take<Value extends string | number | boolean | null>(value: Value): Value | undefined {
    this.#room -= typeof value === 'string' ? value.length + 3 : 2;
    return this.#room < 0 ? undefined : value;
  }

  #string(value: string): string {
    if (value.length <= this.#text) return value.toWellFormed();
    const head = headOf(value, this.#text, 'characters');
    const clipped = `${head}… (${value.length - head.length} more characters)`;
    return (clipped.length < value.length ? clipped : value).toWellFormed();
  }

  #list(value: readonly JsonValue[], depth: number): JsonValue | undefined {
    const kept: JsonValue[] = [];
    for (const item of value.slice(0, this.#items)) {
      const clipped = this.of(item, depth - 1);
      if (clipped === undefined) return undefined;
      kept.push(clipped);
    }
    return value.length > kept.length ? [...kept, `… ${value.length - kept.length} more items`] : kept;
  }

  #object(value: Readonly<Record<string, JsonValue>>, depth: number): JsonValue | undefined {
    const copy: Record<string, JsonValue> = {};
    const entries = Object.entries(value);
    let kept = 0;
    for (const [key, item] of entries.slice(0, this.#items)) {
      const name = headOf(key, this.#text, 'characters').toWellFormed();
      if (Object.hasOwn(copy, name)) continue;
      const clipped = this.#take(name) === undefined ? undefined : this.of(item, depth - 1);
      if (clipped === undefined) return undefined;
      setOwn(copy, name, clipped);
      kept++;
    }
    if (entries.length > kept) setOwn(copy, '…', `${entries.length - kept} more keys`);
    return copy;
  }
}

/** Nesting beyond which a value counts as too long for any limit: what goes over it may run out of stack. */
const MAX_MEASURED_DEPTH = 1000;

/** Whether the JSON text of a value is longer than so many characters, or nests a thousand levels. Stops as soon as it knows. */
export function isJsonLonger(value: JsonValue, limit: number): boolean {
  return remaining(value, limit, MAX_MEASURED_DEPTH) < 0;
}

function remaining(value: JsonValue, room: number, depth: number): number {
  if (typeof value === 'string') return room - jsonLength(value, room);
  if (typeof value !== 'object' || value === null) return room - String(value).length;
  if (depth <= 0) return Number.NEGATIVE_INFINITY;
  // The opening bracket; then, for each item, a comma or the closing one.
  let left = room - 1;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && left >= 0; index++) left = remaining(value[index], left - 1, depth - 1);
    return value.length === 0 ? left - 1 : left;
  }
  const keys = Object.keys(value);
  for (let index = 0; index < keys.length && left >= 0; index++) {
    const key = keys[index] as string;
    left = remaining((value as JsonObject)[key] as JsonValue, left - 2 - jsonLength(key, left), depth - 1);
  }
  return keys.length === 0 ? left - 1 : left;
}

/** What JSON may have to escape. */
const ESCAPED = /["\\\p{Cc}\p{Cs}]/u;

/** The length of a text as JSON, escapes included, where they could matter. */
function jsonLength(text: string, room: number): number {
  return text.length + 2 <= room && ESCAPED.test(text) ? JSON.stringify(text).length : text.length + 2;
}
