import {
  after,
  type Content,
  type ContentPart,
  type CutOptions,
  changedError,
  copyJson,
  cutTexts,
  type DispatchNote,
  describePart,
  type JsonValue,
  type Marker,
  type MaybePromise,
  type MediaPart,
  mediaBytes,
  type ResourceLinkPart,
  readJson,
  type SizeUnit,
  shrinkJson,
  sizeOf,
  type ToolError,
  type ToolOutcome,
  toJson,
} from '../../src/index.ts';

const REMEDY = 'ask for less at a time: narrower arguments, a page, a range.';

export function markerWith(remedy: (before: number) => string): Marker {
  return (leftOut, total, unit, before) =>
    `\n[… ${leftOut} of ${total} ${unit} left out. To see them, ${remedy(before)}]\n`;
}

export const usualMarker: Marker = markerWith(() => REMEDY);

/** Characters of a part beside its text, its bytes or its address that are not counted, such as its type. */
const FREE_FIELDS = 200;

/** What became of a text that the store was given. */
export interface PutAway {
  readonly notes: readonly DispatchNote[];
  /** What the model can do to read on from a byte; undefined where it can do nothing. */
  readonly readOn?: (from: number) => string;
}

export type PutText = (text: string) => MaybePromise<PutAway>;

/** The usual answer, told apart without counting bytes: no character has more than three of them. */
export function fits(content: Content, limit: number, unit: SizeUnit): boolean {
  if (typeof content !== 'string' || !content.isWellFormed()) return false;
  return content.length * (unit === 'bytes' ? 3 : 1) <= limit;
}

export function limitContent(
  outcome: ToolOutcome,
  cut: CutOptions,
  mediaLimit: number,
  putText: PutText,
): MaybePromise<ToolOutcome> {
  const { content, error } = outcome;
  const given = typeof content === 'string' ? [{ type: 'text', text: content } as const] : content;
  const rooms = new Rooms(cut, mediaLimit);
  const fitted = given.map((part) => rooms.fit(part));
  return after(limitTexts(fitted.map(textOf), cut, putText), ({ texts, notes }) => {
    const parts = fitted.flatMap((part, index) => withText(part, texts[index] as string));
    const replaced = fitted.filter((part, index) => part !== given[index]).length;
    if (parts.length === given.length && parts.every((part, index) => part === given[index])) return outcome;
    const more = replaced === 0 ? notes : [...notes, truncated(`Parts left out whole: ${replaced}.`)];
    return {
      ...outcome,
      content: typeof content === 'string' ? (texts[0] as string) : parts,
      notes: [...outcome.notes, ...more],
      ...(error && { error: limitError(error, cut) }),
    };
  });
}

/** How much more than text an answer may have. */
export class Rooms {
  readonly #unit: SizeUnit;
  #media: number;
  #fields: number;

  constructor({ limit, unit }: CutOptions, mediaLimit: number) {
    this.#unit = unit;
    this.#media = mediaLimit;
    this.#fields = limit;
  }

