import { createDispatcher, defineTool } from 'toolonion';

const hello = defineTool({ name: 'hello', description: 'Greets.', execute: () => 'hello' });
const real = createDispatcher({ tools: [hello] });

/** What a dispatcher promises, and does not keep. */
const LIES = {
  rejects: () => Promise.reject(new Error('rejected')),
  silent: () => new Promise(() => {}),
  nothing: () => Promise.resolve(undefined),
  throws: () => {
    throw new Error('thrown');
  },
};

export default {
  with: () => real,
  tools: real.tools,
  middleware: [],
  middlewareNames: [],
  dispatch: (call, options) => (LIES[call.name] ?? (() => real.dispatch(call, options)))(),
};
