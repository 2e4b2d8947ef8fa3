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
  request(request: never, resultSchema: never, options?: never): Promise<unknown>;
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
  // At first whoever connects is told; later only that tool is left out.
  let onTaken = (error: Error): void => {
    throw error;
  };
  let isOpen = true;
  let isStale = false;
  let refreshing: Promise<void> | undefined;
  const listAgain = async (): Promise<void> => {
    // A server that tells of a change at each listing would be listed for ever.
    for (let round = 0; isStale && isOpen && round < MAX_ROUNDS; round++) {
      isStale = false;
      const listed = await listAll((cursor) => ask(client, 'tools/list', cursor === undefined ? {} : { cursor }));
      if (isOpen && (!isStale || round === MAX_ROUNDS - 1))
        tools.replace(
          listed.flatMap((each) => toolOf(client, each, define)),
          onTaken,
        );
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
    if (isOpen && notification.method === 'notifications/tools/list_changed') await refresh();
    await others?.(notification);
  };
  client.fallbackNotificationHandler = onNotification;
  const close = (): void => {
    isOpen = false;
    // Somebody may have connected after.
    if (client.fallbackNotificationHandler === onNotification) client.fallbackNotificationHandler = others;
    tools.replace([], warn);
  };
  try {
    await refresh();
  } catch (thrown) {
    close();
    throw thrown;
  }
  onTaken = warn;
  return { registry, refresh, close };
}

function warn(error: unknown): void {
  process.emitWarning(`A tool of an MCP server is left out: ${describeError(error).message}`);
}

/** Takes whatever comes: what a server promises of its answers is the dispatcher's to check, within bounds of time. Both lines of the SDK take it. */
const ANYTHING = {
  safeParse: (data: unknown) => ({ success: true, data }),
  '~standard': { version: 1, vendor: 'toolonion', validate: (value: unknown) => ({ value }) },
};

function ask(client: McpClient, method: string, params: object, options: object = {}): Promise<unknown> {
  return client.request({ method, params } as never, ANYTHING as never, options as never);
}

function toolOf(
  client: McpClient,
  listed: ListedTool,
  define: NonNullable<ConnectToolsOptions['define']>,
): readonly Tool[] {
  try {
    return [foreignTool(listed, define(listed), (input, call) => callServer(client, listed.name, input, call))];
  } catch (thrown) {
    warn(thrown);
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
  try {
    const result = await ask(client, 'tools/call', { name, arguments: input }, options);
    return isPlainObject(result) ? plainResult(result) : result;
  } catch (thrown) {
    // That it was told to stop says nothing of whether it has.
    if (call.aborted) return never();
    throw failureOf(thrown);
  }
}

/** What is known of a failure: the server's own words are meant to be read by whoever called it. */
function failureOf(thrown: unknown): unknown {
  const { code, message } = (thrown ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (message === 'Not connected' || code === 'NOT_CONNECTED') return goneFailure('no', thrown);
  if (code === CONNECTION_CLOSED || code === 'CONNECTION_CLOSED') return goneFailure('unknown', thrown);
  if (typeof code === 'number' && typeof message === 'string')
    return new ToolFailure(message, { executed: 'unknown', cause: thrown });
  return thrown;
}

function goneFailure(executed: 'no' | 'unknown', cause: unknown): ToolFailure {
  return new ToolFailure('The server of this tool has gone.', { code: 'io', executed, cause });
}

const CONNECTION_CLOSED = -32_000;

/** Of a call that was aborted, and may still be running elsewhere: the dispatcher says so. */
export function never(): Promise<never> {
  return new Promise(() => {});
}
