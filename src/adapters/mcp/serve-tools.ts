import type { Progress } from '../../call.ts';
import type { ToolContext } from '../../context.ts';
import type { Dispatcher } from '../../dispatcher.ts';
import { describeError } from '../../error.ts';
import type { ForModelOptions } from '../../for-model.ts';
import { checkOptions, isFunction, isListOf } from '../../options.ts';
import type { DispatchOptions, ToolCallRequest } from '../../request.ts';
import { callToolResult, isOfObject, type McpCallResult, toolDefinition } from '../../wire/mcp-protocol.ts';
import { type Ask, answerTo, CAPABILITIES_KEY, canAsk, inputRequired, isYes } from './elicitation.ts';
import {
  isServer2,
  type McpContext,
  type McpExtra,
  type McpParams,
  type McpRequest,
  type McpServer1,
  type McpServer2,
} from './protocol.ts';

/** What a server knows of the client a call comes from. */
export interface McpCaller {
  readonly sessionId: string | undefined;
  /** What the transport has found out of who that is. */
  readonly authInfo: unknown;
}

/** Options of `serveTools`. */
export interface ServeToolsOptions extends ForModelOptions {
  /** The session of a client. Default: the dispatcher's. */
  readonly context?: (caller: McpCaller) => ToolContext;
}

/** A call under way, in the words of both lines of the SDK. */
interface Exchange {
  readonly id: string | number;
  readonly signal: AbortSignal;
  readonly caller: McpCaller;
  readonly notify: (notification: object) => Promise<void>;
  /** Undefined where the client asks nobody. */
  readonly ask: Ask | undefined;
}

/**
 * Serves a dispatcher's tools through a server of the official SDK, of its 1.x line or of its 2.x packages, which is not connected yet: lists them,
 * tells when they change, and dispatches calls, with progress and cancellation. Where the gate wants somebody to be asked and has nobody, the
 * client's user is, if the client can do that.
 *
 * @param server A `Server`, or the `server` of an `McpServer` without tools of its own.
 * @returns what ends the telling of changes.
 * @throws TypeError naming the option and what is allowed.
 * @example serveTools(server, dispatcher); await server.connect(new StdioServerTransport());
 */
export function serveTools(
  server: McpServer1 | McpServer2,
  dispatcher: Dispatcher,
  options: ServeToolsOptions = {},
): () => void {
  if ('server' in server)
    throw new TypeError(
      'serveTools takes the low-level server of an McpServer: serveTools(mcpServer.server, dispatcher).',
    );
  checkOptions('serveTools', options, {
    context: isFunction,
    accepts: isListOf((entry) => typeof entry === 'string', 'an array of kinds and mime types'),
  });
  if (served.has(server)) throw new TypeError('This server serves the tools of a dispatcher already.');
  // Throws where the server has tools of its own, which would be called past the dispatcher.
  server.assertCanSetRequestHandler('tools/call' as never);
  served.add(server);
  server.registerCapabilities({ tools: { listChanged: true } });
  if (isServer2(server)) serve2(server, dispatcher, options);
  else serve1(server, dispatcher, options);
  // Where each request of HTTP has a server of its own, nobody takes leave of them.
  const weakly = new WeakRef(server);
  const end = dispatcher.onToolsChange(() => {
    // Nobody is told where nobody is connected.
    weakly
      .deref()
      ?.sendToolListChanged()
      .catch(() => {});
  });
  forgotten.register(server, end);
  return end;
}

const served = new WeakSet<object>();
const forgotten = new FinalizationRegistry<() => void>((end) => end());

function serve1(server: McpServer1, dispatcher: Dispatcher, options: ServeToolsOptions): void {
  const others = server.fallbackRequestHandler as
    | ((request: McpRequest, extra: McpExtra) => Promise<object>)
    | undefined;
  // The schemas that `setRequestHandler` takes are the SDK's own.
  const handle = async (request: McpRequest, extra: McpExtra): Promise<object> => {
    if (request.method === 'tools/list') return listOf(dispatcher);
    if (request.method === 'tools/call') return callTool(dispatcher, request.params, exchange1(server, extra), options);
    if (others === undefined) throw Object.assign(new Error('Method not found'), { code: METHOD_NOT_FOUND });
    return others(request, extra);
  };
  server.fallbackRequestHandler = handle;
}

