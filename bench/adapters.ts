import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { allowAll, standard } from '../middleware/index.ts';
import { toolSet } from '../src/adapters/ai-sdk/index.ts';
import { createDispatcher, type Dispatcher, defineTool, type ToolDispatchResult } from '../src/index.ts';
import { spreadOf, type Task } from '../src/testing/rounds.ts';
import { compare } from './compare.ts';
import { printTable, ratioCell } from './table.ts';

const RUNTIMES = resolve('test/runtimes/node_modules');

/** Whether the agent runtimes are installed. */
export function hasRuntimes(): boolean {
  return existsSync(RUNTIMES);
}

/** What a file of a runtime exports. Types of its own would have everybody install it. */
async function runtime<Module>(path: string): Promise<Module> {
  if (!hasRuntimes()) throw new Error('Install the agent runtimes: npm ci --prefix test/runtimes');
  return (await import(pathToFileURL(join(RUNTIMES, path)).href)) as Module;
}

interface AiSdk {
  generateText(options: object): Promise<{ readonly text: string }>;
  stepCountIs(steps: number): unknown;
  dynamicTool(tool: object): unknown;
  jsonSchema(schema: object, options: object): unknown;
}

type Model = new (options: object) => object;

const inputSchema = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'number' } },
  required: ['city', 'days'],
} as const;

const VERSIONS = [
  ['6', 'ai-6/dist/index.mjs', 'ai-6/dist/test/index.mjs', 'MockLanguageModelV3'],
  ['7', 'ai/dist/index.js', 'ai/dist/test/index.js', 'MockLanguageModelV4'],
] as const;

/** What the adapter adds to a turn of the AI SDK: model, tool, model, without a network. */
export async function aiSdkTimes(rounds: number, repeats: number): Promise<void> {
  const rows: string[][] = [];
  for (const [version, main, test, model] of VERSIONS) {
    const sdk = await runtime<AiSdk>(main);
    const models = await runtime<Record<string, Model>>(test);
    const turn = turnOf(sdk, models[model] as Model);
    const execute = async ({ days }: { readonly days: number }) => `${days}`;
    const tool = defineTool({ name: 'weather', description: 'Tells the weather.', inputSchema, execute });
    const onion = standard({ permission: { check: allowAll }, logging: false });
    const shownSchema = sdk.jsonSchema(inputSchema, { validate: (value: unknown) => ({ success: true, value }) });
    const shown = { description: 'Tells the weather.', inputSchema: shownSchema };
    const tasks = [sdk.dynamicTool({ ...shown, execute })];
    for (const middleware of [[], onion]) {
      const dispatcher = createDispatcher({ tools: [tool], middleware });
      tasks.push(sdk.dynamicTool({ ...shown, ...byHand(dispatcher) }), toolSet(dispatcher)['weather']);
    }
    const { nanoseconds, ratios } = await compare(
      tasks.map((weather) => turn({ weather })),
      repeats,
      rounds,
    );
    rows.push([version, `${Math.round((nanoseconds[0] ?? 0) / 1000)} µs`, ...ratios.slice(1).map(ratioCell)]);
  }
  printTable(
    'A turn of the AI SDK with its model for tests: × the same tool given to it directly (median, and the middle 80 % of the rounds)',
    [
      'version',
      'directly',
      'no layer, by hand',
      'no layer, toolSet',
      'standard layers, by hand',
      'standard layers, toolSet',
    ],
    rows,
  );
}

/** The least anybody would write to have a dispatcher behind a tool. */
function byHand(dispatcher: Dispatcher): object {
  return {
    execute: (input: unknown, { toolCallId, abortSignal }: { toolCallId: string; abortSignal?: AbortSignal }) =>
      dispatcher.dispatch(
        { id: toolCallId, name: 'weather', arguments: input },
        abortSignal === undefined ? {} : { signal: abortSignal },
      ),
    toModelOutput: ({ output }: { readonly output: ToolDispatchResult }) => ({
      type: output.isError ? 'error-text' : 'text',
      value: output.content,
    }),
  };
}

