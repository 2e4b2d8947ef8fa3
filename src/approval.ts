import type { ToolContext } from './context.ts';
import type { JsonValue } from './json.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { PermissionCheck } from './permission.ts';
import { type SettingKey, settingKey } from './settings.ts';
import type { Tool } from './tool.ts';

/** What an approver is shown. */
export interface ApprovalRequest {
  readonly toolCallId: string;
  /** The tools whose calls made this one, each by its name and its call's id, the outermost first; empty for a call of the model's own. */
  readonly path: readonly { readonly toolName: string; readonly toolCallId: string }[];
  /** The tool that will run. */
  readonly tool: Tool;
  /** The arguments, frozen, of the call that will run: as they were sent, or edited. */
  readonly input: JsonValue;
  /** The same as the tool will receive them, after the schema's defaults and transforms; what is no JSON is shown as `toJson` shows it. */
  readonly parsed: JsonValue;
  /** Whether a rule has edited the arguments: they are not those the model sent. */
  readonly isEdited: boolean;
  readonly prompt: string;
  readonly context: ToolContext;
  /** Aborts when the answer is no longer waited for: the call was aborted, or the time is up. */
  readonly signal: AbortSignal;
}

/** Answers for a person: yes, no, or a check (deny with a reason, modify the arguments). */
export type Approver = (request: ApprovalRequest) => MaybePromise<boolean | PermissionCheck>;

/**
 * Who is asked about this one call, in place of the gate's own approver: for hosts that ask in their own way, or have asked already.
 *
 * @throws TypeError for what is no function.
 * @example dispatcher.dispatch(call, { settings: [approvedBy(({ input }) => isWhatWasApproved(input))] })
 */
export const approvedBy: SettingKey<Approver> = settingKey<Approver>((approver) => {
  if (typeof approver !== 'function') throw new TypeError('approvedBy takes an approver, a function.');
});
