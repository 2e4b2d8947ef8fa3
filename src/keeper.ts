import type { ToolCall } from './call.ts';
import { afterTurns, MAX_DELAY_MS } from './clock.ts';
import { fail, isOutcome, isStopped, stopped, type ToolOutcome } from './outcome.ts';
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
  /** When it will give up, on the call's clock. */
  #due: number | undefined = undefined;

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
      if (!this.#isInPlace(outcome)) this.scope.dispatch.host.late(outcome, this.call);
      return;
    }
    this.#resolve = undefined;
    resolve(this.followed ? this.scope.noted(outcome) : outcome);
    if (this.followed) this.scope.end();
    this.#clearTimer();
    this.listener?.settled();
  }

  /** What the engine answered in a tool's place is no late answer of the tool's. */
  #isInPlace(outcome: ToolOutcome): boolean {
    const { fault } = this.scope.dispatch;
    return isStopped(outcome) || (fault !== undefined && outcome.error === fault.error);
  }

  #clearTimer(): void {
    if (this.#timer !== undefined) this.call.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Gives what it waits for `graceMs`, or a few turns, to settle by itself. A further abort can only shorten that. */
  abort(graceMs: number): void {
    const { clock } = this.call;
    const due = graceMs > 0 ? clock.now() + graceMs : Number.NEGATIVE_INFINITY;
    if (due >= (this.#due ?? Number.POSITIVE_INFINITY)) return;
    this.#due = due;
    this.#clearTimer();
    const giveUp = () => {
      if (!this.answered) this.settle(this.givenUp());
    };
    if (graceMs <= 0) afterTurns(this.#turnsAfterAbort, giveUp);
    else
      this.#timer = clock.setTimeout(() => afterTurns(this.#turnsAfterAbort, giveUp), Math.min(graceMs, MAX_DELAY_MS));
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
      (settled) => this.settle(isOutcome(settled) ? settled : followedRubbish(call, settled)),
      (cause: unknown) => this.settle(followedRubbish(call, cause)),
    );
  }

  protected override settle(outcome: ToolOutcome): void {
    this.scope.release(this);
    // A layer's refusal that comes late is no answer of the tool's.
    if (this.answered && outcome.error?.executed === 'no') return;
    super.settle(outcome);
  }

  protected override givenUp(): ToolOutcome {
    this.scope.abandon();
    return this.scope.dispatch.fault ?? super.givenUp();
  }
}

function followedRubbish(call: ToolCall, cause: unknown): ToolOutcome {
  return fail(call, 'internal', 'What a layer followed was no outcome, or failed.', { executed: call.executed, cause });
}
