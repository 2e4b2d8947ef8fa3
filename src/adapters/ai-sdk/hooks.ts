import type { Dispatcher } from '../../dispatcher.ts';
import { isPlainObject } from '../../json.ts';
import { checkOptions, isFunction } from '../../options.ts';
import { questionIn } from './approval.ts';
import { argumentsOf, historyOf } from './arguments.ts';
import type { SdkMessage, SdkToolCall } from './sdk.ts';
import { checkDispatcher, dispatchOptions, type ToolSetOptions } from './tool-set.ts';

/**
 * Gives a call whose arguments are no JSON to its tool all the same: the dispatcher reads what leaves no doubt, and tells the model of the rest. For `repairToolCall` of version 7, `experimental_repairToolCall` of version 6.
 */
export async function repairToolCall<Call extends { readonly input: string }>(failed: {
  readonly toolCall: Call;
  readonly error: { readonly name: string };
}): Promise<Call | null> {
  const { toolCall, error } = failed;
  return error.name === 'AI_InvalidToolInputError' ? { ...toolCall, input: historyOf(toolCall.input) } : null;
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
  readonly toolsContext?: unknown;
}) => Promise<{ type: 'user-approval'; reason: string } | undefined> {
  checkDispatcher('toolApproval', dispatcher);
  checkOptions('toolApproval', options, { context: isFunction });
  return async ({ toolCall, messages, toolsContext }) => {
    const { toolCallId, toolName: name, input } = toolCall;
    const request = { id: toolCallId, name, arguments: argumentsOf(input) };
    // What the tool itself will be told.
    const context = isPlainObject(toolsContext) ? toolsContext[name] : undefined;
    const own = dispatchOptions(options, { toolCallId, messages, context });
    const reason = questionIn(await dispatcher.judge(request, own));
    return reason === undefined ? undefined : { type: 'user-approval', reason };
  };
}
