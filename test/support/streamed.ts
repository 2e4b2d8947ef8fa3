import type { Content, ContentPart, Dispatcher, StreamEvent, ToolCallRequest, ToolDispatchResult } from 'toolonion';

export interface Streamed {
  readonly events: readonly StreamEvent[];
  readonly result: ToolDispatchResult;
}

/** All that a stream gives. */
export async function streamed(stream: ReturnType<Dispatcher['stream']>): Promise<Streamed> {
  const events: StreamEvent[] = [];
  for (;;) {
    const step = await stream.next();
    if (step.done === true) return { events, result: step.value };
    events.push(step.value);
  }
}

/** Parts with neighbouring texts joined, as a content has them. */
export function joined(events: readonly StreamEvent[]): Content {
  const parts: ContentPart[] = [];
  for (const event of events) {
    if (event.type === 'progress') continue;
    const last = parts.at(-1);
    if (event.type === 'text' && last?.type === 'text')
      parts[parts.length - 1] = { ...last, text: last.text + event.text };
    else parts.push(event);
  }
  const [first, ...others] = parts;
  if (first === undefined) return '';
  return first.type === 'text' && others.length === 0 ? first.text : parts;
}

/** A content as the parts of a stream give it: one text alone is a text, neighbours are one. */
export function normal(content: Content): Content {
  return typeof content === 'string' ? content : joined(content);
}

/** A result without what differs from call to call. */
export function comparable({ durationMs: _, error, ...result }: ToolDispatchResult): unknown {
  return { ...result, ...(error && { error: { ...error, errorId: '' } }) };
}

/** One call, streamed and not. @returns What the stream gave, and both results without what differs from call to call. */
export async function bothWays(
  dispatcher: Dispatcher,
  request: ToolCallRequest,
): Promise<Streamed & { readonly compared: readonly [unknown, unknown] }> {
  const stream = await streamed(dispatcher.stream(request));
  const dispatched = await dispatcher.dispatch(request);
  return { ...stream, compared: [comparable(stream.result), comparable(dispatched)] };
}
