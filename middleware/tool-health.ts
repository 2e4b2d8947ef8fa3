import {
  type Clock,
  checkOptions,
  type Executed,
  isCount,
  isLimitMs,
  isPlainObject,
  type OptionCheck,
  systemClock,
  type ToolOutcome,
} from '../src/index.ts';
import { Breaker, type BreakerLimits, type BreakerState } from './parts/breaker.ts';
import { Scopes } from './parts/scopes.ts';

/** Options of a `ToolHealth`. */
export interface ToolHealthOptions {
  /** Failures in a row after which a tool is not called for a while; Infinity for never. Default: 3. */
  readonly failures?: number;
  /** Milliseconds it is not called then. Default: 30,000. */
  readonly cooldownMs?: number;
  /** Calls that are let through at once after that, to see. Default: 1. */
  readonly probes?: number;
  /** Successes of these in all before the tool is called as ever. Default: 1. */
  readonly successes?: number;
  /** Milliseconds such a call may take; then it is taken for a failure. Infinity: as long as it takes. Default: 30,000. */
  readonly leaseMs?: number;
  /** Tools, or keys, that are remembered; of more, the one called longest ago is forgotten. Default: 10,000. */
  readonly maxTools?: number;
  /** Default: the process's own. */
  readonly clock?: Clock;
}

/** How well a tool does: from 0.8 on healthy, from 0.5 on degraded; one that is not called is unhealthy. */
export type HealthStatus = 'healthy' | 'degraded' | 'unhealthy';

/** What is known of a tool. Times are in milliseconds. */
export interface ToolHealthReport {
  readonly status: HealthStatus;
  /** From 0 to 1: 0.3 of the share of successes, and 0.7 of a mean in which the last calls weigh most. 1 before the first. */
  readonly score: number;
  readonly breaker: BreakerState;
  /** Until it is tried again; 0 where it may be called. */
  readonly retryAfterMs: number;
  readonly calls: number;
  readonly failures: number;
  readonly totalMs: number;
  readonly maxMs: number;
}

/** What a health can be saved as, and restored from. */
export interface SavedToolHealth {
  readonly version: 1;
  readonly tools: Readonly<Record<string, SavedTool>>;
}

interface SavedTool {
  readonly calls: number;
  readonly failures: number;
  readonly totalMs: number;
  readonly maxMs: number;
  /** The mean in which the last calls weigh most. */
  readonly mean: number;
  /** Whether it is not called as ever. */
  readonly isOpen: boolean;
  /** Milliseconds until it is tried again then; missing where it never is. */
  readonly cooldownMs?: number;
}

/** A call that was let through. */
export interface Admission {
  /** Tells what came of it, and how long it took. What is neither says nothing of the tool: a call that was refused, or aborted. */
  settle(verdict: 'success' | 'failure' | 'neither', durationMs: number): void;
}

/** Weight of the last call in the mean. */
const LAST = 0.3;

/** Weight of the share of successes in the score; the mean has the rest. */
const SHARE = 0.3;

/** What is known of tools, for `circuitBreaker` and `fallback` to share, and for dashboards to show. */
export class ToolHealth {
  readonly #tools: Scopes<Known>;
  readonly #limits: BreakerLimits;
  readonly #clock: Clock;

  /** @throws TypeError naming the option and what is allowed. */
  constructor(options: ToolHealthOptions = {}) {
    checkOptions('ToolHealth', options, {
      failures: isFailures,
      cooldownMs: isLimitMs,
      probes: isCount(1),
      successes: isCount(1),
      leaseMs: isLimitMs,
      maxTools: isCount(1),
      clock: isClock,
    });
    const { failures = 3, cooldownMs = 30_000, probes = 1, successes = 1, leaseMs = 30_000 } = options;
    this.#limits = { failures, cooldownMs, probes, successes, leaseMs };
    this.#clock = options.clock ?? systemClock;
    this.#tools = new Scopes(options.maxTools ?? 10_000, () => new Known(this.#limits));
  }

