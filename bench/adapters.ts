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
  callTool(params: object): Promise<{ readonly isError?: boolean }>;
  close(): Promise<void>;
}

interface McpSdk {
  readonly Client: new (info: object) => McpClient;
  readonly StdioClientTransport: new (options: object) => object;
}

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** What the proxy adds to a call of a real client to real servers, each a process of its own. */
export async function proxyTimes(rounds: number, calls: number): Promise<void> {
  const path = '@modelcontextprotocol/sdk/dist/esm/client';
  const sdk = { ...(await runtime<McpSdk>(`${path}/index.js`)), ...(await runtime<McpSdk>(`${path}/stdio.js`)) };
  const directory = await mkdtemp(join(tmpdir(), 'toolonion-bench-'));
  const policy = join(directory, 'policy.json');
  const file = join(directory, 'a.txt');
  await writeFile(policy, JSON.stringify({ tools: { '*': { permission: 'allow' } } }));
  await writeFile(file, 'a line\n'.repeat(100));
  const proxy = [
    here('../src/cli/main.js'),
    'mcp',
    'proxy',
    '--policy',
    policy,
    '--log',
    'silent',
    '--',
    process.execPath,
  ];
  const rows: string[][] = [];
  for (const [name, args, tool, input] of [
    ['everything', [], 'echo', { message: 'hi' }],
    ['filesystem', [directory], 'read_text_file', { path: file }],
    ['memory', [], 'search_nodes', { query: 'Ada' }],
  ] as const) {
    const server = [join(RUNTIMES, '@modelcontextprotocol', `server-${name}`, 'dist/index.js'), ...args];
    const processes = [server, [here('relay.js'), process.execPath, ...server], [...proxy, ...server]];
    const env = { ...process.env, MEMORY_FILE_PATH: join(directory, 'memory.jsonl') };
    const medians = await medianCalls(sdk, processes, env, { name: tool, arguments: input }, rounds, calls);
    const [direct = [], relay = [], behind = []] = medians;
    const ratioTo = (base: readonly number[], own: readonly number[]) =>
      ratioCell(spreadOf(own.map((time, round) => time / (base[round] as number))));
    const time = `${Math.round(spreadOf(direct).median * 1000)} µs`;
    rows.push([`${name}: ${tool}`, time, ratioTo(direct, relay), ratioTo(direct, behind), ratioTo(relay, behind)]);
  }
  await rm(directory, { recursive: true });
  printTable(
    'tools/call on standard input and output, the median of each round: with a process in between, × the server without it',
    ['server', 'directly', 'that copies bytes', 'toolonion mcp proxy', 'proxy × copying'],
    rows,
  );
}

async function medianCalls(
  { Client, StdioClientTransport }: McpSdk,
  processes: readonly (readonly string[])[],
  env: NodeJS.ProcessEnv,
  call: object,
  rounds: number,
  calls: number,
): Promise<readonly (readonly number[])[]> {
  const clients = await Promise.all(
    processes.map(async (args) => {
      const client = new Client({ name: 'bench', version: '1.0.0' });
      const cwd = resolve('test/runtimes');
      await client.connect(new StdioClientTransport({ command: process.execPath, args, env, cwd, stderr: 'ignore' }));
      return client;
    }),
  );
  try {
    const medians: number[][] = clients.map(() => []);
    for (let round = -2; round < rounds; round++) {
      const turns = round % 2 === 0 ? [...clients.entries()] : [...clients.entries()].reverse();
      for (const [index, client] of turns) {
        const median = await medianCall(client, call, calls);
        if (round >= 0) medians[index]?.push(median);
      }
    }
    return medians;
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

async function medianCall(client: McpClient, call: object, calls: number): Promise<number> {
  const times: number[] = [];
  for (let count = 0; count < calls; count++) {
    const startedAt = performance.now();
    const { isError } = await client.callTool(call);
    times.push(performance.now() - startedAt);
    if (isError === true) throw new Error('The server did not answer.');
  }
  return spreadOf(times).median;
}
