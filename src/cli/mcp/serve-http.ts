import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serveTools } from '../../adapters/mcp/index.ts';
import { type Dispatcher, describeError } from '../../index.ts';
import { complain } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';
import type { HttpTransport, McpSdk } from './sdk.ts';
import { drained } from './serve-stdio.ts';

/** Where clients find it. */
const PATH = '/mcp';

/** Clients that may be connected: of more, those with nothing under way that were heard least recently are let go. */
const MAX_SESSIONS = 1_000;

/** Where it listens. */
export interface Address {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
}

/** Serves clients by streamable HTTP, each in a session of its own. Resolves when the signal has aborted. */
export async function serveHttp(
  sdk: McpSdk,
  dispatcher: Dispatcher,
  info: { name: string; version: string },
  address: Address,
  signal: AbortSignal,
): Promise<void> {
  const sessions = new Sessions(sdk, dispatcher, info, address.host);
  const server = createServer((request, response) => {
    sessions.handle(request, response).catch((error: unknown) => {
      complain(`A request could not be answered: ${describeError(error).message}`);
      if (!response.headersSent) refuse(response, 500, -32_603, 'Internal error');
    });
  });
  const { port } = await listen(server, address);
  complain(`Serving ${dispatcher.tools.tools.length} tools at http://${bracketed(address.host)}:${port}${PATH}`);
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  await drained(dispatcher);
  await sessions.close();
  server.close();
  server.closeAllConnections();
}

function listen(server: ReturnType<typeof createServer>, { host, port }: Address): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE' ? 'is taken: choose another with --http' : `cannot be used: ${error.message}`;
      reject(new UsageError(`The address ${host}:${port} ${why}.`));
    });
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

interface Session {
  readonly transport: HttpTransport;
  /** Requests that are not answered yet. */
  active: number;
  end(): Promise<void>;
}

class Sessions {
  readonly #sdk: McpSdk;
  readonly #dispatcher: Dispatcher;
  readonly #info: { name: string; version: string };
  /** Those heard most recently last. */
  readonly #byId = new Map<string, Session>();
  readonly #isKnown: (host: string) => boolean;

  constructor(sdk: McpSdk, dispatcher: Dispatcher, info: { name: string; version: string }, host: string) {
    this.#sdk = sdk;
    this.#dispatcher = dispatcher;
    this.#info = info;
    this.#isKnown = knownAt(host);
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!this.#isWelcome(request)) return refuse(response, 403, -32_000, 'This server is for clients of this machine.');
    if (request.url?.split('?')[0] !== PATH)
      return refuse(response, 404, -32_600, `Clients find this server at ${PATH}.`);
    const id = request.headers['mcp-session-id'];
    const session = id === undefined ? await this.#open() : this.#byId.get(String(id));
    if (session === undefined) return refuse(response, 404, -32_001, 'Session not found');
    if (id !== undefined) this.#heard(String(id), session);
    // A stream that only listens may be open for days.
    if (request.method === 'POST') {
      session.active++;
      response.once('close', () => session.active--);
    }
    await session.transport.handleRequest(request, response);
    if (session.transport.sessionId === undefined) await session.end();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#byId.values()].map((session) => session.end()));
  }

  /** Not what a page of another site has a browser send, though its name leads here. */
  #isWelcome({ headers: { host = '', origin } }: IncomingMessage): boolean {
    return this.#isKnown(nameIn(`http://${host}`)) && (origin === undefined || this.#isKnown(nameIn(origin)));
  }

  #heard(id: string, session: Session): void {
    this.#byId.delete(id);
    this.#byId.set(id, session);
  }

  async #open(): Promise<Session> {
    const server = new this.#sdk.Server(this.#info);
    const endTools = serveTools(server, this.#dispatcher);
    const transport = new this.#sdk.StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id: string) => this.#add(id, session),
    });
    const session: Session = {
      transport,
      active: 0,
      end: async () => {
        endTools();
        await server.close();
      },
    };
    await server.connect(transport);
    (server as { onclose?: () => void }).onclose = () => {
      endTools();
      if (transport.sessionId !== undefined) this.#byId.delete(transport.sessionId);
    };
    return session;
  }

  #add(id: string, session: Session): void {
    this.#byId.set(id, session);
    if (this.#byId.size <= MAX_SESSIONS) return;
    const idle = [...this.#byId].find(([, { active }]) => active === 0);
    if (idle === undefined) return;
    const [oldest, { end }] = idle;
    this.#byId.delete(oldest);
    void end();
  }
}

/** By what names clients may call a server at a host: where it is open to all, by any. */
function knownAt(host: string): (name: string) => boolean {
  if (host === '0.0.0.0' || host === '::') return () => true;
  const names = new Set(['127.0.0.1', 'localhost', '[::1]', bracketed(host).toLowerCase()]);
  return (name) => names.has(name);
}

function nameIn(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : '';
}

function refuse(response: ServerResponse, status: number, code: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }));
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
