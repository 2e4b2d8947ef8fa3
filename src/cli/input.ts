import { createReadStream, fstatSync, openSync, type Stats } from 'node:fs';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { complain } from './terminal.ts';
import { UsageError } from './usage-error.ts';

/** Milliseconds between two looks at an input that is to end; looks without anything new after which it ends; looks in all. */
const LOOK_MS = 50;
const IDLE_LOOKS = 4;
const MOST_LOOKS = 40;

/** What calls are read from: a file, or standard input. */
export class Input {
  /** Bytes that have come. */
  bytes = 0;
  /** Bytes there are; undefined where nobody knows, as with a pipe. */
  readonly size: number | undefined;
  readonly #stream: Readable;
  #waiting = false;
  /** Whether the end of it was not waited for. */
  cutOff = false;

  /** Whether a person types it. */
  get isTerminal(): boolean {
    return this.#stream === process.stdin && process.stdin.isTTY === true;
  }

  private constructor(stream: Readable, size: number | undefined) {
    this.#stream = stream;
    this.size = size;
  }

  /** @throws UsageError where the file cannot be read. */
  static open(path: string | undefined): Input {
    try {
      if (path === undefined || path === '-') return new Input(process.stdin, sizeIn(fstatSync(0)));
      const fd = openSync(path, 'r');
      const stat = fstatSync(fd);
      // What is a pipe is read as one: a read that waits in the thread pool could not be ended.
      const isPipe = stat.isFIFO() || stat.isSocket();
      return new Input(isPipe ? new Socket({ fd, readable: true }) : createReadStream(path, { fd }), sizeIn(stat));
    } catch (error) {
      throw new UsageError(`The calls cannot be read: ${(error as Error).message}.`);
    }
  }

  /** @throws UsageError where reading fails. */
  async *chunks(): AsyncGenerator<Buffer, void, void> {
    try {
      this.#waiting = true;
      for await (const chunk of this.#stream as AsyncIterable<Buffer>) {
        this.#waiting = false;
        this.bytes += chunk.length;
        // A pipe that is open is no reason to wait for a call that nothing will ever settle.
        if (this.#stream instanceof Socket) this.#stream.unref();
        yield chunk;
        if (this.#stream instanceof Socket) this.#stream.ref();
        this.#waiting = true;
      }
    } catch (error) {
      if (!this.cutOff) throw new UsageError(`The calls cannot be read on: ${(error as Error).message}.`);
    }
  }

  /** Reads on only as long as something comes: a file to its end, and a pipe, which somebody may hold open, for two seconds at most. */
  expectNoMore(): void {
    let seen = this.bytes;
    let looks = 0;
    let idle = 0;
    const timer = setInterval(() => {
      // As long as calls are answered, and results wait for their reader, nothing is waited for.
      if (!this.#waiting) return;
      looks++;
      idle = this.bytes === seen ? idle + 1 : 0;
      seen = this.bytes;
      if (idle < IDLE_LOOKS && (looks < MOST_LOOKS || this.size !== undefined)) return;
      if (idle < IDLE_LOOKS) complain('Calls keep coming: those that are not read yet have no result.');
      clearInterval(timer);
      this.cutOff = true;
      this.#stream.destroy();
    }, LOOK_MS);
    timer.unref();
  }
}

/** The size of a file; undefined for anything that has none. */
function sizeIn(stat: Stats): number | undefined {
  if (stat.isDirectory()) throw new Error('it is a directory');
  return stat.isFile() ? stat.size : undefined;
}
