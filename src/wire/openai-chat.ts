import type { ToolDispatchResult } from '../outcome.ts';
import type { ToolCallRequest } from '../request.ts';
import type { ToolSchema } from '../schema.ts';
import { type DefinitionsOptions, definitionsOf, type ObjectSchema, type WireTools } from './definitions.ts';
import type { ToolNames } from './names.ts';
import { OPENAI_RULES } from './rules.ts';
import { failureText, idsOf, isObjectText, present, type Replayed, replayedOf, requestOf, toldAsText } from './wire.ts';

/** A tool, as `tools` of a request has it. */
export interface ChatTool {
  type: 'function';
  function: { name: string; description: string; parameters: ObjectSchema; strict?: true };
}

/** A call of a function, or of a custom tool, whose input is plain text. */
export type ChatToolCall =
  | { id?: string | undefined; type?: 'function' | undefined; function: { name: string; arguments: string } }
  | { id?: string | undefined; type: 'custom'; custom: { name: string; input: string } };

/** What is read of a reply: a choice of it, or its message alone. */
export type ChatReply = ChatMessage | { finish_reason?: string | null | undefined; message: ChatMessage };

interface ChatMessage {
  readonly tool_calls?: readonly ChatToolCall[] | null | undefined;
}

/** The answer to a call. */
export interface ChatToolMessage {
  role: 'tool';
  tool_call_id: string;
  content: string;
}

/**
 * Tools for a request.
 *
 * @throws TypeError naming the option and what is allowed.
 */
export function definitions(tools: Iterable<ToolSchema>, options: DefinitionsOptions = {}): WireTools<ChatTool> {
  return definitionsOf(tools, OPENAI_RULES, options, ({ name, description, schema: parameters, isStrict }) => ({
    type: 'function',
    function: { name, description, parameters, ...(isStrict && { strict: isStrict }) },
  }));
}

/** How a reply ends that is whole. There are many others, and servers have their own. */
const WHOLE: ReadonlySet<string> = new Set(['stop', 'tool_calls', 'function_call']);

/**
 * The calls of a reply. The text of a custom tool is its argument `input`. Of a reply that was cut, for its length or by a filter, the last call is
 * marked as truncated: those before it are whole.
 *
 * @param names Those of `definitions`. Default: the tools are called as the model calls them.
 */
export function calls(reply: ChatReply, names?: ToolNames): ToolCallRequest[] {
  if ('choices' in reply)
    throw new TypeError('calls: takes a choice of a reply, as in calls(reply.choices[0]), not the whole reply.');
  const { message, finish_reason: reason } = 'message' in reply ? reply : { message: reply, finish_reason: undefined };
  const all = present(message?.tool_calls);
  const cut = WHOLE.has(reason ?? 'stop') ? undefined : all.at(-1);
  return all.map((call) => {
    const { name = '', arguments: given } = call.type === 'custom' ? customCall(call.custom) : functionCall(call);
    return requestOf(call.id, names?.meant(name) ?? name, given, call === cut);
  });
}

interface AskedFunction {
  readonly name?: string;
  readonly arguments?: unknown;
}

/** Servers that only resemble the provider's leave out anything. */
function functionCall({ function: asked }: { readonly function?: AskedFunction }): AskedFunction {
  return asked ?? {};
}

function customCall(asked: { readonly name: string; readonly input: string } | undefined): AskedFunction {
  return asked === undefined ? {} : { name: asked.name, arguments: { input: asked.input } };
}

/**
 * The message of a reply as it may stand in the history, where one bad call would have every later request refused: a call without an id of its
 * own has that of its answer, and arguments that are no JSON object are written as they were understood. The message itself where
 * nothing is to be changed.
 *
 * @param all A result for each of its calls, in their order.
 * @param names Those that `calls` was given.
 * @throws TypeError when there are more or fewer.
 */
export function replay<Message extends ChatMessage>(
  message: Message,
  all: readonly ToolDispatchResult[],
  names?: ToolNames,
): Message {
  if ('message' in message)
    throw new TypeError('replay: takes the message of a choice, as in replay(choice.message, results).');
  const before = present(message.tool_calls);
  const replayed = replayedOf(before.length, all, OPENAI_RULES, names);
  const after = before.map((call, place) => replayedCall(call, replayed[place] as Replayed));
  const { tool_calls: told, ...rest } = message;
  // An empty list is refused.
  if (after.length === 0) return told === undefined ? message : (rest as Message);
  const isSame = after.length === told?.length && after.every((call, place) => call === before[place]);
  return isSame ? message : { ...message, tool_calls: after };
}

function replayedCall(call: ChatToolCall, { id, name, input }: Replayed): ChatToolCall {
  if (call.type === 'custom')
    return call.id === id && call.custom?.name === name
      ? call
      : { ...call, id, custom: { ...call.custom, input: call.custom?.input ?? '', name } };
  const asked = functionCall(call);
  const text = isObjectText(asked.arguments) ? (asked.arguments as string).toWellFormed() : JSON.stringify(input);
  const isSame = call.type !== undefined && call.id === id && asked.name === name && asked.arguments === text;
  return isSame ? call : { ...call, type: 'function', id, function: { ...asked, name, arguments: text } };
}

/** A message for each result, to be put behind the reply. Failures say so in their text, and media are described: there is no other way here. */
export function results(all: readonly ToolDispatchResult[]): ChatToolMessage[] {
  const ids = idsOf(all);
  return all.map((result, place) => {
    const text = toldAsText(result);
    return {
      role: 'tool',
      tool_call_id: ids[place] as string,
      content: result.isError ? failureText(text) : text,
    };
  });
}
