/** What the person at the command line has to put right: told without a stack, exit code 2. */
export class UsageError extends Error {
  readonly #own = true;

  static is(thrown: unknown): thrown is UsageError {
    return typeof thrown === 'object' && thrown !== null && #own in thrown;
  }
}
