import { defineTool } from 'toolonion';

console.log('a module that talks');

export const hello = defineTool({ name: 'hello', description: 'Greets.', execute: () => 'hello' });
