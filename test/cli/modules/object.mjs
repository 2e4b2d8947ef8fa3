import { defineTool } from 'toolonion';

const hello = defineTool({ name: 'hello', description: 'Greets.', execute: () => 'hello' });
export default { hello, version: 1 };
