import type { ToolCall } from '../../call.ts';
import { MAX_DELAY_MS } from '../../clock.ts';
import { describeError, ToolFailure } from '../../error.ts';
import { copyJson, isPlainObject, type JsonObject } from '../../json.ts';
import { checkOptions, isFunction } from '../../options.ts';
import { ToolRegistry } from '../../registry.ts';
import type { JsonSchema } from '../../schema.ts';
import { defineTool, type Tool } from '../../tool.ts';

/** A tool as a server lists it. */
export interface ListedTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly inputSchema: object;
  readonly outputSchema?: object | undefined;
  readonly annotations?:
    | {
        readonly readOnlyHint?: boolean | undefined;
        readonly destructiveHint?: boolean | undefined;
        readonly idempotentHint?: boolean | undefined;
      }
    | undefined;
}

/** A connected `Client` of the official SDK, of its 1.x line or of its 2.x packages. */
export interface McpClient {
  listTools(
    params?: { cursor?: string },
    options?: never,
  ): Promise<{ tools: readonly ListedTool[]; nextCursor?: string | undefined }>;
  callTool(params: never, second?: never, third?: never): Promise<unknown>;
  /** Hears what has no handler of its own. */
  fallbackNotificationHandler?: unknown;
}

/** Options of `connectTools`. */
export interface ConnectToolsOptions {
  /**
   * What is known of a tool: `readOnly`, `concurrencySafe`, another name. Default: what its annotations say, of which nothing is sure
   * unless the server is trusted.
   */
  readonly define?: (listed: ListedTool) => Partial<Pick<Tool<JsonObject>, Known>>;
  /** Where the tools go. Default: a new registry. */
  readonly registry?: ToolRegistry;
}

type Known =
  | 'name'
  | 'description'
  | 'readOnly'
  | 'destructive'
  | 'idempotent'
  | 'concurrencySafe'
  | 'resourceKey'
  | 'untrusted';

/** The tools of a server. */
export interface ConnectedTools {
  /** For `createDispatcher({ tools })`. */
  readonly registry: ToolRegistry;
  /** Lists them anew. It happens by itself when a server of the 1.x line tells of a change. */
  refresh(): Promise<void>;
  /** Takes them out of the registry. The client stays as it is. */
  close(): void;
}

type NotificationHandler = (notification: { readonly method?: unknown }) => Promise<void>;

/** Times the tools are listed anew because they have changed meanwhile. */
const MAX_ROUNDS = 10;

/** Pages of tools a server may have: one that always has a next one would be listed for ever. */
export const MAX_PAGES = 1_000;

/**
 * Takes the tools of a server into a registry, and keeps it as the server says. Their schemas are a stranger's: they have a budget. A tool whose
 * schema cannot be used is left out with a warning.
 *
 * @throws TypeError naming the option and what is allowed; rejects where the server cannot list its tools.
 */
export async function connectTools(client: McpClient, options: ConnectToolsOptions = {}): Promise<ConnectedTools> {
  checkOptions('connectTools', options, {
    define: isFunction,
    registry: (value) => value instanceof ToolRegistry || 'a ToolRegistry',
  });
  const { registry = new ToolRegistry(), define = annotated } = options;
  let own: ReadonlySet<string> = new Set();

  const replace = (tools: readonly Tool[]): void => {
    const names = new Set(tools.map(({ name }) => name));
    for (const name of own) if (!names.has(name)) registry.unregister(name);
    for (const tool of tools) registry.register(tool, { replace: own.has(tool.name) });
    own = names;
  };
  let isOpen = true;
  let isStale = false;
  let refreshing: Promise<void> | undefined;
  const listAgain = async (): Promise<void> => {
    // A server that tells of a change at each listing would be listed for ever.
    for (let round = 0; isStale && isOpen && round < MAX_ROUNDS; round++) {
      isStale = false;
      const listed = await listAll(client);
      if (isOpen && (!isStale || round === MAX_ROUNDS - 1))
        replace(listed.flatMap((each) => toolOf(client, each, define)));
    }
  };
  const refresh = (): Promise<void> => {
    isStale = true;
    refreshing ??= listAgain().finally(() => {
      refreshing = undefined;
    });
    return refreshing;
  };
  const others = client.fallbackNotificationHandler as NotificationHandler | undefined;
  const onNotification: NotificationHandler = async (notification) => {
    if (notification.method === 'notifications/tools/list_changed') await refresh();
    else await others?.(notification);
  };
  client.fallbackNotificationHandler = onNotification;
  await refresh();
  return {
    registry,
    refresh,
    close: () => {
      isOpen = false;
      client.fallbackNotificationHandler = others;
      replace([]);
    },
  };
}

