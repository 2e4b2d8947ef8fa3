import { isPrinting, print, printed, printFault, printNow } from './output.ts';

/** Characters that are written at once, more or less: few enough that a reader who goes away is soon noticed. */
const BATCH = 16 * 1024;

/** Writes lines to standard output: those of one turn of the event loop together. */
export class LineWriter {
  #pending = '';
  #scheduled = false;

  /** Why nothing more can be written; undefined while it can. */
  get fault(): NodeJS.ErrnoException | undefined {
    return printFault();
  }

  /** Whether the reader has no room for more now. */
  get full(): boolean {
    return isPrinting();
  }

  write(line: string): void {
    this.#pending += `${line}\n`;
    if (this.#pending.length > BATCH) this.#flush();
    else if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.#flush());
    }
  }

  /** Waits for a reader that is slower. */
  ready(): Promise<void> {
    return printed();
  }

  /** Writes what is left. */
  end(): Promise<void> {
    this.#flush();
    return printed();
  }

  /** Writes what is left in a process that ends this moment. Tells whether the reader was quick enough for it. */
  endNow(): boolean {
    this.#flush();
    return printNow();
  }

  #flush(): void {
    this.#scheduled = false;
    print(this.#pending);
    this.#pending = '';
  }
}
