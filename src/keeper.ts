import type { ToolCall } from './call.ts';
import { afterTurns } from './clock.ts';
import { fail, isStopped, stopped, type ToolOutcome } from './outcome.ts';
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
  readonly #turnsAfterAbort: number;
  #timer: unknown = undefined;

  /** @param turnsAfterAbort Turns of the event loop it waits after an abort: more than what is further inside may take. */
  protected constructor(call: ToolCall, scope: Scope, turnsAfterAbort: number) {
    this.call = call;
    this.scope = scope;
    this.#turnsAfterAbort = turnsAfterAbort;
    this.promise = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Whether the outcome has left. */
  protected get answered(): boolean {
    return this.#resolve === undefined;
  }

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
    if (graceMs <= 0) afterTurns(this.#turnsAfterAbort, giveUp);
    else if (graceMs !== Number.POSITIVE_INFINITY)
      this.#timer = clock.setTimeout(() => afterTurns(this.#turnsAfterAbort, giveUp), graceMs);
  }

  /** What is answered in its place. */
  protected givenUp(): ToolOutcome {
    return stopped(this.call);
  }
}

/** Follows what was passed on into a scope, however many layers it goes through. */
export class Follower extends Keeper {
  constructor(call: ToolCall, scope: Scope, outcome: Promise<ToolOutcome>) {
    // The tool's keeper takes one turn to answer; what it answers has two more to come through the layers.
    super(call, scope, 3);
    outcome.then(
      (settled) => this.settle(settled),
      (cause) =>
        this.settle(fail(call, 'internal', 'What a layer followed has failed.', { executed: call.executed, cause })),
    );
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
