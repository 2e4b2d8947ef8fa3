import { columns } from '../src/cli/terminal.ts';
import type { Spread } from '../src/testing/rounds.ts';

/** A ratio with its spread. */
export function ratioCell({ median, low, high }: Spread): string {
  return `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`;
}

/** Prints a table. */
export function printTable(title: string, head: readonly string[], rows: readonly (readonly string[])[]): void {
  process.stdout.write(`\n${title}\n\n${columns([head, ...rows], (text) => text)}\n`);
}
