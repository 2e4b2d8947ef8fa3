import { isDeepStrictEqual } from 'node:util';
import type { Content, ContentPart } from '../../content.ts';
import { isPlainObject } from '../../json.ts';
import type { ToolDispatchResult } from '../../outcome.ts';
import { type ToolOutput, toOutput } from '../../output.ts';
import type { Params } from './peer.ts';
import { plainResult } from './server-tools.ts';

/** Marks the part that stands for all a server's result has beside its answer. */
const REST = 'isRest';

/**
 * A server's result as layers see it: whole. What they have no words for, such as the address of a resource or `_meta`, is shown to them as JSON in
 * a text part at the end, so that what limits or redacts an answer misses nothing of it.
 */
export function shownResult(result: Params): ToolOutput {
  const { content, isError, structuredContent, ...others } = result;
  if (others['resultType'] === 'complete') delete others['resultType'];
  const own = {
    ...(content !== undefined && { content }),
    ...(isError !== undefined && { isError }),
    ...(structuredContent !== undefined && { structuredContent }),
  };
  const output = toOutput(plainResult(own));
  const resources = Array.isArray(content) ? content.filter(isResource) : [];
  const rest = { ...others, ...(resources.length > 0 && { resources }) };
  if (Object.keys(rest).length === 0) return output;
  const part = { type: 'text', text: JSON.stringify(rest), [REST]: true } as const;
  return { ...output, content: [...partsOf(output.content), part] };
}

/** Of an embedded resource only the text or the bytes are an answer. */
function isResource(part: unknown): boolean {
  return isPlainObject(part) && part['type'] === 'resource';
}

function partsOf(content: Content): readonly ContentPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

/** Whether layers have left a result as it was shown to them, notes aside. */
export function isUnchanged(result: ToolDispatchResult, { content, structured, isError }: ToolOutput): boolean {
  if (result.error !== undefined || result.control !== undefined || result.isError !== isError) return false;
  return isDeepStrictEqual(result.content, content) && isDeepStrictEqual(result.structured, structured);
}

/** A server's result with the notes that the model has to know. */
export function withNotes(result: Params, { notes }: ToolDispatchResult): Params {
  const told = notes.filter(({ forModel }) => forModel === true).map(({ message }) => `[${message}]`);
  if (told.length === 0) return result;
  const content = Array.isArray(result['content']) ? result['content'] : [];
  return { ...result, content: [...content, { type: 'text', text: told.join('\n\n') }] };
}

/** A result that layers have changed: only what is an answer is told. */
export function withoutRest(result: ToolDispatchResult): ToolDispatchResult {
  const { content } = result;
  if (typeof content === 'string') return result;
  const answer = content.filter((part) => !(REST in part));
  const [only] = answer;
  const isText = answer.length === 1 && only?.type === 'text';
  return { ...result, content: isText ? only.text : answer };
}
