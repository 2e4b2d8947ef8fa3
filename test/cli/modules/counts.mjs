import { defineTool } from 'toolonion';

export const tools = ['count', 'read'].map((name) =>
  defineTool({ name, description: 'Counts.', readOnly: name === 'read', execute: () => console.error(`${name} ran`) }),
);
