import type { Content, ContentPart, MediaPart } from '../content.ts';
import type { ForModelOptions } from '../for-model.ts';
import { isPlainObject } from '../json.ts';
import { describePart } from '../media.ts';
import type { ToolDispatchResult } from '../outcome.ts';
import type { ToolCallRequest } from '../request.ts';
import type { ToolSchema } from '../schema.ts';
import { type DefinitionsOptions, definitionsOf, type ObjectSchema, type WireTools } from './definitions.ts';
import { type InlineMedia, isInline, type ShownMedia, toldPart } from './media.ts';
import type { ToolNames } from './names.ts';
import { GEMINI_RULES } from './rules.ts';
import { idsOf, inputIn, nameIn, present, type Replayed, replayedOf, requestOf, toldAsText, toldOf } from './wire.ts';

/** A function, as a tool of a request lists it. */
export interface GeminiFunction {
  name: string;
  description: string;
  parametersJsonSchema: ObjectSchema;
}

/** All functions, as `tools` of a request's `config` has them. */
export interface GeminiTool {
  functionDeclarations: GeminiFunction[];
}

/** What is read of a reply: a candidate of it, or its content alone. */
export type GeminiReply = GeminiContent | GeminiCandidate;

interface GeminiCandidate {
  readonly content?: GeminiContent | undefined;
  readonly finishReason?: string | undefined;
}

interface GeminiContent {
  /** Of any kind: a call is one with a `functionCall`. */
  readonly parts?: readonly object[] | undefined;
}

interface CallPart {
  readonly functionCall: {
    readonly id?: string;
    readonly name?: string;
    readonly args?: unknown;
    readonly willContinue?: boolean;
  };
}

/** The answer to a call. */
export interface GeminiResult {
  functionResponse: {
    /** Where the call had one. Others are matched by name and order. */
    id?: string;
    name: string;
    response: { output: string } | { error: string };
    parts?: GeminiMedia[];
  };
}

/** A picture or document of an answer. */
export interface GeminiMedia {
  inlineData: { mimeType: string; data: string };
}

/** The answers to all calls of a turn: the provider wants them in one message. */
export interface GeminiToolMessage {
  role: 'user';
  parts: GeminiResult[];
}

/**
 * Tools for the `config` of a request.
 *
 * @throws TypeError naming the option and what is allowed.
 */
export function definitions(tools: Iterable<ToolSchema>, options: DefinitionsOptions = {}): WireTools<GeminiTool> {
  const defined = definitionsOf(
    tools,
    GEMINI_RULES,
    options,
    ({ name, description, schema: parametersJsonSchema }): GeminiFunction => ({
      name,
      description,
      parametersJsonSchema,
    }),
  );
  const functionDeclarations = defined.tools;
  // A tool without any function is refused.
  return { ...defined, tools: functionDeclarations.length === 0 ? [] : [{ functionDeclarations }] };
}

/** How a reply ends that is whole. There are many others. */
const WHOLE: ReadonlySet<string> = new Set(['STOP', 'FINISH_REASON_UNSPECIFIED']);

/** How a reply ends with a call that the provider could not read. It does not say which. */
const MALFORMED = 'MALFORMED_FUNCTION_CALL';

/**
 * The calls of a reply. Of a reply that was cut, for its length or by a filter, the last call is marked as truncated, where the reply ends with it:
 * those before it are whole. So is a call that is to continue, and each of a reply with a malformed call; such a reply often has none, and
 * is no last word.
 *
 * @param names Those of `definitions`. Default: the tools are called as the model calls them.
 */
export function calls(reply: GeminiReply, names?: ToolNames): ToolCallRequest[] {
  if (reply && 'candidates' in reply)
    throw new TypeError('calls: takes a candidate of a reply, as in calls(reply.candidates[0]), not the whole reply.');
  const { content = reply as GeminiContent, finishReason: reason } = (reply ?? {}) as GeminiCandidate;
  const parts = present(content?.parts);
  const cut = WHOLE.has(reason ?? 'STOP') ? undefined : parts.at(-1);
  return parts.filter(isCall).map((part) => {
    const { id, name = '', args, willContinue } = part.functionCall;
    const isCut = part === cut || willContinue === true || reason === MALFORMED;
    return requestOf(id, names?.meant(name) ?? name, args, isCut);
  });
}

