import { defineTool } from 'toolonion';

export const fails = defineTool({
  name: 'fails',
  description: 'Fails.',
  readOnly: true,
  execute: () => {
    throw new Error('no route to db, password=hunter2');
  },
});
