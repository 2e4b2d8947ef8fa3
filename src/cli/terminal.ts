import type { WriteStream } from 'node:tty';
import { printable } from '../index.ts';

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

/** Characters of one message: what a stranger wrote may be in it. */
const MAX_MESSAGE = 5_000;

/** Tells the person at the command line what is wrong. */
export function complain(message: string): void {
  process.stderr.write(`toolonion: ${harmless(message.slice(0, MAX_MESSAGE))}\n`);
}

/** Text that cannot move the cursor nor turn the writing round; it may have lines. */
export function harmless(text: string): string {
  return text.toWellFormed().replaceAll(/[^\P{Cc}\n]|\p{Cf}/gu, (character) => {
    return `\\u{${character.codePointAt(0)?.toString(16)}}`;
  });
}

/** Characters that are looked at, of a text that is cut anyway. */
const LOOKED_AT = 100_000;

/** Text from tools and models on one line: it cannot move the cursor, and it ends in `…` where it is too long. */
export function oneLine(text: string, width: number): string {
  const line = text
    .slice(0, LOOKED_AT)
    .replaceAll(/[\s\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')
    .toWellFormed()
    .trim();
  return line.length > width || text.length > LOOKED_AT
    ? `${line.slice(0, Math.max(1, width - 1)).toWellFormed()}…`
    : line;
}

/** Such text on as many lines as it needs, and no more than `most`. */
export function wrapped(text: string, width: number, most: number = Number.POSITIVE_INFINITY): readonly string[] {
  const lines: string[] = [];
  let rest = oneLine(text, LOOKED_AT);
  while (rest.length > width && lines.length < most - 1) {
    const space = rest.lastIndexOf(' ', width);
    const end = space > width / 2 ? space : width;
    lines.push(rest.slice(0, end).toWellFormed());
    rest = rest.slice(end).trimStart();
  }
  return [...lines, oneLine(rest, width)];
}

/** A layer's name; a stranger's may be anything, or missing. */
export function layerName(name: string): string {
  return printable(name) || '(no name)';
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
export function grouped(count: number): string {
  return Math.round(count).toLocaleString('en-US');
}

/** How often something happens: with a digit more where that is seldom. */
export function rate(perSecond: number): string {
  return perSecond < 10 ? perSecond.toFixed(1) : grouped(perSecond);
}

/** 2 and `call` as `2 calls`. */
export function counted(count: number, what: string): string {
  return `${grouped(count)} ${what}${count === 1 ? '' : 's'}`;
}

/** A time in the unit that suits it. */
export function duration(ms: number): string {
  if (Math.abs(ms) >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  if (Math.abs(ms) >= 1) return `${ms.toFixed(2)} ms`;
  return `${(ms * 1000).toFixed(2)} µs`;
}
