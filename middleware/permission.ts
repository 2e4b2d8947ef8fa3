import pTimeout from 'p-timeout';
import {
  AbortReason,
  type ApprovalRequest,
  type Approver,
  approvedBy,
  asks,
  checkOptions,
  type DispatchNote,
  deepFreeze,
  failure,
  isFunction,
  isJudged,
  isLimitMs,
  isPromise,
  type JsonObject,
  judged,
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
  type ToolError,
  type ToolOutcome,
  timersOf,
  toJson,
  toolError,
  unrunnable,
  withNote,
} from '../src/index.ts';
import {
  ALLOWED,
  checkIn,
  type Denial,
  fault,
  faultOrControl,
  jsonIn,
  mayAsk,
  type PermissionRule,
  type Suspension,
  strictest,
  type Verdict,
} from './permission-rules.ts';

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
  (Array.isArray(value) && value.length > 0 && [...value].every((rule) => typeof rule === 'function')) ||
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
  const layer = named('permission', function permission(call, next) {
    const refusal = unrunnable(call);
    if (refusal !== undefined) return refusal;
    if (call.aborted) return stopped(call);
    const verdict = judge(call);
    return verdict === ALLOWED ? allowed(call, next) : gate(call, next, verdict);
  });
  return mayAsk([check].flat()) ? asks(layer) : layer;

  /** Where a verdict becomes an outcome. */
  async function gate(original: ToolCall, next: Next, judged: MaybePromise<Verdict>): Promise<ToolOutcome> {
    const { edited, verdict } = await decide({ call: original, edits: 0, notes: [] }, judged);
    const { call, edits, notes } = edited;
    if (call.aborted) return stopped(call);
    if (verdict.type === 'suspend') return suspended(call, verdict.control);
    const outcome = verdict.type === 'allow' ? await allowed(call, next) : failure(call, errorOf(call, verdict));
    return edits === 0 ? outcome : [...notes, editNote(call)].reduce(withNote, outcome);
  }

  function allowed(call: ToolCall, next: Next): MaybePromise<ToolOutcome> {
    return isJudged(call) ? suspended(call, judged(call, { type: 'run' })) : next(call);
  }

  /** Edits are made and judged before anybody is asked, so that people see what will run; their own need no second yes. */
  async function decide(edited: Edited, judged: MaybePromise<Verdict>, approved = false): Promise<Decision> {
    const { call, edits } = edited;
    const found = await within(judged, checkLimitMs, call, 'its permission check');
    const asking = found.type === 'ask';
    if (asking && approved) return { edited, verdict: ALLOWED };
    const verdict = asking ? await ask(edited, found.prompt) : found;
    if (verdict.type !== 'modify') return { edited, verdict };
    if (edits === MAX_EDITS) return { edited, verdict: fault('its arguments were edited again and again') };
    const more = await within(edit(edited, verdict.input), checkLimitMs, call, 'the check of its edited arguments');
    return 'type' in more ? { edited, verdict: more } : decide(more, judge(more.call), asking);
  }

  async function ask({ call, edits }: Edited, prompt: string): Promise<Answer> {
    if (call.aborted) return fault('it was aborted');
    const { id: toolCallId, context, tool, clock, input } = call;
    if (context.isNonInteractive) return fault(told('nobody can be asked, as the session is non-interactive', prompt));
    const isEdited = edits > 0;
    const asked = call.setting(approvedBy) ?? approver;
    const hasApprover = asked !== undefined;
    if (isJudged(call)) {
      const what = { toolName: call.toolName, prompt, input, isEdited, hasApprover, limitMs: approvalLimitMs };
      return { type: 'suspend', control: judged(call, { type: 'ask', ...what }) };
    }
    if (asked === undefined) return fault(told('nobody is there to be asked', prompt));
    const parsed = deepFreeze(jsonIn(call.parsed) ?? toJson(call.parsed));
    const scope = call.abortScope();
    const { signal } = scope.call;
    const what = { input, parsed, isEdited, prompt };
    const request = Object.freeze({ toolCallId, path: pathOf(call), tool: tool as Tool, ...what, context, signal });
    const expire = (): Denial => {
      const message = `Nobody approved the call of tool "${nameOf(call)}" within ${approvalLimitMs} ms, so it did not run.`;
      const error = toolError('approval_expired', message);
      scope.abort(new AbortReason(error));
      return { type: 'deny', error };
    };
    const askedAt = clock.now();
    const answer = (async () => {
      const said: unknown = await asked(request);
      // An approver that keeps the event loop busy lets no timer tell that it took too long.
      return clock.now() - askedAt > approvalLimitMs ? expire() : answerIn(said, call);
    })();
    return within(answer, approvalLimitMs, call, 'its approver', expire).finally(() => scope.end());
  }
}

/** A call, and what has become of it by edits. */
interface Edited {
  readonly call: ToolCall;
  readonly edits: number;
  readonly notes: readonly DispatchNote[];
}

/** The call as it stands in the end, and whether it may run. */
interface Decision {
  readonly edited: Edited;
  readonly verdict: Exclude<Answer, { readonly type: 'modify' }>;
}

/** What can come of asking. */
type Answer = Exclude<Verdict, { readonly type: 'ask' }>;

function pathOf({ parent }: ToolCall): ApprovalRequest['path'] {
  if (parent === undefined) return [];
  return Object.freeze([...pathOf(parent), Object.freeze({ toolName: parent.toolName, toolCallId: parent.id })]);
}

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
): Promise<Value | Denial | Suspension> {
  if (!isPromise(work)) return work;
  try {
    return await pTimeout(work, {
      milliseconds: limitMs,
      fallback: onLimit,
      customTimers: timersOf(call.clock),
      signal: call.signal,
    });
  } catch (thrown) {
    return call.aborted ? fault('it was aborted') : faultOrControl(`${who} failed`, thrown, call);
  }
}

function answerIn(answer: unknown, call: ToolCall): Answer {
  if (answer === true) return ALLOWED;
  const check = answer === false ? PermissionCheck.deny() : checkIn(answer, call);
  if (check === undefined || check.type === 'ask') return fault('its approver gave no valid answer', answer);
  return check.type === 'deny' ? { type: 'deny', error: errorOf(call, check, ' by the user') } : check;
}

async function edit({ call, edits, notes }: Edited, input: JsonObject): Promise<Denial | Edited> {
  const validation = await call.validate(input);
  if (validation.valid) {
    const { parsed, notes: more = [] } = validation;
    return { call: call.with({ input: validation.input, parsed }), edits: edits + 1, notes: [...notes, ...more] };
  }
  const { error } = validation;
  const { code, retryable, executed, cause } = error;
  const what = code === 'invalid_arguments' ? ', and are wrong now' : '';
  const message = `The arguments were edited by the gate${what}. ${error.message}`;
  return {
    type: 'deny',
    error: toolError(code, message, { retryable, executed, ...(cause !== undefined && { cause }) }),
  };
}

function errorOf(call: ToolCall, { error, reason = '', cause }: Denial, by = ''): ToolError {
  if (error !== undefined) return error;
  const why = told(`The call of tool "${nameOf(call)}" was denied${by}`, reason);
  const message = `${why}${ENDS_A_SENTENCE.test(why) ? '' : '.'} Do not make the same call again.`;
  return toolError('denied', message, cause === undefined ? {} : { cause });
}

const ENDS_A_SENTENCE = /[\p{Sentence_Terminal}…][\p{Pe}\p{Pf}"']*$/u;

/** With the words somebody gave, where there are any. */
function told(what: string, words: string): string {
  const said = words.trim();
  return said === '' ? what : `${what}: ${said}`;
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
