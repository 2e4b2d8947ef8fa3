import type { Batch } from './batch.ts';
import type { Dispatch } from './dispatch.ts';
import type { AbortReason } from './error.ts';

/** The calls under way, by their ids, and the batches that have calls to come. */
export class InFlight {
  // One call at a time is the usual case, and a Map that fills and empties again and again is forever rebuilt.
  #alone: Dispatch | undefined = undefined;
  readonly #others = new Map<string, Dispatch>();
  readonly #batches = new Set<Batch>();
  #closed = false;
  #answers = 0;
  #whenEmpty: (() => void)[] = [];

  /** How many calls have been answered since it was closed. */
  get answers(): number {
    return this.#answers;
  }

  get isEmpty(): boolean {
    return this.#alone === undefined && this.#others.size === 0 && this.#batches.size === 0;
  }

  /** Whether no further call is to run. */
  get isClosed(): boolean {
    return this.#closed;
  }

  has(id: string): boolean {
    return id === this.#alone?.id || this.#others.has(id);
  }

  add(dispatch: Dispatch): void {
    if (this.#alone === undefined) this.#alone = dispatch;
    else this.#others.set(dispatch.id, dispatch);
  }

  delete(dispatch: Dispatch): void {
    if (dispatch === this.#alone) this.#alone = undefined;
    else this.#others.delete(dispatch.id);
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
    const dispatches = [...(this.#alone === undefined ? [] : [this.#alone]), ...this.#others.values()];
    for (const batch of this.#batches) batch.stop(reason);
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
