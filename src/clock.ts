/** Where time comes from. Give `createDispatcher` another one to test time limits without waiting. */
export interface Clock {
  /** Milliseconds on a clock that never goes backwards; only differences mean anything. */
  now(): number;
  /** Calls back once after `delayMs` milliseconds, unless cleared first. */
  setTimeout(callback: () => void, delayMs: number): unknown;
  /** Takes what `setTimeout` returned; does nothing for one that has fired. */
  clearTimeout(timer: unknown): void;
}

/** The longest delay a timer can hold, in milliseconds (24.8 days); a longer one would fire at once. */
export const MAX_DELAY_MS: number = 2 ** 31 - 1;

/** The process's own clock. */
export const systemClock: Clock = {
  now: () => performance.now(),
  setTimeout: (callback, delayMs) => setTimeout(callback, delayMs),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/** Calls back after `turns` full turns of the event loop: time enough for whatever an abort has woken to unwind. */
export function afterTurns(turns: number, callback: () => void): void {
  setImmediate(turns > 1 ? () => afterTurns(turns - 1, callback) : callback);
}
