// How the process ends: as the command wants it, or otherwise.

let isOurs = false;
let otherwise = (): void => {};
let stalled = (): void => {};
let stray = (error: unknown): void => {
  throw error;
};

process.on('uncaughtException', (error) => stray(error));
process.on('unhandledRejection', (error) => stray(error));

process.on('exit', () => {
  if (!isOurs) otherwise();
});

// A promise that nothing will ever settle lets a process end as if all were well, in the middle of its work.
process.on('beforeExit', () => stalled());

/** Ends the process. */
export function leave(code: number): never {
  isOurs = true;
  process.exit(code);
}

/** What to do where somebody else ends the process, as a module does that calls `process.exit`. */
export function onOtherEnd(reaction: () => void): void {
  otherwise = reaction;
}

/** What to do where nothing is left that could go on, and the work is not done. Gives what was to be done before. */
export function onStall(reaction: () => void): () => void {
  const before = stalled;
  stalled = reaction;
  return before;
}

/** What to do with a failure that nobody waits for. */
export function onStray(reaction: (error: unknown) => void): void {
  stray = reaction;
}
