// A whole agent for Gemini's interactions.

import { GoogleGenAI, type Interactions } from '@google/genai';
import { createDispatcher, defineTool } from 'toolonion';
import { readOnlyAllowed, standard } from 'toolonion/middleware';
import { geminiInteractions } from 'toolonion/wire';

const weather = defineTool({
  name: 'weather',
  description: 'Tells the weather of a city.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  readOnly: true,
  execute: ({ city }) => `Sunny in ${city}.`,
});
const dispatcher = createDispatcher({
  tools: [weather],
  middleware: standard({ permission: { check: readOnlyAllowed }, logging: false }),
});
const client = new GoogleGenAI({});

async function run(prompt: string, turns = 10): Promise<string> {
  const { tools, names } = geminiInteractions.definitions(dispatcher.tools.schemas);
  const input: Interactions.Step[] = [{ type: 'user_input', content: [{ type: 'text', text: prompt }] }];
  for (let turn = 0; turn < turns; turn++) {
    const reply = await client.interactions.create({ model: 'gemini-3-pro', input, tools, store: false });
    const calls = geminiInteractions.calls(reply, names);
    if (calls.length === 0) return reply.output_text ?? '';
    const results = await dispatcher.dispatchAll(calls);
    input.push(...geminiInteractions.replay(reply, results, names), ...geminiInteractions.results(results, names));
  }
  throw new Error(`There is no answer after ${turns} turns.`);
}

console.log(await run('How is the weather in Oslo and in Bergen?'));
