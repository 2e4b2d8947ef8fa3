import { isDeepStrictEqual } from 'node:util';
import type { Progress, ToolCall } from '../../call.ts';
import { afterTurns } from '../../clock.ts';
import type { ControlSignal } from '../../control.ts';
import type { Dispatcher } from '../../dispatcher.ts';
import { describeError, ToolFailure } from '../../error.ts';
import { isPlainObject } from '../../json.ts';
import type { ToolDispatchResult } from '../../outcome.ts';
import type { ToolOutput } from '../../output.ts';
import { ToolRegistry } from '../../registry.ts';
import { settingKey } from '../../settings.ts';
import type { Tool } from '../../tool.ts';
import { callToolResult, isOfObject } from '../../wire/mcp-protocol.ts';
import { never } from './connect-tools.ts';
import { type Ask, answerTo, CAPABILITIES_KEY, canAsk, inputRequired, isQuestionKey, isYes } from './elicitation.ts';
import { INTERNAL_ERROR, type McpTransport, type Message, type Params, Peer, RemoteError } from './peer.ts';
import { RequestState } from './request-state.ts';
import { annotated, foreignTool, type ListedTool, listAll, ServerTools } from './server-tools.ts';
import { isUnchanged, shownResult, withNotes, withoutRest } from './shown-result.ts';

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
  /** Resolves when one of both sides has gone, with which, and the other has been told. */
  readonly closed: Promise<'client' | 'server'>;
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

/** What a server answered, and what layers were shown of it. */
interface Answer {
  readonly result: Params;
  readonly output: ToolOutput;
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

/** What is answered to a request. */
type Response = Pick<Message, 'result' | 'error'>;

/** Under which the revision of July 2026 sends with each request what it is. */
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';

/** Milliseconds a server has to list its tools, each page. */
const LIST_LIMIT_MS = 30_000;

/** Turns of the event loop in which calls under way are answered when the server has gone. */
const TURNS_TO_ANSWER = 20;

class Relay implements Proxy {
  readonly closed: Promise<'client' | 'server'>;
  readonly #client: Peer;
  readonly #server: Peer;
  readonly #registry = new ToolRegistry();
  readonly #tools = new ServerTools(this.#registry);
  readonly #dispatcher: Dispatcher;
  readonly #onError: (error: unknown) => void;
  /** Calls under way, by the client's ids. */
  readonly #calls = new Map<string | number, AbortController>();
  /** The methods of the client's other requests that the server has to answer, by their ids. */
  readonly #passed = new Map<string | number, string>();
  /** Those the server tells the progress of, by their tokens. */
  readonly #running = new Map<unknown, ToolCall>();
  /** The last answers of the server, by the ids of the calls under way. */
  readonly #answers = new Map<string, Answer>();
  readonly #state = new RequestState();
  /** What the client said of itself when it began. */
  #capabilities: unknown;
  #listing: Promise<void> | undefined;

  constructor(client: Peer, server: Peer, dispatcherOf: ProxyOptions['dispatcher'], onError: (error: unknown) => void) {
    this.#client = client;
    this.#server = server;
    this.#onError = onError;
    this.#dispatcher = dispatcherOf(this.#registry);
    const serverGone = server.closed.then(() => new Promise<void>((resolve) => afterTurns(TURNS_TO_ANSWER, resolve)));
    const first = Promise.race([client.closed.then(() => 'client' as const), serverGone.then(() => 'server' as const)]);
    this.closed = first.then(async (side) => {
      await this.close();
      return side;
    });
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
    const { id, method } = message;
    const params = isPlainObject(message.params) ? message.params : {};
    if (method === 'tools/call') {
      // Without an id nobody would hear what became of it, nor whether it may run.
      if (id === undefined) this.#onError(new Error('A tools/call without an id was left out.'));
      else this.#call(id, params).catch(this.#onError);
      return;
    }
    if (method === 'notifications/cancelled' && this.#cancel(params['requestId'])) return;
    if (method === 'initialize') this.#capabilities = params['capabilities'];
    if (method !== undefined && id !== undefined) this.#passed.set(id, method);
    this.#server.send(message).catch((error: unknown) => {
      this.#onError(error);
      if (method !== undefined && id !== undefined && this.#passed.delete(id))
        this.#answer(id, { error: { code: INTERNAL_ERROR, message: 'The server cannot be reached.' } });
    });
  }

