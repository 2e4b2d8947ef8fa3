import { defineTool } from 'toolonion';

let deep = { type: 'string' };
for (let level = 0; level < 30; level++) deep = { type: ['array', 'array'], items: deep };

export const odd = defineTool({
  name: 'odd\u001b[2J',
  description: 'Has an odd \u001b[2J schema.',
  inputSchema: {
    type: 'object',
    properties: {
      said: { type: 'string', description: { toString: 1, valueOf: 1 } },
      deep: { anyOf: [{ anyOf: [deep] }] },
    },
  },
  execute: () => '',
});
