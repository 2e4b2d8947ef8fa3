import { defineTool } from '../src/index.ts';

/** The tool that the command and the loop dispatch. */
export const weather = defineTool({
  name: 'weather',
  description: 'Tells the weather.',
  inputSchema: {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer' } },
    required: ['city'],
  },
  readOnly: true,
  execute: async ({ city }) => `sunny in ${city}`,
});
