import type { Clock } from '../clock.ts';

interface Timer {
  readonly due: number;
  readonly callback: () => void;
}

/**
 * A clock that stands still until it is told to go on, for tests of what takes time: give it to `createDispatcher`, and to whatever else has a clock.
 *
 * @example
 * const clock = new ManualClock();
 * const result = createDispatcher({ tools, middleware, clock }).dispatch(call);
 * await clock.advance(60_000);
 */
export class ManualClock implements Clock {
  #now = 0;
  readonly #timers = new Set<Timer>();

  readonly now = (): number => this.#now;

  readonly setTimeout = (callback: () => void, delayMs: number): unknown => {
    const timer = { due: this.#now + delayMs, callback };
    this.#timers.add(timer);
    return timer;
  };

  readonly clearTimeout = (timer: unknown): void => {
    this.#timers.delete(timer as Timer);
  };

  /** Timers set and neither fired nor cleared. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Time passes and no timer fires: what happens while the event loop is busy. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** Lets so many milliseconds pass: due timers fire in order, and what they wake has a few turns to settle. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await turns();
    for (;;) {
      const [next] = [...this.#timers].filter(({ due }) => due <= end).sort((a, b) => a.due - b.due);
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.due);
      next.callback();
      await turns();
    }
    this.#now = end;
  }
}

/** Lets the event loop turn: everything that needs no timer settles. */
export async function turns(count = 6): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}
