// What the protocol has for tools, for calls by `tools/call` and for those of a model that a client was asked to sample.

import type { ContentPart } from '../content.ts';
import { type ForModelOptions, forModel, leftOut, toldContent } from '../for-model.ts';
import { isPlainObject } from '../json.ts';
import { base64Of, mimeTypeOf } from '../media.ts';
import type { ToolDispatchResult } from '../outcome.ts';
import type { JsonSchema, ToolSchema } from '../schema.ts';
import type { Tool } from '../tool.ts';
import type { ObjectSchema } from './definitions.ts';

/** A tool as `tools/list` has it. */
export interface McpTool {
  name: string;
  description: string;
  inputSchema: ObjectSchema;
  outputSchema?: ObjectSchema;
  annotations?: { readOnlyHint?: boolean; destructiveHint?: boolean; idempotentHint?: boolean };
}

/** A piece of a result, as the protocol has it. */
export type McpContent =
  | { type: 'text'; text: string }
  | { type: 'image' | 'audio'; data: string; mimeType: string }
  | { type: 'resource_link'; uri: string; name: string; mimeType?: string; description?: string }
  | { type: 'resource'; resource: { uri: string; mimeType?: string; blob: string } };

/** The result of `tools/call`. */
export interface McpCallResult {
  content: McpContent[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
  _meta?: Record<string, unknown>;
  [key: string]: unknown;
}

/** A tool as `tools/list` tells it: its JSON Schemas as they are, and, of a tool itself, what it says of itself as annotations. */
export function toolDefinition(tool: Tool | ToolSchema): McpTool {
  const { name, description, inputSchema, outputSchema } = 'schema' in tool ? tool.schema : tool;
  const annotations = 'schema' in tool ? annotationsOf(tool) : {};
  return {
    name,
    description,
    inputSchema: { ...inputSchema, type: 'object' },
    ...(isOfObject(outputSchema) && { outputSchema: { ...outputSchema, type: 'object' } }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}

function annotationsOf({ readOnly, destructive, idempotent }: Tool): NonNullable<McpTool['annotations']> {
  return {
    ...(readOnly !== undefined && { readOnlyHint: readOnly }),
    ...(destructive !== undefined && { destructiveHint: destructive }),
    ...(idempotent !== undefined && { idempotentHint: idempotent }),
  };
}

/** The protocol has no other data beside text than objects. */
export function isOfObject(schema: JsonSchema | undefined): schema is JsonSchema {
  return schema?.type === 'object';
}

/** Where a result tells what of it is not the model's business, under `_meta`. */
export const META = 'toolonion/dispatch';

/**
 * A result as `tools/call` gives it.
 *
 * @param hasOutputSchema Whether the tool was told to give data. Clients take an answer without any for a broken one, so where it is missing,
 * as where an answer was too long, the result is a failure, and its text is told all the same.
 * @throws the signal of a runtime's own interrupt.
 */
export function callToolResult(
  result: ToolDispatchResult,
  hasOutputSchema: boolean,
  options: ForModelOptions = {},
): McpCallResult {
  const { toolCallId, resolvedToolName, durationMs, error } = result;
  const answer: McpCallResult = answerOf(result, hasOutputSchema, options);
  const told = { toolCallId, resolvedToolName, durationMs };
  answer._meta = { [META]: error === undefined ? told : { ...told, code: error.code, errorId: error.errorId } };
  return answer;
}

/** What of a result is an answer. @throws the signal of a runtime's own interrupt. */
export function answerOf(
  result: ToolDispatchResult,
  hasOutputSchema: boolean,
  options: ForModelOptions = {},
): Pick<McpCallResult, 'content' | 'structuredContent' | 'isError'> {
  const { control, structured } = result;
  if (control?.type === 'interrupt') throw control.signal;
  const isData = isPlainObject(structured);
  const isError = result.isError || control !== undefined || (hasOutputSchema && !isData);
  const content = contentOf(result, options);
  if (isError && !result.isError) content.push({ type: 'text', text: whyFailed(result) });
  const answer: ReturnType<typeof answerOf> = { content };
  if (isData) answer.structuredContent = { ...structured };
  if (isError) answer.isError = true;
  return answer;
}

function whyFailed({ control }: ToolDispatchResult): string {
  return control === undefined
    ? '[This answer lacks the data its tool promises.]'
    : '[The call was stopped to be answered later, which cannot be done here.]';
}

function contentOf(result: ToolDispatchResult, options: ForModelOptions): McpContent[] {
  // Options are checked, which takes longer than all else here.
  const content = options.accepts === undefined ? toldContent(result) : forModel(result, options);
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map((part, place) => contentPart(part, `${result.toolCallId}/${place}`));
}

function contentPart(part: ContentPart, place: string): McpContent {
  if (part.type === 'text') return { type: 'text', text: part.text };
  if (part.type === 'resource_link') {
    const { uri, name = uri, mimeType, description } = part;
    return { type: 'resource_link', uri, name, ...(mimeType && { mimeType }), ...(description && { description }) };
  }
  const { type, url, name } = part;
  const mimeType = mimeTypeOf(part);
  const data = base64Of(part);
  if (data !== undefined && mimeType !== undefined) {
    if (type === 'image' || type === 'audio') return { type, data, mimeType };
    return {
      type: 'resource',
      resource: { uri: `attachment:${encodeURIComponent(name ?? place)}`, mimeType, blob: data },
    };
  }
  // What is no base64 fails the whole answer.
  if (url === undefined) return { type: 'text', text: leftOut(part) };
  // The protocol has no media at an address.
  return { type: 'resource_link', uri: url, name: name ?? url, ...(mimeType && { mimeType }) };
}
