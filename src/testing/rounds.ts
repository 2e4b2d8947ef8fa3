import { GCProfiler } from 'node:v8';
import type { Clock } from '../clock.ts';

/** Does one thing once. */
export type Task = () => unknown;

/** The middle of many values, and where most of them lie. */
export interface Spread {
  readonly median: number;
  /** A tenth of the values is below. */
  readonly low: number;
  /** A tenth of the values is above. */
  readonly high: number;
}

/** Rounds that are run and not counted: compilers and caches have to get warm. */
const WARM_UP = 3;

/**
 * Times tasks in one process: each round runs all of them, in turning order, so that a machine that slows down slows them all. Gives
 * the milliseconds of one run of a task, by task and round.
 *
 * @param goOn Asked before each round; the rounds that are complete by then are what it gives.
 */
export async function timeRounds(
  tasks: readonly Task[],
  repeats: number,
  rounds: number,
  now: Clock['now'],
  goOn: (round: number) => boolean = () => true,
): Promise<readonly (readonly number[])[]> {
  const times: number[][] = tasks.map(() => []);
  for (let round = -WARM_UP; round < rounds && goOn(round); round++) {
    for (let turn = 0; turn < tasks.length; turn++) {
      const index = (turn + round + WARM_UP) % tasks.length;
      const time = await timeOf(tasks[index] as Task, repeats, now);
      if (round >= 0) times[index]?.push(time);
    }
  }
  return times;
}

/** Milliseconds of one of several runs of a task. */
export async function timeOf(task: Task, repeats: number, now: Clock['now']): Promise<number> {
  const startedAt = now();
  for (let repeat = 0; repeat < repeats; repeat++) await task();
  return (now() - startedAt) / repeats;
}

/** Bytes of heap a task allocates each time, beyond the loop that awaits it. */
export async function bytesOf(task: Task, repeats: number): Promise<number> {
  return Math.max(0, (await allocatedBy(task, repeats)) - (await allocatedBy(() => DONE, repeats)));
}

const DONE = Promise.resolve();

async function allocatedBy(task: Task, repeats: number): Promise<number> {
  const allocated = countAllocated();
  let bytes = 0;
  try {
    for (let repeat = 0; repeat < repeats; repeat++) await task();
  } finally {
    bytes = allocated();
  }
  return bytes / repeats;
}

/** Begins to count the bytes of heap that are allocated: what has grown, and what collections have freed meanwhile. What it gives ends it. */
export function countAllocated(): () => number {
  const collections = new GCProfiler();
  collections.start();
  const before = process.memoryUsage().heapUsed;
  return () => {
    const grown = process.memoryUsage().heapUsed - before;
    const { statistics } = collections.stop();
    return statistics.reduce((sum, { beforeGC, afterGC }) => sum + usedIn(beforeGC) - usedIn(afterGC), grown);
  };
}

function usedIn({ heapStatistics }: { readonly heapStatistics: { readonly usedHeapSize: number } }): number {
  return heapStatistics.usedHeapSize;
}

/** The value below which a share of them lies. NaN where there are none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: percentile(values, 0.5), low: percentile(values, 0.1), high: percentile(values, 0.9) };
}
