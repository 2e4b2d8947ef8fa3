import { isDeepStrictEqual } from 'node:util';
import type { Progress, ToolCall } from '../../call.ts';
import type { ControlSignal } from '../../control.ts';
import type { Dispatcher } from '../../dispatcher.ts';
import { describeError, ToolFailure } from '../../error.ts';
import { isPlainObject, type JsonValue } from '../../json.ts';
import type { ToolDispatchResult } from '../../outcome.ts';
import { type ToolOutput, toOutput } from '../../output.ts';
import { ToolRegistry } from '../../registry.ts';
import { settingKey } from '../../settings.ts';
import type { Tool } from '../../tool.ts';
import { isOfObject } from './definition.ts';
import { isQuestionKey, isYes } from './elicitation.ts';
import { type McpTransport, type Message, type Params, Peer, RemoteError } from './peer.ts';
import { RequestState } from './request-state.ts';
import { callToolResult } from './result.ts';
import { type Ask, answer2, answerTo } from './serve-tools.ts';
import { annotated, foreignTool, type ListedTool, listAll, plainResult, ServerTools } from './server-tools.ts';

/** What a proxy is made of. */
export interface ProxyOptions {
  /** Where the client is: a transport that has not been started. */
  readonly client: McpTransport;
  /** Where the server is. */
  readonly server: McpTransport;
  /** Makes the dispatcher that calls pass, of the server's tools. */
  readonly dispatcher: (tools: ToolRegistry) => Dispatcher;
  /** Hears what goes wrong beside the calls. Default: `process.emitWarning`. */
  readonly onError?: (error: unknown) => void;
}

/** A proxy under way. */
export interface Proxy {
  /** Resolves when one of both sides has gone, and the other has been told. */
  readonly closed: Promise<void>;
  /** Ends it. */
  close(): Promise<void>;
}

/**
 * Puts a dispatcher between a client and a server, whatever version of the protocol they speak: each `tools/call` passes its layers. All else goes
 * through as it is, both ways, and so does an answer that no layer has changed.
 */
export async function proxy(options: ProxyOptions): Promise<Proxy> {
  const { onError = warn } = options;
  const relay = new Relay(
    new Peer(options.client, onError),
    new Peer(options.server, onError),
    options.dispatcher,
    onError,
  );
  await relay.start();
  return relay;
}

function warn(error: unknown): void {
  process.emitWarning(`MCP proxy: ${describeError(error).message}`);
}

/** What a call came with, for the tool that sends it on. */
const incoming = settingKey<Params>();

/** What a server answered, and what the tool made of that. */
interface Answer {
  readonly result: Params;
  readonly output: ToolOutput;
}

/** The keys under which the revision of July 2026 sends with each request what used to be said once. */
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';

class Relay implements Proxy {
  readonly closed: Promise<void>;
  readonly #client: Peer;
  readonly #server: Peer;
  readonly #registry = new ToolRegistry();
  readonly #tools = new ServerTools(this.#registry);
  readonly #dispatcher: Dispatcher;
  readonly #onError: (error: unknown) => void;
  /** Calls under way, by the client's ids. */
  readonly #calls = new Map<string | number, AbortController>();
  /** Those the server tells the progress of, by their tokens. */
  readonly #running = new Map<unknown, ToolCall>();
  /** The last answers of the server, by the ids of the calls under way. */
  readonly #answers = new Map<string, Answer>();
  /** What the client said of itself when it began. */
  #capabilities: unknown;
  readonly #state = new RequestState();
  #initializeId: string | number | undefined;
  #listing: Promise<void> | undefined;

  constructor(client: Peer, server: Peer, dispatcherOf: ProxyOptions['dispatcher'], onError: (error: unknown) => void) {
    this.#client = client;
    this.#server = server;
    this.#onError = onError;
    this.#dispatcher = dispatcherOf(this.#registry);
    this.closed = Promise.race([client.closed, server.closed]).then(() => this.close());
  }

  async start(): Promise<void> {
    this.#client.onMessage = (message) => this.#fromClient(message);
    this.#server.onMessage = (message) => this.#fromServer(message);
    await this.#server.start();
    await this.#client.start();
  }

