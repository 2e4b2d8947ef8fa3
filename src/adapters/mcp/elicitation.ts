import { createHash } from 'node:crypto';
import { type Approver, approvedBy } from '../../approval.ts';
import { canonicalJson } from '../../canonical.ts';
import { MAX_DELAY_MS } from '../../clock.ts';
import type { Dispatcher } from '../../dispatcher.ts';
import { isPlainObject, type JsonValue } from '../../json.ts';
import type { GateQuestion } from '../../judgement.ts';
import { PermissionCheck } from '../../permission.ts';
import type { DispatchOptions, ToolCallRequest } from '../../request.ts';
import type { Setting } from '../../settings.ts';

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

/** A question as it goes to the client. */
export interface Question {
  /** Its name, which tells all of it: the answer to it is none to another. */
  readonly key: string;
  readonly params: ElicitParams;
  /** Milliseconds there are for an answer. */
  readonly limitMs: number;
}

/** Asks the client's user: gives the answer, or what to send back to have it asked. */
export type Ask = (question: Question) => Promise<boolean | object>;

/** Under which the revision of July 2026 sends with each request what the client can do. */
export const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';

/** Whether a client says that it can ask its user by a form. */
export function canAsk(capabilities: unknown): boolean {
  const elicitation = isPlainObject(capabilities) ? capabilities['elicitation'] : undefined;
  if (!isPlainObject(elicitation)) return false;
  // Without a word of what kind, forms are meant.
  return 'form' in elicitation || Object.keys(elicitation).length === 0;
}

/**
 * What the client's user says, where the gate wants somebody to be asked and has nobody: for the dispatch of the call. Or what to send back to have
 * it asked; undefined where nobody has to be.
 */
export async function answerTo(
  dispatcher: Dispatcher,
  request: ToolCallRequest,
  options: DispatchOptions,
  ask: Ask,
): Promise<readonly Setting[] | object | undefined> {
  const judgement = await dispatcher.judge(request, options);
  if (judgement.type !== 'ask' || judgement.hasApprover) return undefined;
  const message = messageOf(judgement);
  if (message === undefined) return [approvedBy(tooLong)];
  const key = questionKey(judgement.toolName, judgement.prompt, judgement.input);
  try {
    const limitMs = Math.min(judgement.limitMs, MAX_DELAY_MS);
    const said = await ask({ key, params: { mode: 'form', message, requestedSchema: YES_OR_NO }, limitMs });
    if (typeof said === 'object') return said;
    return [approvedBy(({ tool, prompt, input }) => said && questionKey(tool.name, prompt, input) === key)];
  } catch {
    // The gate says that nobody is there.
    return undefined;
  }
}

const YES_OR_NO: ElicitParams['requestedSchema'] = {
  type: 'object',
  properties: { approve: { type: 'boolean', title: 'Let it run' } },
  required: ['approve'],
};

/** Characters of arguments that a person can be expected to read. */
const MAX_SHOWN = 10_000;

const tooLong: Approver = () =>
  PermissionCheck.deny(
    `its arguments are too long to be shown to whoever would be asked: over ${MAX_SHOWN} characters`,
  );

/** What the user reads, the arguments whole; undefined where they are too long: what is not shown is not approved. */
function messageOf({ prompt, input }: GateQuestion): string | undefined {
  const shown = JSON.stringify(input, null, 2);
  if (shown.length > MAX_SHOWN) return undefined;
  // Characters nobody sees could turn the writing round, and show another text than is meant.
  return (shown === '{}' ? prompt : `${prompt}\n\n${shown}`).replaceAll(/\p{Cf}/gu, escaped);
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}

/** Whether the user has said yes, in whatever a client answered. */
export function isYes(answer: unknown): boolean {
  if (!isPlainObject(answer)) return false;
  const { action, content } = answer;
  return action === 'accept' && isPlainObject(content) && content['approve'] === true;
}

const PREFIX = 'toolonion_approve_';

function questionKey(toolName: string, prompt: string, input: JsonValue): string {
  return `${PREFIX}${createHash('sha256')
    .update(canonicalJson([toolName, prompt, input]))
    .digest('hex')
    .slice(0, 32)}`;
}

/** Whether a name is that of such a question. */
export function isQuestionKey(name: string): boolean {
  return name.startsWith(PREFIX);
}

/** In the revision of July 2026 a question is a result, and its answer comes with the request, made again. */
export function inputRequired({ key, params }: Question): object {
  return { resultType: 'input_required', inputRequests: { [key]: { method: 'elicitation/create', params } } };
}
