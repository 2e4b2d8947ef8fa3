import { constants } from 'node:os';
import { leave } from './ending.ts';
import { complain } from './terminal.ts';

/** Exit codes as shells tell them of a process that a signal has ended. */
const EXIT_CODES = { SIGINT: 128 + constants.signals.SIGINT, SIGTERM: 128 + constants.signals.SIGTERM } as const;

/** Ctrl-C, or the wish that the process should end: the first one ends the work in order, the second at once. */
export class Interrupt {
  /** What the process is to end with, once somebody wished it. */
  exitCode: number | undefined;
  readonly #controller = new AbortController();

  /** @param notice What the person is told at the first one. */
  constructor(notice: string) {
    for (const name of ['SIGINT', 'SIGTERM'] as const) {
      process.on(name, () => {
        if (this.exitCode !== undefined) leave(this.exitCode);
        this.exitCode = EXIT_CODES[name];
        complain(notice);
        this.#controller.abort(new Error(`The command got ${name}.`));
      });
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Calls back at the first one, or now if it has been. */
  onInterrupt(reaction: (reason: unknown) => void): void {
    const { signal } = this;
    if (signal.aborted) reaction(signal.reason);
    else signal.addEventListener('abort', () => reaction(signal.reason));
  }
}
