import { isPlainObject } from './json.ts';

/** Text the model reads. */
export interface TextPart {
  readonly type: 'text';
  readonly text: string;
}

/** A picture, sound, film or document: its bytes (raw, or base64 text), or the place they can be fetched from. */
export type MediaPart = {
  readonly type: 'image' | 'audio' | 'video' | 'file';
  /** File name, for people. */
  readonly name?: string;
} & (
  | { readonly mimeType: string; readonly data: string | Uint8Array; readonly url?: never }
  | { readonly mimeType?: string; readonly url: string; readonly data?: never }
);

/** Points at something the model may ask for. */
export interface ResourceLinkPart {
  readonly type: 'resource_link';
  readonly uri: string;
  readonly name?: string;
  readonly mimeType?: string;
  readonly description?: string;
}

/** One piece of a tool's answer. */
export type ContentPart = TextPart | MediaPart | ResourceLinkPart;

/** A tool's answer: plain text, or parts in order. */
export type Content = string | readonly ContentPart[];

/** Whether a value is a valid part: the right `type` with the fields it needs. Total. */
export function isContentPart(value: unknown): value is ContentPart {
  try {
    return isPlainObject(value) && hasPartFields(value);
  } catch {
    return false;
  }
}

function hasPartFields(value: Record<string, unknown>): boolean {
  switch (value['type']) {
    case 'text':
      return typeof value['text'] === 'string';
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return isMedia(value);
    case 'resource_link':
      return typeof value['uri'] === 'string';
    default:
      return false;
  }
}

function isMedia(value: Record<string, unknown>): boolean {
  const { data, url, mimeType } = value;
  if (typeof url === 'string') return data === undefined;
  return typeof mimeType === 'string' && (typeof data === 'string' || ArrayBuffer.isView(data));
}

/** Whether a value is text or a list of valid parts. Total. */
export function isContent(value: unknown): value is Content {
  return typeof value === 'string' || areContentParts(value);
}

function areContentParts(value: unknown): boolean {
  try {
    // Not `every`, which passes over the holes of a sparse list.
    return Array.isArray(value) && value.findIndex((part) => !isContentPart(part)) < 0;
  } catch {
    return false;
  }
}

/** The text of an answer: text parts joined by newlines, everything else left out. */
export function textOf(content: Content): string {
  if (typeof content === 'string') return content;
  return content
    .filter((part) => part.type === 'text')
    .map((part) => part.text)
    .join('\n');
}
