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
  const { type, url = '' } = part;
  const mimeType = mimeTypeOf(part);
  const data = base64Of(part);
  if (data !== undefined) {
    if (isImageType(mimeType)) return { type: 'image', mimeType, data };
    return mimeType === PDF ? { type: 'document', mimeType, data } : undefined;
  }
  if (!/^https:/i.test(url) || !URL.canParse(url)) return undefined;
  if (mimeType === PDF) return { type: 'document', url };
  // Of a picture somewhere nobody may have said what it is; the provider finds out.
  return type === 'image' && (mimeType === undefined || isImageType(mimeType)) ? { type, url } : undefined;
}

function isImageType(mimeType: string | undefined): mimeType is ImageType {
  return IMAGES.some((type) => type === mimeType);
}
