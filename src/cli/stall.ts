let react = (): void => {};

// A promise that nothing will ever settle lets a process end as if all were well, in the middle of its work.
process.on('beforeExit', () => react());

/** What to do where nothing is left that could go on, and the work is not done. */
export function onStall(reaction: () => void): void {
  react = reaction;
}
