import { type ContentPart, type ToolDispatchResult, toJson } from '../index.ts';

/** A result as one line of JSON: bytes as base64, and never a failure, whatever is in it. */
export function lineOf(result: ToolDispatchResult): string {
  try {
    const { content } = result;
    const told = typeof content === 'string' ? result : { ...result, content: content.map(withBase64) };
    const line = JSON.stringify(told);
    if (line !== undefined) return line;
  } catch {
    // Only what a runtime put into `control` can be of any kind, and bytes more than text can hold.
  }
  return JSON.stringify(toJson(result));
}

function withBase64(part: ContentPart): ContentPart {
  if (!('data' in part) || typeof part.data === 'string' || part.data === undefined) return part;
  return { ...part, data: Buffer.from(part.data).toString('base64') };
}
