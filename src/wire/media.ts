import type { ContentPart, MediaPart, ResourceLinkPart, TextPart } from '../content.ts';
import { leftOut } from '../for-model.ts';
import { base64Of, linkText, mimeTypeOf } from '../media.ts';

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

/**
 * A part as a provider is told it: as media that it takes, and otherwise as text.
 *
 * @param takes Default: it takes all that can be shown.
 */
export function toldPart<Taken extends ShownMedia = ShownMedia>(
  part: ContentPart,
  takes: (media: ShownMedia) => media is Taken = (_): _ is Taken => true,
): TextPart | Taken {
  if (part.type === 'text') return { type: 'text', text: part.text };
  if (part.type === 'resource_link') return { type: 'text', text: linkToldOf(part) };
  const media = shownMedia(part);
  return media !== undefined && takes(media) ? media : { type: 'text', text: leftOut(part) };
}

/** Media with their bytes. */
export type InlineMedia = Extract<ShownMedia, { readonly data: string }>;

export function isInline(media: ShownMedia): media is InlineMedia {
  return media.data !== undefined;
}

/** A link as text, which is never blank. */
export function linkToldOf(part: ResourceLinkPart): string {
  const text = linkText(part);
  return text.trim() === '' ? leftOut(part) : text;
}

/** A part as it can be shown. Undefined where it has to be described. */
function shownMedia(part: MediaPart): ShownMedia | undefined {
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
