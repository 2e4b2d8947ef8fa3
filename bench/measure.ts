/** Does one thing once. */
export type Task = () => unknown;

/** A ratio's middle and its spread over the rounds. */
export interface Spread {
  readonly median: number;
  /** A tenth of the rounds was below. */
  readonly low: number;
  /** A tenth of the rounds was above. */
  readonly high: number;
}

/** What rounds of tasks showed: per task its nanoseconds, and its ratio to the first task, round by round. */
export interface Measured {
  readonly nanoseconds: readonly number[];
  readonly ratios: readonly Spread[];
}

/**
 * Measures tasks against the first of them, in one process: each round runs all of them, in turning order, so that a machine that
 * slows down slows them all. The first rounds only warm up.
 */
export async function measure(tasks: readonly Task[], repeats: number, rounds: number): Promise<Measured> {
  const times: number[][] = tasks.map(() => []);
  for (let round = -3; round < rounds; round++) {
    for (let turn = 0; turn < tasks.length; turn++) {
      const index = (turn + round + 3) % tasks.length;
      const time = await timeOf(tasks[index] as Task, repeats);
      if (round >= 0) times[index]?.push(time);
    }
  }
  const [base = []] = times;
  return {
    nanoseconds: times.map((list) => spreadOf(list).median),
    ratios: times.map((list) => spreadOf(list.map((time, round) => time / (base[round] as number)))),
  };
}

async function timeOf(task: Task, repeats: number): Promise<number> {
  const startedAt = performance.now();
  for (let repeat = 0; repeat < repeats; repeat++) await task();
  return ((performance.now() - startedAt) * 1e6) / repeats;
}

/**
 * Bytes a task allocates each time, beyond the loop that awaits it. Needs `--expose-gc`, and a young generation so large that
 * nothing is collected meanwhile.
 */
export async function bytesOf(task: Task, repeats: number): Promise<number> {
  const loop = await allocated(() => DONE, repeats);
  return (await allocated(task, repeats)) - loop;
}

const DONE = Promise.resolve();

async function allocated(task: Task, repeats: number): Promise<number> {
  for (let repeat = 0; repeat < 4 * repeats; repeat++) await task();
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  for (let repeat = 0; repeat < repeats; repeat++) await task();
  return (process.memoryUsage().heapUsed - before) / repeats;
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
  return { median: at(0.5), low: at(0.1), high: at(0.9) };
}
