import { canonicalJson } from './canonical.ts';
import type { Dispatch, Host } from './dispatch.ts';
import { AbortReason, printable, toolError } from './error.ts';
import { copyJson } from './json.ts';
import { isOutcome, type RequestedCall, type ToolDispatchResult } from './outcome.ts';
import { type BatchOptions, MOST_CALLS, requestedIn, type ToolCallRequest, UnusableCall } from './request.ts';
import { NO_SEAT, type Seated } from './roster.ts';
import type { Schedule } from './schedule.ts';
import { Slots } from './slots.ts';

/** Calls that came together. */
export class Batch implements Seated {
  /** Where it is among the batches under way. */
  seat: number = NO_SEAT;
  /** Ids that no call may have any more: of calls in sequence that have been answered, and of those of an earlier run. */
  readonly givenIds: Set<string> = new Set();
  /** For how many may run at once in a schedule; waves count by themselves. */
  readonly slots: Slots;
  readonly failFast: boolean;
  readonly #isSequential: boolean;
  /** Its calls under way, by their places. */
  readonly dispatches: (Dispatch | undefined)[] = [];
  /** How many of its calls have a place in the schedules they have come to. */
  readonly reserved: { readonly schedule: Schedule; count: number }[] = [];
  readonly #requests: readonly ToolCallRequest[];
  #askedIds: ReadonlySet<unknown> | undefined = undefined;
  readonly #onResult: BatchOptions['onResult'];
  readonly #host: Host;
  readonly #standing = new Set<string>();
  #stopped: AbortReason | undefined = undefined;

  constructor(requests: readonly ToolCallRequest[], options: BatchOptions, host: Host) {
    const { concurrency = Number.POSITIVE_INFINITY, failFast = false, onResult, earlier = [] } = options;
    this.#requests = requests;
    this.slots = new Slots(concurrency);
    this.failFast = failFast;
    this.#isSequential = options.mode === 'sequential';
    this.#onResult = onResult;
    this.#host = host;
    for (const result of earlier) if (hasEnded(result)) this.givenIds.add(result.toolCallId);
  }

  /** Whether an id is one the model has chosen, for a call to come as well. */
  isAsked(id: string): boolean {
    // Most models give every call its own, and nobody asks.
    this.#askedIds ??= new Set(this.#requests.map(idOf));
    return this.#askedIds.has(id);
  }

  /**
   * What a call of an earlier run came to, if that stands. One that was suspended has not ended.
   *
   * @throws UnusableCall for the result of another call.
   */
  standing(earlier: ToolDispatchResult | undefined, request: ToolCallRequest): ToolDispatchResult | undefined {
    if (earlier === undefined || earlier === null || (isOutcome(earlier) && earlier.control !== undefined))
      return undefined;
    if (!hasEnded(earlier) || !isOf(earlier.requested, request))
      throw new UnusableCall('What "earlier" has at its place is not its own result.');
    if (this.#standing.has(earlier.toolCallId))
      throw new UnusableCall('What "earlier" has at its place is the result of a call before it.');
    this.#standing.add(earlier.toolCallId);
    return earlier;
  }

  /** One of its calls begins. */
  add(dispatch: Dispatch, place: number): void {
    dispatch.batch = this;
    dispatch.place = place;
    this.dispatches[place] = dispatch;
    if (this.failFast || this.#stopped !== undefined) dispatch.isAbortable = true;
    if (this.#stopped !== undefined) dispatch.stop(this.#stopped);
  }

  /** One of its calls has its result. The first that failed stops the others, where that is wanted. */
  answered(place: number, result: ToolDispatchResult): void {
    // Where calls run together, all have their ids before the first is answered.
    if (this.#isSequential) this.givenIds.add(result.toolCallId);
    this.dispatches[place] = undefined;
    const onResult = this.#onResult;
    if (onResult !== undefined) this.#host.tell('onResult', () => onResult(result, place));
    if (this.failFast && result.isError) this.stop(failedReason(result.requested.name));
  }

  /** Aborts its calls, and those to come. */
  stop(reason: AbortReason): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = reason;
    for (const dispatch of this.dispatches) dispatch?.stop(reason);
  }
}

function failedReason(name: string): AbortReason {
  const message = `Another call of the same turn failed: that of tool "${printable(name)}".`;
  return new AbortReason(toolError('cancelled', message));
}

function idOf(request: ToolCallRequest): unknown {
  try {
    return request.id;
  } catch {
    return undefined;
  }
}

/**
 * The calls of a turn. None where a model made none, one that came without its list, and something for each that cannot be read, to be
 * told of.
 */
export function listOf(requests: readonly ToolCallRequest[] | null | undefined): readonly ToolCallRequest[] {
  try {
    if (!Array.isArray(requests)) return [requests ?? []].flat();
    if (requests.length > MOST_CALLS) return [UNREADABLE];
    const list: ToolCallRequest[] = [];
    for (let place = 0; place < requests.length; place++) list.push(readItem(requests, place));
    return list;
  } catch {
    return [UNREADABLE];
  }
}

const UNREADABLE = undefined as unknown as ToolCallRequest;

function readItem(requests: readonly ToolCallRequest[], place: number): ToolCallRequest {
  try {
    return requests[place] as ToolCallRequest;
  } catch {
    return UNREADABLE;
  }
}

/** A call as it is now: those before it may take their time. */
export function copyOf(request: ToolCallRequest): ToolCallRequest {
  try {
    const { id, name, arguments: raw, truncated } = request;
    if (raw === undefined || raw === null || raw === '')
      return { ...request, ...(id !== undefined && { id }), name, truncated: Boolean(truncated) };
    const own = { name, arguments: typeof raw === 'object' ? copyJson(raw) : raw, truncated: Boolean(truncated) };
    return id === undefined ? own : { ...own, id };
  } catch {
    return request;
  }
}

function hasEnded(result: ToolDispatchResult | undefined): result is ToolDispatchResult {
  return isOutcome(result) && result.control === undefined && typeof result.toolCallId === 'string';
}

function isOf(earlier: RequestedCall, request: ToolCallRequest): boolean {
  const asked = requestedIn(request);
  if (earlier.id !== asked.id || earlier.name !== asked.name || earlier.rawArguments !== asked.rawArguments)
    return false;
  // What text is read as depends on the dispatcher.
  return asked.rawArguments !== undefined || canonicalJson(earlier.input) === canonicalJson(asked.input);
}
