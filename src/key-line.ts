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
  /** Nested calls, by the turn they are inside of. */
  readonly #nested = new Map<Turn, Line<Turn>>();

  get isEmpty(): boolean {
    return (this.#holder ?? this.#candidate ?? this.#firstWaiting) === undefined && this.#nested.size === 0;
  }

  /** Lets it go on to its slots, if it may. */
  admit(turn: Turn): boolean {
    if (this.#holder !== undefined) return turn.isInside(this.#holder);
    if (turn.ancestor !== undefined) return true;
    if ((this.#candidate ?? this.#firstWaiting ?? turn) !== turn) return false;
    this.#candidate = turn;
    return true;
  }

  /** In the order in which they came, for one may have been on its way to a slot already. */
  wait(turn: Turn): void {
    if (this.#candidate === turn) this.#candidate = undefined;
    const line = turn.ancestor === undefined ? this.#waiting : this.#nestedIn(turn.ancestor);
    line.insert(turn, (other) => turn.number < other.number);
  }

  #nestedIn(ancestor: Turn): Line<Turn> {
    const line = this.#nested.get(ancestor) ?? new Line<Turn>();
    this.#nested.set(ancestor, line);
    return line;
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
  }

  /** Those who may go on to their slots now: the first nested call of each turn, for which gets a slot first is open, and the next in line. */
  admitNext(): readonly Turn[] {
    const next: Turn[] = [];
    for (const [ancestor, line] of this.#nested) {
      const first = firstWaiting(line);
      if (first === undefined) this.#nested.delete(ancestor);
      else if (this.admit(first)) next.push(line.shift() as Turn);
    }
    if ((this.#holder ?? this.#candidate) === undefined && this.#firstWaiting !== undefined) {
      this.#candidate = this.#waiting.shift() as Turn;
      next.push(this.#candidate);
    }
    return next;
  }

  get #firstWaiting(): Turn | undefined {
    return firstWaiting(this.#waiting);
  }

  /** Those who have to end before it can have the key. */
  blockersOf(turn: Turn): readonly Turn[] {
    const blockers: Turn[] = [];
    for (let holder = this.#holder; holder !== undefined && !turn.isInside(holder); holder = holder.lender)
      blockers.push(holder);
    return blockers;
  }

  /** Those who have to end before calls can have the key that were made, by whatever way, by that turn's tool. */
  blockersInside(turn: Turn): readonly Turn[] {
    return [...this.#nested].flatMap(([ancestor, line]) => {
      const first = ancestor === turn || ancestor.isInside(turn) ? firstWaiting(line) : undefined;
      return first === undefined ? [] : this.blockersOf(first);
    });
  }
}

/** The next in a line, those left out who have gone. */
function firstWaiting(line: Line<Turn>): Turn | undefined {
  while (line.first?.stage === 'over') line.shift();
  return line.first;
}
