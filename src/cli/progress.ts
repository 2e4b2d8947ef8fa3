/** Milliseconds between two looks of a person at a terminal, and between two lines elsewhere. */
const LIVE_MS = 250;
const LINE_MS = 10_000;

/**
 * Tells on standard error how far long work is: on a terminal in one line that is written over, elsewhere in a line every ten
 * seconds. Short work tells nothing.
 */
export class Progress {
  #timer: NodeJS.Timeout | undefined;
  #shown = false;

  start(tell: () => string): void {
    const live = process.stderr.isTTY === true;
    const show = () => {
      process.stderr.write(live ? `\r${tell()}\u001b[K` : `${tell()}\n`);
      this.#shown = live;
    };
    this.#timer = setInterval(show, live ? LIVE_MS : LINE_MS).unref();
  }

  /** Takes the line away, before anything else is written to the terminal. */
  clear(): void {
    if (!this.#shown) return;
    process.stderr.write('\r\u001b[K');
    this.#shown = false;
  }

  end(): void {
    clearInterval(this.#timer);
    this.clear();
  }
}
