import type { MediaPart } from '../content.ts';
import { base64Of, mimeTypeOf } from '../media.ts';

const IMAGES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'] as const;
export const PDF = 'application/pdf';

export type ImageType = (typeof IMAGES)[number];

/** Bytes as base64 text, or an `https:` address. */
export type Shown<MimeType> =
  | { readonly mimeType: MimeType; readonly data: string }
  | { readonly url: string; readonly data?: never };

/** A picture or document that the providers with media all take. */
export type ShownMedia =
  | ({ readonly type: 'image' } & Shown<ImageType>)
  | ({ readonly type: 'document' } & Shown<typeof PDF>);

/** A part as it can be shown. Undefined where it has to be described. */
export function shownMedia(part: MediaPart): ShownMedia | undefined {
  const { type } = part;
  const told = mimeTypeOf(part);
  // No type of the registry, and often written.
  const mimeType = told === 'image/jpg' ? 'image/jpeg' : told;
  const data = base64Of(part);
  if (data !== undefined) {
    if (isImageType(mimeType)) return { type: 'image', mimeType, data };
    return mimeType === PDF ? { type: 'document', mimeType, data } : undefined;
  }
  const url = publicUrl(part.url ?? '');
  if (url === undefined) return undefined;
  if (mimeType === PDF) return { type: 'document', url };
  // Of a picture somewhere nobody may have said what it is; the provider finds out.
  const isImage = mimeType === undefined ? type === 'image' : isImageType(mimeType);
  return isImage ? { type: 'image', url } : undefined;
}

/** An address the provider can fetch from: one of this machine or its network fails the whole request, and nobody is to learn a password. */
function publicUrl(text: string): string | undefined {
  if (!/^https:\/\//i.test(text) || !URL.canParse(text)) return undefined;
  const { href, hostname, username, password } = new URL(text);
  const isPublic = /\.[a-z][a-z0-9-]*\.?$/i.test(hostname) && !/\.(local|localhost|internal)\.?$/i.test(hostname);
  return isPublic && username === '' && password === '' ? href : undefined;
}

function isImageType(mimeType: string | undefined): mimeType is ImageType {
  return IMAGES.some((type) => type === mimeType);
}
