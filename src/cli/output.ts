import { writeSync } from 'node:fs';

/** What shells tell of a process whose reader has gone away. */
export const READER_GONE = 141;

/** Milliseconds until a reader that is slower is asked again, once it was asked so many times at once. */
const RETRY_MS = 2;
const EAGER_RETRIES = 500;
/** Milliseconds it has when the process ends this moment. */
const LAST_MS = 2_000;

const complainTo = process.stderr.write.bind(process.stderr);
const cleared = ((...args: Parameters<typeof complainTo>) => {
  clearStatus();
  return complainTo(...args);
}) as typeof complainTo;
process.stderr.write = cleared;
// What tools and modules print would get between the results.
process.stdout.write = cleared;
// Nor can they end it: for a socket that would hold for the descriptor as well.
process.stdout.end = () => process.stdout;
process.stdout.destroy = () => process.stdout;
// Where nobody hears complaints, the results still matter.
process.stderr.on('error', () => {});

let hasStatus = false;

/** Shows a line at the bottom of the terminal, until anything else is written there. */
export function showStatus(text: string): void {
  complainTo(`\r${text}\u001b[K`);
  hasStatus = true;
}

export function clearStatus(): void {
  if (hasStatus) complainTo('\r\u001b[K');
  hasStatus = false;
}

/** What is not written yet: texts, and what is left of one that was written in part. */
let queue: (string | Buffer)[] = [];
let fault: NodeJS.ErrnoException | undefined;
let waiting = false;
const wake: (() => void)[] = [];

/**
 * Writes to standard output, which is kept for this. By its descriptor, not its stream: so it is known at any moment what has been
 * written, and the rest can still be when the process ends.
 */
export function print(text: string): void {
  if (text === '' || fault !== undefined) return;
  clearStatus();
  queue.push(text);
  if (!waiting) flush();
}

/** Prints data: what `--json` gives. */
export function printJson(value: unknown): void {
  print(`${JSON.stringify(value, null, 2)}\n`);
}

/** Whether something waits for a reader that is slower. */
export function isPrinting(): boolean {
  return waiting;
}

/** Comes when all is written, or cannot be. */
export function printed(): Promise<void> {
  return new Promise((resolve) => (waiting ? wake.push(resolve) : resolve()));
}

/** Why nothing more can be written: EPIPE where whoever reads has gone away. */
export function printFault(): NodeJS.ErrnoException | undefined {
  return fault;
}

/** Writes what is left in a process that ends this moment. Tells whether the reader was quick enough for it. */
export function printNow(): boolean {
  for (let left = LAST_MS; left > 0; left -= RETRY_MS) {
    if (written()) return true;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
  }
  return written();
}

function flush(tries = 0): void {
  waiting = !written();
  if (!waiting) for (const resolve of wake.splice(0)) resolve();
  // Most readers are back in a moment, and a timer takes longer than that.
  else if (tries < EAGER_RETRIES) setImmediate(flush, tries + 1);
  else setTimeout(flush, RETRY_MS, tries);
}

/** Whether all is written, or cannot be; false where the reader has no room now. */
function written(): boolean {
  try {
    for (let [first] = queue; first !== undefined; [first] = queue) {
      const count = typeof first === 'string' ? writeSync(1, first) : writeSync(1, first);
      if (count < Buffer.byteLength(first)) queue[0] = Buffer.from(first).subarray(count);
      else queue.shift();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false;
    fault = error as NodeJS.ErrnoException;
    queue = [];
  }
  return true;
}
