// A whole agent for OpenAI's responses, which keeps the history itself: nothing is stored at the provider.

import OpenAI from 'openai';
import { createDispatcher, defineTool } from 'toolonion';
import { readOnlyAllowed, standard } from 'toolonion/middleware';
import { openaiResponses } from 'toolonion/wire';

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
const client = new OpenAI();

async function run(prompt: string, turns = 10): Promise<string> {
  const { tools, names } = openaiResponses.definitions(dispatcher.tools.schemas);
  const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: prompt }];
  for (let turn = 0; turn < turns; turn++) {
    const reply = await client.responses.create({ model: 'gpt-5', input, tools, store: false });
    const calls = openaiResponses.calls(reply, names);
    if (calls.length === 0) return reply.output_text;
    const results = await dispatcher.dispatchAll(calls);
    // To the package's own types, one kind of item that comes out cannot go in again.
    const said = openaiResponses.replay(reply, results, names) as OpenAI.Responses.ResponseInput;
    input.push(...said, ...openaiResponses.results(results, reply));
  }
  throw new Error(`There is no answer after ${turns} turns.`);
}

console.log(await run('How is the weather in Oslo and in Bergen?'));
