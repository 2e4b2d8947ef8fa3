import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serveTools } from '../../adapters/mcp/index.ts';
import { type Dispatcher, describeError } from '../../index.ts';
import { complain } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';
import type { HttpTransport, McpSdk } from './sdk.ts';

/** Where clients find it. */
const PATH = '/mcp';

/** Clients that may be connected: of more, those that were heard least recently are let go. */
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
  const sessions = new Sessions(sdk, dispatcher, info);
  const server = createServer((request, response) => {
    sessions.handle(request, response).catch((error: unknown) => {
      complain(`A request could not be answered: ${describeError(error).message}`);
      if (!response.headersSent) refuse(response, 500, -32_603, 'Internal error');
    });
  });
  const { port } = await listen(server, address);
  sessions.allow(address.host, port);
  complain(`Serving ${dispatcher.tools.tools.length} tools at http://${bracketed(address.host)}:${port}${PATH}`);
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
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
  end(): Promise<void>;
}

class Sessions {
  readonly #sdk: McpSdk;
  readonly #dispatcher: Dispatcher;
  readonly #info: { name: string; version: string };
  /** Those heard most recently last. */
  readonly #byId = new Map<string, Session>();
  #hosts: readonly string[] = [];

  constructor(sdk: McpSdk, dispatcher: Dispatcher, info: { name: string; version: string }) {
    this.#sdk = sdk;
    this.#dispatcher = dispatcher;
    this.#info = info;
  }

  /** What clients may call this server: pages of other sites that a browser sends here call it otherwise. */
  allow(host: string, port: number): void {
    const isOpen = host === '0.0.0.0' || host === '::';
    const names = ['127.0.0.1', 'localhost', '[::1]', bracketed(host)];
    this.#hosts = isOpen ? [] : names.map((name) => `${name}:${port}`);
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (pathname !== PATH) return refuse(response, 404, -32_600, `Clients find this server at ${PATH}.`);
    const id = request.headers['mcp-session-id'];
    if (id === undefined) {
      const session = await this.#open();
      await session.transport.handleRequest(request, response);
      if (session.transport.sessionId === undefined) await session.end();
      return;
    }
    const session = this.#byId.get(String(id));
    if (session === undefined) return refuse(response, 404, -32_001, 'Session not found');
    this.#byId.delete(String(id));
    this.#byId.set(String(id), session);
    await session.transport.handleRequest(request, response);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#byId.values()].map((session) => session.end()));
  }

  async #open(): Promise<Session> {
    const server = new this.#sdk.Server(this.#info);
    const endTools = serveTools(server, this.#dispatcher);
    const transport = new this.#sdk.StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableDnsRebindingProtection: this.#hosts.length > 0,
      allowedHosts: this.#hosts,
      onsessioninitialized: (id: string) => this.#add(id, session),
    });
    const session: Session = {
      transport,
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
    const [oldest] = this.#byId.keys();
    if (this.#byId.size <= MAX_SESSIONS || oldest === undefined) return;
    void this.#byId.get(oldest)?.end();
    this.#byId.delete(oldest);
  }
}

function refuse(response: ServerResponse, status: number, code: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }));
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
