import { codeOf, describeError, type MaybePromise, type ToolCallRequest, type ToolDispatchResult } from '../index.ts';
import { readCall } from './calls.ts';
import type { Input } from './input.ts';
import type { Interrupt } from './interrupt.ts';
import type { LateTools } from './late-tools.ts';
import { type Line, LineReader } from './lines.ts';
import { faultyLine, type LineWriter } from './result-lines.ts';
import { onStall } from './stall.ts';
import { READER_GONE } from './stdout.ts';
import { complain, counted } from './terminal.ts';

/** How calls become what is printed. */
export interface Format {
  dispatch(call: ToolCallRequest, signal: AbortSignal): Promise<ToolDispatchResult>;
  /** The result that was dispatched last, or that of a line which holds no call. */
  print(result: ToolDispatchResult): string;
  /** What is printed in the end. */
  summary?(outcomes: ReadonlyMap<string, number>): string;
}

/** Takes calls from an input, one after the other, and writes a result for each line that is not blank. */
export class Session {
  readonly #format: Format;
  readonly #writer: LineWriter;
  readonly #interrupt: Interrupt;
  readonly #late: LateTools;
  readonly #startedAt = performance.now();
  /** How many calls came out how. */
  readonly #outcomes = new Map<string, number>();
  #calls = 0;
  #failed = 0;
  /** Whether something failed that belongs to no call. */
  #strayed = false;
  /** The line that is being answered. */
  #line = 0;
  #done = false;

  constructor(format: Format, writer: LineWriter, interrupt: Interrupt, late: LateTools) {
    this.#format = format;
    this.#writer = writer;
    this.#interrupt = interrupt;
    this.#late = late;
  }

  async answerAll(input: Input): Promise<void> {
    this.#guard();
    try {
      await this.#answerLines(input);
      const summary = this.#format.summary?.(this.#outcomes);
      if (summary !== undefined) this.#writer.write(summary);
    } finally {
      await this.#writer.end();
      if (this.#interrupt.exitCode === undefined) await this.#late.wait();
      this.#done = true;
    }
  }

  async #answerLines(input: Input): Promise<void> {
    const reader = new LineReader();
    for await (const chunk of input.chunks()) {
      if (!(await this.#answer(reader.take(chunk)))) return;
    }
    // What came of a line that nobody waited for is no line.
    if (!input.cutOff) await this.#answer(reader.end());
  }

  /** 0, or what went wrong. */
  get exitCode(): number {
    if (this.#writer.closed) return READER_GONE;
    return this.#interrupt.exitCode ?? (this.#failed > 0 || this.#strayed ? 1 : 0);
  }

  /** How far it is. */
  status({ bytes, size }: Input): string {
    const share = size ? `${Math.floor((100 * bytes) / size)} % of the input, ` : '';
    const perSecond = (1000 * this.#calls) / (performance.now() - this.#startedAt);
    return `${share}${counted(this.#calls)} calls, ${counted(this.#failed)} failed, ${counted(perSecond)} per second`;
  }

  /** Tells whether somebody still reads the results: nothing is run for nobody. */
  async #answer(lines: readonly Line[]): Promise<boolean> {
    for (const line of lines) {
      if (this.#writer.closed) return this.#leave();
      this.#line = line.number;
      const result = await this.#result(line);
      this.#calls++;
      if (result.isError) this.#failed++;
      const outcome = codeOf(result);
      this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
      this.#late.note(result);
      this.#writer.write(this.#format.print(result));
    }
    await this.#writer.ready();
    return this.#writer.closed ? this.#leave() : true;
  }

  /** No async function, here and in the formats: each would cost a promise for each call. */
  #result(line: Line): MaybePromise<ToolDispatchResult> {
    const read = readCall(line);
    if ('call' in read) return this.#format.dispatch(read.call, this.#interrupt.signal);
    const result = faultyLine(line.number, read);
    complain(result.content as string);
    return result;
  }

  #leave(): false {
    complain(`Whoever reads the results has gone away. Line ${this.#line} was the last that was run.`);
    return false;
  }

  /** Whatever a tool does to the process, no result is lost. */
  #guard(): void {
    const stray = (error: unknown) => {
      const { name, message } = describeError(error);
      complain(`While line ${this.#line} was answered, something failed that nobody waited for: ${name}: ${message}`);
      this.#strayed = true;
    };
    process.on('uncaughtException', stray);
    process.on('unhandledRejection', stray);
    onStall(() => {
      if (this.#done) return;
      complain(`Line ${this.#line} waits for what will never come, and is answered as cancelled.`);
      this.#interrupt.skip('Nothing was left that could have gone on.');
    });
    process.on('exit', () => {
      if (this.#done) return;
      this.#writer.endNow();
      // A second Ctrl-C says itself what it does.
      if (this.#interrupt.exitCode !== undefined) return;
      complain(
        `The process was ended while line ${this.#line} was answered, by its tool perhaps. Later lines have no result.`,
      );
      process.exitCode = 1;
    });
  }
}
