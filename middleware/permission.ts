import pTimeout from 'p-timeout';
import {
  after,
  checkOptions,
  copyJson,
  deepFreeze,
  fail,
  failure,
  isFunction,
  isPlainObject,
  isPromise,
  type JsonObject,
  type JsonValue,
  MAX_DELAY_MS,
  type MaybePromise,
  type Middleware,
  type Next,
  named,
  type OptionCheck,
  PermissionCheck,
  printable,
  stopped,
  type Tool,
  type ToolCall,
  type ToolContext,
  type ToolOutcome,
  unrunnable,
  type Validation,
  withNote,
} from '../src/index.ts';

/** Decides about one call, once it is validated, for the tool that will run. Ready-made ones: see permission-rules.ts. */
export type PermissionRule = (call: ToolCall) => MaybePromise<PermissionCheck>;

/** What an approver is shown: a frozen copy of exactly what will run. */
export interface ApprovalRequest {
  readonly toolCallId: string;
  readonly tool: Tool;
  readonly input: JsonValue;
  readonly prompt: string;
  readonly context: ToolContext;
  /** Aborts when the answer is no longer waited for. */
  readonly signal: AbortSignal;
}

/** Answers for a person: yes, no, or a check (deny with a reason, modify the arguments). */
export type Approver = (request: ApprovalRequest) => MaybePromise<boolean | PermissionCheck>;

/** Options of `permission`. */
export interface PermissionOptions {
  /** One rule, or several: the strictest answer counts – deny, then ask, then modify, then allow. Default: deny everything. */
  readonly check?: PermissionRule | readonly PermissionRule[];
  /** Who is asked. Default: nobody, so a call that has to be asked about is denied. */
  readonly approver?: Approver;
  /** Milliseconds a rule may take before the call is denied. Default: 30,000. */
  readonly checkLimitMs?: number;
  /** Milliseconds the approver may take before the call fails with `approval_expired`; Infinity waits. Default: 300,000. */
  readonly approvalLimitMs?: number;
}

const isLimit: OptionCheck = (value) =>
  (typeof value === 'number' && value > 0 && (value <= MAX_DELAY_MS || value === Number.POSITIVE_INFINITY)) ||
  `milliseconds above 0 and up to ${MAX_DELAY_MS}, or Infinity`;

const isRules: OptionCheck = (value) =>
  typeof value === 'function' ||
  (Array.isArray(value) && value.length > 0 && value.every((rule) => typeof rule === 'function')) ||
  'a function or an array of functions, such as allowAll or rules({ allow: ["read_*"] })';

/** Rounds of editing and judging anew before a call is denied. */
const MAX_EDITS = 3;

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
    checkLimitMs: isLimit,
    approvalLimitMs: isLimit,
  });
  const { check = deny, approver, checkLimitMs = 30_000, approvalLimitMs = 300_000 } = options;
  const judge = typeof check === 'function' ? check : strictest(check);

  return named('permission', function permission(call, next) {
    const refusal = unrunnable(call);
    if (refusal !== undefined) return refusal;
    if (call.aborted) return stopped(call);
    let verdict: MaybePromise<PermissionCheck>;
    try {
      verdict = judge(call);
    } catch (thrown) {
      return closed(call, 'its permission check failed', thrown);
    }
    if (!isPromise(verdict) && verdict?.type === 'allow') return next(call);
    return gate(call, next, verdict);
  });

  async function gate(original: ToolCall, next: Next, first: MaybePromise<PermissionCheck>): Promise<ToolOutcome> {
    let call = original;
    let verdict: MaybePromise<PermissionCheck> | undefined = first;
    let asked = false;
    for (let edits = 0; edits <= MAX_EDITS; ) {
      let check: unknown;
      try {
        check = await within(verdict ?? judge(call), checkLimitMs, call);
      } catch (thrown) {
        return call.aborted ? stopped(call) : closed(call, 'its permission check failed', thrown);
      }
      if (check === EXPIRED) return closed(call, `its permission check took longer than ${checkLimitMs} ms`);
      if (isCheck(check) && check.type === 'ask') {
        if (asked) return run(original, call, next);
        const answer = await ask(call, check.prompt);
        if ('resolvedToolName' in answer) return answer;
        asked = true;
        check = answer;
      }
      if (!isCheck(check)) return closed(call, 'its permission check gave no valid answer', check);
      if (check.type === 'allow') return run(original, call, next);
      if (check.type === 'deny') return denied(call, check.reason);
      const edited = await edit(call, check.type === 'modify' ? check.input : {});
      if ('resolvedToolName' in edited) return edited;
      call = edited.call;
      verdict = undefined;
      edits++;
    }
    return closed(call, 'its arguments were edited again and again');
  }

  async function ask(call: ToolCall, prompt: string): Promise<PermissionCheck | ToolOutcome> {
    if (call.context.isNonInteractive)
      return denied(call, `nobody can be asked, as the session is non-interactive: ${prompt}`);
    if (approver === undefined) return denied(call, `nobody is there to be asked: ${prompt}`);
    const input = deepFreeze(copyJson(call.input));
    const request = {
      toolCallId: call.id,
      tool: call.tool as Tool,
      input,
      prompt,
      context: call.context,
      signal: call.signal,
    };
    let answer: unknown;
    try {
      answer = await within(approver(Object.freeze(request)), approvalLimitMs, call);
    } catch (thrown) {
      return call.aborted ? stopped(call) : closed(call, 'its approver failed', thrown);
    }
    if (call.aborted) return stopped(call);
    if (answer === EXPIRED) return expired(call, approvalLimitMs);
    if (answer === true) return PermissionCheck.allow();
    if (answer === false) return PermissionCheck.deny();
    return isCheck(answer) && answer.type !== 'ask'
      ? answer
      : closed(call, 'its approver gave no valid answer', answer);
  }
}