async function listAll(client: McpClient): Promise<readonly ListedTool[]> {
  const all: ListedTool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const { tools, nextCursor } = await client.listTools(cursor === undefined ? undefined : { cursor });
    all.push(...tools);
    if (nextCursor === undefined || nextCursor === cursor) return all;
    cursor = nextCursor;
  }
  return all;
}

export function annotated({ annotations = {} }: ListedTool): Partial<Pick<Tool<JsonObject>, Known>> {
  const { readOnlyHint: readOnly, destructiveHint: destructive, idempotentHint: idempotent } = annotations;
  return {
    ...(readOnly !== undefined && { readOnly }),
    ...(destructive !== undefined && { destructive }),
    ...(idempotent !== undefined && { idempotent }),
  };
}

function toolOf(
  client: McpClient,
  listed: ListedTool,
  define: NonNullable<ConnectToolsOptions['define']>,
): readonly Tool[] {
  try {
    return [foreignTool(listed, define(listed), (input, call) => callServer(client, listed.name, input, call))];
  } catch (thrown) {
    process.emitWarning(`A tool of an MCP server is left out: ${describeError(thrown).message}`);
    return [];
  }
}

/** A tool of a server's. @throws TypeError where it cannot be used. */
export function foreignTool(
  { name, description = '', inputSchema, outputSchema }: ListedTool,
  known: Partial<Pick<Tool<JsonObject>, Known>>,
  execute: (input: JsonObject, call: ToolCall) => unknown,
): Tool {
  return defineTool({
    name,
    description,
    // Copies, for a server in the same process may hand out what does more than JSON.
    inputSchema: copyJson(inputSchema) as JsonSchema,
    ...(outputSchema && { outputSchema: copyJson(outputSchema) as JsonSchema }),
    untrusted: true,
    ...known,
    execute: (input, call) => execute(input as JsonObject, call),
  }) as Tool;
}

async function callServer(client: McpClient, name: string, input: JsonObject, call: ToolCall): Promise<unknown> {
  const options = {
    signal: call.signal,
    // How long a call may take is for the dispatcher's layers to say.
    timeout: MAX_DELAY_MS,
    onprogress: call.report,
  };
  const params = { name, arguments: input } as never;
  try {
    // The 1.x line has a schema for the result in between.
    const result = isClient2(client)
      ? await client.callTool(params, options as never)
      : await client.callTool(params, undefined, options as never);
    if (!isPlainObject(result)) return result;
    return plainResult(result);
  } catch (thrown) {
    throw failureOf(thrown);
  }
}

/** A result as tools give it: a single text is just that. */
export function plainResult({ resultType: _, ...result }: Record<string, unknown>): unknown {
  const { content } = result;
  const only: unknown = Array.isArray(content) && content.length === 1 ? content[0] : undefined;
  if (!isPlainObject(only) || only['type'] !== 'text' || Object.keys(only).length !== 2) return result;
  return { ...result, content: only['text'] };
}

function isClient2(client: McpClient): boolean {
  return 'listen' in client;
}

/** What a server says of its failure is meant to be read by whoever called it. */
function failureOf(thrown: unknown): unknown {
  const { code, message } = (thrown ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (typeof message !== 'string') return thrown;
  if (code === INVALID_PARAMS)
    return new ToolFailure(message, { code: 'execution_failed', executed: 'unknown', cause: thrown });
  if (code === CONNECTION_CLOSED || code === 'CONNECTION_CLOSED')
    return new ToolFailure('The server of this tool has gone.', { code: 'io', executed: 'unknown', cause: thrown });
  return thrown;
}

const INVALID_PARAMS = -32_602;
const CONNECTION_CLOSED = -32_000;
