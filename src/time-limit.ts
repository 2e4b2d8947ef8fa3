import pTimeout from 'p-timeout';
import { type Clock, systemClock } from './clock.ts';

/** Milliseconds after which a limit that still waits gets a timer of its own; most calls are over long before. */
const TICK_MS = 10;

let newest: TimeLimit | undefined;
let ticks = 0;
let ticking: NodeJS.Timeout | undefined;
let nextTick = 0;

/**
 * Calls `onLimit` once if `work` has not settled within `limitMs` milliseconds. `stop()` ends it, and must be called as soon as
 * `work` has settled.
 *
 * p-timeout keeps the time. Arming it for every call would cost more than all the rest of a dispatch, so on the system clock it
 * is armed only for work that is still pending a tick later; until then the limit is an entry in a list, which `stop` leaves.
 */
export abstract class TimeLimit {
  readonly #work: Promise<unknown>;
  readonly #clock: Clock;
  #deadline: number;
  #isPostponed = false;
  #previous: TimeLimit | undefined = undefined;
  #next: TimeLimit | undefined = undefined;
  /** The tick it was listed in; -1 when it is not in the list. */
  #listed = -1;
  #armed: ReturnType<typeof pTimeout> | undefined = undefined;

  constructor(work: Promise<unknown>, limitMs: number, clock: Clock) {
    const now = clock.now();
    this.#work = work;
    this.#clock = clock;
    this.#deadline = now + limitMs;
    // Another clock may be a test's: it alone decides when anything happens.
    if (clock === systemClock && limitMs > 2 * TICK_MS) this.#list(now);
    else this.#arm(limitMs);
  }

  /** What happens at the limit. Must not throw. */
  protected abstract onLimit(): void;

  /**
   * Puts it off to `limitMs` milliseconds from now. Costs next to nothing: the time is looked at again when the old one has come. Not for
   * an earlier time than it had.
   */
  protected postpone(limitMs: number): void {
    this.#deadline = this.#clock.now() + limitMs;
    this.#isPostponed = true;
  }

  /** Begins anew, with any time. */
  protected restart(limitMs: number): void {
    this.#armed?.clear();
    this.#deadline = this.#clock.now() + limitMs;
    if (limitMs !== Number.POSITIVE_INFINITY) this.#arm(limitMs);
  }

  stop(): void {
    this.#armed?.clear();
    this.#unlist();
  }

  #unlist(): void {
    if (this.#listed < 0) return;
    this.#listed = -1;
    if (this.#previous === undefined) newest = this.#next;
    else this.#previous.#next = this.#next;
    if (this.#next !== undefined) this.#next.#previous = this.#previous;
    // The ticking runs out by itself, but must not keep the process alive for that.
    if (newest === undefined) ticking?.unref();
  }

  #arm(remainingMs: number): void {
    this.#armed = pTimeout(this.#work, {
      milliseconds: Math.max(1, remainingMs),
      // A fallback keeps p-timeout from building an error, with its stack, for each call.
      // Later, for a clock that calls back at once.
      fallback: () => queueMicrotask(() => this.#due()),
      customTimers: timersOf(this.#clock),
    });
    this.#armed.catch(() => {});
  }

  #due(): void {
    const left = this.#isPostponed ? this.#deadline - this.#clock.now() : 0;
    this.#isPostponed = false;
    if (left > 0) this.#arm(left);
    else this.onLimit();
  }

  #list(now: number): void {
    this.#listed = ticks;
    this.#next = newest;
    if (newest !== undefined) newest.#previous = this;
    // A tick long overdue was set on timers that no longer run, such as a test's fake ones.
    if (ticking === undefined || Math.abs(now - nextTick) > 100 * TICK_MS) setTick(now);
    else if (newest === undefined) ticking.ref();
    newest = this;
  }

  /** Arms what was listed before the last tick, so that everything has had at least one whole tick to settle. */
  static tick(this: void): void {
    const young = ticks++;
    const now = systemClock.now();
    let limit = newest;
    while (limit !== undefined && limit.#listed === young) limit = limit.#next;
    while (limit !== undefined) {
      const older: TimeLimit | undefined = limit.#next;
      limit.#unlist();
      limit.#arm(limit.#deadline - now);
      limit = older;
    }
    if (newest === undefined) ticking = undefined;
    else setTick(now);
  }
}

/** A clock's timers as p-timeout takes them. */
export function timersOf(clock: Clock): { setTimeout: typeof setTimeout; clearTimeout: typeof clearTimeout } {
  return {
    setTimeout: ((callback: () => void, delayMs: number) => clock.setTimeout(callback, delayMs)) as typeof setTimeout,
    clearTimeout: ((timer: unknown) => clock.clearTimeout(timer)) as typeof clearTimeout,
  };
}

function setTick(now: number): void {
  clearTimeout(ticking);
  ticking = setTimeout(TimeLimit.tick, TICK_MS);
  nextTick = now + TICK_MS;
}
