import { allowAll, schedule, standard } from '../middleware/index.ts';
import { createDispatcher, type Dispatcher, defineTool, type Middleware, type ToolCallRequest } from '../src/index.ts';
import { compare } from './compare.ts';
import { type Execute, schema, TOOLS } from './scenario.ts';
import { printTable, ratioCell } from './table.ts';

/** Onions a batch may go through; without a schedule layer the flags of the tools alone decide what runs together. */
const ONIONS: Readonly<Record<string, () => readonly Middleware[]>> = {
  'no layer': () => [],
  'schedule alone': () => [schedule()],
  'standard layers': () => standard({ permission: { check: allowAll }, logging: false }),
  'standard layers and schedule': () => standard({ permission: { check: allowAll }, logging: false, schedule: {} }),
};

function dispatcherOf(execute: Execute, concurrencySafe: boolean, middleware: readonly Middleware[]): Dispatcher {
  const tool = defineTool({
    name: 'weather',
    description: 'Tells the weather.',
    inputSchema: schema,
    concurrencySafe,
    execute: (input, call) => execute(input as unknown as Parameters<Execute>[0], call),
  });
  return createDispatcher({ tools: [tool], middleware });
}

function callsOf(count: number): readonly ToolCallRequest[] {
  return Array.from({ length: count }, (_, n) => ({
    id: `call_${n}`,
    name: 'weather',
    arguments: `{"city":"Oslo","days":${n}}`,
  }));
}

const SIZES = [1, 10, 100];

/** What a call of a batch costs, as ratios to a call that is dispatched alone and awaited. */
export async function batchTimes(rounds: number, repeats: number): Promise<void> {
  const rows: string[][] = [];
  for (const isSafe of [true, false]) {
    for (const [onion, layers] of Object.entries(ONIONS)) {
      for (const tool of ['synchronous', 'microtask']) {
        const dispatcher = dispatcherOf(TOOLS[tool] as Execute, isSafe, layers());
        // As many calls in each task, so that a round of one lasts as long as a round of another.
        const most = Math.max(...SIZES);
        const calls = callsOf(most);
        const alone = async () => {
          for (const call of calls) await dispatcher.dispatch(call);
        };
        const batches = SIZES.map((size) => async () => {
          for (let from = 0; from < most; from += size) await dispatcher.dispatchAll(calls.slice(from, from + size));
        });
        const { nanoseconds, ratios } = await compare([alone, ...batches], Math.ceil(repeats / most), rounds);
        const cells = ratios.slice(1).map(ratioCell);
        rows.push([
          isSafe ? 'run together' : 'run alone',
          onion,
          tool,
          `${Math.round((nanoseconds[0] ?? 0) / most)} ns`,
          ...cells,
        ]);
      }
    }
  }
  printTable(
    'A call of a batch: × a call dispatched alone (median, and the middle 80 % of the rounds)',
    ['calls that', 'layers', 'tool', 'alone', ...SIZES.map((size) => `batch of ${size}`)],
    rows,
  );
}

const IN_FLIGHT = 10_000;
const CONCURRENCY = 64;

/** What ten thousand calls in flight hold while sixty-four of them run, and whether all come back right and in order. */
export async function waitingBytes(): Promise<void> {
  const rows: string[][] = [];
  for (const [onion, layers] of Object.entries(ONIONS)) rows.push([onion, ...(await heldBy(layers()))]);
  printTable(
    `${IN_FLIGHT.toLocaleString('en')} calls in flight, ${CONCURRENCY} at once: bytes of heap held for each that waits`,
    ['layers', 'bytes', 'of 2 KB', 'results'],
    rows,
  );
}

async function heldBy(middleware: readonly Middleware[]): Promise<readonly string[]> {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let running = 0;
  let most = 0;
  const dispatcher = dispatcherOf(
    async ({ days }) => {
      most = Math.max(most, ++running);
      await opened;
      running--;
      return `${days}`;
    },
    true,
    middleware,
  );
  const calls = callsOf(IN_FLIGHT);
  await dispatcher.dispatchAll([{ name: 'gone' }]);
  const before = await heapUsed();
  const batch = dispatcher.dispatchAll(calls, { concurrency: CONCURRENCY });
  const held = ((await heapUsed()) - before) / (IN_FLIGHT - CONCURRENCY);
  open();
  const results = await batch;
  const isRight = most === CONCURRENCY && results.every(({ content }, n) => content === `${n}`);
  return [String(Math.round(held)), (held / 2048).toFixed(2), isRight ? 'right, in order' : 'WRONG'];
}

/** What is left of the heap when everything has had its turn. */
async function heapUsed(): Promise<number> {
  if (globalThis.gc === undefined) throw new Error('Run node with --expose-gc.');
  for (let times = 0; times < 3; times++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    globalThis.gc();
  }
  return process.memoryUsage().heapUsed;
}
