import { type Progress, ToolCall } from './call.ts';
import type { Channel } from './channel.ts';
import type { Content, ContentPart } from './content.ts';
import type { Host } from './dispatch.ts';
import type { ToolOutcome } from './outcome.ts';
import type { DispatchOptions } from './request.ts';
import { restOf } from './rest-of.ts';

/** Who takes what a call gives before its result is there. */
export interface Taker extends Pick<Channel, 'progress'> {
  /** Missing where only signs of life are wanted. */
  readonly part?: Channel['part'];
}

/** The observers of a dispatch, whose failures are nobody else's. */
export function observersOf({ onPart, onProgress }: DispatchOptions, host: Host): Taker | undefined {
  if (onPart === undefined && onProgress === undefined) return undefined;
  return {
    ...(onPart && { part: (part, call) => host.tell('onPart', () => onPart(part, call)) }),
    progress: (progress, call) => {
      if (onProgress !== undefined) host.tell('onProgress', () => onProgress(progress, call));
    },
  };
}

/** The outer end of a call's channel: in the end all parts together are the content of the result, where they began it at all. */
export class Delivery implements Channel {
  /** Whether a part has left: from then on the tool must not run again. */
  hasPassed = false;
  /** What came of the run whose parts have left. */
  outcome: ToolOutcome | undefined = undefined;
  readonly #taker: Taker;
  #passed: Content | undefined = undefined;
  #isOver = false;

  constructor(taker: Taker) {
    this.#taker = taker;
  }

  part(part: ContentPart, call: ToolCall): PromiseLike<unknown> | undefined {
    // A layer may have kept the channel of another call.
    if (this.#isOver || this.#taker.part === undefined || ToolCall.scope(call).dispatch.delivery !== this)
      return undefined;
    this.hasPassed = true;
    return this.#taker.part(part, call);
  }

  progress(progress: Progress, call: ToolCall): void {
    if (!this.#isOver) this.#taker.progress(progress, call);
  }

  done(content: Content): void {
    this.#passed = content;
  }

  /** The call is answered: what has not been passed of its content is passed now. */
  complete(content: Content, call: ToolCall): void {
    const passed = this.hasPassed ? this.#passed : '';
    const rest = passed === undefined ? undefined : restOf(content, passed);
    for (const part of rest ?? []) this.#taker.part?.(part, call);
    this.#isOver = true;
  }
}
