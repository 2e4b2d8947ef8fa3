import {
  after,
  type Content,
  type ContentPart,
  type CutOptions,
  checkOptions,
  copyJson,
  cutTexts,
  type DispatchNote,
  isFunction,
  isJsonLonger,
  isLimit,
  isLimitMs,
  isOneOf,
  isPromise,
  type JsonValue,
  type Keep,
  type Marker,
  type MaybePromise,
  type MediaPart,
  type Middleware,
  named,
  type PerTool,
  perTool,
  perToolCheck,
  printable,
  type ResourceLinkPart,
  readJson,
  type SizeUnit,
  shrinkJson,
  sizeOf,
  type ToolCall,
  type ToolError,
  type ToolOutcome,
  toJson,
  withNote,
} from '../src/index.ts';
import { readingOn, storeOf } from './read-result-tool.ts';
import { isResultStore, keep, type ResultStore } from './result-store.ts';

/** Options of `outputLimit`. A limit may be Infinity. */
export interface OutputLimitOptions {
  /** The most text an answer may hold, over all its parts, in `unit`; as much again for resource links. Default: 50,000. */
  readonly limit?: PerTool<number>;
  /** Default: `characters`, as `length` counts them. */
  readonly unit?: SizeUnit;
  /** What is kept of a text that is too long. Default: `both`, for an error is often at the end. */
  readonly keep?: PerTool<Keep>;
  /**
   * Bytes the pictures, sounds, films and files of an answer may have together; one there is no room for is replaced whole.
   * Default: 5,000,000.
   */
  readonly mediaLimit?: PerTool<number>;
  /**
   * About how many characters of JSON `structured` may have; a larger one is left out whole, unless the tool declares an output
   * schema. Default: 200,000.
   */
  readonly structuredLimit?: PerTool<number>;
  /** The text that stands where something was left out. Default: one that tells how much, and to ask for less at a time. */
  readonly marker?: Marker;
  /**
   * Where the whole text is kept once it has been cut. Where the tools of the call include a `readResultTool` of this store, the model
   * is told to read on with it. Default: nowhere.
   */
  readonly store?: ResultStore;
  /** Milliseconds the store may take before the answer goes on without it. Default: 5,000. */
  readonly storeLimitMs?: number;
}

const REMEDY = 'ask for less at a time: narrower arguments, a page, a range.';

function markerWith(remedy: (before: number) => string): Marker {
  return (leftOut, total, unit, before) =>
    `\n[… ${leftOut} of ${total} ${unit} left out. To see them, ${remedy(before)}]\n`;
}

const usualMarker = markerWith(() => REMEDY);

/** A host's marker whose faults cost no answer. */
function trusty(marker: Marker): Marker {
  return (...sizes) => {
    try {
      const text: unknown = marker(...sizes);
      return typeof text === 'string' ? text : usualMarker(...sizes);
    } catch {
      return usualMarker(...sizes);
    }
  };
}

/** Characters of a part beside its text, its bytes or its address that are not counted, such as its type. */
const FREE_FIELDS = 200;

/**
 * Keeps an answer within a size: text is cut, JSON is shrunk and stays JSON, media and structured data are whole or replaced. An
 * answer within the limits passes untouched; an error is an answer like any other.
 *
 * Inside the middlewares that call `next` again, outside redaction: a cut must never save half a secret.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example outputLimit({ limit: { default: 20_000, byTool: { read_file: 100_000 } }, keep: 'head' })
 */
export function outputLimit(options: OutputLimitOptions = {}): Middleware {
  checkOptions('outputLimit', options, {
    limit: perToolCheck(isLimit(1)),
    unit: isOneOf('characters', 'bytes'),
    keep: perToolCheck(isOneOf('head', 'tail', 'both')),
    mediaLimit: perToolCheck(isLimit(0)),
    structuredLimit: perToolCheck(isLimit(0)),
    marker: isFunction,
    store: isResultStore,
    storeLimitMs: isLimitMs,
  });
  const { unit = 'characters', store, storeLimitMs = 5_000 } = options;
  const marker = options.marker === undefined ? usualMarker : trusty(options.marker);
  const limitOf = perTool(options.limit, 50_000);
  const keepOf = perTool<Keep>(options.keep, 'both');
  const mediaLimitOf = perTool(options.mediaLimit, 5_000_000);
  const structuredLimitOf = perTool(options.structuredLimit, 200_000);

  return named('outputLimit', function outputLimit(call, next) {
    const outcome = next(call);
    return isPromise(outcome) ? outcome.then((settled) => limit(call, settled)) : limit(call, outcome);
  });

  function limit(call: ToolCall, outcome: ToolOutcome): MaybePromise<ToolOutcome> {
    if (outcome.control !== undefined) return outcome;
    const { resolvedToolName: name, content } = outcome;
    const most = limitOf(name);
    if (fits(content, most, unit) || isPage(call, outcome)) return limitStructured(call, outcome);
    const cut = { limit: most, unit, keep: keepOf(name), marker };
    const limited = limitContent(outcome, cut, mediaLimitOf(name), (text) => putAway(call, text));
    return after(limited, (small) => limitStructured(call, small));
  }

  function limitStructured(call: ToolCall, outcome: ToolOutcome): ToolOutcome {
    const { resolvedToolName: name, structured } = outcome;
    if (structured === undefined || call.tool?.outputSchema !== undefined) return outcome;
    const most = structuredLimitOf(name);
    return isJsonLonger(structured, most) ? withoutStructured(outcome, most) : outcome;
  }

  function putAway(call: ToolCall, text: string): MaybePromise<PutAway> {
    if (store === undefined) return { notes: [] };
    return after(keep(store, text, call, storeLimitMs), (kept) => {
      if ('fault' in kept) return { notes: [notStored(kept.fault)] };
      const notes = [stored(kept.id)];
      const reader = call.tools.tools.find((tool) => storeOf(tool) === store);
      return reader === undefined ? { notes } : { notes, readOn: (from) => readingOn(reader.name, kept.id, from) };
    });
  }
}

