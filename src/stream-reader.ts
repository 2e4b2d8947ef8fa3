import { ToolCall } from './call.ts';
import { A_CHANNEL, type Channel } from './channel.ts';
import type { Content, ContentPart } from './content.ts';
import { controlIn } from './control.ts';
import type { Host } from './dispatch.ts';
import { Gathered, Gathering } from './gathering.ts';
import { HandOver } from './hand-over.ts';
import { closeStream, isErrorLike, isNodeStream } from './json.ts';
import { isPromise } from './maybe-promise.ts';
import { type ToolOutput, toOutput } from './output.ts';
import { isProgressEvent } from './stream-event.ts';

/** An iterator that a generator function made, synchronous or not. */
interface Pieces {
  next(): PromiseLike<IteratorResult<unknown>> | IteratorResult<unknown>;
  return?(value: undefined): unknown;
}

/** What gives an answer piece by piece: a generator, or anything else that can be iterated asynchronously. */
export type Stream = Pieces | { [Symbol.asyncIterator](): Pieces };

/** A list or a Map is data, though it can be iterated. */
export function isStream(value: unknown): value is Stream {
  if (typeof value !== 'object' || value === null) return false;
  try {
    if (typeof Reflect.get(value, Symbol.asyncIterator) === 'function') return true;
    return Symbol.iterator in value && typeof (value as Partial<Pieces>).next === 'function';
  } catch {
    return false;
  }
}

/** Steps a generator may take before the event loop turns: one that never really waits would let nothing else run. */
const STEPS_AT_ONCE = 1000;

/**
 * Takes what a generator yields, step by step, and passes it on as fast as it is taken there. Written with callbacks: one promise more
 * for each part is a quarter of what a part costs.
 */
export class StreamReader {
  /** What the generator returned, or all it has yielded where that is nothing. */
  readonly result: Promise<unknown>;
  readonly #call: ToolCall;
  readonly #stream: Stream;
  readonly #gathering = new Gathering();
  #channel: Channel | undefined;
  #generator: Pieces | undefined = undefined;
  #resolve: (value: unknown) => void = nothing;
  #reject: (reason: unknown) => void = nothing;
  /** Has it close the generator: not at once, for whoever aborts has an AsyncLocalStorage of its own. */
  #askToClose: () => void = nothing;
  #steps = 0;
  #yields = 0;
  /** The first thing yielded that is no text. */
  #first: { readonly value: unknown; readonly output: ToolOutput } | undefined = undefined;
  /** Whether the generator waits in a yield until what it has yielded is taken. */
  #isHandingOver = false;
  #isAborted = false;
  #isOver = false;

