// A whole agent for OpenAI's chat completions, or for any server that speaks them.

import OpenAI from 'openai';
import { createDispatcher, defineTool } from 'toolonion';
import { readOnlyAllowed, standard } from 'toolonion/middleware';
import { openaiChat } from 'toolonion/wire';

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

async function run(prompt: string, turns = 10): Promise<string | null> {
  const { tools, names } = openaiChat.definitions(dispatcher.tools.schemas);
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: prompt }];
  for (let turn = 0; turn < turns; turn++) {
    const { choices } = await client.chat.completions.create({ model: 'gpt-5', messages, tools });
    const [choice] = choices;
    if (choice === undefined) throw new Error('There is no reply.');
    const calls = openaiChat.calls(choice, names);
    if (calls.length === 0) return choice.message.content;
    const results = await dispatcher.dispatchAll(calls);
    messages.push(openaiChat.replay(choice.message, results, names), ...openaiChat.results(results));
  }
  throw new Error(`There is no answer after ${turns} turns.`);
}

console.log(await run('How is the weather in Oslo and in Bergen?'));