  /** Takes a place for a call; undefined where the tool is not to be called now. */
  admit(tool: string): Admission | undefined {
    const known = this.#tools.of(tool);
    const ticket = known.breaker.admit(this.#clock.now());
    if (ticket === undefined) return undefined;
    return {
      settle: (verdict, durationMs) => {
        if (verdict !== 'neither') known.count(verdict, durationMs);
        known.breaker.settle(ticket, verdict, this.#clock.now());
      },
    };
  }

  /**
   * Whether a call would be let through, without taking its place. A low score alone does not make a tool unavailable: it would never be called again,
   * and so never do better.
   */
  isAvailable(tool: string): boolean {
    return this.report(tool).retryAfterMs === 0;
  }

  /** What is known of a tool; of one that was not called yet, that it is healthy. */
  report(tool: string): ToolHealthReport {
    return (this.#tools.peek(tool) ?? new Known(this.#limits)).report(this.#clock.now());
  }

  /** What is known of all tools, by their names. */
  snapshot(): Readonly<Record<string, ToolHealthReport>> {
    const now = this.#clock.now();
    return Object.fromEntries(Array.from(this.#tools.entries(), ([name, known]) => [name, known.report(now)]));
  }

  /** What `restore` takes, as JSON. */
  toJSON(): SavedToolHealth {
    const now = this.#clock.now();
    return {
      version: 1,
      tools: Object.fromEntries(Array.from(this.#tools.entries(), ([name, known]) => [name, known.saved(now)])),
    };
  }

  /**
   * Takes up what was saved, in the place of what is known of these tools.
   *
   * @throws TypeError for anything else.
   */
  restore(saved: unknown): void {
    const { version, tools } = isPlainObject(saved) ? saved : {};
    const isSaved = version === 1 && isPlainObject(tools) && Object.values(tools).every(isSavedTool);
    if (!isSaved) throw new TypeError('ToolHealth.restore takes what ToolHealth.toJSON has given, of version 1.');
    const now = this.#clock.now();
    for (const [name, tool] of Object.entries(tools as Record<string, SavedTool>))
      this.#tools.set(name, Known.of(tool, this.#limits, now));
  }
}

/** What became of a call, and of all its runs, for its tool: only what the tool depends on counts as its failure, not what was wrong with the call. */
export function verdictOf({ error, control }: ToolOutcome, executed: Executed): 'success' | 'failure' | 'neither' {
  // A tool may say itself that it has done nothing; it ran all the same.
  if (executed === 'no' || control !== undefined || error?.code === 'cancelled') return 'neither';
  if (error === undefined) return 'success';
  return error.retryable && FAILURES.has(error.code) ? 'failure' : 'success';
}

const FAILURES: ReadonlySet<string> = new Set(['timeout', 'execution_failed', 'io', 'rate_limited']);

class Known {
  readonly breaker: Breaker;
  #calls = 0;
  #failures = 0;
  #totalMs = 0;
  #maxMs = 0;
  #mean = 1;

  constructor(limits: BreakerLimits) {
    this.breaker = new Breaker(limits);
  }

  static of(saved: SavedTool, limits: BreakerLimits, now: number): Known {
    const known = new Known(limits);
    known.#calls = saved.calls;
    known.#failures = saved.failures;
    known.#totalMs = saved.totalMs;
    known.#maxMs = saved.maxMs;
    known.#mean = saved.mean;
    const { isOpen, cooldownMs = limits.cooldownMs } = saved;
    const mayOpen = limits.failures !== Number.POSITIVE_INFINITY;
    if (isOpen && mayOpen) known.breaker.open(now, Math.min(cooldownMs, limits.cooldownMs));
    return known;
  }

  count(verdict: 'success' | 'failure', durationMs: number): void {
    const isSuccess = verdict === 'success';
    this.#calls++;
    if (!isSuccess) this.#failures++;
    this.#totalMs += durationMs;
    this.#maxMs = Math.max(this.#maxMs, durationMs);
    this.#mean = (1 - LAST) * this.#mean + LAST * (isSuccess ? 1 : 0);
  }

  report(now: number): ToolHealthReport {
    const share = this.#calls === 0 ? 1 : (this.#calls - this.#failures) / this.#calls;
    const score = SHARE * share + (1 - SHARE) * this.#mean;
    const breaker = this.breaker.state(now);
    return {
      status: breaker === 'open' ? 'unhealthy' : score >= 0.8 ? 'healthy' : score >= 0.5 ? 'degraded' : 'unhealthy',
      score,
      breaker,
      retryAfterMs: this.breaker.waitMs(now),
      calls: this.#calls,
      failures: this.#failures,
      totalMs: this.#totalMs,
      maxMs: this.#maxMs,
    };
  }

  saved(now: number): SavedTool {
    const waitMs = this.breaker.waitMs(now);
    return {
      calls: this.#calls,
      failures: this.#failures,
      totalMs: this.#totalMs,
      maxMs: this.#maxMs,
      mean: this.#mean,
      isOpen: this.breaker.state(now) !== 'closed',
      ...(Number.isFinite(waitMs) && { cooldownMs: waitMs }),
    };
  }
}

const isFailures: OptionCheck = (value) =>
  value === Number.POSITIVE_INFINITY ||
  isCount(1)(value) === true ||
  'a whole number of at least 1, or Infinity for never';

const isClock: OptionCheck = (value) =>
  ['now', 'setTimeout', 'clearTimeout'].every(
    (name) => typeof (value as Record<string, unknown> | null)?.[name] === 'function',
  ) || 'a clock: now, setTimeout, clearTimeout';

function isSavedTool(value: unknown): boolean {
  if (!isPlainObject(value)) return false;
  const { calls, failures, mean, isOpen, cooldownMs = 0, totalMs, maxMs } = value;
  const areNumbers = [calls, failures, mean, cooldownMs, totalMs, maxMs].every(
    (each) => typeof each === 'number' && Number.isFinite(each) && each >= 0,
  );
  const areCounts =
    Number.isSafeInteger(calls) && Number.isSafeInteger(failures) && (failures as number) <= (calls as number);
  return areNumbers && areCounts && (mean as number) <= 1 && typeof isOpen === 'boolean';
}
