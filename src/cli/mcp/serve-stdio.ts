import { type McpTransport, serveTools } from '../../adapters/mcp/index.ts';
import type { Dispatcher } from '../../index.ts';
import { print } from '../output.ts';
import type { McpSdk } from './sdk.ts';

/** Standard input and output, which is kept for this: what tools print goes to standard error. */
export function stdioTransport(sdk: McpSdk): McpTransport {
  const output = {
    write(text: string): true {
      print(text);
      return true;
    },
  };
  const transport = new sdk.StdioServerTransport(process.stdin, output);
  // The client has gone.
  process.stdin.once('end', () => void transport.close());
  return transport;
}

/** Serves one client by standard input and output. Resolves when it has gone. */
export async function serveStdio(
  sdk: McpSdk,
  dispatcher: Dispatcher,
  info: { name: string; version: string },
  signal: AbortSignal,
): Promise<void> {
  const server = new sdk.Server(info);
  serveTools(server, dispatcher);
  const transport = stdioTransport(sdk);
  await server.connect(transport);
  await new Promise<void>((resolve) => {
    (server as { onclose?: () => void }).onclose = resolve;
    const end = () => drained(dispatcher).then(() => server.close().finally(resolve));
    signal.addEventListener('abort', end, { once: true });
  });
}

/** Milliseconds that calls under way have when the process is to end. */
const DRAIN_MS = 1_000;

/** Lets calls under way be answered. */
export async function drained(dispatcher: Dispatcher): Promise<void> {
  await dispatcher.drain({ limitMs: DRAIN_MS });
  // What they came to has to be sent.
  await new Promise((resolve) => setImmediate(resolve));
}
