import {
  type Content,
  type ContentPart,
  closeDangling,
  createDispatcher,
  type Executed,
  fail,
  forModel,
  type JsonObject,
  type JsonValue,
  PermissionCheck,
  type ToolCall,
  type ToolCallRequest,
  type ToolDispatchResult,
  type ToolErrorCode,
  ToolFailure,
  type ToolOutcome,
  ToolOutput,
  toolError,
} from 'toolonion';
import type { Equal, Expect } from './equal.ts';

// A result, as callers read it.

const dispatcher = createDispatcher();
const result = await dispatcher.dispatch({ id: 'call_1', name: 'add', arguments: { a: 1, b: 2 } });
const results = await dispatcher.dispatchAll([{ name: 'add' }]);
const answer = forModel(result);
export type Results = [
  Expect<Equal<typeof result, ToolDispatchResult>>,
  Expect<Equal<typeof results, readonly ToolDispatchResult[]>>,
  Expect<Equal<typeof answer, string | readonly ContentPart[]>>,
  Expect<Equal<typeof result.structured, JsonValue | undefined>>,
  Expect<Equal<typeof result.requested.input, JsonValue>>,
];

// @ts-expect-error: it may have been parts
result.content.toUpperCase();
// @ts-expect-error: a success has no error
result.error.code;
// @ts-expect-error: results are not mutated
result.isError = false;
// @ts-expect-error: nor are their notes
result.notes.push({ type: 'checked', by: 'host', message: 'Checked.' });
// @ts-expect-error: nor the parts
if (typeof result.content !== 'string') result.content[0] = { type: 'text', text: '' };
// @ts-expect-error: nor what was asked for
result.requested.name = 'subtract';
// @ts-expect-error: nor an error
if (result.error) result.error.retryable = true;

// A switch over the codes of errors can be complete.

export function isOurFault(code: ToolErrorCode): boolean {
  switch (code) {
    case 'internal':
    case 'output_invalid':
      return true;
    case 'not_found':
    case 'disabled':
    case 'invalid_call':
    case 'invalid_arguments':
    case 'truncated_arguments':
    case 'denied':
    case 'approval_expired':
    case 'timeout':
    case 'cancelled':
    case 'rate_limited':
    case 'circuit_open':
    case 'budget_exceeded':
    case 'loop_detected':
    case 'execution_failed':
    case 'file_not_found':
    case 'io':
    case 'json':
      return false;
    default:
      return code satisfies never;
  }
}
export type Effects = Expect<Equal<Executed, 'no' | 'stopped' | 'yes' | 'unknown'>>;

declare const call: ToolCall;
fail(call, 'rate_limited', 'Try again in a minute.', { retryable: true, executed: 'no' });
// @ts-expect-error: no such code
fail(call, 'rate-limited', 'Try again in a minute.');
// @ts-expect-error: no such code
toolError('oops', 'Oops.');
// @ts-expect-error: no such code
new ToolFailure('Oops.', { code: 'oops' });
// @ts-expect-error: it is `retryable`
toolError('io', 'Broken pipe.', { retriable: true });
// @ts-expect-error: no such effect
toolError('io', 'Broken pipe.', { executed: 'maybe' });

// Outcomes are made from outcomes.

declare const outcome: ToolOutcome;
export const copy: ToolOutcome = { ...outcome, content: 'shorter' };
// @ts-expect-error: every outcome tells which tool it came from
export const bare: ToolOutcome = { content: 'done', isError: false, notes: [] };
// @ts-expect-error: an error has a code, a message and the rest
export const wrong: ToolOutcome = { ...outcome, error: 'failed' };

// Parts and outputs.

export const parts: readonly ContentPart[] = [
  { type: 'text', text: 'A chart.' },
  { type: 'image', mimeType: 'image/png', data: new Uint8Array() },
  { type: 'file', url: 'https://example.org/report.pdf' },
  { type: 'resource_link', uri: 'file:///notes.md' },
];
// @ts-expect-error: bytes or a place to fetch them from
export const empty: ContentPart = { type: 'image', mimeType: 'image/png' };
// @ts-expect-error: of bytes it has to be known what they are
export const unknownBytes: ContentPart = { type: 'image', data: 'aGk=' };
// @ts-expect-error: no such part
export const html: ContentPart = { type: 'html', text: '<p>' };
ToolOutput.json({ degrees: 21 }, '21 °C');
// @ts-expect-error: text or parts
ToolOutput.text({ degrees: 21 });

// Permission checks.

declare const input: JsonObject;
export const checks: readonly PermissionCheck[] = [
  PermissionCheck.allow(),
  PermissionCheck.deny(),
  PermissionCheck.deny('not on Sundays'),
  PermissionCheck.ask('Really?'),
  PermissionCheck.modify({ ...input, dryRun: true }),
];
export function described(check: PermissionCheck): string {
  if (check.type === 'deny') return check.reason ?? 'denied';
  if (check.type === 'ask') return check.prompt;
  return check.type === 'modify' ? Object.keys(check.input).join() : 'allowed';
}
// @ts-expect-error: a question has to be asked
PermissionCheck.ask();
// @ts-expect-error: arguments are an object
PermissionCheck.modify('dry run');
// @ts-expect-error: a date is no JSON
PermissionCheck.modify({ on: new Date() });
// @ts-expect-error: no such check
export const maybe: PermissionCheck = { type: 'maybe' };
// @ts-expect-error: the prompt is missing
export const silent: PermissionCheck = { type: 'ask' };

// The history of a host has its own messages.

type Message =
  | { readonly role: 'assistant'; readonly calls: readonly ToolCallRequest[] }
  | { readonly role: 'tool'; readonly id: string; readonly text: Content };
declare const history: readonly Message[];

const shape = {
  calls: (message: Message) => (message.role === 'assistant' ? message.calls : []),
  answers: (message: Message) => (message.role === 'tool' ? [message.id] : []),
};
const closed = closeDangling(history, {
  ...shape,
  answer: ({ toolCallId, content }) => ({ role: 'tool', id: toolCallId, text: content }),
});
export type Closed = Expect<Equal<typeof closed, readonly Message[]>>;

// @ts-expect-error: what is put in is a message as well
closeDangling(history, { ...shape, answer: ({ toolCallId }) => ({ role: 'tool', id: toolCallId }) });
// @ts-expect-error: the shape says how calls are answered
closeDangling(history, shape);
