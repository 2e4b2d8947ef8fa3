// A whole agent for Gemini.

import { type Content, FinishReason, GoogleGenAI } from '@google/genai';
import { createDispatcher, defineTool } from 'toolonion';
import { readOnlyAllowed, standard } from 'toolonion/middleware';
import { gemini } from 'toolonion/wire';

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
  const { tools, names } = gemini.definitions(dispatcher.tools.schemas);
  const contents: Content[] = [{ role: 'user', parts: [{ text: prompt }] }];
  for (let turn = 0; turn < turns; turn++) {
    const reply = await client.models.generateContent({ model: 'gemini-3-pro', contents, config: { tools } });
    const { content = {}, finishReason } = reply.candidates?.[0] ?? {};
    if (finishReason === FinishReason.MALFORMED_FUNCTION_CALL) continue;
    const calls = gemini.calls({ content, finishReason }, names);
    if (calls.length === 0) return reply.text ?? '';
    const results = await dispatcher.dispatchAll(calls);
    contents.push(gemini.replay(content, results, names), gemini.results(results, names));
  }
  throw new Error(`There is no answer after ${turns} turns.`);
}

console.log(await run('How is the weather in Oslo and in Bergen?'));
