import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as WebStream } from 'node:stream/web';
import { serveTools } from '../../adapters/mcp/index.ts';
import { type Dispatcher, describeError } from '../../index.ts';
import { complain } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';
import type { HttpTransport, McpSdk, McpSdk1, McpSdk2, ServerInfo } from './sdk.ts';
import { drained, withTools } from './serve-stdio.ts';

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

/** Answers the requests of clients. */
interface Service {
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  close(): Promise<void>;
}

/** Serves clients by streamable HTTP. Resolves when the signal has aborted. */
export async function serveHttp(
  sdk: McpSdk,
  dispatcher: Dispatcher,
  info: ServerInfo,
  address: Address,
  signal: AbortSignal,
): Promise<void> {
  const service: Service = sdk.line === 1 ? new Sessions(sdk, dispatcher, info) : new WebHandler(sdk, dispatcher, info);
  const isKnown = knownAt(address.host);
  const server = createServer((request, response) => {
    if (!isWelcome(request, isKnown))
      return refuse(response, 403, -32_000, 'This server is for clients of this machine.');
    if (request.url?.split('?')[0] !== PATH)
      return refuse(response, 404, -32_600, `Clients find this server at ${PATH}.`);
    service.handle(request, response).catch((error: unknown) => {
      complain(`A request could not be answered: ${describeError(error).message}`);
      if (!response.headersSent) refuse(response, 500, -32_603, 'Internal error');
    });
  });
  const { port } = await listen(server, address);
  complain(`Serving ${dispatcher.tools.tools.length} tools at http://${bracketed(address.host)}:${port}${PATH}`);
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  await drained(dispatcher);
  await service.close();
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

/** With the 1.x line: each client in a session of its own. */
class Sessions implements Service {
  readonly #sdk: McpSdk1;
  readonly #dispatcher: Dispatcher;
  readonly #info: ServerInfo;
  /** Those heard most recently last. */
  readonly #byId = new Map<string, Session>();

  constructor(sdk: McpSdk1, dispatcher: Dispatcher, info: ServerInfo) {
    this.#sdk = sdk;
    this.#dispatcher = dispatcher;
    this.#info = info;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
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

/** With the 2.x packages: each request has a server of its own, of whatever revision it speaks. */
class WebHandler implements Service {
  readonly #handler: ReturnType<McpSdk2['createMcpHandler']>;
  readonly #end: () => void;

  constructor(sdk: McpSdk2, dispatcher: Dispatcher, info: ServerInfo) {
    this.#handler = sdk.createMcpHandler(() => withTools(new sdk.Server(info), dispatcher));
    this.#end = dispatcher.onToolsChange(() => this.#handler.notify.toolsChanged());
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const { status, headers, body } = await this.#handler.fetch(webRequest(request, gone.signal));
    response.writeHead(status, Object.fromEntries(headers));
    if (body === null) response.end();
    // Of a client that has gone there is nobody left to tell.
    else await pipeline(Readable.fromWeb(body as WebStream), response).catch(() => {});
  }

  async close(): Promise<void> {
    this.#end();
    await this.#handler.close();
  }
}

function webRequest(request: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', url = '/', headers } = request;
  const entries = Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')] as [string, string]);
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const body = hasBody ? { body: Readable.toWeb(request) as ReadableStream, duplex: 'half' as const } : {};
  return new Request(new URL(url, 'http://localhost'), { method, headers: entries, signal, ...body } as RequestInit);
}

/** Not what a page of another site has a browser send, though its name leads here. */
function isWelcome({ headers: { host = '', origin } }: IncomingMessage, isKnown: (name: string) => boolean): boolean {
  return isKnown(nameIn(`http://${host}`)) && (origin === undefined || isKnown(nameIn(origin)));
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
