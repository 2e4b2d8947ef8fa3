import { ToolFailure } from '../../error.ts';

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

/** What the other side answered in place of a result: for whoever asked. */
export class RemoteError extends Error {
  /** As it came. */
  readonly error: unknown;
  readonly #own = true;

  constructor(error: unknown) {
    super(String((error as { readonly message?: unknown } | null)?.message ?? 'The other side failed.'));
    this.error = error;
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
    transport.onmessage = (message: Message) => this.#take(message);
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

  send(message: Message): void {
    if (this.#isClosed) return;
    this.#transport.send(message as never).catch(this.#onError);
  }

  /** Asks in its own name. @throws RemoteError for an error that was answered. */
  async request(method: string, params: Params, signal?: AbortSignal): Promise<unknown> {
    if (this.#isClosed) throw gone();
    signal?.throwIfAborted();
    // No client nor server counts like this.
    const id = `toolonion/${++this.#count}`;
    const answered = new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
    });
    // It may be over while it is still being sent.
    answered.catch(() => {});
    const abort = () => {
      const { reason } = signal as AbortSignal;
      this.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
      this.#waiting.get(id)?.reject(reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      await this.#transport.send({ jsonrpc: '2.0', id, method, params } as never);
      return await answered;
    } finally {
      this.#waiting.delete(id);
      signal?.removeEventListener('abort', abort);
    }
  }

  #take(message: Message): void {
    const { id, method } = message;
    const waiting = method === undefined && typeof id === 'string' ? this.#waiting.get(id) : undefined;
    if (waiting !== undefined) {
      if (message.error === undefined) waiting.resolve(message.result);
      else waiting.reject(new RemoteError(message.error));
    } else if (method !== undefined || typeof id !== 'string' || !id.startsWith('toolonion/')) this.onMessage(message);
  }
}

function gone(): ToolFailure {
  return new ToolFailure('The server of this tool has gone.', { code: 'io', executed: 'unknown' });
}
