import {
  after,
  checkOptions,
  fail,
  isFunction,
  isJudged,
  type Middleware,
  named,
  printable,
  type ToolCall,
  type ToolOutcome,
} from '../src/index.ts';
import { nameBy } from './parts/scopes.ts';
import { ToolHealth, verdictOf } from './tool-health.ts';

/** Options of `circuitBreaker`. */
export interface CircuitBreakerOptions {
  /** What is known of the tools; share it with `fallback`, and show it. Default: one of its own. */
  readonly health?: ToolHealth;
  /** What fails together, as tools of one service do. Default: the tool, by its name. */
  readonly key?: (call: ToolCall) => string;
}

/**
 * Does not call a tool that has failed several times in a row (`circuit_open`), until it has had time to recover; then a few calls show whether it has.
 * Only failures of what a tool depends on count, such as a timeout: arguments that are wrong, and calls that are denied or aborted,
 * say nothing of it.
 *
 * Outside retry, so that the attempts of a call are one; inside what waits, so that a call is judged when it runs.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example circuitBreaker({ health: new ToolHealth({ failures: 5, clock }) })
 */
export function circuitBreaker(options: CircuitBreakerOptions = {}): Middleware {
  checkOptions('circuitBreaker', options, {
    health: (value) => isHealth(value) || 'a ToolHealth',
    key: isFunction,
  });
  const { key = byName } = options;
  let known = options.health;

  return named('circuitBreaker', function circuitBreaker(call, next) {
    // Names no tool has are without number.
    if (call.tool === undefined || isJudged(call)) return next(call);
    known ??= new ToolHealth({ clock: call.clock });
    const health = known;
    const name = nameBy(key, call, 'key');
    const admission = health.admit(name);
    if (admission === undefined) return refused(call, health.report(name).retryAfterMs);
    const startedAt = call.clock.now();
    return after(next(call), (outcome) => {
      admission.settle(verdictOf(outcome, call.executed), call.clock.now() - startedAt);
      return outcome;
    });
  });
}

function byName({ toolName }: ToolCall): string {
  return toolName;
}

function isHealth(value: unknown): boolean {
  return typeof (value as Partial<ToolHealth> | null)?.admit === 'function';
}

function refused(call: ToolCall, retryAfterMs: number): ToolOutcome {
  const when = Number.isFinite(retryAfterMs) ? ` for ${Math.ceil(retryAfterMs / 1000)} s` : '';
  const message = `Tool "${printable(call.toolName)}" keeps failing, and is not called${when}. Do without it, or try again later.`;
  return fail(call, 'circuit_open', message, { retryAfterMs });
}
