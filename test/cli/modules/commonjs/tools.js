import { defineTool } from 'toolonion';

export const hello = defineTool({ name: 'hello', description: 'Greets.', execute: () => 'hello' });
