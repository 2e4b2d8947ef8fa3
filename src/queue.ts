/** How many items that have been taken it keeps, before it lets go of them: to move all others for each would cost the square of them. */
const KEPT = 1024;

/** First in, first out, in constant time. */
export class Queue<Item> {
  #items: Item[] = [];
  #first = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  shift(): Item | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#first];
    this.#first++;
    if (this.#first === this.#items.length) this.clear();
    else if (this.#first >= KEPT && this.#first * 2 > this.#items.length) this.#drop();
    return item;
  }

  #drop(): void {
    this.#items = this.#items.slice(this.#first);
    this.#first = 0;
  }

  clear(): void {
    this.#items.length = 0;
    this.#first = 0;
  }

  /** Takes out the first item that fits. */
  remove(fits: (item: Item) => boolean): void {
    const index = this.#items.findIndex((item, at) => at >= this.#first && fits(item));
    if (index >= 0) this.#items.splice(index, 1);
  }
}
