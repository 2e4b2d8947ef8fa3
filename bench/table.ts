import type { Spread } from '../src/testing/rounds.ts';

/** A ratio with its spread. */
export function ratioCell({ median, low, high }: Spread): string {
  return `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`;
}

/** Prints a table, its columns as wide as they need to be. */
export function printTable(title: string, head: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '─'.repeat(width)).join('──');
  process.stdout.write(`\n${title}\n\n${line(head)}\n${rule}\n${rows.map(line).join('\n')}\n`);
}
