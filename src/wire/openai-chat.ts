import type { ToolDispatchResult } from '../outcome.ts';
import type { ToolCallRequest } from '../request.ts';
import type { ToolSchema } from '../schema.ts';
import type { NameRule, ToolNames } from './names.ts';
import { definitionsOf, failureText, idOf, type ObjectSchema, toldAsText, type WireTools } from './wire.ts';

/** A tool, as `tools` of a request has it. */
export interface ChatTool {
  type: 'function';
  function: { name: string; description: string; parameters: ObjectSchema };
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

const NAMES: NameRule = { allowed: /^[A-Za-z0-9_-]$/, most: 64 };

/** Tools for a request. */
export function definitions(tools: Iterable<ToolSchema>): WireTools<ChatTool> {
  return definitionsOf(tools, NAMES, (name, description, parameters) => ({
    type: 'function',
    function: { name, description, parameters },
  }));
}

/**
 * The calls of a reply. The text of a custom tool is its argument `input`. Of a reply that was cut for its length the last call is marked as
 * truncated: those before it are whole.
 *
 * @param names Those of `definitions`. Default: the tools are called as the model calls them.
 */
export function calls(reply: ChatReply, names?: ToolNames): ToolCallRequest[] {
  const { message, finish_reason: reason } = 'message' in reply ? reply : { message: reply, finish_reason: undefined };
  const all = message.tool_calls ?? [];
  return all.map((call, place) => {
    const isCut = reason === 'length' && place === all.length - 1;
    const request = 'custom' in call ? customCall(call.custom) : call.function;
    return {
      ...(call.id !== undefined && { id: call.id }),
      name: names?.meant(request.name) ?? request.name,
      arguments: request.arguments,
      ...(isCut && { truncated: true }),
    };
  });
}

function customCall({ name, input }: { readonly name: string; readonly input: string }) {
  return { name, arguments: { input } };
}

/** A message for each result, to be put behind the reply. Failures say so in their text, and media are described: there is no other way here. */
export function results(all: readonly ToolDispatchResult[]): ChatToolMessage[] {
  return all.map((result) => {
    const text = toldAsText(result);
    return { role: 'tool', tool_call_id: idOf(result), content: result.isError ? failureText(text) : text };
  });
}
