import type { MediaPart, ResourceLinkPart } from './content.ts';
import { printable } from './error.ts';

/**
 * Bytes a media part carries: of base64 text and of a `data:` URL those they stand for, counted without decoding. Undefined where it
 * only has an address.
 */
export function mediaBytes({ data, url }: MediaPart): number | undefined {
  if (typeof data === 'string') return base64Bytes(data);
  return data === undefined ? dataUrlBytes(url) : data.byteLength;
}

/** Of base64, padding and line breaks stand for no bytes. */
const EMPTY_CHARACTERS = ['=', '\n', '\r', ' ', '\t'];

function base64Bytes(text: string): number {
  const empty = EMPTY_CHARACTERS.reduce((sum, character) => sum + countOf(character, text), 0);
  return Math.floor(((text.length - empty) * 3) / 4);
}

/** By search, which is several times as quick as a look at each character. */
function countOf(character: string, text: string): number {
  let count = 0;
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) count++;
  return count;
}

function dataUrlBytes(url: string): number | undefined {
  const head = dataUrlHead(url);
  if (head === undefined) return undefined;
  const data = url.slice(url.indexOf(',') + 1);
  return /; *base64$/i.test(head) ? base64Bytes(data) : Buffer.byteLength(data) - 2 * countOf('%', data);
}

/** The bytes a part carries, itself or in a `data:` URL, as the base64 that is taken everywhere. Undefined where it carries none. */
export function base64Of({ data, url }: MediaPart): string | undefined {
  if (data !== undefined && typeof data !== 'string') return Buffer.from(data).toString('base64') || undefined;
  // Some give a whole `data:` URL as the data.
  const text = data ?? url;
  const head = dataUrlHead(text);
  if (head === undefined) return data === undefined ? undefined : plainBase64(data);
  return /; *base64$/i.test(head) ? plainBase64(text.slice(text.indexOf(',') + 1)) : undefined;
}

/** Without line breaks, with its padding, and in the letters that are not for addresses. Undefined where it is no base64, or empty. */
function plainBase64(text: string): string | undefined {
  const letters = /[^A-Za-z0-9+/=]/.test(text)
    ? text.replaceAll(/\s+/g, '').replaceAll('-', '+').replaceAll('_', '/')
    : text;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(letters)) return undefined;
  return letters.length % 4 === 0 ? letters : Buffer.from(letters, 'base64').toString('base64');
}

/** A link as text, for where there are no links. */
export function linkText({ name, description, uri }: ResourceLinkPart): string {
  return [name, description, uri].filter((text) => text !== undefined && text !== '').join('\n');
}

/** What a `data:` URL says of its data, as in `image/png;base64`. */
function dataUrlHead(url: string): string | undefined {
  return /^data:([^,]*),/i.exec(url)?.[1];
}

/** The mime type a part or its `data:` URL tells, bare. */
export function mimeTypeOf(part: MediaPart | ResourceLinkPart): string | undefined {
  const told: unknown = part.mimeType ?? (part.type === 'resource_link' ? undefined : dataUrlHead(part.url ?? ''));
  // Beside an address it may be anything.
  return typeof told === 'string' ? bareMimeType(told) || undefined : undefined;
}

/** A mime type without its parameters, in lower case. */
export function bareMimeType(mimeType: string): string {
  const [bare = ''] = mimeType.split(';', 1);
  return bare.trim().toLowerCase();
}

/**
 * A few words for a part that is not shown: its kind, size, mime type and name, as in `image of 1024 bytes (image/png) named "a.png"`.
 * Printable, whatever the part holds. An address is told where it is short and holds no password; of media only one that begins with `http`.
 *
 * @param size Default: the bytes it carries.
 */
export function describePart(part: MediaPart | ResourceLinkPart, size: string | undefined = sizeOf(part)): string {
  const address = addressOf(part);
  const mimeType = mimeTypeOf(part);
  const name: unknown = part.name;
  return [
    part.type,
    ...(size === undefined ? [] : [`of ${size}`]),
    ...(address === undefined ? [] : [`at ${address}`]),
    ...(mimeType === undefined ? [] : [`(${printable(mimeType)})`]),
    ...(typeof name === 'string' && name.trim() !== '' ? [`named "${printable(name)}"`] : []),
  ].join(' ');
}

function sizeOf(part: MediaPart | ResourceLinkPart): string | undefined {
  const bytes = part.type === 'resource_link' ? undefined : mediaBytes(part);
  return bytes === undefined ? undefined : `${bytes} bytes`;
}

/** Up to 200 characters, none of them a space or invisible. */
const SHORT_ADDRESS = /^[^\p{C}\p{Z}]{1,200}$/u;

/** A user's name, and often a password, before the host. */
const PASSWORD = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*@/i;

function addressOf(part: MediaPart | ResourceLinkPart): string | undefined {
  const address = part.type === 'resource_link' ? part.uri : (part.url ?? '');
  const mayBeTold = part.type === 'resource_link' ? !/^data:/i.test(address) : /^https?:\/\//i.test(address);
  return mayBeTold && SHORT_ADDRESS.test(address) && !PASSWORD.test(address) ? address : undefined;
}
