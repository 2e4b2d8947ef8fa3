import { onAbort } from './abort-listeners.ts';
import type { MalformedArguments } from './arguments.ts';
import { type Progress, ToolCall } from './call.ts';
import type { Clock } from './clock.ts';
import { BEFORE_FIRST_LAYER, type Guard, type Pending } from './guard.ts';
import type { RequestedCall, ToolOutcome } from './outcome.ts';
import type { ReadonlyToolRegistry } from './registry.ts';
import { Scope } from './scope.ts';
import type { Setting } from './settings.ts';

/** How the inside of a dispatch reaches its dispatcher. */
export interface Host {
  readonly clock: Clock;
  /** Takes what a tool answered after its call had been answered. Never throws. */
  readonly late: (outcome: ToolOutcome, call: ToolCall) => void;
  /** Whether something thrown is the host's own control signal. Never throws. */
  readonly isInterrupt: (thrown: unknown) => boolean;
}

/** What all views of one call share: what was fixed at the edge, and where the dispatch stands. */
export class Dispatch implements Guard {
  readonly scope: Scope;
  depth: number = BEFORE_FIRST_LAYER;
  pending: Pending | undefined = undefined;
  answer: ToolOutcome | null = null;
  fault: ToolOutcome | undefined = undefined;
  /** Whether the onion has given a promise: until then everything happened in one go. */
  waited = false;
  /** The shortest limit a layer has set to what is inside it, in milliseconds. */
  limitMs: number | undefined = undefined;
  /** When it began, on the host's clock. */
  readonly startedAt: number;
  readonly id: string;
  readonly requested: RequestedCall;
  readonly malformed: MalformedArguments | undefined;
  readonly tools: ReadonlyToolRegistry;
  readonly settings: readonly Setting[];
  readonly callerSignal: AbortSignal | undefined;
  readonly parentCall: ToolCall | undefined;
  readonly onProgress: ((progress: Progress, call: ToolCall) => void) | undefined;
  readonly host: Host;

  constructor(
    startedAt: number,
    id: string,
    requested: RequestedCall,
    malformed: MalformedArguments | undefined,
    tools: ReadonlyToolRegistry,
    settings: readonly Setting[],
    callerSignal: AbortSignal | undefined,
    parentCall: ToolCall | undefined,
    onProgress: ((progress: Progress, call: ToolCall) => void) | undefined,
    host: Host,
  ) {
    this.startedAt = startedAt;
    this.id = id;
    this.requested = requested;
    this.malformed = malformed;
    this.tools = tools;
    this.settings = settings;
    this.callerSignal = callerSignal;
    this.parentCall = parentCall;
    this.onProgress = onProgress;
    this.host = host;
    this.scope = new Scope(this, undefined, BEFORE_FIRST_LAYER, undefined);
  }

  /** Whether the caller has aborted, or the call whose tool made this one was aborted. */
  get callerAborted(): boolean {
    return this.callerSignal?.aborted === true || this.parentCall?.aborted === true;
  }

  get callerReason(): unknown {
    return this.callerSignal?.aborted === true ? this.callerSignal.reason : this.parentCall?.signal.reason;
  }

  /** The onion's outcome, or what is answered in its place where the caller aborts and no layer answers. */
  race(outcome: Promise<ToolOutcome>, call: ToolCall): Promise<ToolOutcome> {
    const { callerSignal, parentCall } = this;
    if (callerSignal === undefined && parentCall === undefined) return outcome;
    const abort = () => this.scope.abort(this.callerReason);
    const deafen = callerSignal && onAbort(callerSignal, abort);
    const parentScope = parentCall && ToolCall.scope(parentCall);
    parentScope?.adopt(this.scope);
    const settled = () => {
      deafen?.();
      parentScope?.disown(this.scope);
    };
    this.scope.call = call;
    const raced = this.scope.follow(outcome, { settled }) as Promise<ToolOutcome>;
    if (this.callerAborted) abort();
    return raced;
  }
}
