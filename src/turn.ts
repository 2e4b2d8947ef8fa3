import type { AbortListener } from './abort-listeners.ts';
import { ToolCall } from './call.ts';
import type { Dispatch } from './dispatch.ts';
import { Lane } from './lane.ts';
import type { Next } from './middleware.ts';
import { stopped, type ToolOutcome } from './outcome.ts';
import type { Schedule } from './schedule.ts';
import { Slots } from './slots.ts';
import { isConcurrencySafe, type Tool } from './tool.ts';

/** Why a call does not run: its outcome, or nothing where it was aborted. */
export interface Refusal {
  readonly outcome: ToolOutcome | undefined;
}

/**
 * One call's way through a schedule. It is `coming` while the call is on its way, if others of its batch have to know of it; `waiting`
 * from when the call is there until it may run; `running` until its outcome is there.
 */
export class Turn implements AbortListener {
  readonly schedule: Schedule;
  readonly dispatch: Dispatch;
  readonly lane: Lane;
  /** The turn of the call whose tool makes this one. */
  readonly ancestor: Turn | undefined;
  /** Its turn in a schedule further outside. */
  readonly outer: Turn | undefined;
  stage: 'coming' | 'waiting' | 'running' | 'over' = 'coming';
  /** Whether others may run beside it; of one that is coming, whether its tool says so for all arguments. */
  isSafe: boolean;
  /** Whether its tool has resource keys. */
  isKeyed: boolean;
  key: string | undefined = undefined;
  /** Its place among those that need a key or a slot. */
  number = 0;
  /** Whether all that has to end before it has ended, its key and slots aside. */
  isOpen = false;
  /** Its neighbours in the lane. */
  previous: Turn | undefined = undefined;
  next: Turn | undefined = undefined;
  /** Who stands behind it in a line. */
  behind: Turn | undefined = undefined;
  /** The slots it has one of: its batch's, and the schedule's or its ancestor's. */
  batchSlots: Slots | undefined = undefined;
  slots: Slots | undefined = undefined;
  #loan: Slots | undefined = undefined;
  #nested: Lane | undefined = undefined;
  /** Who has lent it its key. */
  lender: Turn | undefined = undefined;
  /** Whether its outcome is there, and calls its tool has made are still at work. */
  isEnding = false;
  refusal: Refusal | undefined = undefined;
  /** When it began to wait, and what gives its outcome then. */
  queuedAt = 0;
  goOn: Next = stopped;
  #call: ToolCall | undefined = undefined;
  #wake: ((turn: this) => void) | undefined = undefined;

  constructor(
    schedule: Schedule,
    dispatch: Dispatch,
    lane: Lane,
    ancestor: Turn | undefined,
    tool: Tool<unknown> | undefined,
  ) {
    this.schedule = schedule;
    this.dispatch = dispatch;
    this.lane = lane;
    this.ancestor = ancestor;
    this.outer = turnUnderWay(dispatch.turn);
    this.isSafe = tool?.concurrencySafe === true;
    this.isKeyed = tool?.resourceKey !== undefined;
  }

  /** Its own slot, for a call that its tool makes meanwhile; none, as long as it does not run. */
  get loan(): Slots {
    this.#loan ??= new Slots(this.stage === 'running' ? 1 : 0);
    return this.#loan;
  }

  /** It has a slot to lend from now on. Gives the call that has waited for it, and has it now. */
  openLoan(): Turn | undefined {
    return this.#loan?.open();
  }

  /** The calls its tool makes. */
  get nested(): Lane {
    this.#nested ??= new Lane(this);
    return this.#nested;
  }

  get hasNested(): boolean {
    return this.#nested?.isEmpty === false;
  }

  /** Whether it has a slot of its batch, here or in a schedule further outside. */
  get hasBatchSlot(): boolean {
    for (let turn: Turn | undefined = this; turn !== undefined; turn = turn.outer)
      if (turn.batchSlots !== undefined) return true;
    return false;
  }

  /** The call as it came to the schedule. */
  get call(): ToolCall {
    return this.#call ?? this.dispatch.scope.call;
  }

  /** The call is there. */
  arrive(call: ToolCall): void {
    this.stage = 'waiting';
    this.#call = call;
  }

  /** Its arguments, which have been validated, tell what it may run beside. */
  judge(call: ToolCall): void {
    const tool = call.tool as Tool<unknown>;
    this.isSafe = isConcurrencySafe(tool, typeof tool.concurrencySafe === 'function' ? call.parsed : undefined);
    this.isKeyed = tool.resourceKey !== undefined;
    if (this.isKeyed) this.#readKey(tool, call);
  }

  /** A key that cannot be told may be anybody's. */
  #readKey(tool: Tool<unknown>, call: ToolCall): void {
    try {
      const key: unknown = tool.resourceKey?.(call.parsed);
      if (typeof key === 'string') this.key = key;
      else if (key !== undefined) this.isSafe = false;
      // A promise is no answer here; that it may reject is nobody's concern.
      if (typeof key === 'object') Promise.resolve(key).catch(() => {});
    } catch {
      this.isSafe = false;
    }
  }

  /** Whether it runs inside another, as a call that the other's tool makes, or a layer around that. */
  isInside(other: Turn): boolean {
    for (let { parent } = this.call; parent !== undefined; parent = parent.parent)
      if (ToolCall.scope(parent).dispatch === other.dispatch) return true;
    return false;
  }

  /** Resolves when it may run, or has been refused. */
  wait(): Promise<this> {
    if (this.stage !== 'waiting') return Promise.resolve(this);
    ToolCall.scope(this.call).listen(this);
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** It may run now. */
  start(): void {
    this.stage = 'running';
    this.#awake();
  }

  refuse(outcome: ToolOutcome | undefined): void {
    this.refusal = { outcome };
    this.schedule.end(this);
    this.#awake();
  }

  #awake(): void {
    const wake = this.#wake;
    if (wake === undefined) return;
    this.#wake = undefined;
    ToolCall.scope(this.call).unlisten();
    wake(this);
  }

  signalAborted(): void {
    if (this.stage === 'waiting') this.refuse(undefined);
  }
}

/** One that is over is of no more interest: a layer that calls again and again would have a long chain of them. */
function turnUnderWay(turn: Turn | undefined): Turn | undefined {
  return turn?.stage === 'over' ? turnUnderWay(turn.outer) : turn;
}
