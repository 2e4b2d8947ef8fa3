import { createDispatcher, defineTool } from 'toolonion';

const never = defineTool({ name: 'never', description: 'Never ends.', execute: () => new Promise(() => {}) });
export default createDispatcher({ tools: [never] });
