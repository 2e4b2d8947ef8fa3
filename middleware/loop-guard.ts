import { createHash } from 'node:crypto';
import {
  after,
  canonicalJson,
  checkOptions,
  fail,
  isCount,
  isFunction,
  isJudged,
  isListOf,
  type Middleware,
  named,
  type OptionCheck,
  type ToolCall,
  wildcard,
  withNote,
} from '../src/index.ts';
import { bySession, nameBy, Scopes } from './parts/scopes.ts';

/** Options of `loopGuard`. */
export interface LoopGuardOptions {
  /** From which time on that the same calls come in a row the model is told so. Default: 3. */
  readonly warnAt?: number;
  /** From which time on they are refused; more than `warnAt`. Default: 5. */
  readonly refuseAt?: number;
  /** Different calls that may come round in turn, and are still taken for a loop. Default: 5. */
  readonly maxPeriod?: number;
  /** Tools whose calls are no loop, such as those that look whether something is done; `*` stands for any characters. Default: none. */
  readonly except?: readonly string[];
  /** What has calls of its own, such as a user or a run. Default: the session, by its id. */
  readonly scope?: (call: ToolCall) => string;
  /** Scopes that are remembered; of more, the one whose last call is longest ago begins anew. Default: 10,000. */
  readonly maxScopes?: number;
}

/** Calls that are remembered for each scope are so many times `refuseAt`. */
const LONGEST_PERIOD = 100;

const isPeriod: OptionCheck = (value) =>
  (isCount(1)(value) === true && (value as number) <= LONGEST_PERIOD) || `a whole number from 1 to ${LONGEST_PERIOD}`;

/**
 * Notices that a model makes the same call again and again, or the same few calls in turn: tells it, and refuses them in the end (`loop_detected`).
 * Calls are the same that have the same tool and equal arguments, whatever the order of their keys; those whose arguments cannot be read, if
 * their text is the same.
 *
 * Outside validation, so that calls which never get to a tool are seen as well.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example loopGuard({ except: ['*_status'] })
 */
export function loopGuard(options: LoopGuardOptions = {}): Middleware {
  checkOptions('loopGuard', options, {
    warnAt: isCount(2),
    refuseAt: isCount(2),
    maxPeriod: isPeriod,
    except: isListOf((name) => typeof name === 'string' && name !== '', 'an array of names, such as ["*_status"]'),
    scope: isFunction,
    maxScopes: isCount(1),
  });
  const { warnAt = 3, refuseAt = 5, maxPeriod = 5, scope = bySession, maxScopes = 10_000 } = options;
  if (refuseAt <= warnAt)
    throw new TypeError(
      `Option "refuseAt" of loopGuard must be more than "warnAt", which is ${warnAt}; got ${refuseAt}.`,
    );
  const exempt = (options.except ?? []).map(wildcard);
  /** The last calls of each. */
  const scopes = new Scopes<string[]>(maxScopes, () => []);

  return named('loopGuard', function loopGuard(call, next) {
    // What tools call themselves is no model's doing.
    if (isJudged(call) || call.parent !== undefined || exempt.some((fits) => fits(call.toolName))) return next(call);
    const made = scopes.of(nameBy(scope, call, 'scope'));
    made.push(signatureOf(call));
    if (made.length > maxPeriod * refuseAt) made.shift();
    const { period, times } = loopIn(made, maxPeriod);
    if (times < warnAt) return next(call);
    const message =
      period === 1
        ? `The same call came ${times} times in a row.`
        : `The same ${period} calls came ${times} times in turn.`;
    if (times >= refuseAt)
      return fail(
        call,
        'loop_detected',
        `${message} It is not run again: do something else, or say what is in the way.`,
      );
    const note = { type: 'loop', by: 'loopGuard', message: `${message} Do something else.`, forModel: true };
    return after(next(call), (outcome) => withNote(outcome, note));
  });
}

/** How often the last few calls came in a row, whichever number of them that is most often. */
function loopIn(made: readonly string[], maxPeriod: number): { readonly period: number; readonly times: number } {
  let loop = { period: 1, times: 1 };
  for (let period = 1; period <= Math.min(maxPeriod, made.length / 2); period++) {
    let same = 0;
    for (let at = made.length - 1; at >= period && made[at] === made[at - period]; at--) same++;
    const times = Math.floor(same / period) + 1;
    if (times > loop.times) loop = { period, times };
  }
  return loop;
}

/** Characters of a signature; of a longer one its digest will do. */
const LONGEST = 100;

function signatureOf({ toolName, input, malformed }: ToolCall): string {
  const text = `${toolName}\n${malformed === undefined ? canonicalJson(input) : (malformed.rawArguments ?? malformed.reason)}`;
  return text.length <= LONGEST ? text : createHash('sha256').update(text).digest('base64');
}
