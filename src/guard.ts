import type { ToolOutcome } from './outcome.ts';

/** Values of `Guard.depth` below every layer's number. */
export const BEFORE_FIRST_LAYER = -1;
export const ABANDONED = -2;
export const FAULTED = -3;
export const ANSWERED = -4;

/** What `Guard.answer` is before the first: no layer can return it. */
export const NO_ANSWER: ToolOutcome = Object.freeze({ resolvedToolName: '', content: '', isError: true, notes: [] });

/** An answer under way: once it is there, the layer numbered `owner` is the innermost that has not answered. */
export interface Pending {
  readonly promise: Promise<ToolOutcome>;
  owner: number;
}

/**
 * Where a dispatch stands in the onion: `depth` is the number of the innermost layer that has not answered, which alone may call
 * `next`. One integer tells a `next` called twice, too late, or over an unsettled inner layer.
 */
export interface Guard {
  depth: number;
  /** The innermost answer under way: a layer that returns this very promise only passes it on. */
  pending: Pending | undefined;
  /** The last answer given, which needs no second look where the next layer passes it on. */
  answer: ToolOutcome;
  /** The onion the call has entered: the innermost of another does not run its tool, for it may have passed other gates. */
  onion: object | undefined;
  /** What every layer answers once one of them has broken the rules. */
  fault: ToolOutcome | undefined;
}
