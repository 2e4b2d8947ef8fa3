import type { Batch } from './batch.ts';
import type { Dispatch } from './dispatch.ts';
import type { AbortReason } from './error.ts';
import { Roster } from './roster.ts';

/** So many calls are asked one by one for their ids. */
const FEW = 16;

/** The calls under way, by their ids, and the batches that have calls to come. */
export class InFlight {
  readonly #dispatches = new Roster<Dispatch>();
  readonly #batches = new Roster<Batch>();
  /** Their ids, where they are many. */
  #ids: Set<string> | undefined = undefined;
  #closed = false;
  #answers = 0;
  #whenEmpty: (() => void)[] = [];

  /** How many calls have been answered since it was closed. */
  get answers(): number {
    return this.#answers;
  }

  get isEmpty(): boolean {
    return this.#dispatches.size === 0 && this.#batches.size === 0;
  }

  /** Whether no further call is to run. */
  get isClosed(): boolean {
    return this.#closed;
  }

  has(id: string): boolean {
    if (this.#ids !== undefined) return this.#ids.has(id);
    for (let place = 0; place < this.#dispatches.size; place++) if (this.#dispatches.at(place).id === id) return true;
    return false;
  }

  add(dispatch: Dispatch): void {
    this.#dispatches.add(dispatch);
    if (this.#ids !== undefined) this.#ids.add(dispatch.id);
    else if (this.#dispatches.size > FEW) this.#ids = new Set(this.#dispatches.members.map(({ id }) => id));
  }

  delete(dispatch: Dispatch): void {
    this.#dispatches.delete(dispatch);
    if (this.#dispatches.size === 0) this.#ids = undefined;
    else this.#ids?.delete(dispatch.id);
    if (!this.#closed) return;
    this.#answers++;
    this.#tellIfEmpty();
  }

  addBatch(batch: Batch): void {
    this.#batches.add(batch);
  }

  deleteBatch(batch: Batch): void {
    this.#batches.delete(batch);
    if (this.#closed) this.#tellIfEmpty();
  }

  /** Aborts all that is under way. Gives what it was. */
  stop(reason: AbortReason): readonly Dispatch[] {
    const dispatches = this.#dispatches.members;
    for (const batch of this.#batches.members) batch.stop(reason);
    for (const dispatch of dispatches) dispatch.stop(reason);
    return dispatches;
  }

  /** No further call is to run. Calls back when those under way have been answered. */
  close(whenEmpty: () => void): void {
    this.#closed = true;
    this.#whenEmpty.push(whenEmpty);
    this.#tellIfEmpty();
  }

  #tellIfEmpty(): void {
    if (!this.isEmpty) return;
    for (const tell of this.#whenEmpty.splice(0)) tell();
  }
}
