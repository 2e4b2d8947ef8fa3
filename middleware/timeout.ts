import {
  AbortReason,
  type AbortScope,
  type Channel,
  type ContentPart,
  checkOptions,
  isLimitMs,
  isPromise,
  type Middleware,
  named,
  type OptionCheck,
  Passage,
  type PerTool,
  type Progress,
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
   * Milliseconds a tool may go without a sign of life: progress it reports (`call.report`), or a part it yields. The time in which a part
   * waits to be taken does not count. `limitMs` holds all the same. Default: Infinity, no such limit.
   */
  readonly idleMs?: PerTool<number>;
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
  checkOptions('timeout', options, {
    limitMs: perToolCheck(isLimitMs),
    idleMs: perToolCheck(isLimitMs),
    graceMs: perToolCheck(isGrace),
  });
  const limitOf = perTool(options.limitMs, 120_000);
  const idleOf = options.idleMs === undefined ? undefined : perTool(options.idleMs, Number.POSITIVE_INFINITY);
  const graceOf = perTool(options.graceMs, 0);

  return named('timeout', function timeout(call, next) {
    const toolName = call.toolName;
    const limitMs = call.setting(timeoutMs) ?? limitOf(toolName);
    const idleMs = idleOf === undefined ? Number.POSITIVE_INFINITY : idleOf(toolName);
    if (limitMs === Number.POSITIVE_INFINITY && idleMs === Number.POSITIVE_INFINITY) return next(call);
    const scope = call.abortScope(limitMs);
    const signs = idleMs < limitMs ? new SignsOfLife(call.channel, idleMs) : undefined;
    const outcome = next(signs === undefined ? scope.call : scope.call.with({ channel: signs }));
    if (!isPromise(outcome)) return scope.follow(outcome);
    const limit = new CallLimit(call, scope, outcome, limitMs, graceOf(toolName), signs);
    if (signs !== undefined) signs.limit = limit;
    return scope.follow(outcome, limit);
  });
}

/** One object for each call that takes its time: a tool which answers at once pays for nothing. */
class CallLimit extends TimeLimit {
  readonly #call: ToolCall;
  readonly #scope: AbortScope;
  readonly #limitMs: number;
  readonly #graceMs: number;
  readonly #signs: SignsOfLife | undefined;
  readonly #deadline: number;
  /** Whether it waits for the next sign of life rather than for the end. */
  #isForSign: boolean;
  /** Whether no sign is waited for, as the tool waits itself for its part to be taken. */
  #isAsleep = false;

  constructor(
    call: ToolCall,
    scope: AbortScope,
    outcome: Promise<ToolOutcome>,
    limitMs: number,
    graceMs: number,
    signs: SignsOfLife | undefined,
  ) {
    // What the tool did before it gave its promise counts as well.
    const left = Math.max(0, scope.startedAt + limitMs - call.clock.now());
    const idleMs = signs?.idleMs ?? Number.POSITIVE_INFINITY;
    super(outcome, Math.min(left, idleMs), call.clock);
    this.#call = call;
    this.#scope = scope;
    this.#limitMs = limitMs;
    this.#graceMs = graceMs;
    this.#signs = signs;
    this.#deadline = scope.startedAt + limitMs;
    this.#isForSign = idleMs < left;
  }

  /** The tool has given a sign of life. */
  alive(signs: SignsOfLife): void {
    if (this.#isAsleep && !signs.isWaiting) {
      this.#isAsleep = false;
      this.restart(this.#next(signs.idleMs));
    } else if (!this.#isAsleep) this.postpone(this.#next(signs.idleMs));
  }

  #next(idleMs: number): number {
    const left = this.#deadline - this.#call.clock.now();
    this.#isForSign = idleMs < left;
    return this.#isForSign ? idleMs : left;
  }

  protected override onLimit(): void {
    const signs = this.#isForSign ? this.#signs : undefined;
    if (signs?.isWaiting === true) {
      this.#isAsleep = true;
      this.restart(this.#next(Number.POSITIVE_INFINITY));
      return;
    }
    const tool = `Tool "${printable(this.#call.toolName)}"`;
    const message =
      signs === undefined
        ? `${tool} did not finish within its limit of ${this.#limitMs} ms.`
        : `${tool} gave no sign of life for ${signs.idleMs} ms.`;
    this.#scope.abort(new AbortReason(toolError('timeout', message)), this.#graceMs);
  }

  settled(): void {
    this.stop();
  }
}

/** Hears what the tool gives before it has ended. */
class SignsOfLife extends Passage {
  readonly idleMs: number;
  /** There once the tool takes its time. */
  limit: CallLimit | undefined = undefined;
  /** Parts that wait to be taken: the tool can do nothing meanwhile. */
  #waiting = 0;

  constructor(outer: Channel | undefined, idleMs: number) {
    super(outer);
    this.idleMs = idleMs;
  }

  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  override part(part: ContentPart, call: ToolCall): PromiseLike<unknown> | undefined {
    const taken = super.part(part, call);
    this.limit?.alive(this);
    if (taken === undefined) return undefined;
    this.#waiting++;
    return Promise.resolve(taken).finally(() => {
      this.#waiting--;
      this.limit?.alive(this);
    });
  }

  override progress(progress: Progress, call: ToolCall): void {
    this.limit?.alive(this);
    super.progress(progress, call);
  }
}
