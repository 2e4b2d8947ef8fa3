import { types } from 'node:util';
import { type Content, type ContentPart, isContentPart, textOf } from './content.ts';
import { isPlainObject, type JsonValue, toJson } from './json.ts';

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
 * keys `content`, `isError` and `structured`, the content valid, is a ToolOutput, and so is the result of another dispatch; all
 * else is data with a JSON rendering.
 */
export function toOutput(value: unknown): ToolOutput {
  if (typeof value === 'string') return { content: value, isError: false };
  if (value === undefined) return { content: '', isError: false };
  try {
    return fromObject(value) ?? fromData(value);
  } catch {
    return fromData(value);
  }
}

function fromObject(value: unknown): ToolOutput | undefined {
  if (ArrayBuffer.isView(value)) return { content: [bytesPart(value)], isError: false };
  if (types.isAnyArrayBuffer(value)) return { content: [bytesPart(new Uint8Array(value))], isError: false };
  if (Array.isArray(value)) {
    const content = value.length > 0 ? partsOf(value) : undefined;
    return content && { content, isError: false };
  }
  const part = partOf(value);
  if (part !== undefined) return { content: [part], isError: false };
  return isPlainObject(value) ? fromOutputLike(value) : undefined;
}

/** A copy of a valid part: what a tool does to its own later changes no answer. Checked again, for a getter may waver. */
function partOf(value: unknown): ContentPart | undefined {
  if (!isContentPart(value)) return undefined;
  const copy = { ...value };
  return isContentPart(copy) ? copy : undefined;
}

function partsOf(values: readonly unknown[]): ContentPart[] | undefined {
  const parts: ContentPart[] = [];
  for (const value of values) {
    const part = partOf(value);
    if (part === undefined) return undefined;
    parts.push(part);
  }
  return parts;
}

const OUTPUT_KEYS: ReadonlySet<string> = new Set(['content', 'isError', 'structured']);

function fromOutputLike(value: Record<string, unknown>): ToolOutput | undefined {
  if (!isResult(value) && !Object.keys(value).every((key) => OUTPUT_KEYS.has(key))) return undefined;
  const { content, isError = false, structured } = value;
  const copy = typeof content === 'string' ? content : Array.isArray(content) ? partsOf(content) : undefined;
  if (copy === undefined || typeof isError !== 'boolean') return undefined;
  return structured === undefined
    ? { content: copy, isError }
    : { content: copy, isError, structured: toJson(structured) };
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

function fromData(value: unknown, content?: Content): ToolOutput {
  const structured = toJson(value);
  return { content: content ?? JSON.stringify(structured), isError: false, structured };
}

function bytesPart(view: ArrayBufferView): ContentPart {
  const data = new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice();
  return { type: 'file', mimeType: 'application/octet-stream', data };
}
