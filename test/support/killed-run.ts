// A run that is to be killed: it answers the calls of a conversation of JSON lines one by one, and the tool `hang` never ends.

import { appendFileSync, readFileSync } from 'node:fs';
import { createDispatcher, defineTool, type ToolCallRequest } from 'toolonion';

const [history = '', effects = ''] = process.argv.slice(2);

const work = defineTool({
  name: 'work',
  description: 'Has an effect.',
  execute: (_, { id }) => {
    appendFileSync(effects, `${id}\n`);
    return 'done';
  },
});
const hang = defineTool({
  name: 'hang',
  description: 'Has an effect and does not end.',
  execute: (_, { id }) => {
    appendFileSync(effects, `${id}\n`);
    setInterval(() => {}, 1000);
    process.stdout.write('hangs');
    return new Promise(() => {});
  },
});

const dispatcher = createDispatcher({ tools: [work, hang] });
const turn = readFileSync(history, 'utf8').trim().split('\n').at(-1) ?? '';
const { toolCalls } = JSON.parse(turn) as { readonly toolCalls: readonly ToolCallRequest[] };
for (const call of toolCalls) {
  const { toolCallId, content } = await dispatcher.dispatch(call);
  appendFileSync(history, `${JSON.stringify({ role: 'tool', toolCallId, content })}\n`);
}
