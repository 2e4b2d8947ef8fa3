import type { ContentPart } from '../../content.ts';
import { type ForModelOptions, forModel } from '../../for-model.ts';
import { isPlainObject } from '../../json.ts';
import type { ToolDispatchResult } from '../../outcome.ts';
import type { McpCallResult, McpContent } from './protocol.ts';

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
  const { control, structured, toolCallId, resolvedToolName, durationMs, error } = result;
  if (control?.type === 'interrupt') throw control.signal;
  const data = isPlainObject(structured) ? { ...structured } : undefined;
  const content = contentOf(result, options);
  const isError = result.isError || control !== undefined || (hasOutputSchema && data === undefined);
  return {
    content: isError && !result.isError ? [...content, { type: 'text', text: whyFailed(result) }] : content,
    ...(data !== undefined && { structuredContent: data }),
    ...(isError && { isError }),
    _meta: {
      [META]: { toolCallId, resolvedToolName, durationMs, ...(error && { code: error.code, errorId: error.errorId }) },
    },
  };
}

function whyFailed({ control }: ToolDispatchResult): string {
  return control === undefined
    ? '[This answer lacks the data its tool promises.]'
    : '[The call was stopped to be answered later, which cannot be done here.]';
}

function contentOf(result: ToolDispatchResult, options: ForModelOptions): McpContent[] {
  const content = forModel(result, options);
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map((part, place) => contentPart(part, `${result.toolCallId}/${place}`));
}

function contentPart(part: ContentPart, place: string): McpContent {
  if (part.type === 'text') return { type: 'text', text: part.text };
  if (part.type === 'resource_link') {
    const { uri, name = uri, mimeType, description } = part;
    return { type: 'resource_link', uri, name, ...(mimeType && { mimeType }), ...(description && { description }) };
  }
  const { type, data, mimeType, url, name } = part;
  // The protocol has no media at an address.
  if (data === undefined) return { type: 'resource_link', uri: url, name: name ?? url, ...(mimeType && { mimeType }) };
  const text = typeof data === 'string' ? data : Buffer.from(data).toString('base64');
  if (type === 'image' || type === 'audio') return { type, data: text, mimeType };
  return {
    type: 'resource',
    resource: { uri: `attachment:${encodeURIComponent(name ?? place)}`, mimeType, blob: text },
  };
}
