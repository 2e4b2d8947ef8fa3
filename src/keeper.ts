import type { ToolCall } from './call.ts';
import { afterTurns } from './clock.ts';
import { isStopped, stopped, type ToolOutcome } from './outcome.ts';
import type { Scope } from './scope.ts';

/** Who wants to know that an outcome is there. */
export interface SettleListener {
  settled(): void;
}

/** Waits for one outcome and, after an abort, answers for whatever does not come: one outcome leaves it, always. */
export abstract class Keeper {
  readonly promise: Promise<ToolOutcome>;
  /** Told once, when the outcome leaves; the scope has ended then. */
  listener: SettleListener | undefined = undefined;
  /** Whether the scope ends with the outcome. */
  followed = false;
  protected readonly call: ToolCall;
  protected readonly scope: Scope;
  #resolve: ((outcome: ToolOutcome) => void) | undefined = undefined;
  #timer: unknown = undefined;

  protected constructor(call: ToolCall, scope: Scope) {
    this.call = call;
    this.scope = scope;
    this.promise = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Whether the outcome has left. */
  protected get answered(): boolean {
    return this.#resolve === undefined;
  }

  /** Turns of the event loop it waits after an abort, so that what is further inside can answer first. */
  protected abstract get turns(): number;

  /** Lets the outcome out; a second one goes to the host as late. */
  protected settle(outcome: ToolOutcome): void {
    const resolve = this.#resolve;
    if (resolve === undefined) {
      this.scope.dispatch.host.late(outcome, this.call);
      return;
    }
    this.#resolve = undefined;
    if (this.#timer !== undefined) this.call.clock.clearTimeout(this.#timer);
    if (this.followed) this.scope.end();
    this.listener?.settled();
    resolve(outcome);
  }

  /** Gives what it waits for `graceMs`, or a few turns, to settle by itself. A further abort replaces the grace of the first. */
  abort(graceMs: number): void {
    const { clock } = this.call;
    if (this.#timer !== undefined) clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    const giveUp = () => {
      if (!this.answered) this.settle(this.givenUp());
    };
    if (graceMs <= 0) afterTurns(this.turns, giveUp);
    else if (graceMs !== Number.POSITIVE_INFINITY)
      this.#timer = clock.setTimeout(() => afterTurns(this.turns, giveUp), graceMs);
  }

  /** What is answered in its place. */
  protected givenUp(): ToolOutcome {
    return stopped(this.call);
  }
}

/** Follows what was passed on into a scope, however many layers it goes through. */
export class Follower extends Keeper {
  protected override get turns(): number {
    return 3;
  }

  constructor(call: ToolCall, scope: Scope, outcome: Promise<ToolOutcome>) {
    super(call, scope);
    outcome.then((settled) => this.settle(settled));
  }

  protected override settle(outcome: ToolOutcome): void {
    this.scope.release(this);
    // What was answered in a tool's place is no late answer of the tool's.
    if (!(this.answered && isStopped(outcome))) super.settle(outcome);
  }

  protected override givenUp(): ToolOutcome {
    this.scope.abandon();
    return this.scope.dispatch.fault ?? super.givenUp();
  }
}
