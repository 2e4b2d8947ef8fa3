// What goes to the providers and comes from them is what their own packages say. Compiled, never run.

import type Anthropic from '@anthropic-ai/sdk';
import type { Content, GoogleGenAI, Interactions } from '@google/genai';
import type {
  CallToolRequest,
  CallToolResult,
  CreateMessageResultWithTools,
  SamplingMessage,
  Tool,
} from '@modelcontextprotocol/sdk/types.js';
import type * as mcp2 from '@modelcontextprotocol/server';
import type OpenAI from 'openai';
import { createDispatcher } from 'toolonion';
import { anthropic, gemini, geminiInteractions, mcp, mcpSampling, openaiChat, openaiResponses } from 'toolonion/wire';

const dispatcher = createDispatcher();

export async function chat(client: OpenAI, messages: OpenAI.ChatCompletionMessageParam[]): Promise<void> {
  const { tools, names } = openaiChat.definitions(dispatcher.tools.schemas);
  const { choices } = await client.chat.completions.create({ model: '', messages, tools });
  for (const choice of choices) {
    const calls = [...openaiChat.calls(choice, names), ...openaiChat.calls(choice.message, names)];
    messages.push(choice.message, ...openaiChat.results(await dispatcher.dispatchAll(calls)));
  }
}

export async function responses(client: OpenAI, input: OpenAI.Responses.ResponseInput): Promise<void> {
  const { tools, names } = openaiResponses.definitions(dispatcher.tools.schemas);
  const reply = await client.responses.create({ model: '', input, tools });
  const results = await dispatcher.dispatchAll(openaiResponses.calls(reply, names));
  const said: OpenAI.Responses.ResponseOutputItem[] = openaiResponses.replay(reply, results, names);
  // To the package's own types, one kind of item that comes out cannot go in again.
  input.push(...(said as OpenAI.Responses.ResponseInput), ...openaiResponses.results(results, reply));
}

export async function messages(client: Anthropic, messages: Anthropic.MessageParam[]): Promise<void> {
  const { tools, names } = anthropic.definitions(dispatcher.tools.schemas);
  const reply = await client.messages.create({ model: '', max_tokens: 1, messages, tools });
  const calls = anthropic.calls(reply, names);
  messages.push({ role: 'assistant', content: reply.content }, anthropic.results(await dispatcher.dispatchAll(calls)));
}

export async function contents(client: GoogleGenAI, contents: Content[]): Promise<void> {
  const { tools, names } = gemini.definitions(dispatcher.tools.schemas);
  const { candidates = [] } = await client.models.generateContent({ model: '', contents, config: { tools } });
  for (const candidate of candidates) {
    const { content = {} } = candidate;
    const results = await dispatcher.dispatchAll([...gemini.calls(candidate, names), ...gemini.calls(content, names)]);
    contents.push(content, gemini.replay(content, results, names), gemini.results(results, names));
  }
}

export async function steps(client: GoogleGenAI, input: Interactions.Step[]): Promise<void> {
  const { tools, names } = geminiInteractions.definitions(dispatcher.tools.schemas);
  const reply = await client.interactions.create({ model: '', input, tools });
  const results = await dispatcher.dispatchAll(geminiInteractions.calls(reply, names));
  input.push(...geminiInteractions.replay(reply, results, names), ...geminiInteractions.results(results, names));
}

export async function call(request: CallToolRequest & { id: number }, old: mcp2.CallToolRequest): Promise<void> {
  const defined = mcp.definitions(dispatcher.tools);
  const tools: Tool[] & mcp2.Tool[] = defined.tools;
  const results = await dispatcher.dispatchAll([...mcp.calls(request, defined.names), ...mcp.calls(old)]);
  const told: CallToolResult[] & mcp2.CallToolResult[] = mcp.results(results, defined);
  console.log(tools, told);
}

export async function sampled(reply: CreateMessageResultWithTools, messages: SamplingMessage[]): Promise<void> {
  const { tools, names } = mcpSampling.definitions(dispatcher.tools.schemas);
  const results = await dispatcher.dispatchAll(mcpSampling.calls(reply, names));
  messages.push(mcpSampling.replay(reply, results, names), mcpSampling.results(results));
  console.log(tools satisfies Tool[]);
}
