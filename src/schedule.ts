import type { Batch } from './batch.ts';
import { ToolCall } from './call.ts';
import type { Dispatch } from './dispatch.ts';
import { printable } from './error.ts';
import { KeyLine } from './key-line.ts';
import { Lane } from './lane.ts';
import { isPromise, type MaybePromise } from './maybe-promise.ts';
import { type Middleware, type Next, named } from './middleware.ts';
import { checkOptions, isFunction, isLimit } from './options.ts';
import { fail, stopped, type ToolOutcome } from './outcome.ts';
import { Slots } from './slots.ts';
import type { Tool } from './tool.ts';
import { Turn } from './turn.ts';

const scheduling = new WeakSet<Middleware>();

/** Whether a layer gives calls their turns. */
export function isScheduling(layer: Middleware): boolean {
  return scheduling.has(layer);
}

/** Marks a layer as one that does. */
export function schedules(layer: Middleware): void {
  scheduling.add(layer);
}

/** Options of a `Schedule`. */
export interface ScheduleOptions {
  /** Calls that may run at once. Default: Infinity. */
  readonly concurrency?: number;
  /**
   * What a call shares its order with: of calls with the same value, one that is not safe runs alone. Default: the id of its session.
   */
  readonly scope?: (call: ToolCall) => unknown;
}

/**
 * Decides which calls run together, by what their tools say of the validated arguments (`concurrencySafe`, `resourceKey`).
 *
 * A call passes three gates. Its lane: calls of one scope in order, where one that is not safe waits for all before it and all behind
 * it wait for it. Its key: of calls with the same one a single one runs, whatever their scope. Its slots: its batch's and the
 * schedule's.
 *
 * A call that a running tool makes (`parent`) has a lane with the other calls of that tool, passes the key that its parent holds, and
 * may run in its parent's slot: it waits for nothing that may be waiting for its parent.
 */
export class Schedule {
  readonly #slots: Slots;
  readonly #scopeOf: (call: ToolCall) => unknown;
  readonly #lanes = new Map<unknown, Lane>();
  readonly #keys = new Map<string, KeyLine>();
  readonly #steps: (() => void)[] = [];
  #count = 0;

  /** @throws TypeError naming the option and what is allowed. */
  constructor(options: ScheduleOptions = {}) {
    checkOptions('schedule', options, { concurrency: isLimit(1), scope: isFunction });
    const { concurrency = Number.POSITIVE_INFINITY, scope = sessionOf } = options;
    this.#slots = new Slots(concurrency);
    this.#scopeOf = scope;
  }

  /** What `next` gives when it is the call's turn. */
  run(call: ToolCall, next: Next): MaybePromise<ToolOutcome> {
    if (call.tool === undefined) return next(call);
    if (call.aborted) return stopped(call);
    const turn = this.#enter(call);
    return turn.stage === 'running' ? this.#follow(turn, next(call)) : this.#wait(turn, next);
  }

  /** A layer in which calls wait for their turns. */
  layer(name: string): Middleware {
    const layer: Middleware = named(name, (call, next) => this.run(call, next));
    schedules(layer);
    return layer;
  }

