import type { Progress, ToolCall } from './call.ts';
import type { Content, ContentPart } from './content.ts';

/**
 * Where what a running tool gives goes outward, before its outcome does: parts of its answer, and signs of life. A layer that changes
 * an answer has to change the parts as well: it passes on a call with a channel of its own (`call.with({ channel })`).
 */
export interface Channel {
  /** Passes a part on. A promise: whoever gives parts waits for it before the next. */
  part(part: ContentPart, call: ToolCall): PromiseLike<unknown> | undefined;
  /** Passes a sign of life on. */
  progress(progress: Progress, call: ToolCall): unknown;
  /** The parts so far are all of this content: told once, in the end, if the parts are the answer at all. */
  done(content: Content): unknown;
}

/** What is told of where it fails. */
export const A_CHANNEL = 'The channel of a layer';

/** A channel that passes everything on to the one outside, if there is one. A layer's own channel overrides what concerns it. */
export class Passage implements Channel {
  protected readonly outer: Channel | undefined;

  constructor(outer: Channel | undefined) {
    this.outer = outer;
  }

  part(part: ContentPart, call: ToolCall): PromiseLike<unknown> | undefined {
    return this.outer?.part(part, call);
  }

  progress(progress: Progress, call: ToolCall): unknown {
    return this.outer?.progress(progress, call);
  }

  done(content: Content): unknown {
    return this.outer?.done(content);
  }
}
