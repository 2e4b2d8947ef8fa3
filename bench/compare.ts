import { type Spread, spreadOf, type Task, timeRounds } from '../src/testing/rounds.ts';

/** What rounds of tasks showed: per task its nanoseconds, and its ratio to the first task, round by round. */
export interface Measured {
  readonly nanoseconds: readonly number[];
  readonly ratios: readonly Spread[];
}

/** Compares tasks with the first of them. */
export async function compare(tasks: readonly Task[], repeats: number, rounds: number): Promise<Measured> {
  const times = await timeRounds(tasks, repeats, rounds, () => performance.now());
  const [base = []] = times;
  return {
    nanoseconds: times.map((list) => spreadOf(list).median * 1e6),
    ratios: times.map((list) => spreadOf(list.map((time, round) => time / (base[round] as number)))),
  };
}
