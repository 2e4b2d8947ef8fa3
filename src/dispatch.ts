import { type AbortListener, type Listening, listen, unlisten } from './abort-listeners.ts';
import type { MalformedArguments } from './arguments.ts';
import type { Batch } from './batch.ts';
import { ToolCall } from './call.ts';
import type { Clock } from './clock.ts';
import type { Delivery } from './delivery.ts';
import type { Executed } from './error.ts';
import { BEFORE_FIRST_LAYER, type Guard, NO_ANSWER, type Pending } from './guard.ts';
import type { SettleListener } from './keeper.ts';
import type { DispatchNote, RequestedCall, ToolOutcome } from './outcome.ts';
import type { ReadonlyToolRegistry } from './registry.ts';
import type { DispatchOptions } from './request.ts';
import { NO_SEAT, type Seated } from './roster.ts';
import { Scope } from './scope.ts';
import type { Turn } from './turn.ts';

/** How the inside of a dispatch reaches its dispatcher. */
export interface Host {
  readonly clock: Clock;
  /** The time on that clock. Never throws. */
  readonly now: () => number;
  /** Makes an id for a call without one. Never throws. */
  readonly newId: () => string;
  /** Takes what a tool answered after its call had been answered. Never throws. */
  readonly late: (outcome: ToolOutcome, call: ToolCall) => void;
  /** Calls one of the host's observers, whose failure is nobody else's. Never throws nor rejects; gives what there is to wait for. */
  readonly tell: (observer: string, call: () => unknown) => PromiseLike<unknown> | undefined;
  /** Whether something thrown is the host's own control signal. Never throws. */
  readonly isInterrupt: (thrown: unknown) => boolean;
}

/** What was done to a call before it reached the onion. */
export interface Preparation {
  readonly notes: readonly DispatchNote[];
  /** Why arguments that were repaired are not to be taken for a tool: the call may come to another one than it asked for. */
  readonly malformed: ((toolName: string) => MalformedArguments | undefined) | undefined;
}

/** What all views of one call share: what was fixed at the edge, and where the dispatch stands. */
export class Dispatch implements Guard, AbortListener, SettleListener, Seated {
  readonly scope: Scope;
  depth: number = BEFORE_FIRST_LAYER;
  pending: Pending | undefined = undefined;
  answer: ToolOutcome = NO_ANSWER;
  onion: object | undefined = undefined;
  fault: ToolOutcome | undefined = undefined;
  /** Whether the onion has given a promise: until then everything happened in one go. */
  waited = false;
  /** The shortest limit a layer has set to what is inside it, in milliseconds. */
  limitMs: number | undefined = undefined;
  /** Runs of the tool that have not ended, and what became of those that have. */
  running = 0;
  ended: Executed = 'no';
  /** Whether a call that its tool made was answered for, and may still be running. */
  #mayRunInside = false;
  #listening: Listening | undefined = undefined;
  /** Whether anybody outside can abort it. */
  isAbortable: boolean;
  /** Whether it is only to be told what would become of it; or of the call whose tool makes it. */
  isJudged: boolean;
  /** The calls it came with, and its place among them. */
  batch: Batch | undefined = undefined;
  place = 0;
  /** Where it is among the calls under way. */
  seat: number = NO_SEAT;
  /** Who takes parts and signs of life before the outcome is there. */
  delivery: Delivery | undefined = undefined;
  /** Where a schedule has it wait for its turn, or expects it. */
  turn: Turn | undefined = undefined;
  /** Milliseconds it waited for its turns. */
  queuedMs = 0;
  /** What was done to the call before it reached the onion; undefined where nothing was. */
  preparation: Preparation | undefined = undefined;
  /** When it began, on the host's clock. */
  readonly startedAt: number;
  readonly id: string;
  /** Made where somebody asks for it. */
  idempotencyKey: string | undefined = undefined;
  readonly requested: RequestedCall;
  readonly malformed: MalformedArguments | undefined;
  readonly tools: ReadonlyToolRegistry;
  /** What the caller said of it: a copy, or the shared empty one. */
  readonly options: DispatchOptions;
  readonly host: Host;

  constructor(
    startedAt: number,
    id: string,
    requested: RequestedCall,
    malformed: MalformedArguments | undefined,
    tools: ReadonlyToolRegistry,
    options: DispatchOptions,
    host: Host,
  ) {
    this.startedAt = startedAt;
    this.id = id;
    this.requested = requested;
    this.malformed = malformed;
    this.tools = tools;
    this.options = options;
    const { signal, parent } = options;
    this.isAbortable = signal !== undefined || parent !== undefined;
    this.isJudged = parent !== undefined && ToolCall.scope(parent).dispatch.isJudged;
    this.host = host;
    this.scope = new Scope(this, undefined, BEFORE_FIRST_LAYER, undefined);
  }

  /** What is known of the tool's effect, of all attempts together: one that may still be running outweighs any other. */
  get executed(): Executed {
    return this.running > 0 || this.#mayRunInside ? 'unknown' : this.ended;
  }

  /** It is answered, though its tool may be running: so may be the one that made the call. */
  leftRunning(): void {
    const { parent } = this.options;
    if (parent !== undefined) ToolCall.scope(parent).dispatch.#mayRunInside = true;
  }

  /** A run of the tool has come to its end, or was stopped. One that did its work outweighs any that did not. */
  over(how: 'yes' | 'stopped'): void {
    this.running--;
    if (this.ended !== 'yes') this.ended = how;
  }

  /** Whether the caller has aborted, or the call whose tool made this one was aborted. */
  get callerAborted(): boolean {
    if (!this.isAbortable) return false;
    const { signal, parent } = this.options;
    return isAborted(signal) || parent?.aborted === true;
  }

  get callerReason(): unknown {
    const { signal, parent } = this.options;
    return isAborted(signal) ? reasonOf(signal) : parent?.abortReason;
  }

  /** The onion's outcome, or what is answered in its place where the caller aborts and no layer answers. */
  race(outcome: Promise<ToolOutcome>): Promise<ToolOutcome> {
    if (!this.isAbortable) return outcome;
    const { signal, parent } = this.options;
    if (signal !== undefined) {
      this.host.tell('The signal', () => {
        this.#listening = listen(signal, this);
      });
    }
    if (parent !== undefined) ToolCall.scope(parent).adopt(this.scope);
    const raced = this.scope.follow(outcome, this) as Promise<ToolOutcome>;
    if (this.callerAborted) this.signalAborted();
    return raced;
  }

  signalAborted(): void {
    this.stop(this.callerReason);
  }

  /** It goes on after it had to wait for other calls. */
  endWaiting(since: number = this.startedAt): void {
    // That was no time in which it kept the event loop busy.
    this.waited = true;
    this.queuedMs += this.host.now() - since;
  }

  /** Aborts it from outside, as its caller could. */
  stop(reason: unknown): void {
    this.scope.abort(reason);
  }

  /** Nobody outside can abort it any more. */
  settled(): void {
    const { signal, parent } = this.options;
    const listening = this.#listening;
    if (signal !== undefined && listening !== undefined)
      this.host.tell('The signal', () => unlisten(signal, listening));
    if (parent !== undefined) ToolCall.scope(parent).disown(this.scope);
  }
}

/** Whether a signal has aborted. Total: a caller's may be a stand-in, whose getters can throw. */
function isAborted(signal: AbortSignal | undefined): signal is AbortSignal {
  try {
    return signal?.aborted === true;
  } catch {
    return false;
  }
}

function reasonOf(signal: AbortSignal): unknown {
  try {
    return signal.reason;
  } catch (thrown) {
    return thrown;
  }
}
