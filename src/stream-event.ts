import type { Progress } from './call.ts';
import type { ContentPart } from './content.ts';

/** A sign of life of the tool, as it comes between the parts of a stream. */
export interface ProgressEvent extends Progress {
  readonly type: 'progress';
}

/** What `stream` yields: the parts of the answer, and signs of life. */
export type StreamEvent = ContentPart | ProgressEvent;

const events = new WeakSet<object>();

/** Marked as made here: a tool that yields data which merely looks like it has yielded data. */
export function progressEvent(progress: Progress): ProgressEvent {
  // Last as well: what a tool reports may have a type of its own.
  const event = Object.freeze(Object.assign({ type: 'progress' } as const, progress, { type: 'progress' } as const));
  events.add(event);
  return event;
}

/** Whether a tool passes on what it got from the stream of another call. */
export function isProgressEvent(value: unknown): value is ProgressEvent {
  return typeof value === 'object' && value !== null && events.has(value);
}
