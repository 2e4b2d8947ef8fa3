import { defineTool } from 'toolonion';

const answer: string = 'typed';
export const typed = defineTool({ name: 'typed', description: 'Has types.', readOnly: true, execute: () => answer });
