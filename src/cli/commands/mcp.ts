import { proxy } from '../../adapters/mcp/index.ts';
import { createDispatcher, describeError, type ToolRegistry } from '../../index.ts';
import type { Command, Given } from '../command.ts';
import { onStall } from '../ending.ts';
import { Interrupt } from '../interrupt.ts';
import { loadSdk, type McpSdk } from '../mcp/sdk.ts';
import { serveHttp } from '../mcp/serve-http.ts';
import { serveStdio, stdioTransport } from '../mcp/serve-stdio.ts';
import { DISPATCHER_HELP, DISPATCHER_OPTIONS, openDispatcher, openLayers } from '../open-dispatcher.ts';
import { complain } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';
import { ownVersion } from '../version.ts';

const HELP = `Usage: toolonion mcp serve --tools MODULE [OPTIONS]
       toolonion mcp proxy --policy FILE [OPTIONS] -- COMMAND [ARGUMENTS]
       toolonion mcp proxy --policy FILE [OPTIONS] URL

serve: serves the tools of a module by the Model Context Protocol, on standard input and output, or
by streamable HTTP.

proxy: stands between a client and a server of that protocol, and takes each call through the
standard layers. All else passes as it is. Put it in front of the command of a server in the
settings of a client. The server is started by COMMAND, or is at a URL.

Where a policy says ask, the client's user is asked, if the client can do that.

${DISPATCHER_HELP}
serve:
  --http PORT          by streamable HTTP, at http://127.0.0.1:PORT/mcp; 0 is any port that is free
  --host HOST          in place of 127.0.0.1. Nobody is asked who they are: leave it, or put
                       something in front that does. 0.0.0.0 takes requests to any name
  --name NAME          what clients are told. Default: toolonion
proxy:
  --allow NAME         where there is no policy, tools that are named here run, and no others: that
                       a stranger calls a tool read-only is only a word
  --header TEXT        for a URL, as in 'Authorization: Bearer …'; may be repeated

The log goes to standard error, and so does what tools print. This needs the official SDK:
@modelcontextprotocol/sdk, or @modelcontextprotocol/server and @modelcontextprotocol/client.

Exit code: 0 when the client has gone; 1 if the server behind the proxy has ended before; 2 if the
command cannot be used so; 130 after Ctrl-C, 143 after SIGTERM; 70 if the command itself is at fault.

Examples:
  toolonion mcp serve --tools tools.js --policy policy.json
  toolonion mcp serve --tools tools.js --allow 'read_*' --http 3000
  toolonion mcp proxy --policy policy.json -- npx -y @modelcontextprotocol/server-filesystem .
  toolonion mcp proxy --policy policy.json --header 'Authorization: Bearer …' https://example.org/mcp
`;

export const mcp: Command = {
  summary: 'tools served by the Model Context Protocol, or any server of it behind a policy',
  help: HELP,
  options: {
    ...DISPATCHER_OPTIONS,
    http: { type: 'string' },
    host: { type: 'string' },
    name: { type: 'string' },
    header: { type: 'string', multiple: true },
  },
  words: Number.POSITIVE_INFINITY,
  run,
};

async function run(given: Given): Promise<number> {
  const [what, ...words] = given.words;
  if (what === 'serve') return serve(given, words);
  if (what === 'proxy') return stand(given, words);
  const found = what === undefined ? 'nothing' : `"${what}"`;
  throw new UsageError(`toolonion mcp takes serve or proxy, not ${found}. See toolonion mcp --help.`);
}

async function serve(given: Given, [extra]: readonly string[]): Promise<number> {
  if (extra !== undefined) throw new UsageError(`What is "${extra}"? See toolonion mcp --help.`);
  if (given.texts('header').length > 0) throw new UsageError('--header goes with proxy and a URL.');
  const port = portOf(given);
  if (port === undefined && given.text('host') !== undefined) throw new UsageError('--host goes with --http.');
  const dispatcher = await openDispatcher(given, { level: 'info', isInteractive: true });
  const sdk = await loadSdk();
  const interrupt = begin();
  const info = { name: given.text('name') ?? 'toolonion', version: ownVersion() };
  if (port === undefined) await serveStdio(sdk, dispatcher, info, interrupt.signal);
  else await serveHttp(sdk, dispatcher, info, { host: given.text('host') ?? '127.0.0.1', port }, interrupt.signal);
  return interrupt.exitCode ?? 0;
}

