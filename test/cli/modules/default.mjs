import { after, createDispatcher, defineTool, named } from 'toolonion';

const hello = defineTool({ name: 'hello', description: 'Greets.', execute: () => 'hello' });
const around = named('around', (call, next) =>
  after(next(call), (outcome) => ({ ...outcome, content: `${outcome.content}, around` })),
);

export const other = createDispatcher();
export default createDispatcher({ tools: [hello], middleware: [around] });
