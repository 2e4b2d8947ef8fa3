import type { ContentPart, MediaPart } from '../content.ts';
import type { ForModelOptions } from '../for-model.ts';
import type { ToolDispatchResult } from '../outcome.ts';
import type { ToolCallRequest } from '../request.ts';
import type { ToolSchema } from '../schema.ts';
import { type DefinitionsOptions, definitionsOf, type ObjectSchema, type WireTools } from './definitions.ts';
import { type ImageType, type PDF, type Shown, toldPart } from './media.ts';
import type { ToolNames } from './names.ts';
import { ANTHROPIC_RULES } from './rules.ts';
import {
  checkCount,
  idsOf,
  inputIn,
  present,
  type Replayed,
  replayedOf,
  requestOf,
  toldAsText,
  toldOf,
} from './wire.ts';

/** A tool, as `tools` of a request has it. */
export interface AnthropicTool {
  name: string;
  description: string;
  input_schema: ObjectSchema;
  strict?: true;
}

/** What is read of a reply: a message. */
export interface AnthropicReply {
  readonly content?: string | readonly { readonly type: string }[] | null | undefined;
  readonly stop_reason?: string | null | undefined;
}

interface ToolUse {
  readonly type: 'tool_use';
  readonly id?: string;
  readonly name: string;
  readonly input: unknown;
  /** Of the provider's own group of tools that the tool is in. */
  readonly toolset_name?: string | null;
}

/** Characters of a document's title; more are refused. */
const LONGEST_TITLE = 500;

interface InlineSource<MediaType> {
  type: 'base64';
  media_type: MediaType;
  data: string;
}

interface UrlSource {
  type: 'url';
  url: string;
}

/** A piece of an answer. */
export type AnthropicBlock =
  | { type: 'text'; text: string }
  | { type: 'image'; source: InlineSource<ImageType> | UrlSource }
  | { type: 'document'; source: InlineSource<typeof PDF> | UrlSource; title?: string };

/** The answer to a call. */
export interface AnthropicToolResult {
  type: 'tool_result';
  tool_use_id: string;
  content: string | AnthropicBlock[];
  is_error?: boolean;
  toolset_name?: string;
}

/** What `results` may be told. */
export interface AnthropicResultsOptions extends ForModelOptions {
  /** Where the calls were. Needed where some are of a toolset of the provider's, such as `browser`: their answers tell it. Default: none is. */
  readonly reply?: AnthropicReply;
}

/** The answers to all calls of a turn: the provider wants them in one message. */
export interface AnthropicToolMessage {
  role: 'user';
  content: AnthropicToolResult[];
}

/**
 * Tools for a request.
 *
 * @throws TypeError naming the option and what is allowed.
 */
export function definitions(tools: Iterable<ToolSchema>, options: DefinitionsOptions = {}): WireTools<AnthropicTool> {
  return definitionsOf(tools, ANTHROPIC_RULES, options, ({ name, description, schema: input_schema, isStrict }) => ({
    name,
    description,
    input_schema,
    ...(isStrict && { strict: isStrict }),
  }));
}

/** How a reply ends that is whole. There are many others. */
const WHOLE: ReadonlySet<string> = new Set(['tool_use', 'end_turn', 'pause_turn']);

/**
 * The calls of a reply; what the provider runs itself is none. The tool `find` of the provider's toolset `browser` is `browser__find`. Of a reply that was cut for its length the last call is marked as truncated, where
 * the reply ends with it: those before it are whole.
 *
 * @param names Those of `definitions`. Default: the tools are called as the model calls them.
 */
export function calls({ content, stop_reason: reason }: AnthropicReply, names?: ToolNames): ToolCallRequest[] {
  const blocks = typeof content === 'string' ? [] : present(content);
  const cut = WHOLE.has(reason ?? 'end_turn') ? undefined : blocks.at(-1);
  return blocks.filter(isToolUse).map((use) => {
    const { id, name: told, input, toolset_name: toolset } = use;
    const name = toolset ? `${toolset}__${told}` : (names?.meant(told) ?? told);
    return requestOf(id, name, names?.meantInput(name, input) ?? input, use === cut);
  });
}

