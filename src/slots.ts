import { Line } from './line.ts';
import type { Turn } from './turn.ts';

/** So many may run at once. */
export class Slots {
  #limit: number;
  readonly #waiting = new Line<Turn>();
  #taken = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Takes one, if one is free. */
  take(): boolean {
    if (this.#taken >= this.#limit) return false;
    this.#taken++;
    return true;
  }

  /** There is one from now on. Gives the first who has waited for it, and has it. */
  open(): Turn | undefined {
    if (this.#limit > 0) return undefined;
    this.#limit = 1;
    this.#taken = 1;
    return this.release();
  }

  wait(turn: Turn): void {
    this.#waiting.push(turn);
  }

  /** Gives one back; the next in line, if any, has it now. */
  release(): Turn | undefined {
    for (let turn = this.#waiting.shift(); turn !== undefined; turn = this.#waiting.shift())
      if (turn.stage === 'waiting') return turn;
    this.#taken--;
    return undefined;
  }
}
