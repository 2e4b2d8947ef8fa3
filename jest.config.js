import { existsSync } from 'node:fs';

// The agent runtimes are heavy: only who works on an adapter needs them.
const hasRuntimes = existsSync(new URL('test/runtimes/node_modules', import.meta.url));
if (!hasRuntimes) {
  const remedy = 'Install the agent runtimes: npm ci --prefix test/runtimes';
  if (process.env.CI) throw new Error(remedy);
  process.stderr.write(`\nSKIPPED: the tests of the adapters, against real agent runtimes. ${remedy}\n\n`);
}

/** @type {import('jest').Config} */
export default {
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', ...(hasRuntimes ? [] : ['<rootDir>/test/runtimes/'])],
  reporters: ['default', '<rootDir>/test/closing-line.js'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '\\.ts$': ['@swc/jest', { jsc: { target: 'es2022', parser: { syntax: 'typescript' } } }],
  },
  moduleNameMapper: {
    '^toolonion$': '<rootDir>/src/index.ts',
    '^toolonion/middleware$': '<rootDir>/middleware/index.ts',
    '^toolonion/middleware/(.*)$': '<rootDir>/middleware/$1.ts',
    '^toolonion/adapters/(.*)$': '<rootDir>/src/adapters/$1/index.ts',
    '^toolonion/wire$': '<rootDir>/src/wire/index.ts',
    '^toolonion/testing$': '<rootDir>/src/testing/index.ts',
  },
};
