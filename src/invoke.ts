import { type Taken, ToolCall } from './call.ts';
import { controlIn } from './control.ts';
import { AbortReason, printable, type ToolError, toolError, toToolError } from './error.ts';
import { Gathered, joined } from './gathering.ts';
import type { Pending } from './guard.ts';
import { isErrorLike } from './json.ts';
import { isJudged, judged } from './judgement.ts';
import { Keeper } from './keeper.ts';
import { controlOf } from './layer.ts';
import { isPromise, type MaybePromise } from './maybe-promise.ts';
import {
  fail,
  failure,
  NO_NOTES,
  stopped,
  succeed,
  suspended,
  type ToolOutcome,
  unrunnable,
  withNote,
} from './outcome.ts';
import { toOutput } from './output.ts';
import { isStream, type Stream, StreamReader } from './stream-reader.ts';
import type { Tool } from './tool.ts';

/** The innermost layer: runs the tool. It never throws nor rejects, and answers for a tool that does not heed an abort. */
export function invoke(call: ToolCall): MaybePromise<ToolOutcome> {
  const refusal = unrunnable(call);
  if (refusal !== undefined) return refusal;
  if (call.aborted) return stopped(call);
  if (isJudged(call)) return suspended(call, judged(call, { type: 'run' }));
  const { delivery } = ToolCall.scope(call).dispatch;
  if (delivery?.hasPassed === true && call.executed !== 'no') return delivery.outcome ?? notAgain(call);
  const validation = takeArguments(call);
  if (isPromise(validation))
    return new Run(call).keep(validation.then((settled) => executeLater(call, settled), unprepared));
  try {
    const returned = execute(call, validation);
    if (typeof returned !== 'string' && (isPromise(returned) || isStream(returned)))
      return new Run(call).keep(returned);
    return returnedOutcome(call, returned);
  } catch (thrown) {
    return thrownOutcome(call, thrown);
  }
}

/** Who takes the answer would have the beginning of it twice. */
function notAgain(call: ToolCall): ToolOutcome {
  const message = `Tool "${printable(call.toolName)}" is not run again: part of its answer has been passed on already.`;
  return fail(call, 'execution_failed', message, { executed: call.executed, retryable: false });
}

function takeArguments(call: ToolCall): MaybePromise<Taken> {
  try {
    return ToolCall.take(call);
  } catch (thrown) {
    return { valid: false, error: unpreparedError(thrown) };
  }
}

function unpreparedError(cause: unknown): ToolError {
  return toolError('internal', 'The arguments could not be prepared for the tool.', { cause });
}

function unprepared(cause: unknown): never {
  throw new NotRun(unpreparedError(cause));
}

/** Why a tool did not run after all. */
class NotRun {
  readonly #error: ToolError | undefined;

  /** Without an error it was aborted. */
  constructor(error?: ToolError) {
    this.#error = error;
  }

