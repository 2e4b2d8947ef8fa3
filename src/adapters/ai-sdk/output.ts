import type { Progress } from '../../call.ts';
import {
  type Content,
  type ContentPart,
  type MediaPart,
  type ResourceLinkPart,
  type TextPart,
  textOf,
} from '../../content.ts';
import { toolError } from '../../error.ts';
import { type ForModelOptions, forModel } from '../../for-model.ts';
import { toJson } from '../../json.ts';
import { describePart, linkText } from '../../media.ts';
import { isOutcome, type ToolDispatchResult, type ToolOutcome } from '../../outcome.ts';
import type { SdkModelOutput, SdkOutputPart } from './sdk.ts';

/**
 * What the SDK keeps of a call: its result as JSON, so that it can be stored and shown to users. Bytes are base64 text, and what only a log
 * may know is left out.
 */
export type ToolSetOutput = ToolDispatchResult;

/** What there is of an answer while its tool is at work. */
export interface PartialOutput extends ToolOutcome {
  readonly toolCallId: string;
  readonly isPartial: true;
  /** The last sign of life. */
  readonly progress?: Progress;
}

/** @throws the signal of a runtime's own interrupt, for it is not the SDK's. */
export function outputOf(result: ToolDispatchResult): ToolSetOutput {
  const { control, error, content } = result;
  if (control === undefined && error === undefined && typeof content === 'string') return result;
  if (control?.type === 'interrupt') throw control.signal;
  const { control: _, ...own } = result;
  if (control !== undefined) return { ...own, ...unanswered(control.request.reason) };
  // A copy has no cause.
  return { ...own, content: withoutBytes(content), ...(error && { error: { ...error } }) };
}

/** The SDK has no call that is answered later. */
function unanswered(reason: string): Pick<ToolOutcome, 'content' | 'isError' | 'error'> {
  const message = `The call was stopped to be answered later, which nobody here can do: ${reason}`;
  const error = toolError('execution_failed', message, { executed: 'unknown', retryable: false });
  return { content: message, isError: true, error };
}

/** Bytes as base64 text. */
export function withoutBytes(content: Content): Content {
  if (typeof content === 'string') return content;
  return content.map((part) => {
    if (!('data' in part) || part.data === undefined || typeof part.data === 'string') return part;
    return { ...part, data: base64Of(part.data) };
  });
}

/** What the model can be shown, and how. */
export interface ModelOutputOptions extends ForModelOptions {
  /** The SDK's major version: 7 has other parts for media, and warns of those of 6, which it takes all the same. Default: 6. */
  readonly version?: 6 | 7;
}

/**
 * What the model is told of a result, or of what came of it when it was stored. Failures are told as such; the SDK has no failure with media,
 * so these are described.
 */
export function modelOutput(outcome: unknown, { accepts, version = 6 }: ModelOutputOptions = {}): SdkModelOutput {
  // Stored by another tool of the same name, or by a stranger.
  if (!isOutcome(outcome))
    return { type: 'text', value: typeof outcome === 'string' ? outcome : JSON.stringify(toJson(outcome)) };
  const shown = outcome.isError ? [] : accepts;
  const content = forModel(outcome, shown === undefined ? {} : { accepts: shown });
  if (outcome.isError) return { type: 'error-text', value: textOf(content) };
  if (typeof content === 'string') return { type: 'text', value: content };
  return { type: 'content', value: content.map(version === 7 ? partOf7 : partOf6) };
}

function partOf6(part: ContentPart): SdkOutputPart {
  if (part.type === 'text' || part.type === 'resource_link') return textPart(part);
  const { type, data, mimeType: mediaType, url, name: filename } = part;
  if (data === undefined && !isFetchable(url)) return addressPart(part);
  if (data === undefined)
    return type === 'image' ? { type: 'image-url', url } : { type: 'file-url', url, ...(mediaType && { mediaType }) };
  const text = base64Of(data);
  if (type === 'image') return { type: 'image-data', data: text, mediaType };
  return { type: 'file-data', data: text, mediaType, ...(filename && { filename }) };
}

function partOf7(part: ContentPart): SdkOutputPart {
  if (part.type === 'text' || part.type === 'resource_link') return textPart(part);
  const { type, data, url, name: filename } = part;
  const mediaType = part.mimeType ?? TOP_LEVEL[type];
  if (data === undefined && !isFetchable(url)) return addressPart(part);
  const file = data === undefined ? { type: 'url', url: new URL(url) } : { type: 'data', data: base64Of(data) };
  return { type: 'file', mediaType, data: file, ...(filename && { filename }) } as never;
}

/** What version 7 says of media whose mime type nobody knows. */
const TOP_LEVEL = { image: 'image', audio: 'audio', video: 'video', file: 'application' } as const;

/** Whether the SDK, or a provider, can get what is there: of any other address it makes a failure of the whole request. */
function isFetchable(url: string): boolean {
  return URL.canParse(url) && /^(https?|data):/i.test(url);
}

function addressPart(part: MediaPart): SdkOutputPart {
  return { type: 'text', text: `[${describePart(part)}: ${part.url}]` };
}

/** The SDK has no links. */
function textPart(part: TextPart | ResourceLinkPart): SdkOutputPart {
  if (part.type === 'text') return { type: 'text', text: part.text };
  return { type: 'text', text: linkText(part) };
}

function base64Of(data: string | Uint8Array): string {
  return typeof data === 'string' ? data : Buffer.from(data).toString('base64');
}
