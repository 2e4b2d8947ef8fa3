// What the adapter gives is what both versions of the SDK take, as their own types say. Compiled, never run.

import * as ai7 from 'ai';
import * as ai6 from 'ai-6';
import { createDispatcher } from 'toolonion';
import { repairToolCall, toolApproval, toolDefinitions, toolMessage, toolSet } from 'toolonion/adapters/ai-sdk';

const dispatcher = createDispatcher();

export const toolSet6: ai6.ToolSet = toolSet(dispatcher, { version: 6 });
export const toolSet7: ai7.ToolSet = toolSet(dispatcher, { version: 7 });

export async function version6(model: ai6.LanguageModel, messages: ai6.ModelMessage[]): Promise<void> {
  const tools = toolSet(dispatcher);
  await ai6.generateText({ model, messages, tools, experimental_repairToolCall: repairToolCall });
  await new ai6.ToolLoopAgent({ model, tools }).generate({ messages });
  const { toolCalls, response } = ai6.streamText({ model, messages, tools: toolDefinitions(dispatcher) });
  messages.push(...(await response).messages, await toolMessage(dispatcher, await toolCalls));
}

export async function version7(model: ai7.LanguageModel, messages: ai7.ModelMessage[]): Promise<void> {
  const tools = toolSet(dispatcher, { version: 7 });
  await ai7.generateText({ model, messages, tools, repairToolCall, toolApproval: toolApproval(dispatcher) });
  await new ai7.ToolLoopAgent({ model, tools }).generate({ messages });
  const { toolCalls, response } = ai7.streamText({ model, messages, tools: toolDefinitions(dispatcher) });
  messages.push(...(await response).messages, await toolMessage(dispatcher, await toolCalls, { version: 7 }));
}
