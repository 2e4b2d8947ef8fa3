import { Line } from './line.ts';
import type { Turn } from './turn.ts';

/**
 * The calls that need one key: a single one runs with it, the others wait in order. It lends the key to the calls that its tool makes,
 * one at a time. These, which are nested, go before all that do not run yet: they may be waiting for a slot that the nested call's
 * parent has.
 */
export class KeyLine {
  /** Runs with the key, perhaps a lent one. */
  #holder: Turn | undefined = undefined;
  /** Has everything but a slot. */
  #candidate: Turn | undefined = undefined;
  readonly #waiting = new Line<Turn>();
  readonly #nested = new Set<Turn>();

  get isEmpty(): boolean {
    return (this.#holder ?? this.#candidate ?? this.#firstWaiting) === undefined && this.#nested.size === 0;
  }

  /** Whether it may go on to its slots. */
  admits(turn: Turn): boolean {
    if (this.#holder !== undefined) return turn.isInside(this.#holder);
    if (turn.ancestor !== undefined) return true;
    if ((this.#candidate ?? this.#firstWaiting ?? turn) !== turn) return false;
    this.#candidate = turn;
    return true;
  }

  wait(turn: Turn): void {
    if (turn.ancestor !== undefined) this.#nested.add(turn);
    else if (this.#candidate === turn) this.#waiting.unshift(turn);
    else this.#waiting.push(turn);
    if (this.#candidate === turn) this.#candidate = undefined;
  }

  /** It has a slot, and takes the key; not where another has taken it meanwhile. */
  take(turn: Turn): boolean {
    if (this.#holder !== undefined && !turn.isInside(this.#holder)) return false;
    turn.lender = this.#holder;
    this.#holder = turn;
    if (this.#candidate === turn) this.#candidate = undefined;
    return true;
  }

  /** It is over, and has the key no longer. */
  leave(turn: Turn): void {
    while (this.#holder?.stage === 'over') this.#holder = this.#holder.lender;
    if (this.#candidate === turn) this.#candidate = undefined;
    this.#nested.delete(turn);
  }

  /** Those who may go on to their slots now: all nested calls, for which of them gets one first is open, and the next in line. */
  next(): readonly Turn[] {
    const nested = [...this.#nested].filter((turn) => this.admits(turn));
    for (const turn of nested) this.#nested.delete(turn);
    const first = this.#firstWaiting;
    if ((this.#holder ?? this.#candidate) !== undefined || first === undefined) return nested;
    this.#candidate = this.#waiting.shift();
    return [...nested, first];
  }

  /** The next in line, those left out who have gone. */
  get #firstWaiting(): Turn | undefined {
    while (this.#waiting.first?.stage === 'over') this.#waiting.shift();
    return this.#waiting.first;
  }

  /** Those who have to end before it can have the key. */
  blockersOf(turn: Turn): readonly Turn[] {
    const blockers: Turn[] = [];
    for (let holder = this.#holder; holder !== undefined && !turn.isInside(holder); holder = holder.lender)
      blockers.push(holder);
    return blockers;
  }

  /** Those who have to end before a call can have the key that was made, by whatever way, by that turn's tool. */
  blockersInside(turn: Turn): readonly Turn[] {
    return [...this.#nested].filter((nested) => nested.isInside(turn)).flatMap((nested) => this.blockersOf(nested));
  }
}
