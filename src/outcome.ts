import type { MalformedArguments } from './arguments.ts';
import type { ToolCall } from './call.ts';
import type { Content } from './content.ts';
import { isContent } from './content.ts';
import type { ControlSignal } from './control.ts';
import {
  AbortReason,
  changedError,
  type Executed,
  isToldByTool,
  isToolError,
  notFound,
  printable,
  type ToolError,
  type ToolErrorCode,
  type ToolErrorOptions,
  toolError,
  toToolError,
} from './error.ts';
import type { JsonValue } from './json.ts';
import type { ToolOutput } from './output.ts';

/** What a layer did to a call, for whoever reads the result. */
export interface DispatchNote {
  /** The kind: `edited`, `truncated`, `exceeded`, `dropped_keys`, `id_replaced`, … A middleware may add kinds of its own. */
  readonly type: string;
  /** The middleware that did it. */
  readonly by: string;
  /** What was done, in a sentence. */
  readonly message: string;
  /** Whether the model has to know: `forModel` then appends the message to the answer. Default: no. */
  readonly forModel?: boolean;
}

/** What travels outward between layers. Never mutated: a layer that changes something returns a copy. */
export interface ToolOutcome {
  /** The tool that ran; differs from the name asked for after routing. */
  readonly resolvedToolName: string;
  readonly content: Content;
  /** The answer as data for programs: whole or absent, never half. */
  readonly structured?: JsonValue;
  readonly isError: boolean;
  /** A hard failure; `isError` without it is a soft one, told by the tool itself. */
  readonly error?: ToolError;
  readonly notes: readonly DispatchNote[];
  /** A suspension, or a runtime's own interrupt: every layer passes it on by identity. */
  readonly control?: ControlSignal;
}

/** What the caller of `dispatch` gets: exactly one for each call. */
export interface ToolDispatchResult extends ToolOutcome {
  /** The model's id, or a generated one where it was missing, empty or already in flight. */
  readonly toolCallId: string;
  /** Milliseconds from `dispatch` to the answer, waiting for approval and for its turn included. */
  readonly durationMs: number;
  /** How many of these it waited for its turn among other calls, which is no work of its tool. Default: it did not wait. */
  readonly queuedMs?: number;
  /** What was asked for, as it was sent; safe to replay as JSON. */
  readonly requested: RequestedCall;
}

/** A call as the model sent it. */
export interface RequestedCall {
  readonly id?: string;
  readonly name: string;
  /** The arguments as they could be read; `{}` where they could not. */
  readonly input: JsonValue;
  /** The arguments' text, where they came as text. */
  readonly rawArguments?: string;
}

export const NO_NOTES: readonly DispatchNote[] = Object.freeze([]);

/** The outcome of a tool that answered. */
export function succeed(call: ToolCall, output: ToolOutput): ToolOutcome {
  const resolvedToolName = call.toolName;
  const { content, isError, structured } = output;
  return structured === undefined
    ? { resolvedToolName, content, isError, notes: NO_NOTES }
    : { resolvedToolName, content, structured, isError, notes: NO_NOTES };
}

/** The outcome of a hard failure. A middleware that refuses a call returns this instead of calling `next`. */
export function fail(call: ToolCall, code: ToolErrorCode, message: string, options?: ToolErrorOptions): ToolOutcome {
  return failure(call, toolError(code, message, options));
}

/**
 * The outcome for a ToolError that is already made. None may claim that nothing ran where an earlier attempt did, unless the tool
 * itself says so.
 */
export function failure(call: ToolCall, error: ToolError): ToolOutcome {
  const { executed, toolName: resolvedToolName } = call;
  const isTrue = KNOWLEDGE[executed] <= KNOWLEDGE[error.executed] || isToldByTool(error);
  const told = isTrue ? error : changedError(error, { executed });
  return { resolvedToolName, content: told.message, isError: true, error: told, notes: NO_NOTES };
}

/** What outweighs what, of several attempts. */
const KNOWLEDGE: Readonly<Record<Executed, number>> = { no: 0, stopped: 1, yes: 2, unknown: 3 };

/** The outcome of a call that stops here without having failed. */
export function suspended(call: ToolCall, control: ControlSignal): ToolOutcome {
  const content = control.type === 'suspend' ? control.request.reason : '';
  return { resolvedToolName: call.toolName, content, isError: false, notes: NO_NOTES, control };
}

/** What came of a call, in a word: the code of its error, `soft_error`, the type of its control signal, or `ok`. */
export function codeOf({ error, isError, control }: ToolOutcome): string {
  return error?.code ?? (isError ? 'soft_error' : (control?.type ?? 'ok'));
}

