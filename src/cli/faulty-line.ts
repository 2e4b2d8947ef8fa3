import { type ToolDispatchResult, type ToolErrorCode, type ToolErrorOptions, toolError } from '../index.ts';
import type { FaultyCall } from './calls.ts';

/** The result of a line that holds no call. */
export function faultyLine(line: number, { fault, ...call }: FaultyCall): ToolDispatchResult {
  return resultOf(line, call, 'invalid_call', `Line ${line} holds no call: ${fault}.`);
}

/** The result of a call that a dispatcher gave none for, against what it promises. */
export function brokenCall(line: number, call: Partial<FaultyCall>, cause: unknown): ToolDispatchResult {
  return resultOf(line, call, 'internal', `The dispatcher gave no result for line ${line}.`, {
    executed: 'unknown',
    cause,
  });
}

function resultOf(
  line: number,
  { id, name = '' }: Partial<FaultyCall>,
  code: ToolErrorCode,
  message: string,
  options?: ToolErrorOptions,
): ToolDispatchResult {
  const error = toolError(code, message, options);
  const requested = { ...(id !== undefined && { id }), name, input: {} };
  const toolCallId = id || `line-${line}`;
  return {
    resolvedToolName: name,
    content: message,
    isError: true,
    error,
    notes: [],
    toolCallId,
    durationMs: 0,
    requested,
  };
}
