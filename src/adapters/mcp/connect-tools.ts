import type { ToolCall } from '../../call.ts';
import { MAX_DELAY_MS } from '../../clock.ts';
import { describeError, ToolFailure } from '../../error.ts';
import { isPlainObject, type JsonObject } from '../../json.ts';
import { checkOptions, isFunction } from '../../options.ts';
import { ToolRegistry } from '../../registry.ts';
import type { Tool } from '../../tool.ts';
import {
  annotated,
  foreignTool,
  type KnownTraits,
  type ListedTool,
  listAll,
  plainResult,
  ServerTools,
} from './server-tools.ts';

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
  readonly define?: (listed: ListedTool) => KnownTraits;
  /** Where the tools go. Default: a new registry. */
  readonly registry?: ToolRegistry;
}

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
  const tools = new ServerTools(registry);
  let isOpen = true;
  let isStale = false;
  let refreshing: Promise<void> | undefined;
  const listAgain = async (): Promise<void> => {
    // A server that tells of a change at each listing would be listed for ever.
    for (let round = 0; isStale && isOpen && round < MAX_ROUNDS; round++) {
      isStale = false;
      const listed = await listAll((cursor) => client.listTools(cursor === undefined ? undefined : { cursor }));
      if (isOpen && (!isStale || round === MAX_ROUNDS - 1))
        tools.replace(listed.flatMap((each) => toolOf(client, each, define)));
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
      tools.replace([]);
    },
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
