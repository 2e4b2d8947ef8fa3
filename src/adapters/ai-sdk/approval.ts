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

/** The answer of the SDK's user to one call, which the messages hold; for the gate, should it ask. */
export function answerIn(messages: readonly SdkMessage[], toolCallId: string): readonly Setting[] {
  return isApproved(messages, toolCallId) ? APPROVED : [];
}

const approver: Approver = ({ isEdited }) =>
  isEdited ? PermissionCheck.deny('the arguments that were approved are not those it would run with') : true;

const APPROVED: readonly Setting[] = [approvedBy(approver)];

/** Answers stand in the last message: the SDK acts on no others. */
function isApproved(messages: readonly SdkMessage[], toolCallId: string): boolean {
  const last = messages.at(-1);
  if (last?.role !== 'tool') return false;
  const approvals = new Set(partsOf(last).flatMap((part) => (isYes(part) ? [part['approvalId']] : [])));
  if (approvals.size === 0) return false;
  return messages.some((message) => message.role === 'assistant' && partsOf(message).some(isItsRequest));

  function isItsRequest({ type, approvalId, toolCallId: id }: Part): boolean {
    return type === 'tool-approval-request' && id === toolCallId && approvals.has(approvalId);
  }
}

type Part = Readonly<Record<'type' | 'approvalId' | 'toolCallId' | 'approved', unknown>>;

function partsOf({ content }: SdkMessage): readonly Part[] {
  return Array.isArray(content) ? content.filter((part) => typeof part === 'object' && part !== null) : [];
}

function isYes({ type, approved }: Part): boolean {
  return type === 'tool-approval-response' && approved === true;
}
