/** @type {import('jest').Config} */
export default {
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  testPathIgnorePatterns: ['<rootDir>/test/runtimes/'],
  reporters: ['default', '<rootDir>/test/closing-line.js'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '\\.ts$': ['@swc/jest', { jsc: { target: 'es2022', parser: { syntax: 'typescript' } } }],
  },
  moduleNameMapper: {
    '^toolonion$': '<rootDir>/src/index.ts',
    '^toolonion/middleware$': '<rootDir>/middleware/index.ts',
    '^toolonion/middleware/(.*)$': '<rootDir>/middleware/$1.ts',
    '^toolonion/testing$': '<rootDir>/src/testing/index.ts',
  },
};
