import { describeError, isOutcome, type ToolCallRequest, type ToolDispatchResult } from '../index.ts';
import { type FaultyCall, type ReadCall, readCall } from './calls.ts';
import { leave, onOtherEnd, onStall, onStray } from './ending.ts';
import { brokenCall, faultyLine } from './faulty-line.ts';
import type { Input } from './input.ts';
import type { Interrupt } from './interrupt.ts';
import type { LateTools } from './late-tools.ts';
import type { LineWriter } from './line-writer.ts';
import { type Line, LineReader } from './lines.ts';
import { Outcomes } from './outcomes.ts';
import { READER_GONE } from './output.ts';
import type { ProviderCalls } from './provider-calls.ts';
import { complain, counted, grouped, rate } from './terminal.ts';

/** Milliseconds after which the event loop has its turn. */
const TURN_MS = 4;
/** Milliseconds a dispatcher has to answer a call that was given up; this package's own answer in a few turns of the event loop. */
const HEED_MS = 1_000;

/** How calls become what is printed. */
export interface Format {
  dispatch(call: ToolCallRequest, signal: AbortSignal): Promise<ToolDispatchResult>;
  /** The text for a result of the line that was read last. */
  print(result: ToolDispatchResult, line: Line): string;
  /** What is printed in the end. */
  summary?(outcomes: Outcomes): string;
}

function isResult(value: unknown): value is ToolDispatchResult {
  return isOutcome(value) && typeof (value as Partial<ToolDispatchResult>).requested?.name === 'string';
}

/** Takes calls from an input, one after the other, and writes a result for each line that is not blank. */
export class Session {
  readonly #providers: ProviderCalls;
  readonly #format: Format;
  readonly #writer: LineWriter;
  readonly #interrupt: Interrupt;
  readonly #late: LateTools;
  readonly #outcomes = new Outcomes();
  readonly #startedAt = performance.now();
  /** Aborts the call under way. */
  #calls = new AbortController();
  /** The line that is being answered. */
  #line = 0;
  #toldOfFault = false;
  /** Whether something failed that belongs to no call. */
  #strayed = false;
  #done = false;

  constructor(providers: ProviderCalls, format: Format, writer: LineWriter, interrupt: Interrupt, late: LateTools) {
    this.#providers = providers;
    this.#format = format;
    this.#writer = writer;
    this.#interrupt = interrupt;
    this.#late = late;
  }

  async answerAll(input: Input): Promise<void> {
    this.#guard(input);
    try {
      await this.#answerLines(input);
      const summary = this.#format.summary?.(this.#outcomes);
      if (summary !== undefined) this.#writer.write(summary);
    } finally {
      await this.#writer.end();
      this.#done = true;
    }
    this.#isWritable();
    if (this.#interrupt.exitCode === undefined) await this.#late.wait(this.#interrupt);
  }

  /** 0, or what went wrong. */
  get exitCode(): number {
    const { fault } = this.#writer;
    if (fault !== undefined) return fault.code === 'EPIPE' ? READER_GONE : 2;
    return this.#interrupt.exitCode ?? (this.#outcomes.failed > 0 || this.#strayed ? 1 : 0);
  }

  /** How far it is. */
  status({ bytes, size }: Input): string {
    const { calls, failed } = this.#outcomes;
    const share = size ? `${Math.floor((100 * bytes) / size)} % of the input, ` : '';
    const perSecond = (1000 * calls) / (performance.now() - this.#startedAt);
    return `${share}${counted(calls, 'call')}, ${grouped(failed)} failed, ${rate(perSecond)} per second`;
  }

  async #answerLines(input: Input): Promise<void> {
    const reader = new LineReader();
    for await (const chunk of input.chunks()) {
      if (!(await this.#answer(reader.take(chunk)))) return;
    }
    // What came of a line that nobody waited for is no line.
    if (!input.cutOff) await this.#answer(reader.end());
  }

  /** Tells whether results can still be written: nothing is run for nobody. */
  async #answer(lines: readonly Line[]): Promise<boolean> {
    let turnedAt = performance.now();
    for (const line of lines) {
      if (!this.#isWritable()) return false;
      this.#line = line.number;
      const read = readCall(line, this.#providers);
      let result: ToolDispatchResult;
      // Here and not in a function of its own, which would cost a promise for each call.
      try {
        result = 'fault' in read ? this.#faulty(read) : await this.#format.dispatch(read.call, this.#calls.signal);
        if (!isResult(result)) throw new TypeError('what it gave is none');
      } catch (thrown) {
        result = this.#broken(read, thrown);
      }
      this.#take(result, line);
      // Tools that never wait would keep signals, timers and the results themselves waiting.
      if (this.#writer.full) await this.#writer.ready();
      if (performance.now() - turnedAt < TURN_MS) continue;
      await new Promise((resolve) => setImmediate(resolve));
      turnedAt = performance.now();
    }
    await this.#writer.ready();
    return this.#isWritable();
  }

  #take(result: ToolDispatchResult, line: Line): void {
    this.#outcomes.count(result);
    this.#late.note(result);
    this.#writer.write(this.#format.print(result, line));
  }

  #faulty(read: FaultyCall): ToolDispatchResult {
    const result = faultyLine(this.#line, read);
    complain(result.content as string);
    return result;
  }

  /** Somebody else's dispatcher may break its promises. */
  #broken(read: ReadCall, cause: unknown): ToolDispatchResult {
    complain(`The dispatcher gave no result for line ${this.#line}: ${describeError(cause).message}`);
    return brokenCall(this.#line, 'call' in read ? read.call : read, cause);
  }

  #isWritable(): boolean {
    const { fault } = this.#writer;
    if (fault === undefined) return true;
    const isGone = fault.code === 'EPIPE';
    const why = isGone ? 'Whoever reads the results has gone away' : `The results cannot be written: ${fault.message}`;
    if (!this.#toldOfFault)
      complain(`${why}.${this.#line === 0 ? '' : ` Line ${this.#line} was the last that was run.`}`);
    this.#toldOfFault = true;
    return false;
  }

  /** Whatever a tool does to the process, no result is lost. */
  #guard(input: Input): void {
    this.#interrupt.onInterrupt((reason) => {
      input.expectNoMore();
      this.#calls.abort(reason);
    });
    const stray = (error: unknown) => {
      const { name, message } = describeError(error);
      complain(`While line ${this.#line} was answered, something failed that nobody waited for: ${name}: ${message}`);
      this.#strayed = true;
    };
    onStray(stray);
    onStall(() => this.#skip());
    process.on('exit', () => {
      if (!this.#writer.endNow()) complain('Not all results are written: whoever reads them is too slow.');
    });
    onOtherEnd(() => {
      const what = this.#done ? 'its tools still ran' : `line ${this.#line} was answered`;
      const lost = this.#done ? '' : ' That line and all later ones have no result.';
      complain(`The process was ended while ${what}, by a tool perhaps.${lost}`);
      process.exitCode = 1;
    });
  }

  /** A call that nothing will ever settle is answered; those after it are not to blame. */
  #skip(): void {
    if (this.#done) return;
    const { calls } = this.#outcomes;
    setTimeout(() => {
      if (this.#outcomes.calls > calls) return;
      complain(
        `Line ${this.#line} is never answered: its dispatcher heeds no signal. It and all later lines have no result.`,
      );
      leave(1);
    }, HEED_MS);
    complain(`Line ${this.#line} waits for what will never come, and is answered as cancelled.`);
    this.#calls.abort(new Error('Nothing was left that could have gone on.'));
    if (this.#interrupt.exitCode === undefined) this.#calls = new AbortController();
  }
}
