import { createDispatcher, defineTool } from 'toolonion';
import { timeout } from 'toolonion/middleware';

const late = defineTool({
  name: 'late',
  description: 'Takes too long.',
  execute: () => new Promise((resolve) => setTimeout(resolve, 200)),
});
export default createDispatcher({ tools: [late], middleware: [timeout({ limitMs: 20 })] });
