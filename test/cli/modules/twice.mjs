import { defineTool } from 'toolonion';

export const one = defineTool({ name: 'same', description: 'One.', execute: () => 1 });
export const two = defineTool({ name: 'same', description: 'Two.', execute: () => 2 });