  #follow(turn: Turn, outcome: MaybePromise<ToolOutcome>): MaybePromise<ToolOutcome> {
    // The next one must not begin before it is known whether this one's failure stops it: the dispatch will end the turn.
    if (turn.dispatch.batch?.failFast === true) return outcome;
    if (isPromise(outcome)) {
      return outcome.then((settled) => {
        this.end(turn);
        return settled;
      });
    }
    this.end(turn);
    return outcome;
  }

  #wait(turn: Turn, next: Next): Promise<ToolOutcome> {
    turn.queuedAt = turn.dispatch.host.now();
    turn.goOn = next;
    // What judged its arguments may have aborted it.
    if (turn.stage === 'waiting' && turn.call.aborted) turn.refuse(undefined);
    return turn.wait().then(this.#goOn);
  }

  /** For all turns, so that none needs a function of its own. It runs in the AsyncLocalStorage of the call, whoever lets it go on. */
  readonly #goOn = (turn: Turn): MaybePromise<ToolOutcome> => {
    const { dispatch, refusal, call } = turn;
    dispatch.endWaiting(turn.queuedAt);
    return refusal === undefined ? this.#follow(turn, turn.goOn(call)) : (refusal.outcome ?? stopped(call));
  };

  #enter(call: ToolCall): Turn {
    const { dispatch } = ToolCall.scope(call);
    if (dispatch.batch !== undefined) this.#reserve(dispatch.batch, dispatch.place);
    const turn = this.#takeReserved(dispatch, call) ?? this.#add(dispatch, call);
    const { isKeyed } = turn;
    // Before it may run: what is asked here is the host's, and may do anything.
    turn.judge(call);
    turn.arrive(call);
    this.#do(() => this.#settle(turn, isKeyed));
    return turn;
  }

  /** @param wasKeyed Whether its tool was known to have keys. */
  #settle(turn: Turn, wasKeyed: boolean): void {
    const { lane } = turn;
    if (turn.isOpen && (!turn.isSafe || turn.isKeyed !== wasKeyed)) lane.demote(turn);
    else if (turn.isOpen && !turn.isKeyed) this.#needKey(turn);
    lane.advance(this.#needKey);
  }

  /** The place that is kept for it. A turn it has had is over: a layer outside calls again. */
  #takeReserved(dispatch: Dispatch, call: ToolCall): Turn | undefined {
    for (let { turn } = dispatch; turn !== undefined; turn = turn.outer) {
      if (turn.schedule !== this) continue;
      // A layer may have changed the session.
      if (turn.stage === 'coming' && (turn.ancestor !== undefined || turn.lane.scope === this.#scopeOf(call)))
        return turn;
      this.end(turn);
    }
    return undefined;
  }

  /** Those before it in its batch have their places before it, wherever they are. */
  #reserve(batch: Batch, place: number): void {
    let turns = batch.reserved.find(({ schedule }) => schedule === this);
    if (turns === undefined) {
      turns = { schedule: this, count: 0 };
      batch.reserved.push(turns);
    }
    for (; turns.count < place; turns.count++) {
      const earlier = batch.dispatches[turns.count];
      if (earlier !== undefined) this.#reserveOne(earlier);
    }
    if (turns.count === place) turns.count++;
  }

  #reserveOne(dispatch: Dispatch): void {
    try {
      this.#add(dispatch, dispatch.scope.call);
    } catch {
      // The host's scope failed for it: that is told when it comes here itself.
    }
  }

  #add(dispatch: Dispatch, call: ToolCall): Turn {
    const [ancestor, coming] = this.#ancestorsOf(call);
    const lane = ancestor?.nested ?? coming?.lane ?? this.#laneOf(call);
    const turn = new Turn(this, dispatch, lane, ancestor, call.tool as Tool<unknown> | undefined);
    if (coming === undefined) lane.add(turn);
    else lane.addBefore(turn, coming);
    dispatch.turn = turn;
    return turn;
  }

  /** The nearest turn it is inside of; and one whose time has not come, where a layer outside of here has made the call. */
  #ancestorsOf(call: ToolCall): readonly [ancestor: Turn | undefined, coming: Turn | undefined] {
    for (let { parent } = call; parent !== undefined; parent = parent.parent) {
      for (let { turn } = ToolCall.scope(parent).dispatch; turn !== undefined; turn = turn.outer) {
        if (turn.schedule !== this) continue;
        if (turn.stage === 'running' || (turn.stage === 'waiting' && turn.isOpen)) return [turn, undefined];
        if (turn.stage !== 'over') return [turn.ancestor, turn];
      }
    }
    return [undefined, undefined];
  }

  #laneOf(call: ToolCall): Lane {
    const scope = this.#scopeOf(call);
    let lane = this.#lanes.get(scope);
    if (lane === undefined) {
      lane = new Lane(scope);
      this.#lanes.set(scope, lane);
    }
    return lane;
  }

  /** All that has to end before it in its lane has ended. */
  readonly #needKey = (turn: Turn): void => {
    turn.number = this.#count++;
    const line = turn.key === undefined ? undefined : this.#keyLine(turn.key);
    if (line === undefined || line.admit(turn)) this.#needBatchSlot(turn);
    else if (this.#closesCircle(turn, line)) turn.refuse(circleOutcome(turn));
    else line.wait(turn);
  };

  #keyLine(key: string): KeyLine {
    let line = this.#keys.get(key);
    if (line === undefined) {
      line = new KeyLine();
      this.#keys.set(key, line);
    }
    return line;
  }

  #needBatchSlot(turn: Turn): void {
    const slots = turn.hasBatchSlot ? undefined : turn.dispatch.batch?.slots;
    if (slots === undefined || slots.take()) this.#needSlot(turn, slots);
    else slots.wait(turn);
  }

  #needSlot(turn: Turn, batchSlots: Slots | undefined): void {
    turn.batchSlots = batchSlots;
    const slots = turn.ancestor?.loan ?? this.#slots;
    if (slots.take()) this.#start(turn, slots);
    else if (slots !== this.#slots && this.#slots.take()) this.#start(turn, this.#slots);
    else slots.wait(turn);
  }

  /** It has all it needs, unless a call that a tool made has taken its key meanwhile. */
  #start(turn: Turn, slots: Slots): void {
    turn.slots = slots;
    const line = turn.key === undefined ? undefined : this.#keyLine(turn.key);
    if (line === undefined || line.take(turn)) {
      turn.start();
      this.#openLoan(turn);
      return;
    }
    this.#giveSlots(turn);
    if (this.#closesCircle(turn, line)) turn.refuse(circleOutcome(turn));
    else line.wait(turn);
  }

  /** Calls that layers have made for it before it could lend its slot wait for that. */
  #openLoan(turn: Turn): void {
    const nested = turn.openLoan();
    if (nested !== undefined) this.#do(() => this.#start(nested, turn.loan));
  }

  #giveSlots(turn: Turn): void {
    const { slots, batchSlots } = turn;
    turn.slots = undefined;
    turn.batchSlots = undefined;
    const next = slots?.release();
    if (slots !== undefined && next !== undefined) this.#do(() => this.#start(next, slots));
    const nextOfBatch = batchSlots?.release();
    if (nextOfBatch !== undefined) this.#do(() => this.#needSlot(nextOfBatch, batchSlots));
  }

  /** @internal Its outcome is there, or it will not run. */
  end(turn: Turn): void {
    if (turn.stage === 'over') return;
    turn.isEnding = true;
    // A call that its tool has made and not waited for still runs in its place.
    if (turn.hasNested) {
      this.#openLoan(turn);
      return;
    }
    turn.stage = 'over';
    const { lane, key, ancestor } = turn;
    lane.remove(turn);
    const line = key === undefined ? undefined : this.#keys.get(key);
    line?.leave(turn);
    this.#giveSlots(turn);
    this.#do(() => {
      for (const next of line?.admitNext() ?? []) this.#needBatchSlot(next);
      if (key !== undefined && line?.isEmpty === true) this.#keys.delete(key);
      lane.advance(this.#needKey);
      if (lane.isEmpty && ancestor === undefined) this.#lanes.delete(lane.scope);
      if (ancestor?.isEnding === true) this.end(ancestor);
    });
  }

  /** Does one thing after the other: what ends lets go on what may end at once, and so on, ten thousand times. */
  #do(step: () => void): void {
    this.#steps.push(step);
    if (this.#steps.length > 1) return;
    try {
      // What is added meanwhile is done as well.
      for (const each of this.#steps) each();
    } finally {
      this.#steps.length = 0;
    }
  }

  /** Whether who has the key cannot end before this call does: for calls its tool has made wait for what this one's parents have. */
  #closesCircle(turn: Turn, line: KeyLine): boolean {
    if (turn.ancestor === undefined) return false;
    const blockers = new Set(line.blockersOf(turn));
    // A set gives what is added while it is walked.
    for (const blocker of blockers) {
      if (turn.isInside(blocker)) return true;
      for (const other of this.#keys.values()) for (const each of other.blockersInside(blocker)) blockers.add(each);
    }
    return false;
  }
}

function sessionOf(call: ToolCall): string {
  return call.context.sessionId;
}

function circleOutcome({ call, key = '' }: Turn): ToolOutcome {
  const what = `"${printable(key)}" is in use by a call that waits for the one this belongs to`;
  const message = `Tool "${printable(call.toolName)}" was not run: ${what}. Call it again later.`;
  return fail(call, 'execution_failed', message);
}
