import { AsyncResource } from 'node:async_hooks';
import type { AbortListener } from './abort-listeners.ts';
import type { ToolCall } from './call.ts';
import type { Dispatch } from './dispatch.ts';
import { ABANDONED, type Guard, NO_ANSWER } from './guard.ts';
import { Follower, type Keeper, type SettleListener } from './keeper.ts';
import { isPromise, type MaybePromise } from './maybe-promise.ts';
import { noteExceeded, type ToolOutcome } from './outcome.ts';
import { NO_SEAT, Roster, type Seated } from './roster.ts';

const abandoned: Guard = Object.freeze({
  depth: ABANDONED,
  pending: undefined,
  answer: NO_ANSWER,
  onion: undefined,
  fault: undefined,
});

/** What an abort has to reach. */
class Waiters {
  /** Keeps the running tool. */
  keeper: ToolKeeper | undefined = undefined;
  /** Keeps whatever was passed on into the scope, where that is more than the tool. */
  follower: Keeper | undefined = undefined;
  /** Exists once `signal` has been read. */
  controller: AbortController | undefined = undefined;
  abortSignal: ((reason: unknown) => void) | undefined = undefined;
  /** Scopes inside this one, and the dispatches that a tool in here has begun. */
  children: Roster<Scope> | undefined = undefined;
  /** Whoever waits in here for something else than the tool. */
  listener: AbortListener | undefined = undefined;
}

const NOBODY = new Waiters();

/** A keeper that knows which layer its promise has been passed on to. */
type ToolKeeper = Keeper & { readonly owner: number };

/**
 * A part of a dispatch that can be aborted on its own: the whole, or what a layer passed on through `abortScope`. Scopes form a
 * tree, and an abort reaches all below, nested dispatches included. Most calls are over before anything could wait for an abort,
 * so a scope joins the tree only when something in it does wait, and makes an AbortController only when `signal` is read.
 */
export class Scope implements Seated {
  readonly dispatch: Dispatch;
  readonly #parent: Scope | undefined;
  readonly #depth: number;
  readonly #limitMs: number | undefined;
  #startedAt: number | undefined = undefined;
  #call: ToolCall | undefined = undefined;
  #abortion: { readonly reason: unknown; readonly graceMs: number } | undefined = undefined;
  #abandoned = false;
  #waiters: Waiters | undefined = undefined;
  /** Its place among the children of the scope around it. */
  seat: number = NO_SEAT;

  /** Without a parent it is the whole of a dispatch. */
  constructor(dispatch: Dispatch, parent: Scope | undefined, depth: number, limitMs: number | undefined) {
    this.dispatch = dispatch;
    this.#limitMs = limitMs;
    this.#parent = parent;
    this.#depth = depth;
    // As long as everything happens in one go, the dispatch's own two looks at the clock are enough, and a look is not cheap.
    if (dispatch.waited) this.#startedAt = dispatch.host.now();
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

  get guard(): Guard {
    // The whole of a dispatch is never given up, and most layers are in no other scope.
    if (this.#parent === undefined) return this.dispatch;
    return this.#isAbandoned ? abandoned : this.dispatch;
  }

  get #isAbandoned(): boolean {
    if (this.#abandoned || this.#parent === undefined) return this.#abandoned;
    return this.#parent.#isAbandoned;
  }

  get #lastAbortion(): { readonly reason: unknown; readonly graceMs: number } | undefined {
    if (this.#abortion !== undefined || this.#parent === undefined) return this.#abortion;
    return this.#parent.#lastAbortion;
  }

  get aborted(): boolean {
    return this.#lastAbortion !== undefined || this.dispatch.callerAborted;
  }

  get reason(): unknown {
    const abortion = this.#lastAbortion;
    return abortion === undefined ? this.dispatch.callerReason : abortion.reason;
  }

  get signal(): AbortSignal {
    const waiters = this.#join();
    if (waiters.controller === undefined) {
      const controller = new AbortController();
      waiters.controller = controller;
      // Whoever aborts has another AsyncLocalStorage than those who listen. `AsyncResource.bind` costs three times the controller.
      const here = new AsyncResource('toolonion.abort');
      waiters.abortSignal = (reason) => here.runInAsyncScope(() => controller.abort(reason));
      if (this.aborted) controller.abort(this.reason);
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
    this.#abandoned = true;
  }

  #spread(reason: unknown, graceMs: number): void {
    const { keeper, follower, abortSignal, children, listener } = this.#waiters ?? NOBODY;
    if (this.#abortion === undefined) {
      this.#abortion = { reason, graceMs };
      abortSignal?.(reason);
      listener?.signalAborted();
    }
    for (const child of children?.members ?? []) child.#spread(reason, graceMs);
    keeper?.abort(graceMs);
    follower?.abort(graceMs);
  }

  /** From now on an abort reaches what the tool's keeper waits for. */
  keep(keeper: ToolKeeper): void {
    this.#join().keeper = keeper;
    this.#catchUp(keeper);
  }

  /** An abort that came before somebody waited for it. */
  #catchUp(keeper: Keeper): void {
    const abortion = this.#lastAbortion;
    if (abortion !== undefined) keeper.abort(abortion.graceMs);
  }

  /** One that waits hears of an abort. A signal would do, and is dear where thousands wait. */
  listen(listener: AbortListener): void {
    this.#join().listener = listener;
  }

  unlisten(): void {
    if (this.#waiters !== undefined) this.#waiters.listener = undefined;
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
      return this.#startedAt === undefined ? outcome : this.noted(outcome);
    }
    const waiters = this.#join();
    let keeper: Keeper | undefined = waiters.keeper;
    if (keeper?.promise !== outcome) {
      keeper = new Follower(this.call, this, outcome);
      waiters.follower = keeper;
      this.#catchUp(keeper);
    }
    keeper.followed = true;
    keeper.listener = listener;
    return keeper.promise;
  }

  /** The outcome of what was passed on, with a note where it took longer than its limit. */
  noted(outcome: ToolOutcome): ToolOutcome {
    if (this.#limitMs === undefined || this.#abortion !== undefined) return outcome;
    return noteExceeded(outcome, this.dispatch.host.now() - this.startedAt, this.#limitMs);
  }

  #join(): Waiters {
    if (this.#waiters === undefined) this.#waiters = new Waiters();
    if (this.seat === NO_SEAT && this.#parent !== undefined) this.#parent.adopt(this);
    return this.#waiters;
  }

  /** Lets go of it: no abort comes through until something waits in it again. */
  end(): void {
    if (this.#parent !== undefined) this.#parent.disown(this);
  }

  /** Makes an abort of this scope reach another, which may be another dispatch's. */
  adopt(child: Scope): void {
    const waiters = this.#join();
    waiters.children ??= new Roster();
    waiters.children.add(child);
  }

  disown(child: Scope): void {
    this.#waiters?.children?.delete(child);
  }
}
