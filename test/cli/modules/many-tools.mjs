import { defineTool } from 'toolonion';

export const tools = Array.from({ length: 2000 }, (_, index) =>
  defineTool({ name: `tool_${index}`, description: 'One of many. '.repeat(50), execute: () => '' }),
);