/**
 * A reply as it may stand in the history, where one bad call would have every later request refused: a call without an id of its own has that of
 * its answer, and arguments that are no object are written as they were understood. Blank text is left out.
 *
 * @param all A result for each of its calls, in their order.
 * @param names Those that `calls` was given.
 * @throws TypeError when there are more or fewer.
 */
export function replay<Block extends { readonly type: string }>(
  { content: told }: { readonly content?: string | readonly Block[] | null | undefined },
  all: readonly ToolDispatchResult[],
  names?: ToolNames,
): { role: 'assistant'; content: Block[] } {
  const content: readonly Block[] = present(typeof told === 'string' ? [textBlock<Block>(told)] : told);
  const replayed = replayedOf(content.filter(isToolUse).length, all, ANTHROPIC_RULES, names)[Symbol.iterator]();
  const fit = content.filter((block) => !isBlankText(block));
  return {
    role: 'assistant',
    content: fit.map((block) => (isToolUse(block) ? replayedUse(block, replayed.next().value as Replayed) : block)),
  };
}

function textBlock<Block>(text: string): Block {
  return { type: 'text', text } as Block;
}

function replayedUse<Use extends ToolUse>(use: Use, replayed: Replayed): Use {
  const { id } = replayed;
  const name = use.toolset_name ? use.name : replayed.name;
  const input = inputIn(use.input, replayed);
  return use.id === id && use.name === name && use.input === input ? use : { ...use, id, name, input };
}

/** The provider sends such text, and refuses it. */
function isBlankText(block: { readonly type: string; readonly text?: unknown }): boolean {
  return block.type === 'text' && typeof block.text === 'string' && block.text.trim() === '';
}

function isToolUse<Block extends { readonly type: string }>(block: Block): block is Block & ToolUse {
  return block.type === 'tool_use';
}

/**
 * One message with all results of a turn, to be put behind the reply. Media the provider does not take are described, and all media of a failure.
 *
 * @param options What the model can be shown. Default: pictures and documents.
 * @throws TypeError when a reply is given, and there are more or fewer results than calls.
 */
export function results(
  all: readonly ToolDispatchResult[],
  options: AnthropicResultsOptions = {},
): AnthropicToolMessage {
  const ids = idsOf(all);
  const { reply, ...shown } = options;
  const content = all.map((result, place) => resultOf(result, ids[place] as string, shown));
  if (reply === undefined) return { role: 'user', content };
  const uses = usesOf(reply);
  checkCount('results', uses.length, all);
  for (const [place, { toolset_name: toolset }] of uses.entries())
    if (toolset) (content[place] as AnthropicToolResult).toolset_name = toolset;
  return { role: 'user', content };
}

function usesOf({ content }: AnthropicReply): readonly ToolUse[] {
  return typeof content === 'string' ? [] : present(content).filter(isToolUse);
}

function resultOf(result: ToolDispatchResult, id: string, options: ForModelOptions): AnthropicToolResult {
  const { isError } = result;
  // A failure with anything but text is refused.
  const content = isError ? toldAsText(result) : toldOf(result, options);
  const answer: AnthropicToolResult = {
    type: 'tool_result',
    tool_use_id: id,
    content: typeof content === 'string' ? content : content.map(blockOf),
  };
  if (isError) answer.is_error = true;
  return answer;
}

function blockOf(part: ContentPart): AnthropicBlock {
  const told = toldPart(part);
  if (told.type === 'text') return told;
  if (told.type === 'image') return { type: 'image', source: sourceOf(told) };
  const title = (part as MediaPart).name?.slice(0, LONGEST_TITLE).toWellFormed();
  return { type: 'document', source: sourceOf(told), ...(title?.trim() && { title }) };
}

function sourceOf<MediaType extends string>(media: Shown<MediaType>): InlineSource<MediaType> | UrlSource {
  return media.data === undefined
    ? { type: 'url', url: media.url }
    : { type: 'base64', media_type: media.mimeType, data: media.data };
}
