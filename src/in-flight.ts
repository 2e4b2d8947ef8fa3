/** The ids of calls under way. */
export class InFlight {
  // One call at a time is the usual case, and a Set that fills and empties again and again is forever rebuilt.
  #alone: string | undefined = undefined;
  readonly #others = new Set<string>();

  has(id: string): boolean {
    return id === this.#alone || this.#others.has(id);
  }

  add(id: string): void {
    if (this.#alone === undefined) this.#alone = id;
    else this.#others.add(id);
  }

  delete(id: string): void {
    if (id === this.#alone) this.#alone = undefined;
    else this.#others.delete(id);
  }
}
