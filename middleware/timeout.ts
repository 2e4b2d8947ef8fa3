import {
  AbortReason,
  type AbortScope,
  checkOptions,
  isLimitMs,
  isPromise,
  type Middleware,
  named,
  type OptionCheck,
  type PerTool,
  perTool,
  perToolCheck,
  printable,
  type SettingKey,
  settingKey,
  TimeLimit,
  type ToolCall,
  type ToolOutcome,
  toolError,
} from '../src/index.ts';

/** Options of `timeout`. */
export interface TimeoutOptions {
  /** Milliseconds a tool may take; Infinity for no limit. Default: 120,000, two minutes. */
  readonly limitMs?: PerTool<number>;
  /**
   * Milliseconds a tool may take to stop once its signal has aborted, before it is answered for. Infinity waits as long as it
   * takes, which is right for what writes and cannot be cancelled. Default: 0, one turn of the event loop.
   */
  readonly graceMs?: PerTool<number>;
}

const isGrace: OptionCheck = (value) => value === 0 || isLimitMs(value) === true || `0, or ${isLimitMs(0)}`;

/** The limit for one call, before the middleware's own: `dispatch(call, { settings: [timeoutMs(500)] })`. */
export const timeoutMs: SettingKey<number> = settingKey((value) =>
  checkOptions('settings', { timeoutMs: value }, { timeoutMs: isLimitMs }),
);

/**
 * Ends a call that takes too long: aborts the tool's signal, gives it a moment to stop, and answers `timeout`, telling whether the
 * tool may still be running. A tool that answers after all within the grace is believed. One that returns at once, but later than
 * its limit, as it kept the event loop busy, is believed with a note.
 *
 * Innermost, so that only the tool is timed: no approval, no queue.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example timeout({ limitMs: { default: 10_000, byTool: { deploy: Infinity } } })
 */
export function timeout(options: TimeoutOptions = {}): Middleware {
  checkOptions('timeout', options, { limitMs: perToolCheck(isLimitMs), graceMs: perToolCheck(isGrace) });
  const limitOf = perTool(options.limitMs, 120_000);
  const graceOf = perTool(options.graceMs, 0);

  return named('timeout', function timeout(call, next) {
    const toolName = call.toolName;
    const limitMs = call.setting(timeoutMs) ?? limitOf(toolName);
    if (limitMs === Number.POSITIVE_INFINITY) return next(call);
    const scope = call.abortScope(limitMs);
    const outcome = next(scope.call);
    if (!isPromise(outcome)) return scope.follow(outcome);
    return scope.follow(outcome, new CallLimit(call, scope, outcome, limitMs, graceOf(toolName)));
  });
}

/** One object for each call that takes its time: a tool which answers at once pays for nothing. */
class CallLimit extends TimeLimit {
  readonly #call: ToolCall;
  readonly #scope: AbortScope;
  readonly #limitMs: number;
  readonly #graceMs: number;

  constructor(call: ToolCall, scope: AbortScope, outcome: Promise<ToolOutcome>, limitMs: number, graceMs: number) {
    // What the tool did before it gave its promise counts as well.
    super(outcome, Math.max(0, scope.startedAt + limitMs - call.clock.now()), call.clock);
    this.#call = call;
    this.#scope = scope;
    this.#limitMs = limitMs;
    this.#graceMs = graceMs;
  }

  protected override onLimit(): void {
    const tool = printable(this.#call.toolName);
    const message = `Tool "${tool}" did not finish within its limit of ${this.#limitMs} ms.`;
    this.#scope.abort(new AbortReason(toolError('timeout', message)), this.#graceMs);
  }

  settled(): void {
    this.stop();
  }
}