/** The same outcome with one more note. */
export function withNote(outcome: ToolOutcome, note: DispatchNote): ToolOutcome {
  return { ...outcome, notes: [...outcome.notes, note] };
}

/** Whether a value can travel as an outcome. Total, whatever the value does when it is looked at. */
export function isOutcome(value: unknown): value is ToolOutcome {
  if (typeof value !== 'object' || value === null) return false;
  try {
    const { isError, content, notes, resolvedToolName, error } = value as Partial<ToolOutcome>;
    if (typeof isError !== 'boolean' || typeof resolvedToolName !== 'string') return false;
    if (!Array.isArray(notes) || !notes.every(isNote)) return false;
    return isContent(content) && (error === undefined || isToolError(error));
  } catch {
    return false;
  }
}

/** Whether a value has what logs and `forModel` read of a note. */
function isNote(value: unknown): boolean {
  const { type, message } = (value ?? {}) as Partial<DispatchNote>;
  return typeof type === 'string' && typeof message === 'string';
}

/** The outcome of a call that was aborted: cancelled, or what the aborting layer gave as its reason, with what is known of its effect. */
export function stopped(call: ToolCall, cause?: unknown): ToolOutcome {
  const { executed } = call;
  const { abortReason: reason } = call;
  const layers = AbortReason.is(reason) ? reason.toolError : undefined;
  const tool = printable(call.toolName);
  const what = layers?.message ?? `The call of tool "${tool}" was cancelled.`;
  const message = `${what} ${STOPPED[executed]}${wordsOf(cause, tool)}`;
  const outcome = fail(call, layers?.code ?? 'cancelled', message, { executed, cause: cause ?? reason });
  stoppedErrors.add(outcome.error as ToolError);
  return outcome;
}

/** What a tool that was stopped has to say to the model. */
function wordsOf(cause: unknown, tool: string): string {
  if (cause === undefined) return '';
  const error = toToolError(cause, tool);
  return isToldByTool(error) ? ` It said: ${error.message}` : '';
}

const stoppedErrors = new WeakSet<ToolError>();

/** Whether an outcome, or what a layer made of it, was answered in the place of whatever was aborted. */
export function isStopped(outcome: ToolOutcome): boolean {
  return outcome.error !== undefined && stoppedErrors.has(outcome.error);
}

const STOPPED: Readonly<Record<Executed, string>> = {
  no: 'It had not started.',
  stopped: 'It was stopped before it was done.',
  yes: 'It had finished, but its answer is lost.',
  unknown: 'It may still be running, so its effect is unknown: check before you call it again.',
};

/** Tells of an answer that was not stopped at its limit, as nothing else could run meanwhile. */
export function noteExceeded(outcome: ToolOutcome, takenMs: number, limitMs: number | undefined): ToolOutcome {
  if (limitMs === undefined || takenMs <= limitMs) return outcome;
  const taken = Math.round(takenMs);
  const message = `The call took ${taken} ms, longer than its limit of ${limitMs} ms: the event loop was busy, so that nothing could stop it.`;
  return withNote(outcome, { type: 'exceeded', by: 'dispatcher', message });
}

/** The answer for a call that no tool can take: nameless, unknown, unreadable, or only shown to the model. */
export function unrunnable(call: ToolCall): ToolOutcome | undefined {
  const { tool, malformed } = call;
  if (tool?.execute !== undefined && malformed === undefined) return undefined;
  if (call.name === '') return fail(call, 'invalid_call', 'The call names no tool. Give the name of one of the tools.');
  if (tool === undefined) return failure(call, notFound(call.name, call.tools.names));
  if (malformed !== undefined) return unreadable(call, printable(tool.name), malformed);
  return fail(call, 'disabled', `Tool "${printable(tool.name)}" cannot be run here. Use another tool.`);
}

function unreadable(call: ToolCall, tool: string, { reason, message }: MalformedArguments): ToolOutcome {
  const subject = `The arguments of tool "${tool}"`;
  if (reason === 'truncated') {
    const remedy = 'Send the call again, complete; if it was cut for its length, split it into smaller calls.';
    return fail(call, 'truncated_arguments', `${subject} are incomplete. ${message} ${remedy}`);
  }
  const remedy =
    reason === 'several_objects'
      ? 'Nothing has run. Send a call of its own for each.'
      : 'Send one JSON object that follows the schema of the tool.';
  return fail(call, 'invalid_arguments', `${subject} could not be read. ${message} ${remedy}`);
}
