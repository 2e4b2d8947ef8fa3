import pTimeout from 'p-timeout';
import {
  AbortReason,
  checkOptions,
  controlOf,
  copyJson,
  type DispatchNote,
  deepFreeze,
  failure,
  isFunction,
  isLimitMs,
  isPromise,
  type JsonObject,
  type JsonValue,
  type MaybePromise,
  type Middleware,
  type Next,
  named,
  type OptionCheck,
  PermissionCheck,
  printable,
  stopped,
  suspended,
  type Tool,
  type ToolCall,
  type ToolContext,
  type ToolError,
  type ToolOutcome,
  timersOf,
  toolError,
  unrunnable,
  withNote,
} from '../src/index.ts';
import { checkIn, type Denial, fault, type PermissionRule, strictest, type Verdict } from './permission-rules.ts';

/** What an approver is shown. */
export interface ApprovalRequest {
  readonly toolCallId: string;
  /** The tool that will run. */
  readonly tool: Tool;
  /** A frozen copy of the arguments of the call that will run. */
  readonly input: JsonValue;
  readonly prompt: string;
  readonly context: ToolContext;
  /** Aborts when the answer is no longer waited for: the call was aborted, or the time is up. */
  readonly signal: AbortSignal;
}

/** Answers for a person: yes, no, or a check (deny with a reason, modify the arguments). */
export type Approver = (request: ApprovalRequest) => MaybePromise<boolean | PermissionCheck>;

/** Options of `permission`. */
export interface PermissionOptions {
  /** One rule, or several: deny beats ask beats modify beats allow. Default: deny everything. */
  readonly check?: PermissionRule | readonly PermissionRule[];
  /** Who is asked. Default: nobody, so a call that has to be asked about is denied. */
  readonly approver?: Approver;
  /** Milliseconds the rules may take before the call is denied; Infinity waits. Default: 30,000. */
  readonly checkLimitMs?: number;
  /** Milliseconds the approver may take before the call fails with `approval_expired`; Infinity waits. Default: 300,000. */
  readonly approvalLimitMs?: number;
}

const isRules: OptionCheck = (value) =>
  typeof value === 'function' ||
  (Array.isArray(value) && value.length > 0 && value.every((rule) => typeof rule === 'function')) ||
  'a function or an array of functions, such as allowAll or rules({ allow: ["read_*"] })';

/** Times a call may be edited before it is denied. */
const MAX_EDITS = 8;

/**
 * Lets a call run only if it may. Closed by default: a rule that throws, hangs or answers rubbish denies, and so does having
 * nobody to ask. Edited arguments are validated and judged again before they run.
 *
 * Inside validation, so that nobody is asked about a call that cannot run; outside everything that takes time or a slot.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example permission({ check: rules({ allow: ['read_*'], ask: ['write_file'] }), approver: askInTerminal })
 */
export function permission(options: PermissionOptions = {}): Middleware {
  checkOptions('permission', options, {
    check: isRules,
    approver: isFunction,
    checkLimitMs: isLimitMs,
    approvalLimitMs: isLimitMs,
  });
  const { check = denyByDefault, approver, checkLimitMs = 30_000, approvalLimitMs = 300_000 } = options;
  const judge = strictest([check].flat());

  return named('permission', function permission(call, next) {
    const refusal = unrunnable(call);
    if (refusal !== undefined) return refusal;
    if (call.aborted) return stopped(call);
    const verdict = judge(call);
    return verdict === ALLOWED ? next(call) : gate(call, next, verdict);
  });

  /** Where a verdict becomes an outcome. */
  async function gate(original: ToolCall, next: Next, judged: MaybePromise<Verdict>): Promise<ToolOutcome> {
    const { call, verdict } = await decide(original, judged);
    if (call.aborted) return stopped(call);
    // A rule or an approver that suspends the call has not failed: it is to be answered later.
    const control = verdict.type === 'deny' ? controlOf(verdict.cause, call) : undefined;
    if (control !== undefined) return suspended(call, control);
    const outcome = verdict.type === 'allow' ? await next(call) : failure(call, errorOf(call, verdict));
    return call === original ? outcome : withNote(outcome, editNote(call));
  }

  /** Edits are made and judged before anybody is asked, so that people see what will run; their own need no second yes. */
  async function decide(call: ToolCall, judged: MaybePromise<Verdict>, approved = false, edits = 0): Promise<Decision> {
    const found = await within(judged, checkLimitMs, call, 'its permission check');
    const asking = found.type === 'ask' && !approved;
    const verdict = asking ? await ask(call, found.prompt) : found;
    if (verdict.type === 'ask') return { call, verdict: ALLOWED };
    if (verdict.type !== 'modify') return { call, verdict };
    if (edits === MAX_EDITS) return { call, verdict: fault('its arguments were edited again and again') };
    const edited = await within(edit(call, verdict.input), checkLimitMs, call, 'the check of its edited arguments');
    if (edited.type === 'deny') return { call, verdict: edited };
    return decide(edited.call, judge(edited.call), asking, edits + 1);
  }

  async function ask(call: ToolCall, prompt: string): Promise<Answer> {
    if (call.aborted) return fault('it was aborted');
    const { id: toolCallId, context, tool } = call;
    if (context.isNonInteractive) return fault(`nobody can be asked, as the session is non-interactive: ${prompt}`);
    if (approver === undefined) return fault(`nobody is there to be asked: ${prompt}`);
    const scope = call.abortScope();
    const { signal } = scope.call;
    const input = deepFreeze(copyJson(call.input));
    const request = Object.freeze({ toolCallId, tool: tool as Tool, input, prompt, context, signal });
    const answer = (async () => answerIn(await approver(request), call))();
    const expire = () => {
      const message = `Nobody approved the call of tool "${nameOf(call)}" within ${approvalLimitMs} ms, so it did not run.`;
      const error = toolError('approval_expired', message);
      scope.abort(new AbortReason(error));
      return { type: 'deny', error } as const;
    };
    return within(answer, approvalLimitMs, call, 'its approver', expire).finally(() => scope.end());
  }
}