async function stand(given: Given, words: readonly string[]): Promise<number> {
  for (const option of ['tools', 'dispatcher', 'http', 'host', 'name']) {
    if (given.text(option) !== undefined) throw new UsageError(`--${option} goes with serve.`);
  }
  if (given.text('policy') === undefined && given.texts('allow').length === 0)
    throw new UsageError('--policy FILE is missing, or --allow NAME: what the tools of that server may do.');
  const headers = headersOf(given);
  const [first = ''] = words;
  if (first === '') throw new UsageError('What stands behind the proxy is missing: -- COMMAND [ARGUMENTS], or a URL.');
  const { policy, ...layers } = await openLayers(given, { level: 'info', isInteractive: true, isForeign: true });
  const sdk = await loadSdk();
  const server = serverTransport(sdk, words, headers);
  const client = stdioTransport(sdk);
  const interrupt = begin();
  let isStarted = false;
  const onError = (error: unknown) => {
    // What keeps it from starting is told once, below.
    if (isStarted) complain(`Something went wrong beside the calls: ${describeError(error).message}`);
  };
  const dispatcher = (tools: ToolRegistry) => {
    const end = tools.onChange(() => {
      end();
      for (const warning of policy.warnings(tools)) complain(warning);
    });
    return createDispatcher({ ...layers, tools });
  };
  const relay = await proxy({ client, server, dispatcher, onError }).catch((error: unknown) => {
    throw new UsageError(`The server cannot be started: ${describeError(error).message}.`);
  });
  isStarted = true;
  interrupt.onInterrupt(() => void relay.close());
  const gone = await relay.closed;
  if (interrupt.exitCode !== undefined) return interrupt.exitCode;
  if (gone === 'client') return 0;
  complain('The server has ended.');
  return 1;
}

/** From now on waiting is all there is to do, and Ctrl-C ends it in order. */
function begin(): Interrupt {
  onStall(() => {});
  return new Interrupt('Stopping: calls under way are aborted. Once more ends at once.');
}

function serverTransport(sdk: McpSdk, [first = '', ...args]: readonly string[], headers: Record<string, string>) {
  if (args.length === 0 && /^https?:\/\//.test(first)) {
    if (!URL.canParse(first)) throw new UsageError(`"${first}" is no URL.`);
    return new sdk.StreamableHTTPClientTransport(new URL(first), { requestInit: { headers } });
  }
  if (Object.keys(headers).length > 0) throw new UsageError('--header goes with a URL.');
  // That of `npx -p`, which would be the one of an `npx` behind the proxy.
  const { npm_config_package: _, ...inherited } = process.env;
  const env = Object.fromEntries(
    Object.entries(inherited).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  return new sdk.StdioClientTransport({ command: first, args: [...args], env, stderr: 'inherit' });
}

function headersOf(given: Given): Record<string, string> {
  return Object.fromEntries(
    given.texts('header').map((text) => {
      const [, name = '', value = ''] = /^([^:\s]+):\s*(.*)$/.exec(text) ?? [];
      // Not the whole text, which may be a secret.
      if (name === '') throw new UsageError("--header must be a name and a value: 'Authorization: Bearer …'.");
      return [name, value];
    }),
  );
}

const MAX_PORT = 65_535;

function portOf(given: Given): number | undefined {
  const text = given.text('http');
  if (text === undefined) return undefined;
  const port = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= MAX_PORT)) throw new UsageError(`--http must be a port from 0 to ${MAX_PORT}; got "${text}".`);
  return port;
}
