import { ToolCall } from './call.ts';
import { isPromise, type MaybePromise } from './maybe-promise.ts';
import type { ToolDispatchResult } from './outcome.ts';

/** A call that is to run; or its result, where nothing has to run for that. */
export type Begun = ToolCall | ToolDispatchResult;

/** Gives the result of a call, at once or later. */
type Run = (begun: Begun, isLate: boolean) => MaybePromise<ToolDispatchResult>;

/**
 * The results of calls, which run in waves, one wave after the other: calls next to each other that may run together, as far as their
 * tools say so for all arguments, or a single one that may not. Nobody has checked any arguments here.
 */
export async function inWaves(
  begun: readonly Begun[],
  run: Run,
  limit: number = Number.POSITIVE_INFINITY,
): Promise<readonly ToolDispatchResult[]> {
  const results: ToolDispatchResult[] = [];
  for (let from = 0; from < begun.length; from = results.length) {
    const end = endOfWave(begun, from);
    if (end === from + 1) {
      const result = run(begun[from] as Begun, from > 0);
      results.push(isPromise(result) ? await result : result);
      continue;
    }
    const wave = begun.slice(from, end);
    const given =
      wave.length > limit ? await pooled(wave, limit, run, from > 0) : wave.map((each) => run(each, from > 0));
    for (const result of await inOrder(given)) results.push(result);
  }
  return results;
}

/** The results of calls that run already. None rejects, so one is awaited after the other, which costs less than `Promise.all`. */
export async function inOrder(given: readonly MaybePromise<ToolDispatchResult>[]): Promise<ToolDispatchResult[]> {
  const results: ToolDispatchResult[] = [];
  for (const each of given) results.push(isPromise(each) ? await each : each);
  return results;
}

function endOfWave(begun: readonly Begun[], from: number): number {
  let end = from;
  while (end < begun.length && mayMeet(begun[end] as Begun)) end++;
  return Math.max(end, from + 1);
}

function mayMeet(begun: Begun): boolean {
  if (!ToolCall.is(begun)) return true;
  const { tool } = begun;
  return tool?.concurrencySafe === true && tool.resourceKey === undefined;
}

/** A wave of which no more than so many run at once. */
async function pooled(wave: readonly Begun[], limit: number, run: Run, isLate: boolean): Promise<ToolDispatchResult[]> {
  const results: ToolDispatchResult[] = [];
  let next = 0;
  const work = async () => {
    for (let place = next++; place < wave.length; place = next++)
      results[place] = await run(wave[place] as Begun, isLate || place >= limit);
  };
  await Promise.all(Array.from({ length: limit }, work));
  return results;
}
