import { logging } from '../middleware/logging.ts';
import { outputLimit } from '../middleware/output-limit.ts';
import { permission } from '../middleware/permission.ts';
import { allowAll } from '../middleware/permission-rules.ts';
import { timeout } from '../middleware/timeout.ts';
import { validation } from '../middleware/validation.ts';
import { createDispatcher, type Dispatcher, defineTool, type Middleware, type TextPart } from '../src/index.ts';
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

/**
 * The least that hands on what a generator yields, keeps the text, and can let its consumer go while the generator hangs: which takes a
 * promise of its own for each part.
 */
class Relay implements AsyncIterableIterator<TextPart> {
  readonly #texts: string[] = [];
  readonly #generator: AsyncGenerator<string>;
  #answer: (step: IteratorResult<TextPart>) => void = () => {};
  #fail: (thrown: unknown) => void = () => {};

  constructor(generator: AsyncGenerator<string>) {
    this.#generator = generator;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<TextPart>> {
    const step = new Promise<IteratorResult<TextPart>>(this.#ask);
    this.#generator.next().then(this.#took, this.#fail);
    return step;
  }

  get text(): string {
    return this.#texts.join('');
  }

  readonly #ask = (resolve: (step: IteratorResult<TextPart>) => void, reject: (thrown: unknown) => void): void => {
    this.#answer = resolve;
    this.#fail = reject;
  };

  readonly #took = ({ done, value }: IteratorResult<string, unknown>): void => {
    if (done === true) {
      this.#answer({ done, value: undefined });
      return;
    }
    const text = value as string;
    this.#texts.push(text);
    this.#answer({ done: false, value: { type: 'text', text } });
  };
}

async function relayed(): Promise<number> {
  const relay = new Relay(parts());
  let size = 0;
  for await (const part of relay) size += part.text.length;
  return relay.text.length === size ? size : Number.NaN;
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
  const tasks = [bare, bareKept, relayed, ...ways.map(([, task]) => task)];
  const sizes = await Promise.all(tasks.map((task) => task()));
  if (new Set(sizes).size !== 1) throw new Error(`Not all have seen all parts: ${sizes.join(', ')}`);
  const times = await timeRounds(tasks, 1, rounds, () => performance.now());
  const [plain = [], kept = [], relay = []] = times;
  const ratioTo = (base: readonly number[], own: readonly number[]) =>
    percentile(
      own.map((time, round) => (base[round] as number) / time),
      0.5,
    ).toFixed(2);
  const names = ['bare generator', 'bare generator, text kept', 'relayed by hand', ...ways.map(([name]) => name)];
  printTable(
    `${PARTS.toLocaleString('en')} parts: parts per second, × a bare async generator (median)`,
    ['', 'ns per part', '× bare', '× bare that keeps the text', '× relayed by hand'],
    times.map((own, index) => [
      names[index] as string,
      ((percentile(own, 0.5) * 1e6) / PARTS).toFixed(0),
      ratioTo(plain, own),
      ratioTo(kept, own),
      ratioTo(relay, own),
    ]),
  );
}
