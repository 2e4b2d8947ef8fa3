import { fstatSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { UsageError } from './usage-error.ts';

/** Milliseconds between two looks at an input that is to end, and looks without anything new after which it ends. */
const LOOK_MS = 50;
const LOOKS = 4;

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

  private constructor(stream: Readable, size: number | undefined) {
    this.#stream = stream;
    this.size = size;
  }

  /** @throws UsageError where the file cannot be read. */
  static async open(path: string | undefined): Promise<Input> {
    if (path === undefined || path === '-') return new Input(process.stdin, sizeOf(0));
    try {
      const file = await open(path);
      return new Input(file.createReadStream(), sizeOf(file.fd));
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
        yield chunk;
        this.#waiting = true;
      }
    } catch (error) {
      if (!this.cutOff) throw new UsageError(`The calls cannot be read on: ${(error as Error).message}.`);
    }
  }

  /** Reads on only as long as something comes: a file to its end; a pipe that somebody holds open is not waited for. */
  expectNoMore(): void {
    let seen = this.bytes;
    let looks = 0;
    const timer = setInterval(() => {
      looks = this.#waiting && this.bytes === seen ? looks + 1 : 0;
      seen = this.bytes;
      if (looks < LOOKS) return;
      clearInterval(timer);
      this.cutOff = true;
      this.#stream.destroy();
    }, LOOK_MS);
    timer.unref();
  }
}

function sizeOf(descriptor: number): number | undefined {
  try {
    const stat = fstatSync(descriptor);
    return stat.isFile() ? stat.size : undefined;
  } catch {
    return undefined;
  }
}
