import { type ToolCall, type ToolDispatchResult, type ToolOutcome, textOf } from '../index.ts';
import type { Interrupt } from './interrupt.ts';
import { complain, oneLine } from './terminal.ts';

/** Milliseconds they are waited for in the end. */
const WAIT_MS = 5_000;

/** Tools that still run though their calls are answered, as after a time limit they did not heed. */
export class LateTools {
  #running = 0;
  #wake = (): void => {};

  /** Takes note of a result that leaves a tool running: the engine says so with these codes, and it is believed. */
  note({ error }: ToolDispatchResult): void {
    if (error?.executed !== 'unknown') return;
    if (error.code === 'timeout' || error.code === 'cancelled') this.#running++;
  }

  /** For `onLate`. */
  readonly hear = (outcome: ToolOutcome, call: ToolCall): void => {
    this.#running = Math.max(0, this.#running - 1);
    if (this.#running === 0) this.#wake();
    const answer = oneLine(textOf(outcome.content), 60);
    complain(`${oneLine(call.toolName, 60)} ended after its call had been answered; its own answer was "${answer}".`);
  };

  /** Gives those that still run a while to end: the process would take them along, whatever they are writing. */
  async wait(interrupt: Interrupt): Promise<void> {
    if (this.#running === 0) return;
    complain(
      `Waiting for ${this.#running} of the tools, up to ${WAIT_MS / 1000} s: their calls are answered, but they still run.`,
    );
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      interrupt.onInterrupt(() => resolve());
      setTimeout(resolve, WAIT_MS);
    });
    if (this.#running > 0) complain(`${this.#running} of the tools did not end; they end with this process.`);
  }
}

/** Where nobody is told of late tools, nobody waits for them. */
export class NoLateTools extends LateTools {
  override note(): void {}
}
