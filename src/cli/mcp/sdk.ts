import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { McpServer1, McpServer2, McpTransport } from '../../adapters/mcp/index.ts';
import { describeError } from '../../index.ts';
import { UsageError } from '../usage-error.ts';

/** What a server says of itself. */
export interface ServerInfo {
  readonly name: string;
  readonly version: string;
}

/** What both lines of the official SDK have. */
interface Transports {
  readonly StdioServerTransport: new (input: NodeJS.ReadableStream, output: NodeJS.WritableStream) => McpTransport;
  readonly StdioClientTransport: new (options: {
    command: string;
    args: string[];
    env: Record<string, string>;
    stderr: 'inherit';
  }) => McpTransport;
  readonly StreamableHTTPClientTransport: new (
    url: URL,
    options: { requestInit: { headers: Record<string, string> } },
  ) => McpTransport;
}

/** A transport that takes the requests of an HTTP server. */
export interface HttpTransport extends McpTransport {
  readonly sessionId?: string | undefined;
  handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/** Something that is served, and can be ended. */
interface Closable {
  close(): Promise<void>;
}

/** Of the 1.x line: a server for each connection. */
export interface McpSdk1 extends Transports {
  readonly line: 1;
  readonly Server: new (
    info: ServerInfo,
  ) => McpServer1 & Closable & { connect(transport: McpTransport): Promise<void> };
  readonly StreamableHTTPServerTransport: new (options: object) => HttpTransport;
}

/** Of the 2.x packages: what makes a server for each connection, or each request. */
export interface McpSdk2 extends Transports {
  readonly line: 2;
  readonly Server: new (info: ServerInfo) => McpServer2;
  serveStdio(make: () => McpServer2, options: { transport: McpTransport }): Closable;
  createMcpHandler(make: () => McpServer2): Closable & {
    fetch(request: Request): Promise<Response>;
    readonly notify: { toolsChanged(): void };
  };
}

export type McpSdk = McpSdk1 | McpSdk2;

const MODULES_1 = [
  'server/index.js',
  'server/stdio.js',
  'client/stdio.js',
  'client/streamableHttp.js',
  'server/streamableHttp.js',
];
const MODULES_2 = ['server', 'server/stdio', 'client', 'client/stdio'];

/**
 * Loads the SDK, of the project this package is part of, or of the one the command runs in: its 1.x line, or its 2.x packages where that is not
 * installed.
 *
 * @throws UsageError where there is none.
 */
export async function loadSdk(): Promise<McpSdk> {
  const first = await importAll(MODULES_1.map((path) => `@modelcontextprotocol/sdk/${path}`));
  if (first !== undefined) return { ...first, line: 1 } as unknown as McpSdk1;
  const second = await importAll(MODULES_2.map((path) => `@modelcontextprotocol/${path}`));
  if (second !== undefined) return { ...second, line: 2 } as unknown as McpSdk2;
  const [older, newer] = ['@modelcontextprotocol/sdk', '@modelcontextprotocol/server @modelcontextprotocol/client'];
  throw new UsageError(
    `This needs the official SDK of the Model Context Protocol, which is not installed. Install it: npm install ${older} (or: npm install ${newer})`,
  );
}

type Module = Readonly<Record<string, unknown>>;

/** What modules export, all together; undefined where one of them is not installed. */
async function importAll(specifiers: readonly string[]): Promise<Module | undefined> {
  const modules = await Promise.all(specifiers.map(importPeer));
  return modules.every((module) => module !== undefined) ? Object.assign({}, ...modules) : undefined;
}

async function importPeer(specifier: string): Promise<Module | undefined> {
  try {
    return (await import(specifier)) as Module;
  } catch (error) {
    if (describeError(error).code !== 'ERR_MODULE_NOT_FOUND') throw error;
  }
  try {
    const found = createRequire(join(process.cwd(), 'index.js')).resolve(specifier);
    return (await import(pathToFileURL(found).href)) as Module;
  } catch (error) {
    if (describeError(error).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