  async close(): Promise<void> {
    for (const call of this.#calls.values()) call.abort(new Error('The connection is closed.'));
    await Promise.all([this.#client.close(), this.#server.close()]);
  }

  #fromClient(message: Message): void {
    const { id, method, params = {} } = message;
    if (method === 'tools/call' && id !== undefined) {
      this.#call(id, params).catch(this.#onError);
      return;
    }
    if (method === 'notifications/cancelled' && this.#cancel(params['requestId'])) return;
    if (method === 'initialize') {
      this.#capabilities = params['capabilities'];
      this.#initializeId = id;
    }
    this.#server.send(message);
  }

  #fromServer(message: Message): void {
    const { method, params = {} } = message;
    if (method === 'notifications/tools/list_changed') this.#listing = undefined;
    if (method === 'notifications/progress') this.#running.get(params['progressToken'])?.report(params as Progress);
    if (message.id !== undefined && message.id === this.#initializeId && isPlainObject(message.result))
      this.#server.setVersion(message.result['protocolVersion']);
    this.#client.send(message);
  }

  #cancel(id: unknown): boolean {
    const call = this.#calls.get(id as string | number);
    call?.abort(new Error('The client has cancelled the call.'));
    return call !== undefined;
  }

  async #call(id: string | number, given: Params): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    this.#calls.set(id, controller);
    const round = this.#roundOf(given);
    const { params } = round;
    const request = { id: String(id), name: params['name'] as string, arguments: params['arguments'] };
    let response: Pick<Message, 'result' | 'error'>;
    try {
      await this.#knowTools(params);
      const ask = this.#dispatcher.mayAsk ? this.#asker(round, signal) : undefined;
      const answer = ask && (await answerTo(this.#dispatcher, request, { signal }, ask));
      if (answer !== undefined && !Array.isArray(answer)) response = { result: answer };
      else {
        const settings = [incoming(params), ...(answer ?? [])];
        response = this.#response(await this.#dispatcher.dispatch(request, { signal, settings }), round);
      }
    } catch (thrown) {
      const message = `The tools of the server cannot be listed: ${describeError(thrown).message}`;
      response = RemoteError.is(thrown) ? { error: thrown.error } : { result: completed(failed(message), round) };
    } finally {
      if (this.#calls.get(id) === controller) this.#calls.delete(id);
    }
    // Nobody waits for the answer to a call that was cancelled.
    if (!signal.aborted) this.#client.send({ jsonrpc: '2.0', id, ...response });
  }

  /** What a request brings along, and what of it is for the server. */
  #roundOf(given: Params): Round {
    const { _meta, inputResponses, requestState, ...others } = given;
    const isModern = isPlainObject(_meta) && VERSION_KEY in _meta;
    if (!isModern) return { isModern, params: given, responses: {}, approved: undefined };
    const { approved, theirs } = this.#state.recall(requestState);
    const responses = isPlainObject(inputResponses) ? inputResponses : {};
    const toServer = Object.entries(responses).filter(([key]) => !isQuestionKey(key));
    const params = {
      ...others,
      _meta,
      ...(toServer.length > 0 && { inputResponses: Object.fromEntries(toServer) }),
      ...(theirs !== undefined && { requestState: theirs }),
    };
    return { isModern, params, responses, approved };
  }

  /** What the client is sent: what the server sent, unless a layer has changed it. */
  #response(result: ToolDispatchResult, round: Round): Pick<Message, 'result' | 'error'> {
    const { toolCallId, control, error } = result;
    const answer = this.#answers.get(toolCallId);
    this.#answers.delete(toolCallId);
    if (RemoteError.is(error?.cause)) return { error: error.cause.error };
    const asked = questionOf(control);
    if (asked !== undefined) {
      const { approved } = round;
      if (approved === undefined) return { result: asked };
      return { result: { ...asked, requestState: this.#state.remember(approved, asked['requestState']) } };
    }
    if (answer !== undefined && isUnchanged(result, answer.output)) return { result: answer.result };
    const schema = this.#registry.get(result.resolvedToolName)?.schema.outputSchema;
    const told = callToolResult(result, schema !== undefined && isOfObject(schema));
    const meta = answer?.result['_meta'];
    return { result: completed({ ...told, _meta: { ...(isPlainObject(meta) && meta), ...told._meta } }, round) };
  }

  /** Asks the client's user; undefined where the client asks nobody. */
  #asker(round: Round, signal: AbortSignal): Ask | undefined {
    const { isModern, params, responses } = round;
    const meta = params['_meta'];
    const capabilities = isModern ? (meta as Params)[CAPABILITIES_KEY] : this.#capabilities;
    if (!isPlainObject(capabilities) || !('elicitation' in capabilities)) return undefined;
    return async (key, question) => {
      if (!isModern)
        return isYes(await this.#client.request('elicitation/create', question as unknown as Params, signal));
      if (round.approved === key) return true;
      const answer = answer2(responses[key], key, question);
      if (answer === true) round.approved = key;
      return answer;
    };
  }

  /** Lists the tools, unless they are known. */
  #knowTools(params: Params): Promise<void> {
    this.#listing ??= this.#listTools(params).catch((thrown: unknown) => {
      this.#listing = undefined;
      throw thrown;
    });
    return this.#listing;
  }

  async #listTools({ _meta }: Params): Promise<void> {
    const { progressToken: _, ...meta } = isPlainObject(_meta) ? _meta : {};
    const own = Object.keys(meta).length > 0 ? { _meta: meta } : {};
    const listed = await listAll((cursor) =>
      this.#server.request('tools/list', cursor === undefined ? own : { ...own, cursor }),
    );
    this.#tools.replace(listed.flatMap((each) => this.#toolOf(each)));
  }

