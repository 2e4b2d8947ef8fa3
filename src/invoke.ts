import { type Taken, ToolCall } from './call.ts';
import type { Content, ContentPart } from './content.ts';
import { type ControlSignal, isControlSignal } from './control.ts';
import { AbortReason, printable, type ToolError, toolError, toToolError } from './error.ts';
import type { Pending } from './guard.ts';
import { closeStream, isErrorLike, isNodeStream } from './json.ts';
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
import { type ToolOutput, toOutput } from './output.ts';
import type { Tool } from './tool.ts';

/** The innermost layer: runs the tool. It never throws nor rejects, and answers for a tool that does not heed an abort. */
export function invoke(call: ToolCall): MaybePromise<ToolOutcome> {
  const refusal = unrunnable(call);
  if (refusal !== undefined) return refusal;
  if (call.aborted) return stopped(call);
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
  if (typeof value !== 'string') {
    const control = controlIn(value);
    if (control !== undefined) return suspended(call, control);
    const outcome = succeed(call, toOutput(value));
    if (call.tool?.schema.outputSchema !== undefined && !(value instanceof Joined)) returned.set(outcome, value);
    return outcome;
  }
  return { resolvedToolName: call.toolName, content: value, isError: false, notes: NO_NOTES };
}

/** What tools that promise data have returned, where it looked like an answer without any. */
const returned = new WeakMap<ToolOutcome, unknown>();

/** What a tool with an output schema returned, where its outcome has no data: `{ content }` or parts may be just what it promises. */
export function returnedValue(outcome: ToolOutcome): unknown {
  return returned.get(outcome);
}

/** What suspends the call: a signal, or the result of another dispatch that ended by one. */
function controlIn(value: unknown): ControlSignal | undefined {
  if (isControlSignal(value)) return value;
  if (typeof value !== 'object' || value === null) return undefined;
  try {
    const { control } = value as Partial<ToolOutcome>;
    return isControlSignal(control) ? control : undefined;
  } catch {
    return undefined;
  }
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
  #generator: Generator | undefined = undefined;
  #stream: Stream | undefined = undefined;

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
    const settled = isPromise(work) ? Promise.resolve(work) : this.#drain(work as Stream);
    settled.then(
      (value) => {
        if (isStream(value)) this.keep(value);
        else this.settle(this.#noted(returnedOutcome(this.call, value)));
      },
      (thrown) => this.settle(this.answered ? lateFailure(this.call, thrown) : thrownOutcome(this.call, thrown)),
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
    super.settle(outcome);
  }

  /** An answer that came in the grace after a limit is believed, and says so. */
  #noted(outcome: ToolOutcome): ToolOutcome {
    const { reason } = this.scope;
    if (this.answered || !AbortReason.is(reason)) return outcome;
    const message = `${reason.message} It answered soon after, all the same.`;
    return withNote(outcome, { type: 'exceeded', by: 'dispatcher', message });
  }

  override abort(graceMs: number): void {
    this.#close();
    super.abort(graceMs);
  }

  /** Collects what a generator yields; what it returns, if anything, replaces that. */
  async #drain(stream: Stream): Promise<unknown> {
    this.#stream = stream;
    const generator = Symbol.asyncIterator in stream ? stream[Symbol.asyncIterator]() : stream;
    this.#generator = generator;
    if (this.call.aborted) this.#close();
    const yields: ToolOutput[] = [];
    let first: unknown;
    for (let steps = 1; ; steps++) {
      const step = await generator.next();
      // At once, before a look at anything else: a promise that rejects must not be left alone.
      const value = isAwaitable(step.value) ? await this.#yielded(step.value) : step.value;
      // One that never really waits would let nothing else run, its time limit included.
      if (steps % STEPS_AT_ONCE === 0) await new Promise((resolve) => setImmediate(resolve));
      if (this.call.aborted) throw this.call.abortReason;
      if (step.done === true) return value !== undefined ? value : steps === 2 ? first : together(yields);
      if (isControlSignal(value) || isErrorLike(value)) {
        this.#close();
        return value;
      }
      if (steps === 1) first = value;
      yields.push(toOutput(value));
    }
  }

  /** What a synchronous generator yields may be a promise; an asynchronous one has waited for it. */
  async #yielded(value: PromiseLike<unknown>): Promise<unknown> {
    try {
      return await value;
    } catch (thrown) {
      this.#close();
      throw thrown;
    }
  }

  /** Lets a suspended generator run its `finally`. Not awaited: one stuck in an await would hold everything up. */
  #close(): void {
    const generator = this.#generator;
    this.#generator = undefined;
    try {
      Promise.resolve(generator?.return?.(undefined)).catch(() => {});
      // Its own iterator would wait for what comes next.
      if (isNodeStream(this.#stream)) closeStream(this.#stream);
    } catch {
      // It has been told; what it makes of that is its own affair.
    }
  }
}

/** Steps a generator may take before the event loop turns. */
const STEPS_AT_ONCE = 1000;

/** An iterator that a generator function made, synchronous or not. */
interface Generator {
  next(): PromiseLike<IteratorResult<unknown>> | IteratorResult<unknown>;
  return?(value: undefined): unknown;
}

/** What gives an answer piece by piece: a generator, or anything else that can be iterated asynchronously. */
type Stream = Generator | { [Symbol.asyncIterator](): Generator };

/** A list or a Map is data, though it can be iterated. */
function isStream(value: unknown): value is Stream {
  if (typeof value !== 'object' || value === null) return false;
  try {
    if (typeof Reflect.get(value, Symbol.asyncIterator) === 'function') return true;
    return Symbol.iterator in value && typeof (value as Partial<Generator>).next === 'function';
  } catch {
    return false;
  }
}

/** Whether there is something to wait for. Total: what cannot be asked is rendered as data. */
function isAwaitable(value: unknown): value is PromiseLike<unknown> {
  try {
    return isPromise(value);
  } catch {
    return false;
  }
}

/** What a generator has yielded, as one answer: text joins the text before it, and data stands on a line of its own. */
function together(yields: readonly ToolOutput[]): ToolOutput {
  const parts: ContentPart[] = [];
  let isAfterData = false;
  for (const { content, structured } of yields) {
    const isData = structured !== undefined;
    if (isData && isAfterData) append(parts, { type: 'text', text: '\n' });
    for (const part of typeof content === 'string' ? [{ type: 'text', text: content } as const] : content)
      append(parts, part);
    isAfterData = isData;
  }
  return new Joined(
    contentOf(parts),
    yields.some(({ isError }) => isError),
  );
}

/** An answer that no tool has given as it is: it was put together of pieces. */
class Joined implements ToolOutput {
  readonly content: Content;
  readonly isError: boolean;

  constructor(content: Content, isError: boolean) {
    this.content = content;
    this.isError = isError;
  }
}

function append(parts: ContentPart[], part: ContentPart): void {
  const last = parts.at(-1);
  if (part.type === 'text' && last?.type === 'text')
    parts[parts.length - 1] = { type: 'text', text: last.text + part.text };
  else parts.push(part);
}

function contentOf(parts: readonly ContentPart[]): Content {
  const [first, ...others] = parts;
  if (first === undefined) return '';
  return first.type === 'text' && others.length === 0 ? first.text : parts;
}
