import { logging } from '../middleware/logging.ts';
import { outputLimit } from '../middleware/output-limit.ts';
import { permission } from '../middleware/permission.ts';
import { allowAll } from '../middleware/permission-rules.ts';
import { timeout } from '../middleware/timeout.ts';
import { validation } from '../middleware/validation.ts';
import { createDispatcher, type Dispatcher, defineTool, type Middleware } from '../src/index.ts';
import { percentile, timeRounds } from '../src/testing/rounds.ts';
import { logger } from './scenario.ts';
import { printTable } from './table.ts';

const PARTS = 100_000;

async function* parts(): AsyncGenerator<string> {
  for (let part = 0; part < PARTS; part++) yield 'part ';
}

const idle: Middleware = (call, next) => next(call);

const ONIONS: Readonly<Record<string, readonly Middleware[]>> = {
  'no layer': [],
  'five idle layers': [idle, idle, idle, idle, idle],
  'the five jobs': [
    logging({ logger }),
    validation(),
    permission({ check: allowAll }),
    outputLimit({ limit: Number.POSITIVE_INFINITY }),
    timeout(),
  ],
};

/** A generator by itself: its consumer sees each part, and in the second case has all of the text in the end, as a result has. */
async function bare(): Promise<number> {
  let size = 0;
  for await (const part of parts()) size += part.length;
  return size;
}

async function bareKept(): Promise<number> {
  let text = '';
  for await (const part of parts()) text += part;
  return text.length;
}

function streamedBy(dispatcher: Dispatcher): () => Promise<number> {
  return async () => {
    let size = 0;
    for await (const event of dispatcher.stream({ name: 'parts' }))
      size += event.type === 'text' ? event.text.length : 0;
    return size;
  };
}

function observedBy(dispatcher: Dispatcher): () => Promise<number> {
  return async () => {
    let size = 0;
    await dispatcher.dispatch(
      { name: 'parts' },
      {
        onPart: (part) => {
          size += part.type === 'text' ? part.text.length : 0;
        },
      },
    );
    return size;
  };
}

/** Parts per second of a hundred thousand, as ratios to a bare async generator. */
export async function streamTimes(rounds: number): Promise<void> {
  const tool = defineTool({ name: 'parts', description: 'Streams.', execute: () => parts() });
  const ways = Object.entries(ONIONS).flatMap(([onion, middleware]) => {
    const dispatcher = createDispatcher({ tools: [tool], middleware });
    return [
      [`stream(), ${onion}`, streamedBy(dispatcher)],
      [`onPart, ${onion}`, observedBy(dispatcher)],
    ] as const;
  });
  const tasks = [bare, bareKept, ...ways.map(([, task]) => task)];
  const sizes = await Promise.all(tasks.map((task) => task()));
  if (new Set(sizes).size !== 1) throw new Error(`Not all have seen all parts: ${sizes.join(', ')}`);
  const times = await timeRounds(tasks, 1, rounds, () => performance.now());
  const [plain = [], kept = []] = times;
  const ratioTo = (base: readonly number[], own: readonly number[]) =>
    percentile(
      own.map((time, round) => (base[round] as number) / time),
      0.5,
    ).toFixed(2);
  const names = ['bare generator', 'bare generator, text kept', ...ways.map(([name]) => name)];
  printTable(
    `${PARTS.toLocaleString('en')} parts: parts per second, × a bare async generator (median)`,
    ['', 'ns per part', '× bare', '× bare that keeps the text'],
    times.map((own, index) => [
      names[index] as string,
      ((percentile(own, 0.5) * 1e6) / PARTS).toFixed(0),
      ratioTo(plain, own),
      ratioTo(kept, own),
    ]),
  );
}
