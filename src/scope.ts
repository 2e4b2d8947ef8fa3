import type { ToolCall } from './call.ts';
import type { Dispatch } from './dispatch.ts';
import type { Executed } from './error.ts';
import { ABANDONED, type Guard } from './guard.ts';
import { Follower, type Keeper, type SettleListener } from './keeper.ts';
import type { ToolOutcome } from './outcome.ts';

const abandoned: Guard = { depth: ABANDONED, pending: undefined, answer: undefined, fault: undefined };

/**
 * A part of a dispatch that can be aborted on its own: the whole, or what a layer passed on through `abortScope`. Scopes form a
 * tree, and an abort reaches all below, nested dispatches included. An AbortController exists only once `signal` is read.
 */
export class Scope {
  readonly dispatch: Dispatch;
  guard: Guard;
  /** What is known of the effect of all attempts inside. */
  executed: Executed = 'no';
  /** Keeps the running tool. */
  keeper: Keeper | undefined = undefined;
  /** Keeps whatever was passed on into this scope, where that is not just the tool. */
  follower: Keeper | undefined = undefined;
  readonly #parent: Scope | undefined;
  readonly #depth: number;
  #call: ToolCall | undefined = undefined;
  #abortion: { readonly reason: unknown } | undefined = undefined;
  #controller: AbortController | undefined = undefined;
  #firstChild: Scope | undefined = undefined;
  #nextSibling: Scope | undefined = undefined;

  /** Without a parent it is a whole dispatch, which is its own guard. */
  constructor(parent: Scope | undefined, depth: number) {
    this.#parent = parent;
    this.#depth = depth;
    if (parent === undefined) {
      this.dispatch = this as unknown as Dispatch;
      this.guard = this.dispatch;
    } else {
      this.dispatch = parent.dispatch;
      this.guard = parent.guard;
      parent.adopt(this);
    }
  }

  /** The call to pass inward; set right after construction. */
  get call(): ToolCall {
    return this.#call as ToolCall;
  }

  set call(call: ToolCall) {
    this.#call = call;
  }

  get aborted(): boolean {
    if (this.#abortion !== undefined) return true;
    return this.#parent === undefined ? this.dispatch.callerAborted : this.#parent.aborted;
  }

  get reason(): unknown {
    if (this.#abortion !== undefined) return this.#abortion.reason;
    return this.#parent === undefined ? this.dispatch.callerReason : this.#parent.reason;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.aborted) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  /** Aborts what is inside. The layer that made this scope may go on at once: what is inside no longer counts. */
  abort(reason: unknown, graceMs = 0): void {
    const { guard } = this;
    const abandon = this.#parent !== undefined;
    if (abandon && guard.depth > this.#depth) {
      guard.depth = this.#depth;
      guard.pending = undefined;
    }
    this.#spread(reason, graceMs, abandon);
  }

  #spread(reason: unknown, graceMs: number, abandon: boolean): void {
    if (abandon) this.guard = abandoned;
    if (this.#abortion === undefined) {
      this.#abortion = { reason };
      this.#controller?.abort(reason);
    }
    for (let child = this.#firstChild; child !== undefined; child = child.#nextSibling) {
      child.#spread(reason, graceMs, abandon && child.#parent === this);
    }
    this.keeper?.abort(graceMs);
    this.follower?.abort(graceMs);
  }

  /** Makes an abort of this scope reach another, which may be another dispatch's. */
  adopt(child: Scope): void {
    child.#nextSibling = this.#firstChild;
    this.#firstChild = child;
  }

  disown(child: Scope): void {
    if (this.#firstChild === child) {
      this.#firstChild = child.#nextSibling;
      return;
    }
    for (let other = this.#firstChild; other !== undefined; other = other.#nextSibling) {
      if (other.#nextSibling === child) other.#nextSibling = child.#nextSibling;
    }
  }

  /** The outcome of what was passed on; the running tool's own keeper already answers for it after an abort. */
  follow(outcome: Promise<ToolOutcome>, listener: SettleListener): Promise<ToolOutcome> {
    const keeper = this.keeper?.promise === outcome ? this.keeper : new Follower(this.call, this, outcome);
    keeper.listener = listener;
    return keeper.promise;
  }

  /** Lets go of it: no abort comes through any more. */
  end(): void {
    this.#parent?.disown(this);
  }

  /** Records, here and in every scope around, what became of the tool. */
  mark(executed: Executed): void {
    this.executed = executed;
    this.#parent?.mark(executed);
  }
}
