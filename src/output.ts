import { types } from 'node:util';
import { type Content, type ContentPart, isContentPart, textOf } from './content.ts';
import { isErrorLike, isPlainObject, type JsonValue, toJson } from './json.ts';

/** What a tool answers. A tool may return one, or anything `toOutput` can convert. */
export interface ToolOutput {
  readonly content: Content;
  /** A soft failure: the tool ran, and its content tells what went wrong. */
  readonly isError: boolean;
  /** The same answer as data for programs. */
  readonly structured?: JsonValue;
}

/** Constructors, predicates and the text view of `ToolOutput`. */
export const ToolOutput = {
  /** A success with this text. */
  text: (text: string): ToolOutput => ({ content: text, isError: false }),
  /** A success with text or parts. */
  success: (content: Content): ToolOutput => ({ content, isError: false }),
  /** A soft failure with text or parts. */
  error: (content: Content): ToolOutput => ({ content, isError: true }),
  /** A success with data; its text rendering is the JSON, unless `content` says it better. */
  json: (value: unknown, content?: Content): ToolOutput => fromData(value, content),

  isSuccess: (output: ToolOutput): boolean => !output.isError,
  isError: (output: ToolOutput): boolean => output.isError,
  /** Text parts joined by newlines; media and links are left out. */
  textContent: (output: ToolOutput): string => textOf(output.content),
} as const;

/**
 * Plain output for whatever a tool returned. Total: it never throws.
 *
 * Text is itself; nothing (`undefined`) is empty text; a part, a list of parts, or bytes are content; an object with only the
 * keys `content`, `isError` and `structured`, the content valid, is a ToolOutput, and so are the result of another dispatch and that
 * of a server of the Model Context Protocol; all else is data with a JSON rendering. `isError: true` is never lost: data with it,
 * and an Error that is returned instead of thrown, are soft failures.
 */
export function toOutput(value: unknown): ToolOutput {
  if (typeof value === 'string') return { content: value, isError: false };
  if (value === undefined) return { content: '', isError: false };
  try {
    return fromObject(value) ?? fromData(value, undefined, isFailure(value));
  } catch {
    return fromData(value);
  }
}

/** Whether a value that is no ToolOutput says of itself that it is a failure. */
function isFailure(value: unknown): boolean {
  return isErrorLike(value) || flagOf(value) === true;
}

function flagOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, 'isError') : undefined;
}

function fromObject(value: unknown): ToolOutput | undefined {
  const data = bytesOf(value);
  if (data !== undefined) return { content: [{ type: 'file', mimeType: ANY_BYTES, data }], isError: false };
  if (Array.isArray(value)) {
    const content = value.length > 0 ? partsOf(value) : undefined;
    return content === undefined || content.some(isRow) ? undefined : { content, isError: false };
  }
  const part = partOf(value);
  if (part !== undefined && !isRow(part)) return { content: [part], isError: false };
  // An instance of a class is data, unless it has the flag.
  return isPlainObject(value) || typeof flagOf(value) === 'boolean'
    ? fromOutputLike(value as Record<string, unknown>)
    : undefined;
}

const PART_TYPES: ReadonlySet<unknown> = new Set([
  'text',
  'image',
  'audio',
  'video',
  'file',
  'resource_link',
  'resource',
]);
const LINKED_KEYS: ReadonlySet<string> = new Set(['type', 'url', 'mimeType', 'name', 'annotations', '_meta']);

/** Whether what looks like a file at an address is a row of data, as of a directory or of films found: it has more to say. */
function isRow(part: ContentPart): boolean {
  return 'url' in part && !Object.keys(part).every((key) => LINKED_KEYS.has(key));
}

/**
 * A copy of a valid part: what a tool does to its own later changes no answer, and what a part has beyond its own keys is JSON like
 * the rest of an answer. The copy is what is checked, for a getter may waver.
 */
function partOf(value: unknown): ContentPart | undefined {
  if (!isPlainObject(value) || !PART_TYPES.has(value['type'])) return undefined;
  const copy: Record<string, unknown> = { ...value };
  for (const key of Object.keys(copy)) {
    const item = copy[key];
    if (typeof item === 'string') continue;
    if (item === undefined || typeof item === 'function' || typeof item === 'symbol') delete copy[key];
    else copy[key] = (key === 'data' ? bytesOf(item) : undefined) ?? toJson(item);
  }
  return isContentPart(copy) ? copy : embedded(copy);
}

/** What a server of the Model Context Protocol embeds in an answer: the text or the bytes of a resource. */
function embedded({ type, resource }: Record<string, unknown>): ContentPart | undefined {
  if (type !== 'resource' || !isPlainObject(resource)) return undefined;
  const { uri, text, blob, mimeType } = resource;
  if (typeof uri !== 'string') return undefined;
  if (typeof text === 'string') return { type: 'text', text };
  if (typeof blob !== 'string') return undefined;
  return { type: 'file', name: uri, mimeType: typeof mimeType === 'string' ? mimeType : ANY_BYTES, data: blob };
}

function partsOf(values: readonly unknown[]): ContentPart[] | undefined {
  const parts: ContentPart[] = [];
  // By index: an iterator of the list's own may never end.
  for (let index = 0; index < values.length; index++) {
    const part = partOf(values[index]);
    if (part === undefined) return undefined;
    parts.push(part);
  }
  return parts;
}

/** The last two are the Model Context Protocol's, whose servers' results tools pass on. */
const OUTPUT_KEYS: ReadonlySet<string> = new Set(['content', 'isError', 'structured', 'structuredContent', '_meta']);

function fromOutputLike(value: Record<string, unknown>): ToolOutput | undefined {
  if (!isResult(value) && !Object.keys(value).every((key) => OUTPUT_KEYS.has(key))) return undefined;
  const { content, isError = false, structured, structuredContent } = value;
  const copy = contentOf(content, structuredContent);
  if (copy === undefined || typeof isError !== 'boolean') return undefined;
  const data = structured ?? structuredContent ?? structured;
  return data === undefined ? { content: copy, isError } : { content: copy, isError, structured: toJson(data) };
}

/** A server may leave the text to whoever reads the data. */
function contentOf(content: unknown, data: unknown): Content | undefined {
  if (typeof content === 'string') return content;
  const isEmpty = content === undefined || (Array.isArray(content) && content.length === 0);
  if (isEmpty && isPlainObject(data)) return JSON.stringify(toJson(data));
  return Array.isArray(content) ? partsOf(content) : undefined;
}

/** What `dispatch` gave, as a tool passes it on that has called another one. */
function isResult({ toolCallId, resolvedToolName, notes, requested }: Record<string, unknown>): boolean {
  return (
    typeof toolCallId === 'string' &&
    typeof resolvedToolName === 'string' &&
    Array.isArray(notes) &&
    isPlainObject(requested)
  );
}

function fromData(value: unknown, content?: Content, isError = false): ToolOutput {
  const structured = toJson(value);
  return { content: content ?? JSON.stringify(structured), isError, structured };
}

const ANY_BYTES = 'application/octet-stream';

/** A copy of bytes, however they are held. */
function bytesOf(value: unknown): Uint8Array | undefined {
  if (types.isAnyArrayBuffer(value)) return new Uint8Array(value).slice();
  return ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice()
    : undefined;
}