  constructor(stream: Stream, call: ToolCall) {
    this.#stream = stream;
    this.#call = call;
    this.#channel = call.channel;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    new Promise<void>((resolve) => {
      this.#askToClose = resolve;
    }).then(() => this.#close());
  }

  start(): void {
    try {
      this.#generator = piecesOf(this.#stream);
      if (this.#call.aborted) this.abort();
      this.#run();
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  get #host(): Host {
    return ToolCall.scope(this.#call).dispatch.host;
  }

  /** All that was yielded so far. */
  get content(): Content {
    return this.#gathering.content;
  }

  /** Lets a suspended generator run its `finally`. One that is stuck in an await cannot, and is not waited for. */
  abort(): void {
    this.#isAborted = true;
    this.#askToClose();
    if (this.#isHandingOver) this.#fail(this.#call.abortReason);
  }

  /** No further part will be passed on, whether or not the generator has ended. */
  endParts(): void {
    const channel = this.#channel;
    this.#channel = undefined;
    if (channel !== undefined) this.#host.tell(A_CHANNEL, () => channel.done(this.content));
  }

  readonly #run = (): void => {
    try {
      while (!this.#isOver) {
        if (this.#isAborted) {
          this.#fail(this.#call.abortReason);
          return;
        }
        if (this.#steps === STEPS_AT_ONCE) {
          this.#steps = 0;
          setImmediate(this.#run);
          return;
        }
        this.#steps++;
        const step = (this.#generator as Pieces).next();
        if (isPromise(step)) {
          step.then(this.#took, this.#fail);
          return;
        }
        if (!this.#take(step as IteratorResult<unknown>)) return;
      }
    } catch (thrown) {
      this.#fail(thrown);
    }
  };

  readonly #took = (step: IteratorResult<unknown>): void => {
    try {
      if (this.#take(step)) this.#run();
    } catch (thrown) {
      this.#fail(thrown);
    }
  };

  /** Whether the generator may go on at once. */
  #take(step: IteratorResult<unknown>): boolean {
    const { value } = step;
    const isDone = step.done === true;
    // The usual part first: what follows costs as much again.
    if (typeof value === 'string' && !isDone && !this.#call.aborted) return this.#takeText(value);
    if (!isAwaitable(value)) return this.#takeValue(value, isDone);
    // A synchronous generator's; an asynchronous one has waited for it.
    Promise.resolve(value).then(
      (settled) => this.#took({ value: settled, done: isDone }),
      (thrown: unknown) => {
        this.#askToClose();
        this.#fail(thrown);
      },
    );
    return false;
  }

  #takeValue(value: unknown, isDone: boolean): boolean {
    if (this.#call.aborted && !(isDone && value !== undefined))
      return this.#end(() => this.#reject(this.#call.abortReason));
    if (isDone) return this.#end(() => this.#resolve(value === undefined ? this.#yielded() : value));
    if (controlIn(value) !== undefined || isErrorLike(value)) {
      this.#askToClose();
      return this.#end(() => this.#resolve(value));
    }
    if (isProgressEvent(value)) {
      this.#call.report(value);
      return true;
    }
    if (typeof value === 'string') return this.#takeText(value);
    const output = toOutput(value);
    if (this.#yields++ === 0) this.#first = { value, output };
    return this.#passOn(this.#gathering.add(output), 0);
  }

  #yielded(): Gathered {
    const first = this.#yields === 1 ? this.#first : undefined;
    return first === undefined ? new Gathered(this.#gathering.output, undefined) : new Gathered(first.output, first);
  }

  #takeText(text: string): boolean {
    this.#yields++;
    this.#gathering.addText(text);
    const taken = this.#channel === undefined || text === '' ? undefined : this.#offer({ type: 'text', text });
    if (taken === undefined) return true;
    this.#isHandingOver = true;
    if (taken instanceof HandOver) taken.onTaken(this.#goOn);
    else taken.then(this.#goOn, this.#goOnAlone);
    return false;
  }

  readonly #goOn = (): void => {
    this.#isHandingOver = false;
    this.#run();
  };

  readonly #goOnAlone = (thrown: unknown): void => {
    this.#giveUpChannel(thrown);
    this.#goOn();
  };

  #passOn(parts: readonly ContentPart[], from: number): boolean {
    for (let index = from; index < parts.length; index++) {
      this.#gathering.addPart(parts[index] as ContentPart);
      const taken = this.#offer(parts[index] as ContentPart);
      if (taken === undefined) continue;
      this.#isHandingOver = true;
      const goOn = () => {
        if (this.#isOver) return;
        if (this.#passOn(parts, index + 1)) this.#goOn();
      };
      taken.then(goOn, (thrown: unknown) => {
        this.#giveUpChannel(thrown);
        goOn();
      });
      return false;
    }
    return true;
  }

  #offer(part: ContentPart): PromiseLike<unknown> | undefined {
    try {
      const taken: unknown = this.#channel?.part(part, this.#call);
      if (taken === undefined || taken instanceof HandOver) return taken;
      // What a layer gives may call back twice, at once, or never.
      return isAwaitable(taken) ? Promise.resolve(taken) : undefined;
    } catch (thrown) {
      this.#giveUpChannel(thrown);
      return undefined;
    }
  }

  /** The answer is worth more than its parts on the way. */
  #giveUpChannel(thrown: unknown): void {
    this.#channel = undefined;
    this.#host.tell(A_CHANNEL, () => {
      throw thrown;
    });
  }

  readonly #fail = (thrown: unknown): void => {
    this.#end(() => this.#reject(thrown));
  };

  #end(settle: () => void): false {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#isHandingOver = false;
    this.endParts();
    settle();
    return false;
  }

  #close(): void {
    const generator = this.#generator;
    this.#generator = undefined;
    try {
      Promise.resolve(generator?.return?.(undefined)).catch(() => {});
      // Its own iterator would wait for what comes next.
      if (isNodeStream(this.#stream)) closeStream(this.#stream);
    } catch {
      // It has been told; what it makes of that is its own affair.
    }
  }
}

/** Of a web stream a reader, which can be cancelled while it reads; its own iterator cannot. */
function piecesOf(stream: Stream): Pieces {
  const { getReader } = stream as { readonly getReader?: unknown };
  if (typeof getReader === 'function') {
    const reader = (stream as unknown as ReadableStream).getReader();
    return { next: () => reader.read(), return: () => reader.cancel() };
  }
  return Symbol.asyncIterator in stream ? stream[Symbol.asyncIterator]() : stream;
}

function nothing(): void {}

/** Whether there is something to wait for. Total: what cannot be asked is rendered as data. */
function isAwaitable(value: unknown): value is PromiseLike<unknown> {
  try {
    return isPromise(value);
  } catch {
    return false;
  }
}
