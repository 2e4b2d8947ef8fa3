import { defineTool } from 'toolonion';

export const tools = [
  defineTool({
    name: 'search',
    description: 'Finds\nthings.',
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What to look for.' },
        limit: { type: 'integer', default: 10 },
        sort: { enum: ['name', 'date'] },
        tags: { type: ['array', 'null'], items: { type: 'string' } },
        any: true,
        one: { const: 1 },
      },
      required: ['query'],
    },
    outputSchema: { type: 'object' },
    readOnly: true,
    idempotent: true,
    concurrencySafe: ({ limit }) => limit < 100,
    execute: () => ({}),
  }),
  defineTool({ name: 'wipe', description: 'Deletes everything.', destructive: true }),
];