  /** The next part, or a few words in its place where there is no room for it. */
  fit(part: ContentPart): ContentPart {
    const fields = sizeOfFields(part, this.#unit);
    if (fields > this.#fields)
      return part.type === 'text' ? { type: 'text', text: part.text } : inWords(part, `${fields} ${this.#unit}`);
    this.#fields -= fields;
    if (part.type === 'text' || part.type === 'resource_link') return part;
    const bytes = bytesOf(part);
    if (bytes > this.#media) return inWords(part, `${bytes} bytes`);
    this.#media -= bytes;
    return part;
  }
}

/** The size of what a part has beside what it is made for; of a link, all of it. */
function sizeOfFields(part: ContentPart, unit: SizeUnit): number {
  const fields = Object.entries(part).filter(([key, value]) => value !== undefined && !isCountedApart(part, key));
  if (fields.length === 0) return 0;
  const texts = fields.map(([, value]) => (typeof value === 'string' ? value : JSON.stringify(toJson(value))));
  const size = sizeOf(texts.join(' '), unit);
  return part.type === 'resource_link' || size > FREE_FIELDS ? size : 0;
}

/** Whether a field has a limit of its own, or needs none. */
function isCountedApart({ type }: ContentPart, key: string): boolean {
  if (key === 'type') return true;
  return type === 'text' ? key === 'text' : type !== 'resource_link' && (key === 'data' || key === 'url');
}

/** The bytes a part carries; of an address, and of what is mostly padding, what it takes as text. */
function bytesOf(part: MediaPart): number {
  const text = typeof part.data === 'string' ? part.data : (part.url ?? '');
  return Math.max(mediaBytes(part) ?? text.length, Math.floor(text.length / 2));
}

function inWords(part: MediaPart | ResourceLinkPart, size: string): ContentPart {
  return { type: 'text', text: `[${describePart(part, size)} left out: too large. Ask for a smaller one.]` };
}

function textOf(part: ContentPart): string {
  return part.type === 'text' ? part.text.toWellFormed() : '';
}

/** The part with its text; nothing, where nothing of its text is left. */
function withText(part: ContentPart, text: string): readonly ContentPart[] {
  if (part.type !== 'text' || part.text === text) return [part];
  return text === '' ? [] : [{ ...part, text }];
}

interface LimitedTexts {
  readonly texts: readonly string[];
  readonly notes: readonly DispatchNote[];
}

/** Cuts texts to one limit. One that is JSON is shrunk to the size the cut leaves it, and stays JSON. */
function limitTexts(texts: readonly string[], cut: CutOptions, putText: PutText): MaybePromise<LimitedTexts> {
  const { limit, unit } = cut;
  const size = texts.reduce((sum, text) => sum + sizeOf(text, unit), 0);
  if (size <= limit) return { texts, notes: [] };
  const spoken = texts.filter((text) => text !== '');
  return after(putText(spoken.join('\n')), ({ notes, readOn }) => {
    const remedy = (before: number) => (readOn === undefined ? REMEDY : `${readOn(byteAt(spoken, before, unit))}.`);
    const marker = cut.marker === usualMarker ? markerWith(remedy) : cut.marker;
    const kept = cutTexts(texts, { ...cut, marker });
    const small = kept.map((text, index) =>
      text === '' || text === texts[index] ? text : shrunk(texts[index] as string, text, cut),
    );
    const isCut = small.every((text, index) => text === kept[index]);
    const isTold =
      readOn === undefined || (marker !== cut.marker && sizeOf(marker(size, size, unit, size), unit) <= limit);
    if (isCut && isTold)
      return { texts: small, notes: [truncated(`The answer had ${size} ${unit}; the limit is ${limit}.`), ...notes] };
    // JSON has no place for the marker, nor has a small limit; and a host's marker knows of no store.
    const message = `This is a shortened view of an answer of ${size} ${unit}. To see more, ${remedy(0)}`;
    return { texts: small, notes: [{ ...truncated(message), forModel: true }, ...notes] };
  });
}

/** Where something stands in texts joined by newlines, in bytes, given how much of the texts stands before it. */
function byteAt(texts: readonly string[], before: number, unit: SizeUnit): number {
  let left = before;
  let bytes = 0;
  for (const text of texts) {
    const size = sizeOf(text, unit);
    if (left <= size) return bytes + (unit === 'bytes' ? left : Buffer.byteLength(text.slice(0, left)));
    left -= size;
    bytes += Buffer.byteLength(text) + 1;
  }
  return bytes;
}

function shrunk(text: string, kept: string, cut: CutOptions): string {
  const value = jsonOf(text);
  if (value === undefined) return kept;
  const size = sizeOf(kept, cut.unit);
  const json = shrinkJson(value, size, cut.unit);
  return sizeOf(json, cut.unit) <= size ? json : kept;
}

/** The JSON a text is, if a shorter text of it would still say the same: a number must not become another one. */
function jsonOf(text: string): JsonValue | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    const value = copyJson(JSON.parse(text));
    return readJson(text).inexact === undefined ? value : undefined;
  } catch {
    return undefined;
  }
}

function limitError(error: ToolError, cut: CutOptions): ToolError {
  const { message } = error;
  if (sizeOf(message, cut.unit) <= cut.limit && message.isWellFormed()) return error;
  return changedError(error, { message: cutTexts([message.toWellFormed()], cut).join('') });
}

export function truncated(message: string): DispatchNote {
  return { type: 'truncated', by: 'outputLimit', message };
}
