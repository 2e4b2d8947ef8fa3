import {
  type Content,
  type ContentPart,
  type CutOptions,
  checkOptions,
  copyJson,
  cutTexts,
  type DispatchNote,
  isBound,
  isFunction,
  isJsonLonger,
  isOneOf,
  isPromise,
  type JsonValue,
  type Keep,
  type Marker,
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
}

const REMEDY = 'ask for less at a time: narrower arguments, a page, a range.';

const leftOutMarker: Marker = (leftOut, total, unit) =>
  `\n[… ${leftOut} of ${total} ${unit} left out. To see them, ${REMEDY}]\n`;

/** A host's marker whose faults cost no answer. */
function trusty(marker: Marker): Marker {
  return (...sizes) => {
    try {
      const text: unknown = marker(...sizes);
      return typeof text === 'string' ? text : leftOutMarker(...sizes);
    } catch {
      return leftOutMarker(...sizes);
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
    limit: perToolCheck(isBound(1)),
    unit: isOneOf('characters', 'bytes'),
    keep: perToolCheck(isOneOf('head', 'tail', 'both')),
    mediaLimit: perToolCheck(isBound(0)),
    structuredLimit: perToolCheck(isBound(0)),
    marker: isFunction,
  });
  const { unit = 'characters' } = options;
  const marker = options.marker === undefined ? leftOutMarker : trusty(options.marker);
  const limitOf = perTool(options.limit, 50_000);
  const keepOf = perTool<Keep>(options.keep, 'both');
  const mediaLimitOf = perTool(options.mediaLimit, 5_000_000);
  const structuredLimitOf = perTool(options.structuredLimit, 200_000);

  return named('outputLimit', function outputLimit(call, next) {
    const outcome = next(call);
    return isPromise(outcome) ? outcome.then((settled) => limit(call, settled)) : limit(call, outcome);
  });

  function limit(call: ToolCall, outcome: ToolOutcome): ToolOutcome {
    if (outcome.control !== undefined) return outcome;
    const { resolvedToolName: name, content, structured } = outcome;
    const most = limitOf(name);
    const small = fits(content, most, unit)
      ? outcome
      : limitContent(outcome, { limit: most, unit, keep: keepOf(name), marker }, mediaLimitOf(name));
    if (structured === undefined || call.tool?.outputSchema !== undefined) return small;
    return isJsonLonger(structured, structuredLimitOf(name))
      ? withoutStructured(small, structuredLimitOf(name))
      : small;
  }
}

/** The usual answer, told apart without counting bytes: no character has more than three of them. */
function fits(content: Content, limit: number, unit: SizeUnit): boolean {
  if (typeof content !== 'string' || !content.isWellFormed()) return false;
  return content.length * (unit === 'bytes' ? 3 : 1) <= limit;
}

function limitContent(outcome: ToolOutcome, cut: CutOptions, mediaLimit: number): ToolOutcome {
  const { content, error } = outcome;
  const given = typeof content === 'string' ? [{ type: 'text', text: content } as const] : content;
  const whole = withoutLarge(given, cut, mediaLimit);
  const { texts, notes } = limitTexts(whole.map(textOf), cut);
  const parts = whole.flatMap((part, index) => withText(part, texts[index] as string));
  const replaced = whole.filter((part, index) => part !== given[index]).length;
  if (parts.length === given.length && parts.every((part, index) => part === given[index])) return outcome;
  return {
    ...outcome,
    content: typeof content === 'string' ? (texts[0] as string) : parts,
    notes: [...outcome.notes, ...notes, ...(replaced === 0 ? [] : [note(`Parts left out whole: ${replaced}.`)])],
    ...(error && { error: limitError(error, cut) }),
  };
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
function limitTexts(texts: readonly string[], cut: CutOptions): LimitedTexts {
  const kept = cutTexts(texts, cut);
  if (kept === texts) return { texts, notes: [] };
  const small = kept.map((text, index) =>
    text === '' || text === texts[index] ? text : shrunk(texts[index] as string, text, cut),
  );
  const size = texts.reduce((sum, text) => sum + sizeOf(text, cut.unit), 0);
  if (small.every((text, index) => text === kept[index]))
    return { texts: small, notes: [note(`The answer had ${size} ${cut.unit}; the limit is ${cut.limit}.`)] };
  // JSON has no place for the marker.
  const message = `This is a shortened view of an answer of ${size} ${cut.unit}. To see more, ${REMEDY}`;
  return { texts: small, notes: [{ ...note(message), forModel: true }] };
}

function shrunk(text: string, kept: string, cut: CutOptions): string {
  const value = jsonOf(text);
  if (value === undefined) return kept;
  const size = sizeOf(kept, cut.unit);
  const json = shrinkJson(value, size, cut.unit);
  return sizeOf(json, cut.unit) <= size ? json : kept;
}

/** The value of JSON text of an object or array. */
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
  return withNote(rest, note(`The structured answer was left out: it is longer than ${limit} characters of JSON.`));
}

function note(message: string): DispatchNote {
  return { type: 'truncated', by: 'outputLimit', message };
}
