import { codeOf, printable, type ToolOutcome } from '../index.ts';
import { counted, grouped } from './terminal.ts';

/** How many calls came out how. */
export class Outcomes {
  calls = 0;
  failed = 0;
  readonly #byCode = new Map<string, number>();

  count(outcome: ToolOutcome): void {
    this.add(codeOf(outcome), outcome.isError);
  }

  add(code: string, isError: boolean): void {
    this.calls++;
    if (isError) this.failed++;
    this.#byCode.set(code, (this.#byCode.get(code) ?? 0) + 1);
  }

  /** In a sentence, most frequent first. */
  toString(): string {
    if (this.calls === 0) return 'No calls.';
    const kinds = [...this.#byCode]
      .sort(([, a], [, b]) => b - a)
      .map(([code, count]) => `${grouped(count)} ${printable(code)}`);
    return `${counted(this.calls, 'call')}: ${kinds.join(', ')}.`;
  }
}
