import { writeSync } from 'node:fs';
import { type ContentPart, type ToolDispatchResult, toJson, toolError } from '../index.ts';
import type { FaultyCall } from './calls.ts';
import { onReaderGone, print } from './stdout.ts';

/** A result as one line of JSON: bytes as base64, and never a failure, whatever is in it. */
export function lineOf(result: ToolDispatchResult): string {
  const { content } = result;
  const told = typeof content === 'string' ? result : { ...result, content: content.map(withBase64) };
  try {
    return JSON.stringify(told);
  } catch {
    // Only what a runtime put into `control` can be of any kind.
    return JSON.stringify(toJson(told));
  }
}

function withBase64(part: ContentPart): ContentPart {
  if (!('data' in part) || typeof part.data === 'string' || part.data === undefined) return part;
  return { ...part, data: Buffer.from(part.data).toString('base64') };
}

/** The result of a line that holds no call. */
export function faultyLine(line: number, { fault, id = `line-${line}`, name = '' }: FaultyCall): ToolDispatchResult {
  const error = toolError('invalid_call', `Line ${line} holds no call: ${fault}.`);
  const requested = { id, name, input: {} };
  const content = error.message;
  return { resolvedToolName: name, content, isError: true, error, notes: [], toolCallId: id, durationMs: 0, requested };
}

/** Characters that are written at the latest. */
const BATCH = 64 * 1024;

/** Writes lines to standard output. */
export class LineWriter {
  /** Whether whoever reads has gone away. */
  closed = false;
  #pending = '';
  #scheduled = false;
  /** Wakes whoever waits for a reader that is slower. */
  #drained = (): void => {};
  #full = false;

  constructor() {
    process.stdout.on('drain', () => this.#drained());
    onReaderGone(() => {
      this.closed = true;
      this.#drained();
    });
  }

  /** Lines of one turn of the event loop are written together. */
  write(line: string): void {
    this.#pending += `${line}\n`;
    if (this.#pending.length > BATCH) this.#flush();
    else if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.#flush());
    }
  }

  /** Waits for a reader that is slower. */
  async ready(): Promise<void> {
    if (!this.#full || this.closed) return;
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
    this.#full = false;
  }

  /** Writes what is left. */
  async end(): Promise<void> {
    this.#flush();
    if (!this.closed) await new Promise<void>((resolve) => print('', () => resolve()));
  }

  /** Writes what is left in a process that ends this moment. */
  endNow(): void {
    if (this.#pending === '' || this.closed) return;
    try {
      writeSync(1, this.#pending);
    } catch {
      // There is nobody left to tell.
    }
    this.#pending = '';
  }

  #flush(): void {
    this.#scheduled = false;
    if (this.#pending === '' || this.closed) return;
    const text = this.#pending;
    this.#pending = '';
    this.#full = !print(text);
  }
}
