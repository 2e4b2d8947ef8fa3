import type { Dispatcher } from '../../dispatcher.ts';
import { questionIn } from './approval.ts';
import type { SdkMessage, SdkToolCall } from './sdk.ts';
import { dispatchOptions, type ToolSetOptions } from './tool-set.ts';

/**
 * Gives a call whose arguments are no JSON to its tool all the same, as text: the dispatcher reads what leaves no doubt, and tells the model of
 * the rest. For `repairToolCall` of version 7, `experimental_repairToolCall` of version 6.
 */
export async function repairToolCall<Call extends { readonly input: string }>(failed: {
  readonly toolCall: Call;
  readonly error: { readonly name: string };
}): Promise<Call | null> {
  const { toolCall, error } = failed;
  return error.name === 'AI_InvalidToolInputError' ? { ...toolCall, input: JSON.stringify(toolCall.input) } : null;
}

/**
 * Approvals with their reasons, for `toolApproval` of version 7: what the gate would ask is what the SDK's user reads. The tools ask by
 * themselves as well, without one.
 *
 * @example generateText({ model, prompt, tools: toolSet(dispatcher), toolApproval: toolApproval(dispatcher) })
 */
export function toolApproval(
  dispatcher: Dispatcher,
  options: Pick<ToolSetOptions, 'context'> = {},
): (call: {
  readonly toolCall: SdkToolCall;
  readonly messages: readonly SdkMessage[];
  readonly runtimeContext?: unknown;
}) => Promise<{ type: 'user-approval'; reason: string } | undefined> {
  return async ({ toolCall, messages, runtimeContext: context }) => {
    const { toolCallId, toolName: name, input } = toolCall;
    const request = { id: toolCallId, name, arguments: input };
    const own = dispatchOptions(options, { toolCallId, messages, context });
    const reason = questionIn(await dispatcher.judge(request, own));
    return reason === undefined ? undefined : { type: 'user-approval', reason };
  };
}
