import type { ForModelOptions } from '../for-model.ts';
import type { ToolDispatchResult } from '../outcome.ts';
import type { ToolCallRequest } from '../request.ts';
import type { ToolSchema } from '../schema.ts';
import { definitionsOf, type ObjectSchema, type WireTools } from './definitions.ts';
import { answerOf, type McpContent } from './mcp-protocol.ts';
import type { ToolNames } from './names.ts';
import { MCP_RULES } from './rules.ts';
import { idsOf, inputIn, present, type Replayed, replayedOf, requestOf } from './wire.ts';

/** A tool, as `tools` of a request to sample has it. */
export interface SamplingTool {
  name: string;
  description: string;
  inputSchema: ObjectSchema;
}

/** What is read of a reply: the result of `sampling/createMessage`. */
export interface SamplingReply {
  readonly content: SamplingBlock | readonly SamplingBlock[];
  readonly stopReason?: string | undefined;
}

/** A piece of a message, of any kind. */
export interface SamplingBlock {
  readonly type: string;
}

interface ToolUse {
  readonly type: 'tool_use';
  readonly id?: string;
  readonly name: string;
  readonly input: unknown;
}

/** The answer to a call. */
export interface SamplingToolResult {
  type: 'tool_result';
  toolUseId: string;
  content: McpContent[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
}

/** The answers to all calls of a turn: the protocol wants them in one message, and nothing else in it. */
export interface SamplingToolMessage {
  role: 'user';
  content: SamplingToolResult[];
}

/** Tools for a request to sample. */
export function definitions(tools: Iterable<ToolSchema>): WireTools<SamplingTool> {
  return definitionsOf(tools, MCP_RULES, {}, ({ name, description, schema: inputSchema }) => ({
    name,
    description,
    inputSchema,
  }));
}

/** How a reply ends that is whole. There are others. */
const WHOLE: ReadonlySet<string> = new Set(['toolUse', 'endTurn']);

/**
 * The calls of a reply. Of a reply that was cut for its length the last call is marked as truncated, where the reply ends with it: those before it are
 * whole.
 *
 * @param names Those of `definitions`. Default: the tools are called as the model calls them.
 */
export function calls({ content, stopReason }: SamplingReply, names?: ToolNames): ToolCallRequest[] {
  const blocks = blocksOf(content);
  const cut = WHOLE.has(stopReason ?? 'endTurn') ? undefined : blocks.at(-1);
  return blocks.filter(isToolUse).map((use) => {
    return requestOf(use.id, names?.meant(use.name) ?? use.name, use.input, use === cut);
  });
}

function blocksOf<Block extends SamplingBlock>(content: Block | readonly Block[]): readonly Block[] {
  return present(Array.isArray(content) ? content : [content as Block]);
}

function isToolUse<Block extends SamplingBlock>(block: Block): block is Block & ToolUse {
  return block.type === 'tool_use';
}

/**
 * A reply as a message of the next request, where one bad call would have it refused: a call without an id of its own has that of its answer, and
 * arguments that are no object are written as they were understood.
 *
 * @param all A result for each of its calls, in their order.
 * @param names Those that `calls` was given.
 * @throws TypeError when there are more or fewer.
 */
export function replay<Block extends SamplingBlock>(
  { content }: { readonly content: Block | readonly Block[] },
  all: readonly ToolDispatchResult[],
  names?: ToolNames,
): { role: 'assistant'; content: Block[] } {
  const blocks = blocksOf(content);
  const replayed = replayedOf(blocks.filter(isToolUse).length, all, MCP_RULES, names)[Symbol.iterator]();
  return {
    role: 'assistant',
    content: blocks.map((block) => (isToolUse(block) ? replayedUse(block, replayed.next().value as Replayed) : block)),
  };
}

function replayedUse<Use extends ToolUse>(use: Use, replayed: Replayed): Use {
  const { id, name } = replayed;
  const input = inputIn(use.input, replayed);
  return use.id === id && use.name === name && use.input === input ? use : { ...use, id, name, input };
}

/**
 * One message with all results of a turn, to be put behind the reply.
 *
 * @param options What the model can be shown. Default: everything.
 */
export function results(all: readonly ToolDispatchResult[], options?: ForModelOptions): SamplingToolMessage {
  const ids = idsOf(all);
  return {
    role: 'user',
    content: all.map((result, place) => ({
      type: 'tool_result',
      toolUseId: ids[place] as string,
      ...answerOf(result, false, options),
    })),
  };
}
