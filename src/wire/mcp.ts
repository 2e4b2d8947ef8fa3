import type { ForModelOptions } from '../for-model.ts';
import type { ToolDispatchResult } from '../outcome.ts';
import type { ToolCallRequest } from '../request.ts';
import type { ToolSchema } from '../schema.ts';
import type { Tool } from '../tool.ts';
import { definitionsOf, type WireTools } from './definitions.ts';
import { callToolResult, type McpCallResult, type McpTool, toolDefinition } from './mcp-protocol.ts';
import type { ToolNames } from './names.ts';
import { MCP_RULES } from './rules.ts';
import { requestOf, wellFormed } from './wire.ts';

/** What is read of a request, or of any other message of the protocol. */
export interface McpMessage {
  readonly id?: string | number | null | undefined;
  readonly method?: string | undefined;
  readonly params?: { readonly name?: unknown; readonly arguments?: unknown } | undefined;
}

/**
 * Tools for the answer to `tools/list`.
 *
 * @param tools Their schemas, or tools, which also say whether they are read-only, destructive and idempotent.
 */
export function definitions(tools: Iterable<ToolSchema | Tool>): WireTools<McpTool> {
  const all = [...tools];
  const told = all.map((tool) => wellFormed(structuredClone(toolDefinition(tool))));
  const defined = definitionsOf(told, MCP_RULES, {}, ({ name, description, schema: inputSchema, source }) => ({
    ...source,
    name,
    description,
    inputSchema,
  }));
  const dropped = told.filter(
    ({ outputSchema }, place) => outputSchema === undefined && promises(all[place] as Tool | ToolSchema),
  );
  const losses = dropped.map(({ name: tool }) => ({ tool, place: '', keyword: 'outputSchema', message: NO_OBJECT }));
  return { ...defined, losses: [...defined.losses, ...losses] };
}

const NO_OBJECT = 'It is not told: the protocol has no other data than objects.';

function promises(tool: Tool | ToolSchema): boolean {
  return ('schema' in tool ? tool.schema : tool).outputSchema !== undefined;
}

/**
 * The call of a message, where it is a request to call a tool, and otherwise none.
 *
 * @param names Those of `definitions`. Default: the tools are called as the client calls them.
 */
export function calls({ id, method, params }: McpMessage, names?: ToolNames): ToolCallRequest[] {
  if (method !== 'tools/call') return [];
  const name = params?.name as string;
  return [
    requestOf(
      id === undefined || id === null ? undefined : String(id),
      names?.meant(name) ?? name,
      params?.arguments,
      false,
    ),
  ];
}

/**
 * Results as `tools/call` gives them, each for a response of its own.
 *
 * @param defined What `definitions` gave: where a tool was told to give data, clients take an answer without any for a broken one, so that it is a
 * failure. Default: no tool was.
 * @param options What the client can be shown. Default: everything.
 * @throws the signal of a runtime's own interrupt.
 */
export function results(
  all: readonly ToolDispatchResult[],
  { tools = [], names }: Partial<WireTools<McpTool>> = {},
  options?: ForModelOptions,
): McpCallResult[] {
  return all.map((result) => {
    const { resolvedToolName } = result;
    const name = names?.told(resolvedToolName) ?? resolvedToolName;
    const isPromised = tools.some((tool) => tool.outputSchema !== undefined && tool.name === name);
    return callToolResult(result, isPromised, options);
  });
}