  #toolOf(listed: ListedTool): readonly Tool[] {
    try {
      return [foreignTool(listed, annotated(listed), (_, call) => this.#execute(call))];
    } catch (thrown) {
      this.#onError(thrown);
      return [];
    }
  }

  async #execute(call: ToolCall): Promise<unknown> {
    const params = sentOn(call);
    const token = isPlainObject(params['_meta']) ? params['_meta']['progressToken'] : undefined;
    if (token !== undefined) this.#running.set(token, call);
    const result = await this.#server
      .request('tools/call', params, call.signal)
      .finally(() => this.#running.delete(token));
    if (!isPlainObject(result)) throw new ToolFailure('The server of this tool gave no result.', { code: 'internal' });
    // A question of the server's to the client's user, to be asked before the call is made again.
    if (result['resultType'] === 'input_required')
      return call.suspend({ reason: 'The server asks for more before it goes on.', payload: result });
    const output = toOutput(plainResult(result));
    this.#answers.set(call.id, { result, output });
    return output;
  }
}

/** What a call is in the round it is in: the revision of July 2026 makes it again for each answer to a question. */
interface Round {
  readonly isModern: boolean;
  /** For the server. */
  readonly params: Params;
  /** The client's answers, by the questions. */
  readonly responses: Params;
  /** The question that has been answered with yes. */
  approved: string | undefined;
}

/** What the server is sent: what the client sent, but for arguments a layer has changed. */
function sentOn(call: ToolCall): Params {
  const params = call.setting(incoming) ?? {};
  const input = call.copyInput();
  return isDeepStrictEqual(params['arguments'] ?? {}, input) ? params : { ...params, arguments: input };
}

/** What the server asks before it goes on. */
function questionOf(control: ControlSignal | undefined): Params | undefined {
  const payload = control?.type === 'suspend' ? control.request.payload : undefined;
  return isPlainObject(payload) && payload['resultType'] === 'input_required' ? payload : undefined;
}

function isUnchanged(result: ToolDispatchResult, { content, structured, isError }: ToolOutput): boolean {
  if (result.error !== undefined || result.control !== undefined || result.isError !== isError) return false;
  if (result.notes.some(({ forModel }) => forModel === true)) return false;
  return isDeepStrictEqual(result.content, content) && isDeepStrictEqual(result.structured, structured as JsonValue);
}

function failed(message: string): Params {
  return { content: [{ type: 'text', text: message }], isError: true };
}

/** The revision of July 2026 tells a result from a question. */
function completed(result: Params, { isModern }: Round): Params {
  return isModern ? { ...result, resultType: 'complete' } : result;
}
