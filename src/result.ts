import { MalformedArguments, type RepairedArguments, readArguments } from './arguments.ts';
import type { ToolCall } from './call.ts';
import type { Dispatch, Preparation } from './dispatch.ts';
import { printable, toolError } from './error.ts';
import {
  type DispatchNote,
  fail,
  NO_NOTES,
  noteExceeded,
  type RequestedCall,
  type ToolDispatchResult,
  type ToolOutcome,
} from './outcome.ts';
import { UnusableCall } from './request.ts';

/** The result of a call, made once, at the edge. */
export function resultOf(outcome: ToolOutcome, call: ToolCall, dispatch: Dispatch): ToolDispatchResult {
  try {
    return resultFrom(outcome, dispatch);
  } catch (cause) {
    const message = 'The outcome of the call cannot be read.';
    return resultFrom(fail(call, 'internal', message, { executed: call.executed, cause }), dispatch);
  }
}

function resultFrom(given: ToolOutcome, dispatch: Dispatch): ToolDispatchResult {
  const { id: toolCallId, requested, preparation, queuedMs } = dispatch;
  const durationMs = dispatch.host.now() - dispatch.startedAt;
  const outcome = dispatch.waited ? given : noteExceeded(given, durationMs, dispatch.limitMs);
  // A spread costs as much as five layers, so the usual outcome, which has just these keys, is written out.
  if (preparation === undefined && hasFourKeys(outcome)) {
    const { resolvedToolName, content, isError, notes } = outcome;
    return queuedMs === 0
      ? { resolvedToolName, content, isError, notes, toolCallId, durationMs, requested }
      : { resolvedToolName, content, isError, notes, toolCallId, durationMs, queuedMs, requested };
  }
  const before = preparation === undefined ? NO_NOTES : notesFor(outcome.resolvedToolName, preparation);
  const notes = before.length === 0 ? outcome.notes : [...before, ...outcome.notes];
  return { ...outcome, notes, toolCallId, durationMs, ...(queuedMs > 0 && { queuedMs }), requested };
}

function hasFourKeys(outcome: ToolOutcome): boolean {
  let keys = 0;
  for (const _ in outcome) keys++;
  return keys === 4;
}

/** The result where the host gave something that is no request, or options that cannot be. */
export function unusableResult(
  requested: RequestedCall,
  toolCallId: string,
  durationMs: number,
  thrown: unknown,
): ToolDispatchResult {
  const why = UnusableCall.is(thrown) ? thrown.message : 'Something in it cannot be read.';
  const error = toolError('invalid_call', `The call cannot be dispatched. ${why}`, { cause: thrown });
  return {
    resolvedToolName: requested.name,
    content: error.message,
    isError: true,
    error,
    notes: isReplaced(requested.id, toolCallId) ? [replacedNote(requested.id, toolCallId)] : NO_NOTES,
    toolCallId,
    durationMs,
    requested,
  };
}

/** What was done to a call whose arguments were repaired, or whose id was taken. */
export function preparationOf(
  requested: RequestedCall,
  repaired: RepairedArguments | undefined,
  id: string,
  mayRepair: (toolName: string) => boolean,
): Preparation {
  const replaced = isReplaced(requested.id, id) ? [replacedNote(requested.id, id)] : [];
  if (repaired === undefined) return { notes: replaced, malformed: undefined };
  const malformed = (toolName: string) => unrepaired(requested.rawArguments, toolName, mayRepair);
  return { notes: [repairedNote(repaired), ...replaced], malformed };
}

function unrepaired(
  rawArguments: string | undefined,
  toolName: string,
  mayRepair: (toolName: string) => boolean,
): MalformedArguments | undefined {
  if (mayRepair(toolName)) return undefined;
  const read = readArguments(rawArguments, toolName, mayRepair);
  return read instanceof MalformedArguments ? read : undefined;
}

/** Arguments that were not to be repaired for this tool have not been read after all. */
function notesFor(toolName: string, { notes, malformed }: Preparation): readonly DispatchNote[] {
  const isRead = malformed?.(toolName) === undefined;
  return isRead ? notes : notes.filter(({ type }) => type !== 'repaired');
}

function repairedNote({ repairs }: RepairedArguments): DispatchNote {
  const message = `The arguments were not plain JSON, but could be read: ${repairs.join(', ')}.`;
  return { type: 'repaired', by: 'dispatcher', message, forModel: true };
}

/** Whether a call has another id than it asked for. */
export function isReplaced(asked: string | undefined, id: string): asked is string {
  return asked !== undefined && asked !== '' && asked !== id;
}

function replacedNote(asked: string, id: string): DispatchNote {
  return {
    type: 'id_replaced',
    by: 'dispatcher',
    message: `The id "${printable(asked)}" was taken already, so this call is "${id}".`,
  };
}
