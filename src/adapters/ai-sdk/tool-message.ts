import type { Dispatcher } from '../../dispatcher.ts';
import type { BatchOptions } from '../../request.ts';
import { argumentsOf } from './arguments.ts';
import { type ModelOutputOptions, modelOutput, outputOf } from './output.ts';
import type { SdkModelOutput, SdkToolCall } from './sdk.ts';
import { checkDispatcher } from './tool-set.ts';

/** The results of a turn, to be appended to the messages. */
export interface SdkToolMessage {
  role: 'tool';
  content: { type: 'tool-result'; toolCallId: string; toolName: string; output: SdkModelOutput }[];
}

/** Options of `toolMessage`: those of `dispatchAll`, and what the model can be shown. */
export interface ToolMessageOptions extends BatchOptions, ModelOutputOptions {}

/**
 * Answers the calls of a turn, for loops in which the SDK does not run the tools (`toolDefinitions(dispatcher)`). Calls that the
 * SDK has answered itself, or that the provider runs, are left out.
 *
 * @example messages.push(...response.messages, await toolMessage(dispatcher, result.toolCalls))
 */
export async function toolMessage(
  dispatcher: Dispatcher,
  toolCalls: readonly SdkToolCall[],
  options: ToolMessageOptions = {},
): Promise<SdkToolMessage> {
  const { accepts, version = 6, ...batch } = options;
  const shown = { version, ...(accepts && { accepts }) };
  checkDispatcher('toolMessage', dispatcher);
  const own = toolCalls.filter(({ invalid, providerExecuted }) => invalid !== true && providerExecuted !== true);
  const requests = own.map(({ toolCallId: id, toolName: name, input }) => ({
    id,
    name,
    arguments: argumentsOf(input),
  }));
  const results = await dispatcher.dispatchAll(requests, batch);
  return {
    role: 'tool',
    content: own.map(({ toolCallId, toolName }, place) => {
      const output = outputOf(results[place] as (typeof results)[number]);
      return {
        type: 'tool-result',
        toolCallId,
        toolName,
        output: modelOutput(output, shown),
      };
    }),
  };
}
