import {
  after,
  type ContentPart,
  checkOptions,
  isCount,
  isFunction,
  MAX_DELAY_MS,
  type Middleware,
  named,
  type OptionCheck,
  Passage,
  type PerTool,
  perTool,
  perToolCheck,
  type ToolCall,
  type ToolError,
  type ToolOutcome,
  withNote,
} from '../src/index.ts';
import { unheard } from './parts/scopes.ts';

/** Options of `retry`. */
export interface RetryOptions {
  /** Runs of the tool in all, the first included. Default: 3. */
  readonly attempts?: PerTool<number>;
  /** Milliseconds before the second run, and twice as many before each further one; half of it by chance. Default: 200. */
  readonly delayMs?: number;
  /** Milliseconds a wait takes at most, also one that a failure asks for by `retryAfterMs`. Default: 10,000. */
  readonly maxDelayMs?: number;
  /** Whether to try again after a failure, of those after which it can be tried. Default: after each. */
  readonly retryIf?: (error: ToolError, call: ToolCall) => boolean;
  /** From 0 up to 1, for the part of a wait that is chance. Default: `Math.random`. */
  readonly random?: () => number;
}

const isDelay: OptionCheck = (value) =>
  (typeof value === 'number' && value >= 0 && value <= MAX_DELAY_MS) || `milliseconds from 0 up to ${MAX_DELAY_MS}`;

/**
 * Runs a tool again whose failure may pass by itself (`retryable`), after a wait that an abort ends. Only where that does no harm: of a tool that is
 * `idempotent` or `readOnly`, or that says it has done nothing (`executed: 'no'`); never while a run may still be under way, and not once
 * a part of the answer has left. Each run has arguments of its own, and the same `call.idempotencyKey`.
 *
 * Outside timeout, so that each run has the whole limit; inside schedule, which keeps the call's turn meanwhile.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example retry({ attempts: { default: 3, byTool: { search: 5 } } })
 */
export function retry(options: RetryOptions = {}): Middleware {
  checkOptions('retry', options, {
    attempts: perToolCheck(isCount(1)),
    delayMs: isDelay,
    maxDelayMs: isDelay,
    retryIf: isFunction,
    random: isFunction,
  });
  const { delayMs = 200, maxDelayMs = 10_000, retryIf = () => true, random = Math.random } = options;
  const attemptsOf = perTool(options.attempts, 3);

  return named('retry', function retry(call, next) {
    const attempts = attemptsOf(call.toolName);
    if (attempts === 1) return next(call);
    const watch = call.channel && new Watch(call.channel);
    const inner = watch === undefined ? call : call.with({ channel: watch });
    return after(next(inner), (outcome) => (isWorth(outcome) ? again(outcome) : outcome));

    function isWorth({ error }: ToolOutcome): boolean {
      return error?.retryable === true && isSafe(error, call) && watch?.hasLeft !== true && isWanted(error, call);
    }

    async function again(first: ToolOutcome): Promise<ToolOutcome> {
      let outcome = first;
      let runs = 1;
      while (runs < attempts && isWorth(outcome)) {
        await pause(call, waitAfter(runs, outcome.error?.retryAfterMs));
        if (call.aborted) break;
        outcome = await next(inner);
        runs++;
      }
      if (runs === 1) return outcome;
      const message = `It was tried ${runs} times.`;
      return withNote(outcome, { type: 'retried', by: 'retry', message, forModel: outcome.isError });
    }
  });

  /** Whether the host wants it. One that fails, or says neither, does not: the failure of the tool is not to be lost for that. */
  function isWanted(error: ToolError, call: ToolCall): boolean {
    const said: unknown = attempted(() => retryIf(error, call));
    unheard(said);
    return said === true;
  }

  /** Milliseconds to wait after so many runs. */
  function waitAfter(runs: number, retryAfterMs = 0): number {
    const chance: unknown = attempted(random);
    const part = typeof chance === 'number' && chance >= 0 && chance <= 1 ? chance : 0;
    const delay = delayMs * 2 ** (runs - 1) * (1 - part / 2);
    return Math.min(maxDelayMs, Math.max(delay, retryAfterMs));
  }
}

function attempted<Value>(ask: () => Value): Value | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}

/** Whether another run does no harm: the tool says that twice is once, or that nothing happened, and no run is under way. */
function isSafe({ code, executed }: ToolError, { tool, executed: known }: ToolCall): boolean {
  if (code === 'cancelled' || known === 'unknown') return false;
  return executed === 'no' || tool?.idempotent === true || tool?.readOnly === true;
}

/** Waits, until the call is aborted at the latest. */
function pause({ clock, signal }: ToolCall, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.setTimeout(end, ms);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();

    function end(): void {
      clock.clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    }
  });
}

/** Sees whether a part has left: the answer has begun, and cannot begin anew. */
class Watch extends Passage {
  hasLeft = false;

  override part(part: ContentPart, call: ToolCall): PromiseLike<unknown> | undefined {
    this.hasLeft = true;
    return super.part(part, call);
  }
}
