/** A jest reporter whose last line anything can read: `N passed, N failed`. */
export default class ClosingLine {
  onRunComplete(_contexts, results) {
    const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, numPendingTests } = results;
    const failed = numFailedTests + numRuntimeErrorTestSuites;
    const skipped = numPendingTests > 0 ? `, ${numPendingTests} skipped` : '';
    // At the exit, for jest's own summary comes after all reporters.
    process.on('exit', () => process.stdout.write(`${numPassedTests} passed, ${failed} failed${skipped}\n`));
  }
}
