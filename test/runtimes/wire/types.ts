// What goes to the providers and comes from them is what their own packages say. Compiled, never run.

import type Anthropic from '@anthropic-ai/sdk';
import type OpenAI from 'openai';
import { createDispatcher } from 'toolonion';
import { anthropic, openaiChat } from 'toolonion/wire';

const dispatcher = createDispatcher();

export async function chat(client: OpenAI, messages: OpenAI.ChatCompletionMessageParam[]): Promise<void> {
  const { tools, names } = openaiChat.definitions(dispatcher.tools.schemas);
  const { choices } = await client.chat.completions.create({ model: '', messages, tools });
  for (const choice of choices) {
    const calls = [...openaiChat.calls(choice, names), ...openaiChat.calls(choice.message, names)];
    messages.push(choice.message, ...openaiChat.results(await dispatcher.dispatchAll(calls)));
  }
}

export async function messages(client: Anthropic, messages: Anthropic.MessageParam[]): Promise<void> {
  const { tools, names } = anthropic.definitions(dispatcher.tools.schemas);
  const reply = await client.messages.create({ model: '', max_tokens: 1, messages, tools });
  const calls = anthropic.calls(reply, names);
  messages.push({ role: 'assistant', content: reply.content }, anthropic.results(await dispatcher.dispatchAll(calls)));
}
