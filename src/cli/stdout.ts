/** What shells tell of a process whose reader has gone away. */
export const READER_GONE = 141;

/** Hears that whoever reads has gone away. */
let readerGone = (): void => process.exit(READER_GONE);

const write = process.stdout.write.bind(process.stdout);
// What tools and modules print would get between the results.
process.stdout.write = process.stderr.write.bind(process.stderr);
process.stdout.on('error', () => readerGone());
// Where nobody hears complaints, the results still matter.
process.stderr.on('error', () => {});

/** Writes to standard output, which is kept for this: all else that is printed there goes to standard error. */
export function print(text: string, written?: (error?: Error | null) => void): boolean {
  return write(text, written);
}

/** What to do when whoever reads has gone away, in the place of ending the process. */
export function onReaderGone(reaction: () => void): void {
  readerGone = reaction;
}