function turnOf(sdk: AiSdk, Model: Model): (tools: object) => Task {
  const usage = { inputTokens: {}, outputTokens: {} };
  const input = '{"city":"Oslo","days":3}';
  const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input };
  const says = (content: object, unified: string) => ({
    content: [content],
    finishReason: { unified, raw: unified },
    usage,
    warnings: [],
  });
  return (tools) => async () => {
    let isFirst = true;
    const doGenerate = async () => {
      const answer = isFirst ? says(call, 'tool-calls') : says({ type: 'text', text: 'done' }, 'stop');
      isFirst = false;
      return answer;
    };
    const stopWhen = sdk.stepCountIs(3);
    const { text } = await sdk.generateText({ model: new Model({ doGenerate }), prompt: 'go', tools, stopWhen });
    if (text !== 'done') throw new Error(`The turn ended with ${text}`);
  };
}

interface McpClient {
  connect(transport: object): Promise<void>;
  callTool(params: object): Promise<{ readonly content: readonly { readonly text?: string }[] }>;
  close(): Promise<void>;
}

const SDK = '@modelcontextprotocol/sdk/dist/esm/client';
const EVERYTHING = '@modelcontextprotocol/server-everything/dist/index.js';

/** What the proxy adds to a call of a real client to a real server, both processes of their own. */
export async function proxyTimes(rounds: number, calls: number): Promise<void> {
  const { Client } = await runtime<{ Client: new (info: object) => McpClient }>(`${SDK}/index.js`);
  const { StdioClientTransport } = await runtime<{ StdioClientTransport: new (options: object) => object }>(
    `${SDK}/stdio.js`,
  );
  const directory = await mkdtemp(join(tmpdir(), 'toolonion-bench-'));
  const policy = join(directory, 'policy.json');
  await writeFile(policy, JSON.stringify({ tools: { echo: { permission: 'allow' } } }));
  const server = [process.execPath, join(RUNTIMES, EVERYTHING)];
  const command = fileURLToPath(new URL('../src/cli/main.js', import.meta.url));
  const proxied = [process.execPath, command, 'mcp', 'proxy', '--policy', policy, '--log', 'silent', '--', ...server];
  const clients = await Promise.all(
    [server, proxied].map(async ([file, ...args]) => {
      const client = new Client({ name: 'bench', version: '1.0.0' });
      await client.connect(
        new StdioClientTransport({ command: file, args, cwd: resolve('test/runtimes'), stderr: 'ignore' }),
      );
      return client;
    }),
  );
  try {
    const medians: number[][] = clients.map(() => []);
    for (let round = -2; round < rounds; round++) {
      for (const [index, client] of round % 2 === 0 ? [...clients.entries()] : [...clients.entries()].reverse()) {
        const median = await medianCall(client, calls);
        if (round >= 0) medians[index]?.push(median);
      }
    }
    const [direct = [], behind = []] = medians;
    const ratio = spreadOf(behind.map((time, round) => time / (direct[round] as number)));
    printTable(
      'tools/call on standard input and output, median of a round: behind the proxy, × the same server without it',
      ['directly', 'behind the proxy ×'],
      [[`${Math.round(spreadOf(direct).median * 1000)} µs`, ratioCell(ratio)]],
    );
  } finally {
    await Promise.all(clients.map((client) => client.close()));
    await rm(directory, { recursive: true });
  }
}

async function medianCall(client: McpClient, calls: number): Promise<number> {
  const times: number[] = [];
  for (let call = 0; call < calls; call++) {
    const startedAt = performance.now();
    const { content } = await client.callTool({ name: 'echo', arguments: { message: 'hi' } });
    times.push(performance.now() - startedAt);
    if (content[0]?.text !== 'Echo: hi') throw new Error(`The server answered ${content[0]?.text}`);
  }
  return spreadOf(times).median;
}