/** What became of a text that the store was given. */
interface PutAway {
  readonly notes: readonly DispatchNote[];
  /** What the model can do to read on from a byte; undefined where it can do nothing. */
  readonly readOn?: (from: number) => string;
}

type Keeper = (text: string) => MaybePromise<PutAway>;

/** Whether an answer is a page of another one: it has a limit of its own, and where it was cut there would be no way to read on. */
function isPage({ tool }: ToolCall, { resolvedToolName }: ToolOutcome): boolean {
  return tool?.name === resolvedToolName && storeOf(tool) !== undefined;
}

/** The usual answer, told apart without counting bytes: no character has more than three of them. */
function fits(content: Content, limit: number, unit: SizeUnit): boolean {
  if (typeof content !== 'string' || !content.isWellFormed()) return false;
  return content.length * (unit === 'bytes' ? 3 : 1) <= limit;
}

function limitContent(
  outcome: ToolOutcome,
  cut: CutOptions,
  mediaLimit: number,
  keeper: Keeper,
): MaybePromise<ToolOutcome> {
  const { content, error } = outcome;
  const given = typeof content === 'string' ? [{ type: 'text', text: content } as const] : content;
  const whole = withoutLarge(given, cut, mediaLimit);
  return after(limitTexts(whole.map(textOf), cut, keeper), ({ texts, notes }) => {
    const parts = whole.flatMap((part, index) => withText(part, texts[index] as string));
    const replaced = whole.filter((part, index) => part !== given[index]).length;
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

/** The parts, with a few words in the place of each there is no room for. */
function withoutLarge(parts: readonly ContentPart[], cut: CutOptions, mediaLimit: number): readonly ContentPart[] {
  let mediaRoom = mediaLimit;
  let fieldRoom = cut.limit;
  return parts.map((part) => {
    const fields = sizeOfFields(part, cut.unit);
    if (fields > fieldRoom)
      return part.type === 'text' ? { type: 'text', text: part.text } : descriptorOf(part, `${fields} ${cut.unit}`);
    fieldRoom -= fields;
    if (part.type === 'text' || part.type === 'resource_link') return part;
    const bytes = bytesOf(part);
    if (bytes > mediaRoom) return descriptorOf(part, `${bytes} bytes`);
    mediaRoom -= bytes;
    return part;
  });
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

function bytesOf({ data, url = '' }: MediaPart): number {
  if (data === undefined) return url.length;
  return typeof data === 'string' ? Buffer.byteLength(data, 'base64') : data.byteLength;
}

function descriptorOf({ type, mimeType }: MediaPart | ResourceLinkPart, size: string): ContentPart {
  const kind = mimeType === undefined ? '' : ` (${printable(String(mimeType))})`;
  return { type: 'text', text: `[${type} of ${size}${kind} left out: too large. Ask for a smaller one.]` };
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
function limitTexts(texts: readonly string[], cut: CutOptions, keeper: Keeper): MaybePromise<LimitedTexts> {
  const { limit, unit } = cut;
  const size = texts.reduce((sum, text) => sum + sizeOf(text, unit), 0);
  if (size <= limit) return { texts, notes: [] };
  const spoken = texts.filter((text) => text !== '');
  return after(keeper(spoken.join('\n')), ({ notes, readOn }) => {
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
  const small = { ...error, message: cutTexts([message.toWellFormed()], cut).join('') };
  // It is not enumerable, so that serialising an error never shows it.
  return 'cause' in error ? Object.defineProperty(small, 'cause', { value: error.cause }) : small;
}

function withoutStructured(outcome: ToolOutcome, limit: number): ToolOutcome {
  const { structured: _, ...rest } = outcome;
  return withNote(
    rest,
    truncated(`The structured answer was left out: it is longer than ${limit} characters of JSON.`),
  );
}

function truncated(message: string): DispatchNote {
  return { type: 'truncated', by: 'outputLimit', message };
}

function stored(id: string): DispatchNote {
  return { type: 'stored', by: 'outputLimit', message: `The whole text is kept as ${JSON.stringify(id)}.` };
}

function notStored(fault: string): DispatchNote {
  const message = `The whole text could not be kept: ${fault}.`;
  return { type: 'not_stored', by: 'outputLimit', message, forModel: true };
}