  /** The outcome, if this was thrown. Asks by the private field, for what a tool throws may answer anything with a throw. */
  static outcomeOf(thrown: unknown, call: ToolCall): ToolOutcome | undefined {
    if (typeof thrown !== 'object' || thrown === null || !(#error in thrown)) return undefined;
    return thrown.#error === undefined ? stopped(call) : failure(call, thrown.#error);
  }
}

function execute(call: ToolCall, taken: Taken): unknown {
  if (taken?.valid !== true) throw new NotRun(taken?.error ?? unpreparedError(taken));
  ToolCall.scope(call).dispatch.running++;
  return (call.tool as Tool<unknown>).execute?.(taken.parsed, call);
}

/** Where the arguments took their time, the call may be over. */
function executeLater(call: ToolCall, taken: Taken): unknown {
  if (call.aborted) throw new NotRun();
  return execute(call, taken);
}

function returnedOutcome(call: ToolCall, value: unknown): ToolOutcome {
  // An Error that is returned says no more to the model than one that is thrown.
  if (typeof value === 'object' && isErrorLike(value)) return thrownOutcome(call, value);
  ToolCall.scope(call).dispatch.over('yes');
  if (typeof value === 'string')
    return { resolvedToolName: call.toolName, content: value, isError: false, notes: NO_NOTES };
  const isGathered = Gathered.is(value);
  const given = isGathered ? value.only?.value : value;
  const control = controlIn(given);
  if (control !== undefined) return suspended(call, control);
  const outcome = succeed(call, isGathered ? value : toOutput(value));
  if (call.tool?.schema.outputSchema !== undefined && given !== undefined) returned.set(outcome, given);
  return outcome;
}

/** What tools that promise data have returned, where it looked like an answer without any. */
const returned = new WeakMap<ToolOutcome, unknown>();

/** What a tool with an output schema returned, where its outcome has no data: `{ content }` or parts may be just what it promises. */
export function returnedValue(outcome: ToolOutcome): unknown {
  return returned.get(outcome);
}

function thrownOutcome(call: ToolCall, thrown: unknown): ToolOutcome {
  const notRun = NotRun.outcomeOf(thrown, call);
  if (notRun !== undefined) return notRun;
  const { aborted, dispatch } = ToolCall.scope(call);
  const error = aborted ? undefined : toToolError(thrown, call.toolName);
  // What it waited for may have been aborted, though the call was not.
  dispatch.over(error === undefined || error.executed === 'stopped' ? 'stopped' : 'yes');
  const control = controlOf(thrown, call);
  if (control !== undefined) return suspended(call, control);
  return error === undefined ? stopped(call, thrown) : failure(call, error);
}

/** What a tool throws after it was answered for; whatever it is, it has ended now. */
function lateFailure(call: ToolCall, thrown: unknown): ToolOutcome {
  const notRun = NotRun.outcomeOf(thrown, call);
  if (notRun !== undefined) return notRun;
  ToolCall.scope(call).dispatch.over('stopped');
  const control = controlOf(thrown, call);
  if (control !== undefined) return suspended(call, control);
  return thrown === call.abortReason ? heededOutcome(call, thrown) : failure(call, toToolError(thrown, call.toolName));
}

/** A tool that heeds its signal rejects with the reason, whatever that is. */
function heededOutcome(call: ToolCall, reason: unknown): ToolOutcome {
  const code = AbortReason.is(reason) ? reason.toolError.code : 'cancelled';
  const message = `Tool "${printable(call.toolName)}" stopped because its work was aborted.`;
  return fail(call, code, message, { executed: 'stopped', cause: reason });
}

/** A tool at work: what it answers after it has been answered for goes to the host as late. */
class Run extends Keeper implements Pending {
  owner: number;
  readonly #level: number;
  #reader: StreamReader | undefined = undefined;

  constructor(call: ToolCall) {
    const scope = ToolCall.scope(call);
    super(call, scope, 1);
    const { guard } = scope;
    this.owner = guard.depth;
    this.#level = guard.depth + 1;
    // A scope that was given up has a guard for all of its kind.
    if (guard === scope.dispatch) {
      guard.depth = this.#level;
      guard.pending = this;
    }
    scope.keep(this);
  }

  keep(work: PromiseLike<unknown> | Stream): Promise<ToolOutcome> {
    const settled = isPromise(work) ? Promise.resolve(work) : this.#read(work as Stream);
    settled.then(
      (value) => {
        if (!isStream(value)) this.settle(this.#whole(this.#noted(returnedOutcome(this.call, value))));
        else if (this.#reader === undefined) this.keep(value);
        // One that ends with itself, again and again, would let nothing else run.
        else setImmediate(() => this.keep(value));
      },
      (thrown) =>
        this.settle(this.#whole(this.answered ? lateFailure(this.call, thrown) : thrownOutcome(this.call, thrown))),
    );
    return this.promise;
  }

  protected override settle(outcome: ToolOutcome): void {
    const { scope } = this;
    if (scope.release(this)) {
      const { guard } = scope;
      if (guard.depth === this.#level) {
        guard.depth = this.owner;
        guard.pending = undefined;
        guard.answer = outcome;
      }
    }
    const { delivery } = scope.dispatch;
    if (delivery?.hasPassed === true) delivery.outcome ??= outcome;
    super.settle(outcome);
  }

  /** An answer that came in the grace after a limit is believed, and says so. */
  #noted(outcome: ToolOutcome): ToolOutcome {
    const { reason } = this.scope;
    if (this.answered || !AbortReason.is(reason)) return outcome;
    const message = `${reason.message} It answered soon after, all the same.`;
    return withNote(outcome, { type: 'exceeded', by: 'dispatcher', message });
  }

  #read(stream: Stream): Promise<unknown> {
    this.#reader = new StreamReader(stream, this.call);
    this.#reader.start();
    return this.#reader.result;
  }

  override abort(graceMs: number): void {
    this.#reader?.abort();
    super.abort(graceMs);
  }

  protected override givenUp(): ToolOutcome {
    this.#reader?.endParts();
    return this.#whole(super.givenUp());
  }

  /** A failure half-way, with what had been delivered before it. */
  #whole(outcome: ToolOutcome): ToolOutcome {
    const delivered = this.#reader?.content ?? '';
    if (delivered === '' || outcome.error === undefined) return outcome;
    return { ...outcome, content: joined(delivered, `\n\n${outcome.error.message}`) };
  }
}
