import { createDispatcher } from 'toolonion';

const own = createDispatcher();

/** What a dispatcher of another copy of the package looks like from here. */
export default {
  ...own,
  dispatch: own.dispatch,
  with: own.with,
  middlewareNames: [],
  middleware: [],
  tools: { tools: [{ name: 'x' }] },
};
