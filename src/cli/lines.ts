import { isUtf8 } from 'node:buffer';

/** A line of the input that is not blank. */
export interface Line {
  /** Counted from 1. */
  readonly number: number;
  readonly text: string;
  /** Why it cannot be read, where it cannot. */
  readonly fault?: string;
}

/** Bytes one line may have: what is longer is no call, but a file of something else. */
const MAX_BYTES = 64 * 1024 * 1024;
const NEWLINE = 0x0a;

/**
 * The lines of a stream, as many at a time as have come: so nothing waits for a line that is not there yet, and no more is held than
 * one chunk and the beginning of one line.
 */
export class LineReader {
  #number = 0;
  /** Chunks of a line that has not ended. */
  #open: Buffer[] = [];
  #openBytes = 0;
  readonly #maxBytes: number;

  constructor(maxBytes: number = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that end in this chunk. */
  take(chunk: Buffer): readonly Line[] {
    const last = chunk.lastIndexOf(NEWLINE);
    if (last < 0) {
      this.#keep(chunk);
      return [];
    }
    const first = chunk.indexOf(NEWLINE);
    const lines: Line[] = [];
    this.#keep(chunk.subarray(0, first));
    this.#push(lines, this.#close());
    if (last > first) this.#pushAll(lines, chunk.subarray(first + 1, last));
    this.#keep(chunk.subarray(last + 1));
    return lines;
  }

  /** The line that ends with the input. */
  end(): readonly Line[] {
    const lines: Line[] = [];
    if (this.#openBytes > 0) this.#push(lines, this.#close());
    return lines;
  }

  #keep(chunk: Buffer): void {
    this.#openBytes += chunk.length;
    // What is too long is counted, and not held.
    if (this.#openBytes <= this.#maxBytes) this.#open.push(chunk);
    else this.#open = [];
  }

  #close(): Buffer | undefined {
    const line = this.#openBytes > this.#maxBytes ? undefined : Buffer.concat(this.#open);
    this.#open = [];
    this.#openBytes = 0;
    return line;
  }

  /** All at once where nothing is wrong with any: one look at the bytes, one text. */
  #pushAll(lines: Line[], bytes: Buffer): void {
    if (bytes.length <= this.#maxBytes && isUtf8(bytes)) {
      for (const text of bytes.toString('utf8').split('\n')) this.#pushText(lines, text);
      return;
    }
    let from = 0;
    for (let to = 0; to <= bytes.length; to++) {
      if (to < bytes.length && bytes[to] !== NEWLINE) continue;
      this.#push(lines, bytes.subarray(from, to));
      from = to + 1;
    }
  }

  #push(lines: Line[], bytes: Buffer | undefined): void {
    const isTooLong = bytes === undefined || bytes.length > this.#maxBytes;
    if (!isTooLong && isUtf8(bytes)) this.#pushText(lines, bytes.toString('utf8'));
    else {
      const fault = isTooLong ? `it has more than ${this.#maxBytes} bytes` : 'it is not UTF-8';
      lines.push({ number: ++this.#number, text: '', fault });
    }
  }

  #pushText(lines: Line[], text: string): void {
    const number = ++this.#number;
    // Editors on Windows put a byte order mark in front of the first line.
    const own = number === 1 && text.startsWith('\uFEFF') ? text.slice(1) : text;
    if (own.trim() !== '') lines.push({ number, text: own });
  }
}