  #fromServer(message: Message): void {
    const { id, method } = message;
    const params = isPlainObject(message.params) ? message.params : {};
    if (method === 'notifications/tools/list_changed') this.#listing = undefined;
    if (method === 'notifications/progress') this.#running.get(params['progressToken'])?.report(params as Progress);
    if (method === undefined && id !== undefined && !this.#isAwaited(id, message)) return;
    this.#client.send(message).catch(this.#onError);
  }

  /** Whether it answers what was passed on: no server answers a call in the place of the layers. */
  #isAwaited(id: string | number, { result }: Message): boolean {
    const asked = this.#passed.get(id);
    this.#passed.delete(id);
    // The client has seen what there is by now.
    if (asked === 'tools/list') this.#listing = undefined;
    if (asked === 'initialize' && isPlainObject(result)) this.#server.setVersion(result['protocolVersion']);
    if (asked === undefined) this.#onError(new Error('An answer to nothing that was asked was left out.'));
    return asked !== undefined;
  }

  #cancel(id: unknown): boolean {
    this.#passed.delete(id as string | number);
    const call = this.#calls.get(id as string | number);
    call?.abort(new Error('The client has cancelled the call.'));
    return call !== undefined;
  }

  #answer(id: string | number, response: Response): void {
    this.#client.send({ jsonrpc: '2.0', id, ...response }).catch((error: unknown) => {
      this.#onError(error);
      const message = 'The answer cannot be sent.';
      this.#client.send({ jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message } }).catch(this.#onError);
    });
  }

  async #call(id: string | number, given: Params): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    this.#calls.set(id, controller);
    const response = await this.#responseTo(id, given, signal);
    if (this.#calls.get(id) === controller) this.#calls.delete(id);
    // Nobody waits for the answer to a call that was cancelled.
    if (!signal.aborted) this.#answer(id, response);
  }

  /** Never rejects. */
  async #responseTo(id: string | number, given: Params, signal: AbortSignal): Promise<Response> {
    const round = this.#roundOf(given);
    const { params } = round;
    const name = params['name'] as string;
    const request = { id: String(id), name, arguments: params['arguments'] };
    try {
      await this.#knowTools(params, signal);
      // A server may have more than it has told of.
      if (typeof name === 'string' && !this.#registry.has(name)) await this.#knowTools(params, signal, true);
    } catch (thrown) {
      if (RemoteError.is(thrown)) return { error: thrown.error };
      return {
        result: completed(failed(`The tools of the server cannot be listed: ${describeError(thrown).message}`), round),
      };
    }
    const ask = this.#dispatcher.mayAsk ? this.#asker(round, signal) : undefined;
    const answer = ask && (await answerTo(this.#dispatcher, request, { signal }, ask));
    if (answer !== undefined && !Array.isArray(answer)) return { result: answer };
    const settings = [incoming(params), ...(answer ?? [])];
    return this.#response(await this.#dispatcher.dispatch(request, { signal, settings }), round);
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
  #response(result: ToolDispatchResult, round: Round): Response {
    const { toolCallId, control, error, content, resolvedToolName } = result;
    const answer = this.#answers.get(toolCallId);
    this.#answers.delete(toolCallId);
    const remote = remoteIn(error?.cause);
    if (remote !== undefined && content === textOfError(remote)) return { error: remote.error };
    const question = questionOf(control);
    if (question !== undefined) return { result: this.#withState(question, round) };
    if (answer !== undefined && isUnchanged(result, answer.output)) return { result: withNotes(answer.result, result) };
    const schema = this.#registry.get(resolvedToolName)?.schema.outputSchema;
    const told = callToolResult(withoutRest(result), isOfObject(schema));
    return { result: completed(told, round) };
  }

  #withState(question: Params, { approved }: Round): Params {
    if (approved === undefined) return question;
    return { ...question, requestState: this.#state.remember({ approved, theirs: question['requestState'] }) };
  }

  /** Asks the client's user; undefined where the client asks nobody. */
  #asker(round: Round, signal: AbortSignal): Ask | undefined {
    const { isModern, params, responses } = round;
    const capabilities = isModern ? (params['_meta'] as Params)[CAPABILITIES_KEY] : this.#capabilities;
    if (!canAsk(capabilities)) return undefined;
    return async (question) => {
      const { key, limitMs } = question;
      if (!isModern) {
        const either = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
        return isYes(await this.#client.request('elicitation/create', { ...question.params }, either));
      }
      if (round.approved === key) return true;
      const answer = responses[key];
      if (answer === undefined) return inputRequired(question);
      if (!isYes(answer)) return false;
      round.approved = key;
      return true;
    };
  }

  /** Lists the tools, unless they are known. A call does not wait for that longer than it lives. */
  #knowTools(params: Params, signal: AbortSignal, isStale = false): Promise<void> {
    if (this.#listing === undefined || isStale) {
      const listing = this.#listTools(params, () => this.#listing === listing);
      listing.catch(() => {
        if (this.#listing === listing) this.#listing = undefined;
      });
      this.#listing = listing;
    }
    return Promise.race([this.#listing, aborted(signal)]);
  }

  async #listTools({ _meta }: Params, isLast: () => boolean): Promise<void> {
    const { progressToken: _, ...meta } = isPlainObject(_meta) ? _meta : {};
    const own = Object.keys(meta).length > 0 ? { _meta: meta } : {};
    const listed = await listAll((cursor) => {
      const params = cursor === undefined ? own : { ...own, cursor };
      return this.#server.request('tools/list', params, AbortSignal.timeout(LIST_LIMIT_MS));
    });
    // One that began later has more to say.
    if (isLast())
      this.#tools.replace(
        listed.flatMap((each) => this.#toolOf(each)),
        this.#onError,
      );
  }

  #toolOf(listed: ListedTool): readonly Tool[] {
    try {
      return [foreignTool(listed, annotated(listed), (_, call) => this.#execute(listed.name, call))];
    } catch (thrown) {
      this.#onError(thrown);
      return [];
    }
  }

  async #execute(name: string, call: ToolCall): Promise<unknown> {
    const params = sentOn(name, call);
    const token = isPlainObject(params['_meta']) ? params['_meta']['progressToken'] : undefined;
    if (token !== undefined) this.#running.set(token, call);
    try {
      const result = await this.#server.request('tools/call', params, call.signal);
      if (!isPlainObject(result))
        throw new ToolFailure('The server of this tool gave no result.', { code: 'internal' });
      const question = questionIn(result);
      if (question !== undefined)
        return call.suspend({ reason: 'The server asks for more before it goes on.', payload: question });
      const output = shownResult(result);
      this.#answers.set(call.id, { result, output });
      return output;
    } catch (thrown) {
      // That it was told to stop says nothing of whether it has.
      if (call.aborted) return never();
      if (!RemoteError.is(thrown)) throw thrown;
      throw new ToolFailure(textOfError(thrown), { executed: 'unknown', cause: thrown });
    } finally {
      if (this.#running.get(token) === call) this.#running.delete(token);
    }
  }
}

/** What the server is sent: what the client sent, but for what a layer has changed. */
function sentOn(name: string, call: ToolCall): Params {
  const params = call.setting(incoming) ?? {};
  const input = call.copyInput();
  const isSame = params['name'] === name && isDeepStrictEqual(params['arguments'] ?? {}, input);
  return isSame ? params : { ...params, name, arguments: input };
}

/** A question of the server's to the client's user, in the place of an answer: that and nothing else. */
function questionIn(result: Params): Params | undefined {
  const { resultType, inputRequests, requestState } = result;
  if (resultType !== 'input_required') return undefined;
  return {
    resultType,
    ...(inputRequests !== undefined && { inputRequests }),
    ...(requestState !== undefined && { requestState }),
  };
}

function questionOf(control: ControlSignal | undefined): Params | undefined {
  const payload = control?.type === 'suspend' ? control.request.payload : undefined;
  return isPlainObject(payload) ? questionIn(payload) : undefined;
}

/** What the server answered, where that is why a tool failed. */
function remoteIn(thrown: unknown): RemoteError | undefined {
  if (RemoteError.is(thrown)) return thrown;
  const { cause } = (thrown ?? {}) as { readonly cause?: unknown };
  return RemoteError.is(cause) ? cause : undefined;
}

/** An error as layers see it: whole. */
function textOfError({ error: { message, data } }: RemoteError): string {
  return data === undefined ? message : `${message}\n${JSON.stringify(data)}`;
}

function failed(message: string): Params {
  return { content: [{ type: 'text', text: message }], isError: true };
}

/** The revision of July 2026 tells a result from a question. */
function completed(result: Params, { isModern }: Round): Params {
  return isModern ? { ...result, resultType: 'complete' } : result;
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
