// A tool that another copy of the package has made, and one that none has.

/** As valibot or zod would be: it checks, and the tool says its JSON Schema beside it. */
const inputSchema = {
  '~standard': {
    version: 1,
    vendor: 'here',
    validate: (value) =>
      typeof value.n === 'number' ? { value: { n: value.n + 1 } } : { issues: [{ message: 'n is no number' }] },
  },
};

export const foreign = Object.freeze({
  name: 'foreign',
  description: 'From elsewhere.',
  inputSchema,
  schema: { name: 'foreign', description: 'From elsewhere.', inputSchema: { type: 'object' } },
  execute: ({ n }) => n,
});

export const plain = { name: 'plain', description: 'A mere definition.', execute: () => 'plain' };
