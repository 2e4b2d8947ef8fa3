import { randomUUID } from 'node:crypto';
import { ToolFailure } from '../../error.ts';
import { isPlainObject } from '../../json.ts';

/** The parameters or the result of a request. */
export type Params = Record<string, unknown>;

/** A message of JSON-RPC. */
export interface Message {
  readonly jsonrpc: '2.0';
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Params;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** An error of JSON-RPC. */
export interface ErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** A transport of the official SDK, of its 1.x line or of its 2.x packages. */
export interface McpTransport {
  start(): Promise<void>;
  send(message: never): Promise<void>;
  close(): Promise<void>;
  onmessage?: unknown;
  onclose?: unknown;
  onerror?: unknown;
  setProtocolVersion?: unknown;
}

/** What is said of a failure that says nothing itself. */
export const INTERNAL_ERROR = -32_603;

/** What the other side answered in place of a result: for whoever asked. */
export class RemoteError extends Error {
  /** As it came, as far as it is one. */
  readonly error: ErrorObject;
  readonly #own = true;

  constructor(given: unknown) {
    const { code, message, data } = (isPlainObject(given) ? given : {}) as Partial<Record<keyof ErrorObject, unknown>>;
    super(typeof message === 'string' ? message : 'The other side failed and did not say why.');
    this.error = {
      code: Number.isSafeInteger(code) ? (code as number) : INTERNAL_ERROR,
      message: this.message,
      ...(data !== undefined && { data }),
    };
  }

  static is(value: unknown): value is RemoteError {
    return typeof value === 'object' && value !== null && #own in value;
  }
}

interface Waiting {
  resolve(result: unknown): void;
  reject(reason: unknown): void;
}

/** One side of a proxy: passes messages on, and asks in its own name. */
export class Peer {
  /** Takes what comes, but for answers to its own requests. */
  onMessage: (message: Message) => void = () => {};
  readonly closed: Promise<void>;
  readonly #transport: McpTransport;
  readonly #onError: (error: unknown) => void;
  readonly #waiting = new Map<string, Waiting>();
  /** Before its own ids. The other side must not guess one: it could have its own question answered in the place of another. */
  readonly #prefix = `toolonion/${randomUUID()}/`;
  #count = 0;
  #isClosed = false;

  constructor(transport: McpTransport, onError: (error: unknown) => void) {
    this.#transport = transport;
    this.#onError = onError;
    this.closed = new Promise((resolve) => {
      transport.onclose = () => {
        this.#isClosed = true;
        for (const { reject } of this.#waiting.values()) reject(gone());
        resolve();
      };
    });
    transport.onerror = onError;
    transport.onmessage = (message: unknown) => this.#take(message);
  }

  start(): Promise<void> {
    return this.#transport.start();
  }

  async close(): Promise<void> {
    if (!this.#isClosed) await this.#transport.close();
  }

  /** Of streamable HTTP, where each request says it. */
  setVersion(version: unknown): void {
    const { setProtocolVersion } = this.#transport;
    if (typeof setProtocolVersion === 'function') setProtocolVersion.call(this.#transport, version);
  }

  /** Rejects where it cannot be sent. */
  async send(message: Message): Promise<void> {
    if (this.#isClosed) throw gone();
    await this.#transport.send(message as never);
  }

  /** Asks in its own name. @throws RemoteError for an error that was answered, and the reason of an abort. */
  async request(method: string, params: Params, signal?: AbortSignal): Promise<unknown> {
    if (this.#isClosed) throw gone();
    signal?.throwIfAborted();
    const id = `${this.#prefix}${++this.#count}`;
    const answered = new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
    });
    // It may be over while it is still being sent.
    answered.catch(() => {});
    const abort = () => {
      const { reason } = signal as AbortSignal;
      this.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } }).catch(this.#onError);
      this.#waiting.get(id)?.reject(reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      await Promise.race([answered, this.send({ jsonrpc: '2.0', id, method, params })]);
      return await answered;
    } finally {
      this.#waiting.delete(id);
      signal?.removeEventListener('abort', abort);
    }
  }

  #take(message: unknown): void {
    // Of a list of messages, which the protocol no longer has, no call could be told.
    if (!isPlainObject(message)) {
      this.#onError(new Error('A message that is no object was left out.'));
      return;
    }
    const { id, method, error, result } = message as unknown as Message;
    const isOwn = method === undefined && typeof id === 'string' && id.startsWith(this.#prefix);
    if (!isOwn) {
      this.onMessage(message as unknown as Message);
      return;
    }
    const waiting = this.#waiting.get(id);
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new RemoteError(error));
  }
}

function gone(): ToolFailure {
  return new ToolFailure('The server of this tool has gone.', { code: 'io', executed: 'unknown' });
}
