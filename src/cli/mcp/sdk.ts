import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { McpServer1, McpTransport } from '../../adapters/mcp/index.ts';
import { describeError } from '../../index.ts';
import { UsageError } from '../usage-error.ts';

/** A transport that takes the requests of an HTTP server. */
export interface HttpTransport extends McpTransport {
  readonly sessionId?: string | undefined;
  handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/** A server that can be connected. */
export interface ConnectedServer extends McpServer1 {
  connect(transport: McpTransport): Promise<void>;
  close(): Promise<void>;
}

/** What is used of the official SDK. */
export interface McpSdk {
  readonly Server: new (info: { name: string; version: string }) => ConnectedServer;
  readonly StdioServerTransport: new (input: NodeJS.ReadableStream, output: unknown) => McpTransport;
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
  readonly StreamableHTTPServerTransport: new (options: object) => HttpTransport;
}

const PACKAGE = '@modelcontextprotocol/sdk';

/** Loads the SDK: of the project this package is part of, or of the one the command runs in. @throws UsageError where there is none. */
export async function loadSdk(): Promise<McpSdk> {
  const [server, stdioServer, stdioClient, httpClient, httpServer] = await Promise.all(
    [
      'server/index.js',
      'server/stdio.js',
      'client/stdio.js',
      'client/streamableHttp.js',
      'server/streamableHttp.js',
    ].map((path) => importPeer(`${PACKAGE}/${path}`)),
  );
  return { ...server, ...stdioServer, ...stdioClient, ...httpClient, ...httpServer } as unknown as McpSdk;
}

type Module = Readonly<Record<string, unknown>>;

async function importPeer(specifier: string): Promise<Module> {
  try {
    return (await import(specifier)) as Module;
  } catch (error) {
    if (describeError(error).code !== 'ERR_MODULE_NOT_FOUND') throw error;
  }
  try {
    const found = createRequire(join(process.cwd(), 'index.js')).resolve(specifier);
    return (await import(pathToFileURL(found).href)) as Module;
  } catch (error) {
    if (describeError(error).code !== 'MODULE_NOT_FOUND') throw error;
    throw new UsageError(
      `This needs the package ${PACKAGE}, which is not installed. Install it: npm install ${PACKAGE}`,
    );
  }
}
