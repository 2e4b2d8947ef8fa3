import {
  checkOptions,
  fail,
  isCount,
  isFunction,
  isJudged,
  isLimit,
  type Middleware,
  named,
  type PerTool,
  perTool,
  perToolCheck,
  printable,
  type ToolCall,
  type ToolOutcome,
} from '../src/index.ts';
import { bySession, nameBy, Scopes } from './parts/scopes.ts';

/** Options of `budget`: how many calls there may be. One of `calls` and `callsPerTool` has to be given. */
export interface BudgetOptions {
  /** Calls of all tools together. Default: Infinity, no limit. */
  readonly calls?: number;
  /** Calls of each tool; 0 for none. Default: Infinity, no limit. */
  readonly callsPerTool?: PerTool<number>;
  /** What has a budget of its own, such as a user, a run, or a day. Default: the session, by its id. */
  readonly scope?: (call: ToolCall) => string;
  /** Scopes that are remembered; of more, the one whose last call is longest ago begins anew. Default: 10,000. */
  readonly maxScopes?: number;
}

/**
 * Refuses calls beyond a number, and tells the model to go on without them (`budget_exceeded`). Each call that gets here counts, whatever comes of it;
 * one that is refused here does not, and attempts of one call are one.
 *
 * Inside permission, so that calls which are invalid or denied cost nothing; outside what repeats a call.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example budget({ calls: 50, callsPerTool: { default: Infinity, byTool: { search: 3 } } })
 */
export function budget(options: BudgetOptions): Middleware {
  checkOptions('budget', options ?? {}, {
    calls: isLimit(0),
    callsPerTool: perToolCheck(isLimit(0)),
    scope: isFunction,
    maxScopes: isCount(1),
  });
  if (options?.calls === undefined && options?.callsPerTool === undefined)
    throw new TypeError('budget takes "calls", "callsPerTool" or both: how many calls there may be.');
  const { calls: most = Number.POSITIVE_INFINITY, scope = bySession, maxScopes = 10_000 } = options;
  const mostOf = perTool(options.callsPerTool, Number.POSITIVE_INFINITY);
  const scopes = new Scopes<Spent>(maxScopes, () => ({ calls: 0, byTool: new Map() }));

  return named('budget', function budget(call, next) {
    const mostOfTool = mostOf(call.toolName);
    if ((most === Number.POSITIVE_INFINITY && mostOfTool === Number.POSITIVE_INFINITY) || isJudged(call))
      return next(call);
    const spent = scopes.of(nameBy(scope, call, 'scope'));
    const ofTool = spent.byTool.get(call.toolName) ?? 0;
    if (ofTool >= mostOfTool) return exceeded(call, `Tool "${printable(call.toolName)}" may be called`, mostOfTool);
    if (spent.calls >= most) return exceeded(call, 'Tools may be called', most);
    spent.calls++;
    // Names no tool has are without number.
    if (mostOfTool !== Number.POSITIVE_INFINITY && call.tool !== undefined) spent.byTool.set(call.toolName, ofTool + 1);
    return next(call);
  });
}

interface Spent {
  calls: number;
  readonly byTool: Map<string, number>;
}

function exceeded(call: ToolCall, what: string, most: number): ToolOutcome {
  const times = most === 1 ? 'once' : `${most} times`;
  const message = most === 0 ? `${what} not at all here.` : `${what} ${times} here, which has been done.`;
  return fail(call, 'budget_exceeded', `${message} Do not make this call again: go on with what you have.`);
}
