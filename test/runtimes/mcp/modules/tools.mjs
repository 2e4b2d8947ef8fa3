import { defineTool } from 'toolonion';

export const add = defineTool({
  name: 'add',
  description: 'Adds.',
  inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
  readOnly: true,
  execute: ({ a, b }) => {
    console.log('this is no message of the protocol');
    return a + b;
  },
});

export const deploy = defineTool({ name: 'deploy', description: 'Deploys.', execute: () => 'Deployed.' });

export const wait = defineTool({
  name: 'wait',
  description: 'Never ends.',
  readOnly: true,
  execute: (_, { report }) => {
    report({ message: 'begun' });
    return new Promise(() => {});
  },
});
