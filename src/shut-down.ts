import { afterTurns, type Clock } from './clock.ts';
import { AbortReason, toolError } from './error.ts';
import type { InFlight } from './in-flight.ts';
import { checkOptions, isLimitMs } from './options.ts';

/** Options of `drain`. */
export interface DrainOptions {
  /** Milliseconds after which what is still under way is aborted. Default: Infinity. */
  readonly limitMs?: number;
}

/** How a dispatcher shut down. */
export interface DrainReport {
  /** Calls that had to be aborted. */
  readonly aborted: number;
  /** How many of their tools may still be running. */
  readonly running: number;
  /** How many have no result all the same: a layer hangs, in a call that nobody but the drain could abort. */
  readonly unanswered: number;
}

const NONE_ABORTED: DrainReport = Object.freeze({ aborted: 0, running: 0, unanswered: 0 });

/** Why calls are aborted, or do not run, once a dispatcher shuts down. */
export const CLOSED: AbortReason = new AbortReason(toolError('cancelled', 'The host is shutting down.'));

/** Turns of the event loop that an aborted call may take to be answered, calls inside it included. */
const TURNS_TO_ANSWER = 10;

/** @throws TypeError naming the option and what is allowed. */
export async function shutDown(inFlight: InFlight, clock: Clock, options: DrainOptions): Promise<DrainReport> {
  checkOptions('drain', options, { limitMs: isLimitMs });
  const { limitMs = Number.POSITIVE_INFINITY } = options;
  const answered = new Promise<undefined>((resolve) => inFlight.close(() => resolve(undefined)));
  if (limitMs === Number.POSITIVE_INFINITY) return answered.then(() => NONE_ABORTED);
  let timer: unknown;
  const limit = new Promise<true>((resolve) => {
    timer = clock.setTimeout(() => resolve(true), limitMs);
  });
  if (await Promise.race([answered, limit])) return abortAll(inFlight);
  clock.clearTimeout(timer);
  return NONE_ABORTED;
}

async function abortAll(inFlight: InFlight): Promise<DrainReport> {
  const aborted = inFlight.stop(CLOSED);
  // As long as there is an answer now and then. What is left is held up by a layer that hangs, in a call nobody could abort.
  for (let answers = -1; answers !== inFlight.answers; ) {
    answers = inFlight.answers;
    if (!inFlight.isEmpty) await new Promise<void>((resolve) => afterTurns(TURNS_TO_ANSWER, resolve));
  }
  return {
    aborted: aborted.length,
    running: aborted.filter(({ executed }) => executed === 'unknown').length,
    unanswered: aborted.filter(({ id }) => inFlight.has(id)).length,
  };
}