const METHOD_NOT_FOUND = -32_601;

function exchange1(server: McpServer1, extra: McpExtra): Exchange {
  const { signal, requestId: id, sessionId, authInfo } = extra;
  return {
    id,
    signal,
    caller: { sessionId, authInfo },
    notify: (notification) => extra.sendNotification(notification as never),
    ask: canAsk(server.getClientCapabilities())
      ? async ({ params, limitMs: timeout }) =>
          isYes(await server.elicitInput(params as never, { signal, relatedRequestId: id, timeout } as never))
      : undefined,
  };
}

function serve2(server: McpServer2, dispatcher: Dispatcher, options: ServeToolsOptions): void {
  const list = () => listOf(dispatcher);
  const call = async ({ params }: McpRequest, context: McpContext): Promise<object> => {
    const outputSchema = dispatcher.tools.get(String(params?.name))?.schema.outputSchema;
    const result = await callTool(dispatcher, params, exchange2(server, context), options);
    return 'content' in result
      ? (server.projectCallToolResult(result as never, outputSchema as never) as object)
      : result;
  };
  server.setRequestHandler('tools/list' as never, list as never);
  server.setRequestHandler('tools/call' as never, call as never);
}

function exchange2(server: McpServer2, { sessionId, http, mcpReq }: McpContext): Exchange {
  return {
    id: mcpReq.id,
    signal: mcpReq.signal,
    caller: { sessionId, authInfo: http?.authInfo },
    notify: (notification) => mcpReq.notify(notification as never),
    ask: canAsk(mcpReq.envelope?.[CAPABILITIES_KEY] ?? server.getClientCapabilities())
      ? async (question) => {
          const answer = mcpReq.inputResponses?.[question.key];
          return answer === undefined ? inputRequired(question) : isYes(answer);
        }
      : undefined,
  };
}

function listOf(dispatcher: Dispatcher): object {
  return {
    tools: [...dispatcher.tools].filter(({ execute }) => execute !== undefined).map((tool) => toolDefinition(tool)),
  };
}

async function callTool(
  dispatcher: Dispatcher,
  params: McpParams = {},
  exchange: Exchange,
  { context, ...shown }: ServeToolsOptions,
): Promise<McpCallResult | object> {
  const { id, signal, caller } = exchange;
  const { name, arguments: input, _meta } = params;
  const request: ToolCallRequest = {
    id: caller.sessionId === undefined ? String(id) : `${caller.sessionId}/${id}`,
    name: name as string,
    arguments: input,
  };
  const token = _meta?.progressToken;
  // As they are now: a tool may be replaced while it runs.
  const { tools } = dispatcher;
  const own: DispatchOptions = { signal, ...(context && { context: sessionOf(context, caller) }) };
  const answer = dispatcher.mayAsk && exchange.ask && (await answerTo(dispatcher, request, own, exchange.ask));
  if (answer && !Array.isArray(answer)) return answer;
  const result = await dispatcher.dispatch(request, {
    ...own,
    ...(answer && { settings: answer }),
    ...(token !== undefined && { onProgress: progressTeller(token, exchange.notify) }),
  });
  const outputSchema = tools.get(result.resolvedToolName)?.schema.outputSchema;
  return callToolResult(result, isOfObject(outputSchema), shown);
}

/** The host's own failure is no business of the client's. */
function sessionOf(context: NonNullable<ServeToolsOptions['context']>, caller: McpCaller): ToolContext {
  try {
    return context(caller);
  } catch (cause) {
    process.emitWarning(`The session of an MCP client cannot be made: ${describeError(cause).message}`);
    throw new Error('The session of this client cannot be made.');
  }
}

/** Tells signs of life as the protocol has them: their numbers only grow. */
function progressTeller(progressToken: string | number, notify: Exchange['notify']): (progress: Progress) => void {
  let last = -1;
  return ({ progress, total, message }) => {
    last = isNumber(progress) && progress > last ? progress : last + 1;
    const told = {
      progress: last,
      ...(isNumber(total) && total >= last && { total }),
      ...(typeof message === 'string' && { message }),
    };
    // A client that has gone hears nothing.
    notify({ method: 'notifications/progress', params: { progressToken, ...told } }).catch(() => {});
  };
}

/** A tool may report anything, and JSON has no other numbers. */
function isNumber(value: unknown): value is number {
  return Number.isFinite(value);
}
