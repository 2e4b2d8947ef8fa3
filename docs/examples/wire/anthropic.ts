// A whole agent for Anthropic's messages.

import Anthropic from '@anthropic-ai/sdk';
import { createDispatcher, defineTool } from 'toolonion';
import { readOnlyAllowed, standard } from 'toolonion/middleware';
import { anthropic } from 'toolonion/wire';

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
const client = new Anthropic();

async function run(prompt: string, turns = 10): Promise<string> {
  const { tools, names } = anthropic.definitions(dispatcher.tools.schemas);
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: prompt }];
  for (let turn = 0; turn < turns; turn++) {
    const reply = await client.messages.create({ model: 'claude-sonnet-4-5', max_tokens: 4096, messages, tools });
    const calls = anthropic.calls(reply, names);
    if (calls.length === 0) return reply.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    const results = await dispatcher.dispatchAll(calls);
    messages.push(anthropic.replay(reply, results, names), anthropic.results(results));
  }
  throw new Error(`There is no answer after ${turns} turns.`);
}

console.log(await run('How is the weather in Oslo and in Bergen?'));
