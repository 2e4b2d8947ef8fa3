import { clearStatus, showStatus } from './output.ts';
import { oneLine, widthOf } from './terminal.ts';

/** Milliseconds between two looks of a person at a terminal, and between two lines elsewhere. */
const LIVE_MS = 250;
const LINE_MS = 10_000;

/**
 * Tells on standard error how far long work is: on a terminal in one line that is written over, elsewhere in a line every ten
 * seconds. Short work tells nothing. What it gives ends it.
 */
export function startProgress(tell: () => string): () => void {
  const { stderr } = process;
  const show = () => (stderr.isTTY ? showStatus(oneLine(tell(), widthOf(stderr) - 1)) : stderr.write(`${tell()}\n`));
  const timer = setInterval(show, stderr.isTTY ? LIVE_MS : LINE_MS).unref();
  return () => {
    clearInterval(timer);
    clearStatus();
  };
}
