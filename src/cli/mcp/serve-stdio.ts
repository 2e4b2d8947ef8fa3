import { Writable } from 'node:stream';
import { type McpServer1, type McpServer2, type McpTransport, serveTools } from '../../adapters/mcp/index.ts';
import type { Dispatcher } from '../../index.ts';
import { print } from '../output.ts';
import type { McpSdk, ServerInfo } from './sdk.ts';

/** Standard input and output, which is kept for this: what tools print goes to standard error. */
export function stdioTransport(sdk: McpSdk): McpTransport {
  const output = new Writable({
    decodeStrings: false,
    write(text, _, done) {
      print(String(text));
      done();
    },
  });
  const transport = new sdk.StdioServerTransport(process.stdin, output);
  // The client has gone.
  process.stdin.once('end', () => void transport.close());
  return transport;
}

/** Serves one client by standard input and output. Resolves when it has gone, or the signal has aborted. */
export async function serveStdio(
  sdk: McpSdk,
  dispatcher: Dispatcher,
  info: ServerInfo,
  signal: AbortSignal,
): Promise<void> {
  const gone = new Promise<void>((resolve) => process.stdin.once('end', resolve));
  const close = await opened(sdk, dispatcher, info);
  await Promise.race([gone, new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))]);
  await drained(dispatcher);
  await close();
}

async function opened(sdk: McpSdk, dispatcher: Dispatcher, info: ServerInfo): Promise<() => Promise<void>> {
  const transport = stdioTransport(sdk);
  if (sdk.line === 2) {
    const handle = sdk.serveStdio(() => withTools(new sdk.Server(info), dispatcher), { transport });
    return () => handle.close();
  }
  const server = withTools(new sdk.Server(info), dispatcher);
  await server.connect(transport);
  return () => server.close();
}

/** A server that has a dispatcher's tools. */
export function withTools<Server extends McpServer1 | McpServer2>(server: Server, dispatcher: Dispatcher): Server {
  serveTools(server, dispatcher);
  return server;
}

/** Milliseconds that calls under way have when the process is to end. */
const DRAIN_MS = 1_000;

/** Lets calls under way be answered. */
export async function drained(dispatcher: Dispatcher): Promise<void> {
  await dispatcher.drain({ limitMs: DRAIN_MS });
  // What they came to has to be sent.
  await new Promise((resolve) => setImmediate(resolve));
}
