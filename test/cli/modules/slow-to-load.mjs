import { defineTool } from 'toolonion';

console.error('loading');
await new Promise((resolve) => setTimeout(resolve, 300));

export const hello = defineTool({ name: 'hello', description: 'Greets.', readOnly: true, execute: () => 'hello' });
