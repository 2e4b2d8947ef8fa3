import type { ContentPart } from '../content.ts';
import type { ForModelOptions } from '../for-model.ts';
import type { ToolDispatchResult } from '../outcome.ts';
import type { ToolCallRequest } from '../request.ts';
import type { ToolSchema } from '../schema.ts';
import { type DefinitionsOptions, definitionsOf, type ObjectSchema, type WireTools } from './definitions.ts';
import { isInline, toldPart } from './media.ts';
import type { ToolNames } from './names.ts';
import { GEMINI_RULES } from './rules.ts';
import { idsOf, inputIn, nameIn, present, type Replayed, replayedOf, requestOf, toldAsText, toldOf } from './wire.ts';

/** A tool, as `tools` of a request has it. */
export interface InteractionsTool {
  type: 'function';
  name: string;
  description: string;
  parameters: ObjectSchema;
}

/** What is read of a reply: an interaction. */
export interface InteractionsReply {
  readonly status?: string | undefined;
  readonly steps?: readonly InteractionsStep[] | null | undefined;
}

/** A step of an interaction, of any kind. */
export interface InteractionsStep {
  readonly type: string;
}

interface FunctionCall {
  readonly type: 'function_call';
  readonly id?: string;
  readonly name: string;
  readonly arguments: unknown;
}

/** A piece of an answer. */
export type InteractionsContent =
  | { type: 'text'; text: string }
  | { type: 'image' | 'document'; data: string; mime_type: string };

/** The answer to a call. */
export interface InteractionsResult {
  type: 'function_result';
  call_id: string;
  name: string;
  is_error?: boolean;
  result: string | InteractionsContent[];
}

/**
 * Tools for a request.
 *
 * @throws TypeError naming the option and what is allowed.
 */
export function definitions(
  tools: Iterable<ToolSchema>,
  options: DefinitionsOptions = {},
): WireTools<InteractionsTool> {
  return definitionsOf(tools, GEMINI_RULES, options, ({ name, description, schema: parameters }) => ({
    type: 'function',
    name,
    description,
    parameters,
  }));
}

/** What an interaction is that is whole. There are many others. */
const WHOLE: ReadonlySet<string> = new Set(['requires_action', 'completed']);

/**
 * The calls of a reply; what the provider runs itself is none. Of a reply that was cut, for its length or its budget, the last call is marked as
 * truncated, where the reply ends with it: those before it are whole.
 *
 * @param names Those of `definitions`. Default: the tools are called as the model calls them.
 */
export function calls({ status, steps: all }: InteractionsReply, names?: ToolNames): ToolCallRequest[] {
  const steps = present(all);
  const cut = WHOLE.has(status ?? 'completed') ? undefined : steps.at(-1);
  return steps.filter(isCall).map((step) => {
    const { id, name, arguments: given } = step;
    return requestOf(id, names?.meant(name) ?? name, given, step === cut);
  });
}

function isCall<Step extends InteractionsStep>(step: Step): step is Step & FunctionCall {
  return step.type === 'function_call';
}

/**
 * The steps of a reply as they may stand in the history, where one bad call would have every later request refused: a call without an id of its own
 * has that of its answer, and arguments that are no object are written as they were understood. Not needed where the provider keeps
 * the history.
 *
 * @param all A result for each of its calls, in their order.
 * @param names Those that `calls` was given.
 * @throws TypeError when there are more or fewer.
 */
export function replay<Step extends InteractionsStep>(
  { steps: told }: { readonly steps?: readonly Step[] | null | undefined },
  all: readonly ToolDispatchResult[],
  names?: ToolNames,
): Step[] {
  const steps: readonly Step[] = present(told);
  const replayed = replayedOf(steps.filter(isCall).length, all, GEMINI_RULES, names)[Symbol.iterator]();
  return steps.map((step) => (isCall(step) ? replayedCall(step, replayed.next().value as Replayed) : step));
}

function replayedCall<Call extends FunctionCall>(call: Call, replayed: Replayed): Call {
  const { id, name } = replayed;
  const given = inputIn(call.arguments, replayed);
  if (call.id === id && call.name === name && call.arguments === given) return call;
  return { ...call, id, name, arguments: given };
}

/**
 * A step for each result, to be put behind those of the reply. Media the provider does not take are described, and all media of a failure.
 *
 * @param names Those that `calls` was given: an answer tells the name of the call.
 * @param options What the model can be shown. Default: pictures and documents.
 */
export function results(
  all: readonly ToolDispatchResult[],
  names?: ToolNames,
  options?: ForModelOptions,
): InteractionsResult[] {
  const ids = idsOf(all);
  return all.map((result, place) => resultOf(result, ids[place] as string, names, options));
}

function resultOf(
  result: ToolDispatchResult,
  call_id: string,
  names: ToolNames | undefined,
  options: ForModelOptions | undefined,
): InteractionsResult {
  const { isError, requested } = result;
  const name = nameIn(requested.name, names, GEMINI_RULES.names);
  const content = isError ? toldAsText(result) : toldOf(result, options);
  const told = typeof content === 'string' ? content : content.map(contentOf);
  const answer: InteractionsResult = { type: 'function_result', call_id, name, result: told };
  if (isError) answer.is_error = true;
  return answer;
}

function contentOf(part: ContentPart): InteractionsContent {
  const told = toldPart(part, isInline);
  return told.type === 'text' ? told : { type: told.type, data: told.data, mime_type: told.mimeType };
}
