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

  unshift(item: Item): void {
    item.behind = this.#first;
    this.#first = item;
    this.#last ??= item;
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
