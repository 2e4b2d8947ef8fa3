import type { ContentPart } from 'toolonion';

/** Some words, as a part of an answer. */
export const text = (words: string): ContentPart => ({ type: 'text', text: words });

/** A picture of a few bytes. */
export const image: ContentPart = { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' };
