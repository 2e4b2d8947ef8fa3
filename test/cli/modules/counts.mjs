import { defineTool } from 'toolonion';

export const tools = ['count', 'drop'].map((name) =>
  defineTool({ name, description: 'Counts.', execute: () => console.error(`${name} ran`) }),
);
