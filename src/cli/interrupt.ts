import { constants } from 'node:os';
import { complain } from './terminal.ts';

/** Exit codes as shells tell them of a process that a signal has ended. */
const EXIT_CODES = { SIGINT: 128 + constants.signals.SIGINT, SIGTERM: 128 + constants.signals.SIGTERM } as const;

/** Ctrl-C, or the wish that the process should end: the first one ends the work in order, the second at once. */
export class Interrupt {
  /** What the process is to end with, once somebody wished it. */
  exitCode: number | undefined;
  /** Hears of the first one. */
  onInterrupt = (): void => {};
  #controller = new AbortController();

  /** @param notice What the person is told at the first one. */
  constructor(notice: string) {
    for (const name of ['SIGINT', 'SIGTERM'] as const) {
      process.on(name, () => {
        if (this.exitCode !== undefined) process.exit(this.exitCode);
        this.exitCode = EXIT_CODES[name];
        complain(notice);
        this.onInterrupt();
        this.#controller.abort(new Error(`The command got ${name}.`));
      });
    }
  }

  /** Aborts at an interrupt, or with the work it was given to. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Aborts the work under way; what comes later gets a signal of its own. */
  skip(reason: string): void {
    this.#controller.abort(new Error(reason));
    if (this.exitCode === undefined) this.#controller = new AbortController();
  }
}