function deny(): PermissionCheck {
  return PermissionCheck.deny('no permission rules are set up');
}

async function edit(call: ToolCall, input: JsonObject): Promise<{ readonly call: ToolCall } | ToolOutcome> {
  let validation: Validation;
  try {
    validation = await call.validate(copyJson(input));
  } catch (thrown) {
    return closed(call, 'its edited arguments could not be checked', thrown);
  }
  if (validation.valid) return { call: call.with({ input: validation.input, parsed: validation.parsed }) };
  const { error } = validation;
  return failure(call, {
    ...error,
    message: `The arguments were edited by the gate, and are wrong now. ${error.message}`,
  });
}

function run(original: ToolCall, call: ToolCall, next: Next): MaybePromise<ToolOutcome> {
  if (call === original) return next(call);
  const shown = JSON.stringify(call.input);
  const input = shown.length > 500 ? `${shown.slice(0, 500).toWellFormed()}…` : shown;
  const message = `The arguments were changed before the tool ran. It ran with ${input}`;
  return after(next(call), (outcome) =>
    withNote(outcome, { type: 'edited', by: 'permission', message, forModel: true }),
  );
}

function denied(call: ToolCall, reason: string | undefined): ToolOutcome {
  const why = reason === undefined ? ' by the user' : `: ${reason}`;
  return fail(call, 'denied', `The call of tool "${nameOf(call)}" was denied${why}. Do not make the same call again.`);
}

function closed(call: ToolCall, fault: string, cause?: unknown): ToolOutcome {
  return fail(
    call,
    'denied',
    `The call of tool "${nameOf(call)}" was denied, as ${fault}. Do not make the same call again.`,
    { cause },
  );
}

function expired(call: ToolCall, limitMs: number): ToolOutcome {
  const message = `Nobody approved the call of tool "${nameOf(call)}" within ${limitMs} ms, so it did not run.`;
  return fail(call, 'approval_expired', message);
}

function nameOf(call: ToolCall): string {
  return printable(call.tool?.name ?? call.name);
}

const EXPIRED = Symbol('expired');

/** Waits for an answer no longer than its limit, and no longer than the call lives. */
function within<Value>(
  answer: MaybePromise<Value>,
  limitMs: number,
  call: ToolCall,
): MaybePromise<Value | typeof EXPIRED> {
  if (!isPromise(answer)) return answer;
  const { clock, signal } = call;
  const customTimers = {
    setTimeout: clock.setTimeout as typeof setTimeout,
    clearTimeout: clock.clearTimeout as typeof clearTimeout,
  };
  return pTimeout(answer, { milliseconds: limitMs, fallback: () => EXPIRED, customTimers, signal });
}

function isCheck(value: unknown): value is PermissionCheck {
  if (!isPlainObject(value)) return false;
  const { type, reason, prompt, input } = value;
  if (type === 'allow') return true;
  if (type === 'deny') return reason === undefined || typeof reason === 'string';
  return (type === 'ask' && typeof prompt === 'string') || (type === 'modify' && isPlainObject(input));
}

const STRICTNESS = ['allow', 'modify', 'ask', 'deny'];

function strictest(rules: readonly PermissionRule[]): PermissionRule {
  return (call) => {
    const checks = rules.map((rule) => answerOf(rule, call));
    return checks.some(isPromise) ? Promise.all(checks).then(pick) : pick(checks as PermissionCheck[]);
  };
}

/** A throw becomes a rejection, so that all rules are heard and none is left unhandled. */
function answerOf(rule: PermissionRule, call: ToolCall): MaybePromise<PermissionCheck> {
  try {
    return rule(call);
  } catch (thrown) {
    return Promise.reject(thrown);
  }
}

/** The strictest answer; one that is no answer is stricter than all. */
function pick(checks: readonly PermissionCheck[]): PermissionCheck {
  const invalid = checks.findIndex((check) => !isCheck(check));
  if (invalid >= 0) return checks[invalid] as PermissionCheck;
  return checks.reduce((a, b) => (STRICTNESS.indexOf(b.type) > STRICTNESS.indexOf(a.type) ? b : a));
}
