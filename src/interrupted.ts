import { nanoid } from 'nanoid';
import { describeError, printable, toolError } from './error.ts';
import { kindOf } from './json.ts';
import { isPromise } from './maybe-promise.ts';
import { NO_NOTES, type ToolDispatchResult } from './outcome.ts';
import { readableCall, requestedIn, type ToolCallRequest } from './request.ts';

/**
 * The result of a call whose run ended before its answer came, as when the process was killed: `cancelled`, executed `unknown`.
 * Nothing runs. Total, whatever was stored as the call.
 */
export function interrupted(request: ToolCallRequest): ToolDispatchResult {
  const requested = requestedIn(request);
  const what = `The run was interrupted during this call of tool "${printable(requested.name)}"`;
  const message = `${what}: whether the tool had an effect is not known. Check before you call it again.`;
  const error = toolError('cancelled', message, { executed: 'unknown' });
  return {
    resolvedToolName: requested.name,
    content: error.message,
    isError: true,
    error,
    notes: NO_NOTES,
    toolCallId: requested.id || nanoid(),
    durationMs: 0,
    requested,
  };
}

/** How a host's messages hold calls and answers. */
export interface HistoryShape<Message> {
  /** The calls a message makes, in their order. */
  calls(message: Message): readonly ToolCallRequest[];
  /** The ids of the calls a message answers, in the order of the answers; undefined or empty for an answer that has none. */
  answers(message: Message): readonly (string | undefined)[];
  /** The message that answers a call with this result. */
  answer(result: ToolDispatchResult, request: ToolCallRequest): Message;
}

/**
 * The history with an answer for each call that has none, right behind the answers its turn has; the same array where no call lacks
 * one. Nothing runs. For a stored conversation whose run has ended: a call that still runs has no answer either.
 *
 * An answer belongs to the nearest call before it that has its id and no answer yet; of calls of one turn, to the first. Calls and
 * answers without an id belong together in the same way; one whose id no call has, right behind a turn, is that of a call without one.
 *
 * @throws TypeError naming the function of the shape that is missing or gives what it must not; Error naming the one that threw.
 */
// `const`: the literals in the message that `answer` makes keep their types.
export function closeDangling<const Message>(
  history: readonly Message[],
  shape: HistoryShape<Message>,
): readonly Message[] {
  checkArguments(history, shape);
  const calls = new Calls();
  for (const [index, message] of history.entries()) {
    const requests = listOf('calls', index, () => shape.calls(message));
    const ids = listOf('answers', index, () => shape.answers(message));
    calls.read(index, requests, ids);
  }
  const dangling = calls.dangling();
  if (dangling.size === 0) return history;
  return history.flatMap((message, index) => {
    const requests = dangling.get(index) ?? [];
    return [message, ...requests.map((request) => answerTo(request, shape))];
  });
}

/** The calls of a history, read message by message, and which of them have no answer. */
class Calls {
  /** The open calls of each id there has been, the next to be answered last. */
  readonly #byId = new Map<string, OpenCall[]>([[NO_ID, []]]);
  readonly #open = new Set<OpenCall>();
  /** The turn that what comes next may answer immediately. */
  #turn: Turn | undefined;

  /** The calls of a message come before its answers. */
  read(index: number, requests: readonly ToolCallRequest[], ids: readonly unknown[]): void {
    if (requests.length > 0) this.#begin({ last: index }, requests);
    else if (ids.length === 0) this.#turn = undefined;
    else if (this.#turn !== undefined) this.#turn.last = index;
    for (const id of ids) this.#answer(typeof id === 'string' ? id : NO_ID);
  }

  /** The calls without an answer, by the index of the message behind which their answers belong. */
  dangling(): ReadonlyMap<number, readonly ToolCallRequest[]> {
    const byIndex = new Map<number, ToolCallRequest[]>();
    for (const { turn, request } of this.#open) listIn(byIndex, turn.last).push(request);
    return byIndex;
  }

  #begin(turn: Turn, requests: readonly ToolCallRequest[]): void {
    this.#turn = turn;
    const calls = Array.from(requests, (request) => ({ turn, request }));
    for (const call of calls) this.#open.add(call);
    for (const call of calls.reverse()) listIn(this.#byId, readableCall(call.request).id ?? NO_ID).push(call);
  }

  #answer(id: string): void {
    const call = this.#byId.has(id) ? this.#byId.get(id)?.pop() : this.#withoutId();
    if (call !== undefined) this.#open.delete(call);
  }

  /** The call of this turn that was given an id for its answer, since it had none. */
  #withoutId(): OpenCall | undefined {
    const calls = listIn(this.#byId, NO_ID);
    return calls.at(-1)?.turn === this.#turn ? calls.pop() : undefined;
  }
}

interface OpenCall {
  readonly turn: Turn;
  readonly request: ToolCallRequest;
}

/** The calls of one message. */
interface Turn {
  /** The index of the message, or of the last of those that answer it immediately. */
  last: number;
}

/** What stands for an id that is missing, as an empty one does. */
const NO_ID = '';

function listIn<Key, Item>(lists: Map<Key, Item[]>, key: Key): Item[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}

type ShapeFunction = keyof HistoryShape<unknown>;

function checkArguments(history: unknown, shape: Readonly<Partial<Record<ShapeFunction, unknown>>>): void {
  if (!Array.isArray(history))
    throw new TypeError(`closeDangling takes the history as an array; got ${kindOf(history)}.`);
  for (const name of ['calls', 'answers', 'answer'] as const) {
    const given = shape?.[name];
    if (typeof given !== 'function') throw new TypeError(`${told(name)} must be a function; got ${kindOf(given)}.`);
  }
}

function listOf<Item>(name: ShapeFunction, index: number, ask: () => readonly Item[]): readonly Item[] {
  const list = asked(name, `message ${index}`, ask);
  if (Array.isArray(list)) return list;
  throw new TypeError(`${told(name)} must give an array; it gave ${kindOf(list)} for message ${index}.`);
}

function answerTo<Message>(request: ToolCallRequest, shape: HistoryShape<Message>): Message {
  const result = interrupted(request);
  const call = `call "${printable(result.toolCallId)}"`;
  const message = asked('answer', call, () => shape.answer(result, request));
  if (message !== undefined && !isPromise(message)) return message;
  throw new TypeError(`${told('answer')} must give a message; it gave ${kindOf(message)} for ${call}.`);
}

function asked<Value>(name: ShapeFunction, subject: string, ask: () => Value): Value {
  try {
    return ask();
  } catch (cause) {
    throw new Error(`${told(name)} threw for ${subject}: ${describeError(cause).message}`, { cause });
  }
}

function told(name: ShapeFunction): string {
  return `"${name}" of the shape for closeDangling`;
}
