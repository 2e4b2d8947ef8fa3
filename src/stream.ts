import type { Progress } from './call.ts';
import type { ContentPart } from './content.ts';
import type { Taker } from './delivery.ts';
import { AbortReason, toolError } from './error.ts';
import { HandOver } from './hand-over.ts';
import type { ToolDispatchResult } from './outcome.ts';
import { Queue } from './queue.ts';
import { isProgressEvent, progressEvent, type StreamEvent } from './stream-event.ts';

/** A call under way whose parts go to a stream. */
export interface StreamedCall {
  readonly result: Promise<ToolDispatchResult>;
  /** Aborts it. */
  stop(reason: AbortReason): void;
}

type Step = IteratorResult<StreamEvent, ToolDispatchResult>;

/** Begins the call of a stream; one that has been left already, with the reason for its abort. */
export type StartStream = (stream: CallStream, left?: AbortReason) => StreamedCall;

/** A call as a generator, as `stream` gives it. */
export interface ToolStream extends AsyncGenerator<StreamEvent, ToolDispatchResult, void> {
  /**
   * The result, for whoever iterates with `for await`, which leaves out what a generator returns. Never rejects. It waits for the first
   * `next`, which begins the call, or for `return`.
   */
  readonly result: Promise<ToolDispatchResult>;
  /** Leaves the call: it is aborted, or never runs. Resolves when it has been answered, a few turns of the event loop later at the latest. */
  return(value?: ToolDispatchResult | PromiseLike<ToolDispatchResult>): Promise<Step>;
  /** Leaves the call, as `return` does. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Signs of life that wait for a consumer who is slower than they come; of more, the oldest are lost. */
const MAX_WAITING_PROGRESS = 100;

/**
 * A call as a generator: it begins with the first `next`, and the tool goes on only when somebody waits for its next part. Not an
 * `async function*`, which would cost as much as the tool's own, and whose `return` waits for a part that may never come.
 */
export class CallStream implements ToolStream, Taker {
  readonly result: Promise<ToolDispatchResult>;
  #answer: (result: Promise<ToolDispatchResult>) => void = () => {};
  #start: StartStream | undefined;
  #call: StreamedCall | undefined = undefined;
  /** What nobody has asked for yet. */
  readonly #events = new Queue<StreamEvent>();
  #progressCount = 0;
  /** Who waits, and those behind who asked without waiting. */
  #asking: ((step: Step) => void) | undefined = undefined;
  readonly #askingNext = new Queue<(step: Step) => void>();
  readonly #handOver = new HandOver(() => this.#asking !== undefined || this.#isOver);
  #result: ToolDispatchResult | undefined = undefined;
  #isOver = false;

  constructor(start: StartStream) {
    this.#start = start;
    this.result = new Promise((resolve) => {
      this.#answer = resolve;
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Step> {
    if (this.#events.length > 0) return Promise.resolve({ done: false, value: this.#nextEvent() });
    if (this.#isOver) return Promise.resolve(this.#last());
    const step = new Promise<Step>((resolve) => {
      if (this.#asking === undefined) this.#asking = resolve;
      else this.#askingNext.push(resolve);
    });
    if (this.#start === undefined) this.#handOver.taken();
    else this.#begin(this.#start);
    return step;
  }

  async return(value?: ToolDispatchResult | PromiseLike<ToolDispatchResult>): Promise<Step> {
    this.#events.clear();
    this.#result = undefined;
    if (!this.#isOver) {
      this.#isOver = true;
      // Whoever waits for the result of a call that never runs is told so.
      if (this.#start !== undefined) this.#begin(this.#start);
      else this.#call?.stop(leftReason());
      this.#answerAll();
      await this.#call?.result;
    }
    return { done: true, value: (await value) as ToolDispatchResult };
  }

  async throw(thrown: unknown): Promise<Step> {
    await this.return();
    throw thrown;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  part(part: ContentPart): PromiseLike<unknown> | undefined {
    if (this.#isOver) return undefined;
    this.#give(part);
    return this.#asking === undefined ? this.#handOver : undefined;
  }

  progress(progress: Progress): void {
    if (this.#isOver) return;
    if (this.#asking === undefined && this.#progressCount++ >= MAX_WAITING_PROGRESS) {
      this.#events.remove(isProgressEvent);
      this.#progressCount--;
    }
    this.#give(progressEvent(progress));
  }

  #nextEvent(): StreamEvent {
    const event = this.#events.shift() as StreamEvent;
    if (event.type === 'progress') this.#progressCount--;
    return event;
  }

  #give(event: StreamEvent): void {
    const asking = this.#asking;
    if (asking === undefined) {
      this.#events.push(event);
      return;
    }
    this.#asking = this.#askingNext.shift();
    asking({ done: false, value: event });
  }

  #begin(start: StartStream): void {
    this.#start = undefined;
    const wasLeft = this.#isOver;
    this.#call = start(this, wasLeft ? leftReason() : undefined);
    this.#answer(this.#call.result);
    // The tool itself, or a layer, may have left it meanwhile.
    if (this.#isOver && !wasLeft) this.#call.stop(leftReason());
    this.#call.result.then((result) => {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#result = result;
      this.#answerAll();
    });
  }

  /** There will be no further event. */
  #answerAll(): void {
    const asking = this.#asking;
    this.#asking = undefined;
    asking?.(this.#last());
    while (this.#askingNext.length > 0) this.#askingNext.shift()?.(this.#last());
    this.#handOver.taken();
  }

  /** The result, once. */
  #last(): Step {
    const value = this.#result as ToolDispatchResult;
    this.#result = undefined;
    return { done: true, value };
  }
}

function leftReason(): AbortReason {
  return new AbortReason(toolError('cancelled', 'Nobody takes the answer any more.'));
}
