import { createHash } from 'node:crypto';
import type { ApprovalRequest } from '../../approval.ts';
import { canonicalJson } from '../../canonical.ts';
import { isPlainObject } from '../../json.ts';

/** A yes-or-no question to the client's user. */
export interface ElicitParams {
  readonly mode: 'form';
  readonly message: string;
  readonly requestedSchema: {
    readonly type: 'object';
    readonly properties: { readonly approve: { readonly type: 'boolean'; readonly title: string } };
    readonly required: readonly string[];
  };
}

/** Characters of arguments a question shows: all of them, unless nobody would read that. */
const MAX_SHOWN = 10_000;

/** Asks whether a tool may run with these arguments. */
export function question({ prompt, input }: Pick<ApprovalRequest, 'prompt' | 'input'>): ElicitParams {
  const text = JSON.stringify(input, null, 2);
  const shown =
    text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN).toWellFormed()}… (${text.length} characters)` : text;
  return {
    mode: 'form',
    message: text === '{}' ? prompt : `${prompt}\n\n${shown}`,
    requestedSchema: {
      type: 'object',
      properties: { approve: { type: 'boolean', title: 'Let it run' } },
      required: ['approve'],
    },
  };
}

/** Whether the user has said yes, in whatever a client answered. */
export function isYes(answer: unknown): boolean {
  if (!isPlainObject(answer)) return false;
  const { action, content } = answer;
  return action === 'accept' && isPlainObject(content) && content['approve'] === true;
}

const PREFIX = 'toolonion_approve_';

/** Whether a name is one of these. */
export function isQuestionKey(name: string): boolean {
  return name.startsWith(PREFIX);
}

/** The name of a question, which tells all of it: the answer to it is none to another. */
export function questionKey({ prompt, input }: Pick<ApprovalRequest, 'prompt' | 'input'>): string {
  return `${PREFIX}${createHash('sha256')
    .update(canonicalJson([prompt, input]))
    .digest('hex')
    .slice(0, 32)}`;
}
