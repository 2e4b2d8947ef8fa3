import type { Turn } from './turn.ts';

/**
 * Calls in order. Safe ones run together; one that is not safe waits for all before it and holds up all behind it. All before the
 * frontier are open, and it only moves forward, so that each turn is looked at once.
 */
export class Lane {
  /** What its calls have in common. */
  readonly scope: unknown;
  #first: Turn | undefined = undefined;
  #last: Turn | undefined = undefined;
  /** The first that is not open. */
  #frontier: Turn | undefined = undefined;
  /** Behind the open ones with keys that have been told: in order, for nobody knows what one that is still coming will ask for. */
  #untold: Turn | undefined = undefined;

  constructor(scope: unknown) {
    this.scope = scope;
  }

  get isEmpty(): boolean {
    return this.#first === undefined;
  }

  add(turn: Turn): void {
    this.#insert(turn, undefined);
  }

  /** One whose tool is not what was expected, when it was open already: it waits for whatever runs, and holds up the rest. */
  demote(turn: Turn): void {
    const frontier = this.#frontier;
    this.remove(turn);
    turn.isOpen = false;
    this.#insert(turn, frontier);
  }

  /** One that another, which is still coming, waits for before it comes: its layers have made the call. */
  addBefore(turn: Turn, coming: Turn): void {
    if (coming.isOpen) this.demote(coming);
    this.#insert(turn, coming);
  }

  #insert(turn: Turn, next: Turn | undefined): void {
    const previous = next === undefined ? this.#last : next.previous;
    turn.previous = previous;
    turn.next = next;
    if (previous === undefined) this.#first = turn;
    else previous.next = turn;
    if (next === undefined) this.#last = turn;
    else next.previous = turn;
    if (this.#frontier === next) this.#frontier = turn;
    if (this.#untold === next) this.#untold = turn;
  }

  remove(turn: Turn): void {
    const { previous, next } = turn;
    if (this.#frontier === turn) this.#frontier = next;
    if (this.#untold === turn) this.#untold = next;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    // What has gone keeps no other from being collected.
    turn.previous = undefined;
    turn.next = undefined;
  }

  /** Opens what may be opened, and tells of those that wait for nothing in this lane any more. */
  advance(ready: (turn: Turn) => void): void {
    for (let turn = this.#frontier; turn !== undefined && this.#mayOpen(turn); turn = this.#frontier) {
      this.#frontier = turn.next;
      turn.isOpen = true;
      if (!turn.isKeyed && turn.stage === 'waiting') ready(turn);
    }
    for (let turn = this.#untold; turn?.isOpen === true; turn = this.#untold) {
      if (turn.isKeyed && turn.stage === 'coming') return;
      this.#untold = turn.next;
      if (turn.isKeyed) ready(turn);
    }
  }

  #mayOpen(turn: Turn): boolean {
    if (turn === this.#first) return turn.isSafe || turn.stage !== 'coming';
    // One that is not safe is open only as the first.
    return turn.isSafe && this.#first?.isSafe === true;
  }
}
