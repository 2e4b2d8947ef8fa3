import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { columns, duration, grouped, harmless, oneLine, wrapped } from '../../src/cli/terminal.ts';

const anyText = fc.string({ unit: 'binary', maxLength: 60 });
/** What would move the cursor, turn the writing round, or begin a line. */
const MOVES = /[\p{Cc}\p{Cf}\u2028\u2029]/u;

describe('text on a terminal', () => {
  test('is one line of the width, and moves nothing, whatever it is made of', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 2, max: 30 }), (text, width) => {
        const line = oneLine(text, width);
        expect(line.length).toBeLessThanOrEqual(width);
        expect(line).not.toMatch(MOVES);
        expect(line.isWellFormed()).toBe(true);
        for (const part of wrapped(text, width, 3))
          expect([part.length <= width, MOVES.test(part)]).toEqual([true, false]);
      }),
      { numRuns: 1000 },
    );
  });

  test('tells that something was cut, and loses nothing that fits', () => {
    expect(oneLine(' a \n b ', 10)).toBe('a b');
    expect(oneLine('abcdef', 4)).toBe('abc…');
    expect(oneLine(`${' '.repeat(1000)}text`, 10)).toBe('text');
    expect(oneLine('x'.repeat(1_000_000), 10)).toBe('xxxxxxxxx…');
    expect(wrapped('one two three', 7)).toEqual(['one two', 'three']);
    expect(wrapped('one two three', 7, 1)).toEqual(['one tw…']);
    expect(wrapped('abcdefghij', 4)).toEqual(['abcd', 'efgh', 'ij']);
  });

  test('in a message keeps its lines, and shows what would move the cursor', () => {
    expect(harmless('a\nb\u001b[2J\u202e\u009b\r')).toBe('a\nb\\u{1b}[2J\\u{202e}\\u{9b}\\u{d}');
  });
});

test('columns are as wide as they need to be, numbers to the right, under a head that goes with them', () => {
  const rows = [
    ['name', 'count', 'note'],
    ['a', '1', 'x'],
    ['longer', '12,345', ''],
  ];
  expect(columns(rows, (text) => text)).toBe('name     count  note\na            1  x\nlonger  12,345');
});

test('numbers are told in the unit that suits them', () => {
  expect([0.000_5, 0.5, 1.5, 1500, -0.002].map(duration)).toEqual([
    '0.50 µs',
    '500.00 µs',
    '1.50 ms',
    '1.50 s',
    '-2.00 µs',
  ]);
  expect([0, 999, 1234567.8].map(grouped)).toEqual(['0', '999', '1,234,568']);
});