function isCall<Part extends object>(part: Part): part is Part & CallPart {
  return isPlainObject((part as Partial<CallPart>).functionCall);
}

/**
 * The content of a reply as it may stand in the history, where one bad call would have every later request refused: a name is one the provider
 * takes, arguments that are no object are written as they were understood, and of calls with one id each has its own. Signatures of
 * thoughts stay where they were: the provider wants them back.
 *
 * @param all A result for each of its calls, in their order.
 * @param names Those that `calls` was given.
 * @throws TypeError when there are more or fewer.
 */
export function replay<Message extends GeminiContent>(
  content: Message,
  all: readonly ToolDispatchResult[],
  names?: ToolNames,
): Message {
  if (content && 'content' in content)
    throw new TypeError('replay: takes the content of a candidate, as in replay(candidate.content, results).');
  const before = present(content?.parts);
  const replayed = replayedOf(before.filter(isCall).length, all, GEMINI_RULES, names)[Symbol.iterator]();
  const after = before.map((part) => (isCall(part) ? replayedPart(part, replayed.next().value as Replayed) : part));
  const isSame =
    after.every((part, place) => part === content?.parts?.[place]) && after.length === (content?.parts?.length ?? 0);
  return isSame ? content : { ...content, parts: after };
}

function replayedPart<Part extends CallPart>(part: Part, replayed: Replayed): Part {
  const { functionCall: call } = part;
  const id = hasId(call) ? replayed.id : undefined;
  const args = inputIn(call.args, replayed);
  if (call.id === id && call.name === replayed.name && call.args === args) return part;
  const { id: _, ...own } = call;
  return { ...part, functionCall: { ...own, ...(id !== undefined && { id }), name: replayed.name, args } };
}

/** What has none goes by its name and its place. */
function hasId({ id }: { readonly id?: unknown }): boolean {
  return typeof id === 'string' && id !== '';
}

/**
 * One message with all results of a turn, to be put behind the reply. Media the provider does not take are described, and all media of a failure.
 *
 * @param names Those that `calls` was given: answers go by the name of the call.
 * @param options Models before Gemini 3 take no media in answers: give them `{ accepts: [] }`.
 */
export function results(
  all: readonly ToolDispatchResult[],
  names?: ToolNames,
  options?: ForModelOptions,
): GeminiToolMessage {
  const ids = idsOf(all);
  return { role: 'user', parts: all.map((result, place) => resultOf(result, ids[place] as string, names, options)) };
}

function resultOf(
  result: ToolDispatchResult,
  id: string,
  names: ToolNames | undefined,
  options: ForModelOptions | undefined,
): GeminiResult {
  const { requested, isError } = result;
  const media: GeminiMedia[] = [];
  const name = nameIn(requested.name, names, GEMINI_RULES.names);
  const response = isError ? { error: toldAsText(result) } : { output: outputOf(toldOf(result, options), media) };
  const functionResponse: GeminiResult['functionResponse'] = hasId(requested)
    ? { id, name, response }
    : { name, response };
  if (media.length > 0) functionResponse.parts = media;
  return { functionResponse };
}

function outputOf(content: Content, media: GeminiMedia[]): string {
  return typeof content === 'string' ? content : content.map((part) => textOrMedia(part, media)).join('\n');
}

/** Media stand beside the text, which tells where in it they belong. */
function textOrMedia(part: ContentPart, media: GeminiMedia[]): string {
  const told = toldPart(part, isTaken);
  if (told.type === 'text') return told.text;
  media.push({ inlineData: { mimeType: told.mimeType, data: told.data } });
  return `[${describePart(part as MediaPart)}]`;
}

/** At an address the provider takes none, and pictures that move neither. */
function isTaken(media: ShownMedia): media is InlineMedia {
  return isInline(media) && media.mimeType !== 'image/gif';
}
