import type { ToolCall } from './call.ts';
import type { Dispatch } from './dispatch.ts';
import type { Executed } from './error.ts';
import { ABANDONED, type Guard, NO_ANSWER } from './guard.ts';
import { Follower, type Keeper, type SettleListener } from './keeper.ts';
import { isPromise, type MaybePromise } from './maybe-promise.ts';
import { noteExceeded, type ToolOutcome } from './outcome.ts';

const abandoned: Guard = { depth: ABANDONED, pending: undefined, answer: NO_ANSWER, fault: undefined };

/** What an abort has to reach. */
class Waiters {
  /** Keeps the running tool. */
  keeper: ToolKeeper | undefined = undefined;
  /** Keeps whatever was passed on into the scope, where that is more than the tool. */
  follower: Keeper | undefined = undefined;
  /** Exists once `signal` has been read. */
  controller: AbortController | undefined = undefined;
  /** Scopes inside this one, and the dispatches that a tool in here has begun. */
  children: Scope[] | undefined = undefined;
}

const NOBODY = new Waiters();

/** A keeper that knows which layer its promise has been passed on to. */
type ToolKeeper = Keeper & { readonly owner: number };

/**
 * A part of a dispatch that can be aborted on its own: the whole, or what a layer passed on through `abortScope`. Scopes form a
 * tree, and an abort reaches all below, nested dispatches included. Most calls are over before anything could wait for an abort,
 * so a scope joins the tree only when something in it does wait, and makes an AbortController only when `signal` is read.
 */
export class Scope {
  readonly dispatch: Dispatch;
  guard: Guard;
  /** Runs of the tool that have not ended, and what became of those that have. */
  #running = 0;
  #ended: Executed = 'no';
  readonly #parent: Scope | undefined;
  readonly #depth: number;
  readonly #limitMs: number | undefined;
  #startedAt: number | undefined = undefined;
  #call: ToolCall | undefined = undefined;
  #abortion: { readonly reason: unknown } | undefined = undefined;
  /** What waits for an abort in here; until something does, the scope is not in the tree. */
  #waiters: Waiters | undefined = undefined;

  /** Without a parent it is the whole of a dispatch, which guards all the scopes in it. */
  constructor(dispatch: Dispatch, parent: Scope | undefined, depth: number, limitMs: number | undefined) {
    this.dispatch = dispatch;
    this.#limitMs = limitMs;
    this.guard = parent === undefined ? dispatch : parent.guard;
    this.#parent = parent;
    this.#depth = depth;
    // As long as everything happens in one go, the dispatch's own two looks at the clock are enough, and a look is not cheap.
    if (dispatch.waited) this.#startedAt = dispatch.host.clock.now();
    else if (limitMs !== undefined && limitMs < (dispatch.limitMs ?? Number.POSITIVE_INFINITY))
      dispatch.limitMs = limitMs;
  }

  get startedAt(): number {
    return this.#startedAt ?? this.dispatch.startedAt;
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
    const waiters = this.#join();
    if (waiters.controller === undefined) {
      waiters.controller = new AbortController();
      if (this.aborted) waiters.controller.abort(this.reason);
    }
    return waiters.controller.signal;
  }

  /**
   * Aborts what is inside. Usually the layer that made this scope may go on at once, and what is inside no longer counts. But
   * where it has passed on the tool's own promise, layers further outside wait for that: it must still count.
   */
  abort(reason: unknown, graceMs = 0): void {
    const keeper = this.#waiters?.keeper;
    const isPassedOn = keeper !== undefined && keeper.owner < this.#depth;
    if (!isPassedOn) this.abandon();
    this.#spread(reason, graceMs);
  }

  /** What is inside no longer counts, and the layer that made this scope is the innermost one. */
  abandon(): void {
    const { guard } = this;
    if (this.#parent === undefined) return;
    if (guard.depth > this.#depth) {
      guard.depth = this.#depth;
      guard.pending = undefined;
    }
    this.#loseGuard();
  }

  /** A nested dispatch, which has no parent, keeps the guard of its own. */
  #loseGuard(): void {
    if (this.#parent === undefined) return;
    this.guard = abandoned;
    for (const child of this.#waiters?.children ?? []) child.#loseGuard();
  }

  #spread(reason: unknown, graceMs: number): void {
    const { keeper, follower, controller, children = [] } = this.#waiters ?? NOBODY;
    if (this.#abortion === undefined) {
      this.#abortion = { reason };
      controller?.abort(reason);
    }
    // A copy: what an abort wakes may end its scope.
    for (const child of [...children]) child.#spread(reason, graceMs);
    keeper?.abort(graceMs);
    follower?.abort(graceMs);
  }

  /** From now on an abort reaches what the tool's keeper waits for. */
  keep(keeper: ToolKeeper): void {
    this.#join().keeper = keeper;
  }

  /** Whether it was this keeper that kept the tool; it no longer does. */
  release(keeper: Keeper): boolean {
    const waiters = this.#waiters;
    if (waiters?.follower === keeper) waiters.follower = undefined;
    if (waiters?.keeper !== keeper) return false;
    waiters.keeper = undefined;
    return true;
  }

  /** The outcome of what was passed on; the running tool's own keeper already answers for it after an abort. */
  follow(outcome: MaybePromise<ToolOutcome>, listener?: SettleListener): MaybePromise<ToolOutcome> {
    if (!isPromise(outcome)) {
      this.end();
      if (this.#startedAt === undefined) return outcome;
      return noteExceeded(outcome, this.dispatch.host.clock.now() - this.#startedAt, this.#limitMs);
    }
    const waiters = this.#join();
    let keeper: Keeper | undefined = waiters.keeper;
    if (keeper?.promise !== outcome) {
      keeper = new Follower(this.call, this, outcome);
      waiters.follower = keeper;
    }
    keeper.followed = true;
    keeper.listener = listener;
    return keeper.promise;
  }

  #join(): Waiters {
    if (this.#waiters === undefined) {
      this.#waiters = new Waiters();
      this.#parent?.adopt(this);
    }
    return this.#waiters;
  }

  /** Lets go of it: no abort comes through any more. */
  end(): void {
    if (this.#waiters !== undefined) this.#parent?.disown(this);
  }

  /** Makes an abort of this scope reach another, which may be another dispatch's. */
  adopt(child: Scope): void {
    const waiters = this.#join();
    if (waiters.children === undefined) waiters.children = [child];
    else waiters.children.push(child);
  }

  disown(child: Scope): void {
    const children = this.#waiters?.children ?? [];
    const index = children.indexOf(child);
    if (index >= 0) children.splice(index, 1);
  }

  /** What is known of the effect of all attempts inside. */
  get executed(): Executed {
    return this.#running > 0 ? 'unknown' : this.#ended;
  }

  /** The tool has begun, as every scope around must know. */
  begun(): void {
    this.#running++;
    if (this.#parent !== undefined) this.#parent.begun();
  }

  /** The tool has come to its end, or was stopped. One run that did its work outweighs any that did not. */
  over(how: 'yes' | 'stopped'): void {
    this.#running--;
    if (this.#ended !== 'yes') this.#ended = how;
    if (this.#parent !== undefined) this.#parent.over(how);
  }
}
