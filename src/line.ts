/** First in, first out. An item stands in one line at a time and carries the link itself, so that a long line costs nothing. */
export class Line<Item extends { behind: Item | undefined }> {
  #first: Item | undefined = undefined;
  #last: Item | undefined = undefined;

  get first(): Item | undefined {
    return this.#first;
  }

  push(item: Item): void {
    item.behind = undefined;
    if (this.#last === undefined) this.#first = item;
    else this.#last.behind = item;
    this.#last = item;
  }

  /** Puts an item before the first that it is before. */
  insert(item: Item, isBefore: (other: Item) => boolean): void {
    let previous = this.#last;
    // Most belong at the end, which needs no search.
    if (previous === undefined || isBefore(previous)) {
      previous = undefined;
      for (let next = this.#first; next !== undefined && !isBefore(next); next = next.behind) previous = next;
    }
    if (previous === undefined) {
      item.behind = this.#first;
      this.#first = item;
    } else {
      item.behind = previous.behind;
      previous.behind = item;
    }
    if (item.behind === undefined) this.#last = item;
  }

  shift(): Item | undefined {
    const item = this.#first;
    if (item === undefined) return undefined;
    this.#first = item.behind;
    if (this.#first === undefined) this.#last = undefined;
    item.behind = undefined;
    return item;
  }
}
