import type { WriteStream } from 'node:tty';

/** Styles, for terminals only. */
const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;
export type Style = keyof typeof CODES;

/** Adds a style to text, or leaves it as it is. */
export type Paint = (text: string, style: Style) => string;

/** Paints for a stream: a terminal that has colours, unless the environment says otherwise (NO_COLOR, FORCE_COLOR). */
export function paintFor(stream: NodeJS.WriteStream): Paint {
  const { FORCE_COLOR: forced = '' } = process.env;
  const hasColors = forced !== '' ? forced !== '0' : stream.isTTY === true && (stream as WriteStream).hasColors();
  return hasColors ? (text, style) => `\u001b[${CODES[style]}m${text}\u001b[0m` : (text) => text;
}

/** Columns of a terminal; 100 for files and pipes. */
export function widthOf(stream: NodeJS.WriteStream): number {
  return stream.isTTY === true && stream.columns > 0 ? Math.max(40, stream.columns) : 100;
}

/** Tells the person at the command line what is wrong. */
export function complain(message: string): void {
  process.stderr.write(`toolonion: ${message}\n`);
}

/** Text from tools and models on one line: it cannot move the cursor, and it ends in `…` where it is too long. */
export function oneLine(text: string, width: number): string {
  const line = text
    .slice(0, 4 * width)
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, ' ')
    .toWellFormed()
    .trim();
  return line.length > width ? `${line.slice(0, Math.max(1, width - 1)).toWellFormed()}…` : line;
}

/** A cell of a table: right-aligned where it begins with a digit or sign. */
const NUMBER = /^[-+]?[\d.]/;

/** Rows in columns as wide as they need to be, two spaces apart. The first row is the head. */
export function columns(rows: readonly (readonly string[])[], paint: Paint): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row, index) => {
      const cells = row.map((cell, column) => {
        const width = widths[column] ?? 0;
        const isNumber = index === 0 ? NUMBER.test(rows[1]?.[column] ?? '') : NUMBER.test(cell);
        return isNumber ? cell.padStart(width) : cell.padEnd(width);
      });
      const line = cells.join('  ').trimEnd();
      return index === 0 ? paint(line, 'dim') : line;
    })
    .join('\n');
}

/** 12345 as `12,345`. */
export function counted(count: number): string {
  return Math.round(count).toLocaleString('en-US');
}

/** A time in the unit that suits it. */
export function duration(ms: number): string {
  if (Math.abs(ms) >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  if (Math.abs(ms) >= 1) return `${ms.toFixed(2)} ms`;
  return `${(ms * 1000).toFixed(2)} µs`;
}

/** How many calls came out how, in a sentence. */
export function summaryOf(outcomes: ReadonlyMap<string, number>): string {
  const all = [...outcomes.values()].reduce((sum, count) => sum + count, 0);
  const kinds = [...outcomes].map(([outcome, count]) => `${counted(count)} ${outcome}`);
  return `${all === 1 ? '1 call' : `${counted(all)} calls`}: ${kinds.join(', ') || 'none'}.`;
}
