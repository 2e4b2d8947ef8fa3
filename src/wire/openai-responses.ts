import type { ContentPart, MediaPart } from '../content.ts';
import type { ForModelOptions } from '../for-model.ts';
import type { ToolDispatchResult } from '../outcome.ts';
import type { ToolCallRequest } from '../request.ts';
import type { ToolSchema } from '../schema.ts';
import { type DefinitionsOptions, definitionsOf, type ObjectSchema, type WireTools } from './definitions.ts';
import { isInline, toldPart } from './media.ts';
import { fitting, type ToolNames } from './names.ts';
import { OPENAI_RULES } from './rules.ts';
import {
  checkCount,
  failureText,
  idsOf,
  isObjectText,
  present,
  type Replayed,
  replayedOf,
  requestOf,
  toldAsText,
  toldOf,
} from './wire.ts';

/** A tool, as `tools` of a request has it. */
export interface ResponsesTool {
  type: 'function';
  name: string;
  description: string;
  parameters: ObjectSchema;
  /** Told, for the provider takes its absence for `true`. */
  strict: boolean;
}

/** What is read of a reply: a response. */
export interface ResponsesReply<Item extends ResponsesItem = ResponsesItem> {
  readonly output?: readonly Item[] | undefined;
  readonly incomplete_details?: { readonly reason?: string | undefined } | null;
}

/** An item of a response, of any kind. */
export interface ResponsesItem {
  readonly type: string;
}

interface FunctionCall {
  readonly type: 'function_call';
  readonly call_id?: string;
  readonly name: string;
  /** Of the group of tools that the tool is in. */
  readonly namespace?: string;
  readonly arguments: string;
  readonly status?: string;
  readonly caller?: Caller | null;
}

interface CustomCall {
  readonly type: 'custom_tool_call';
  readonly call_id?: string;
  readonly name: string;
  readonly namespace?: string;
  readonly input: string;
  readonly caller?: Caller | null;
}

type Call = FunctionCall | CustomCall;

/** A piece of an answer. */
export type ResponsesPart =
  | { type: 'input_text'; text: string }
  | { type: 'input_image'; image_url: string; detail: 'auto' }
  | { type: 'input_file'; file_url: string }
  | { type: 'input_file'; file_data: string; filename: string };

/** Who made a call: the model, or a program it wrote. */
type Caller = { type: 'direct' } | { type: 'program'; caller_id: string };

/** The answer to a call. */
export interface ResponsesOutput {
  type: 'function_call_output' | 'custom_tool_call_output';
  call_id: string;
  output: string | ResponsesPart[];
  caller?: Caller;
}

/**
 * Tools for a request.
 *
 * @throws TypeError naming the option and what is allowed.
 */
export function definitions(tools: Iterable<ToolSchema>, options: DefinitionsOptions = {}): WireTools<ResponsesTool> {
  return definitionsOf(tools, OPENAI_RULES, options, ({ name, description, schema: parameters, isStrict: strict }) => ({
    type: 'function',
    name,
    description,
    parameters,
    strict,
  }));
}

/**
 * The calls of a reply; what the provider runs itself is none. The text of a custom tool is its argument `input`. The tool `send` of the namespace
 * `mail` is `mail__send`, as `namespaced` has it. A call that is incomplete is marked as truncated, and so is the last item of a reply that
 * was cut, for its length or by a filter.
 *
 * @param names Those of `definitions`. Default: the tools are called as the model calls them.
 */
export function calls(
  { output, incomplete_details: incomplete }: ResponsesReply,
  names?: ToolNames,
): ToolCallRequest[] {
  const items = present(output);
  const cut = incomplete?.reason === undefined ? undefined : items.at(-1);
  return items.filter(isCall).map((call) => {
    const isCut = call === cut || (call as FunctionCall).status === 'incomplete';
    const given = call.type === 'function_call' ? call.arguments : { input: call.input };
    return requestOf(call.call_id, toolNameOf(call, names), given, isCut);
  });
}

function isCall<Item extends ResponsesItem>(item: Item): item is Item & Call {
  return item.type === 'function_call' || item.type === 'custom_tool_call';
}

function toolNameOf({ namespace, name = '' }: Call, names: ToolNames | undefined): string {
  const meant = names?.meant(name) ?? name;
  return namespace ? `${namespace}__${meant}` : meant;
}

/**
 * The items of a reply as they may stand in the history, where one bad call would have every later request refused: a call without an id of its
 * own has that of its answer, and arguments that are no JSON object are written as they were understood. Not needed where the
 * provider keeps the history.
 *
 * @param all A result for each of its calls, in their order.
 * @param names Those that `calls` was given.
 * @throws TypeError when there are more or fewer.
 */
export function replay<Item extends ResponsesItem>(
  { output }: { readonly output?: readonly Item[] | undefined },
  all: readonly ToolDispatchResult[],
  names?: ToolNames,
): Item[] {
  const items: readonly Item[] = present(output);
  const replayed = replayedOf(items.filter(isCall).length, all, OPENAI_RULES, names)[Symbol.iterator]();
  return items.map((item) => (isCall(item) ? replayedCall(item, replayed.next().value as Replayed) : item));
}

function replayedCall<Asked extends Call>(call: Asked, { id, name: told, input }: Replayed): Asked {
  const name = call.namespace ? fitting(call.name ?? '', OPENAI_RULES.names) : told;
  if (call.type === 'custom_tool_call') return { ...call, call_id: id, name };
  // The provider's own package adds what the provider refuses.
  const { parsed_arguments: _, ...own } = call as FunctionCall & { readonly parsed_arguments?: unknown };
  const text = isObjectText(call.arguments) ? call.arguments.toWellFormed() : JSON.stringify(input);
  return { ...own, call_id: id, name, arguments: text } as Asked;
}

/**
 * An item for each result, to be put behind those of the reply. Failures say so in their text. Media the provider does not take are described, and
 * all media of a failure.
 *
 * @param reply Where the calls were: what kind of call it was, and who made it, stands there alone.
 * @param options What the model can be shown. Default: pictures and documents.
 * @throws TypeError when there are more or fewer results than calls.
 */
export function results(
  all: readonly ToolDispatchResult[],
  { output }: ResponsesReply,
  options?: ForModelOptions,
): ResponsesOutput[] {
  const asked = present(output).filter(isCall);
  checkCount('results', asked.length, all);
  const ids = idsOf(all);
  return all.map((result, place) => outputOf(result, ids[place] as string, asked[place] as Call, options));
}

function outputOf(
  result: ToolDispatchResult,
  call_id: string,
  { type, caller }: Call,
  options: ForModelOptions | undefined,
): ResponsesOutput {
  const content = result.isError ? failureText(toldAsText(result)) : toldOf(result, options);
  const output: ResponsesOutput = {
    type: type === 'function_call' ? 'function_call_output' : 'custom_tool_call_output',
    call_id,
    output: typeof content === 'string' ? content : content.map(partOf),
  };
  // A program waits for it under its own id.
  if (caller) output.caller = caller;
  return output;
}

function partOf(part: ContentPart): ResponsesPart {
  const told = toldPart(part);
  if (told.type === 'text') return { type: 'input_text', text: told.text };
  const url = isInline(told) ? `data:${told.mimeType};base64,${told.data}` : told.url;
  if (told.type === 'image') return { type: 'input_image', image_url: url, detail: 'auto' };
  if (!isInline(told)) return { type: 'input_file', file_url: url };
  return { type: 'input_file', file_data: url, filename: (part as MediaPart).name?.trim() || 'document.pdf' };
}
