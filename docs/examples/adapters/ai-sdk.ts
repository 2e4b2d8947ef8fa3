// A whole turn of the AI SDK without a network: its own model for tests calls a tool wrongly, is told, and puts it right.

import { generateText, stepCountIs } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { createDispatcher, defineTool } from 'toolonion';
import { toolSet } from 'toolonion/adapters/ai-sdk';
import { readOnlyAllowed, standard } from 'toolonion/middleware';

const weather = defineTool({
  name: 'weather',
  description: 'Tells the weather of a city.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  readOnly: true,
  execute: ({ city }) => `Sunny in ${city}.`,
});
const dispatcher = createDispatcher({
  tools: [weather],
  middleware: standard({ permission: { check: readOnlyAllowed }, logging: false, schedule: {} }),
});

const call = (id: string, input: object) =>
  ({ type: 'tool-call', toolCallId: id, toolName: 'weather', input: JSON.stringify(input) }) as const;
const turns = [
  [call('c1', { town: 'Oslo' })],
  [call('c2', { city: 'Oslo' })],
  [{ type: 'text', text: 'Sunny.' } as const],
];
const model = new MockLanguageModelV4({
  doGenerate: async () => {
    const content = turns.shift() ?? [];
    const reason = content[0]?.type === 'text' ? 'stop' : 'tool-calls';
    const usage = {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    };
    return { content, finishReason: { unified: reason, raw: reason }, usage, warnings: [] };
  },
});

const { text, steps } = await generateText({
  model,
  prompt: 'How is the weather in Oslo?',
  tools: toolSet(dispatcher, { version: 7 }),
  stopWhen: stepCountIs(5),
});
for (const { toolResults } of steps) for (const { output } of toolResults) console.log(output);
console.log(text);
