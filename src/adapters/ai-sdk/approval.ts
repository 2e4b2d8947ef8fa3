import { isDeepStrictEqual } from 'node:util';
import { type Approver, approvedBy } from '../../approval.ts';
import type { Judgement } from '../../judgement.ts';
import { PermissionCheck } from '../../permission.ts';
import type { Setting } from '../../settings.ts';
import type { SdkMessage } from './sdk.ts';

/** What the SDK's user is asked, where the gate wants somebody to be asked and has nobody; undefined where nobody has to be. */
export function questionIn(judgement: Judgement): string | undefined {
  if (judgement.type !== 'ask' || judgement.hasApprover) return undefined;
  // The SDK's user is shown the arguments the model sent, and cannot say yes to others.
  return judgement.isEdited ? undefined : judgement.prompt;
}

/** A call as the SDK gives it. */
export interface ApprovedCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

/** The answer of the SDK's user to one call, which the messages hold; for the gate, should it ask. */
export function answerIn(messages: readonly SdkMessage[], call: ApprovedCall): readonly Setting[] {
  return isApproved(messages, call) ? APPROVED : [];
}

const approver: Approver = ({ isEdited }) =>
  isEdited ? PermissionCheck.deny('the arguments that were approved are not those it would run with') : true;

const APPROVED: readonly Setting[] = [approvedBy(approver)];

/**
 * Whether there is a yes, and no other answer, to a question about this very call. Answers stand in the last message: the SDK acts on no others. It
 * goes by the ids of calls, which a model may give twice.
 */
function isApproved(messages: readonly SdkMessage[], { toolCallId, toolName, input }: ApprovedCall): boolean {
  const last = messages?.at(-1);
  if (last?.role !== 'tool') return false;
  const answers = partsOf(last).filter(({ type }) => type === 'tool-approval-response');
  if (answers.length === 0) return false;
  const asked = messages.filter((message) => message?.role === 'assistant').flatMap(partsOf);
  const calls = asked.filter(({ type, toolCallId: id }) => type === 'tool-call' && id === toolCallId);
  const [call] = calls;
  if (calls.length !== 1 || call?.toolName !== toolName || !isDeepStrictEqual(call.input, input)) return false;
  const questions = new Set(asked.flatMap((part) => (isQuestionAbout(part, toolCallId) ? [part.approvalId] : [])));
  const own = answers.filter(({ approvalId }) => questions.has(approvalId));
  return own.length > 0 && own.every(({ approved }) => approved === true);
}

type Part = Readonly<Record<'type' | 'approvalId' | 'toolCallId' | 'approved' | 'toolName' | 'input', unknown>>;

function partsOf({ content }: SdkMessage): readonly Part[] {
  return Array.isArray(content) ? content.filter((part) => typeof part === 'object' && part !== null) : [];
}

function isQuestionAbout({ type, toolCallId: id }: Part, toolCallId: string): boolean {
  return type === 'tool-approval-request' && id === toolCallId;
}