/** The call as it stands in the end, and whether it may run. */
interface Decision {
  readonly call: ToolCall;
  readonly verdict: Exclude<Answer, { readonly type: 'modify' }>;
}

/** What can come of asking. */
type Answer = Exclude<Verdict, { readonly type: 'ask' }>;

const ALLOWED = PermissionCheck.allow() as { readonly type: 'allow' };

function denyByDefault(): PermissionCheck {
  return PermissionCheck.deny('no permission rules are set up');
}

/** Waits no longer than the limit, and no longer than the call lives. What fails, or takes longer, denies. */
async function within<Value>(
  work: MaybePromise<Value>,
  limitMs: number,
  call: ToolCall,
  who: string,
  onLimit: () => Denial = () => fault(`${who} took longer than ${limitMs} ms`),
): Promise<Value | Denial> {
  if (!isPromise(work)) return work;
  try {
    return await pTimeout(work, {
      milliseconds: limitMs,
      fallback: onLimit,
      customTimers: timersOf(call.clock),
      signal: call.signal,
    });
  } catch (thrown) {
    return fault(`${who} failed`, thrown);
  }
}

function answerIn(answer: unknown, call: ToolCall): Answer {
  if (answer === true) return ALLOWED;
  const check = answer === false ? PermissionCheck.deny() : checkIn(answer, call);
  if (check === undefined || check.type === 'ask') return fault('its approver gave no valid answer', answer);
  return check.type === 'deny' ? { type: 'deny', error: errorOf(call, check, ' by the user') } : check;
}

async function edit(
  call: ToolCall,
  input: JsonObject,
): Promise<Denial | { readonly type: 'edited'; readonly call: ToolCall }> {
  const validation = await call.validate(input);
  if (validation.valid) {
    return { type: 'edited', call: call.with({ input: validation.input, parsed: validation.parsed }) };
  }
  const { error } = validation;
  const message = `The arguments were edited by the gate, and are wrong now. ${error.message}`;
  return { type: 'deny', error: { ...error, message } };
}

function errorOf(call: ToolCall, { error, reason, cause }: Denial, by = ''): ToolError {
  if (error !== undefined) return error;
  const why = `${by}${reason ? `: ${reason}` : ''}`;
  const end = /[.!?]$/.test(why) ? '' : '.';
  const message = `The call of tool "${nameOf(call)}" was denied${why}${end} Do not make the same call again.`;
  return toolError('denied', message, cause === undefined ? {} : { cause });
}

function editNote(call: ToolCall): DispatchNote {
  const text = JSON.stringify(call.input);
  const input = text.length > 500 ? `${text.slice(0, 500).toWellFormed()}…` : text;
  const message = `The arguments of this call were edited before it went on. They are now: ${input}`;
  return { type: 'edited', by: 'permission', message, forModel: true };
}

function nameOf(call: ToolCall): string {
  return printable(call.toolName);
}
