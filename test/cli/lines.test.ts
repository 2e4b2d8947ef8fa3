import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type Line, LineReader } from '../../src/cli/lines.ts';

/** Lines of bytes that come in these chunks. */
function linesOf(chunks: readonly (string | Buffer)[], maxBytes?: number): readonly Line[] {
  const reader = new LineReader(maxBytes);
  return [...chunks.flatMap((chunk) => reader.take(Buffer.from(chunk))), ...reader.end()];
}

describe('LineReader', () => {
  test('gives the same lines, however the bytes are cut into chunks', () => {
    const texts = fc.array(fc.string({ unit: fc.constantFrom('a', 'é', '𝄞', ' ', '\r', '\uFEFF') }), { maxLength: 8 });
    fc.assert(
      fc.property(texts, fc.boolean(), fc.array(fc.nat(60), { maxLength: 6 }), (lines, isEnded, cuts) => {
        const bytes = Buffer.from(lines.join('\n') + (isEnded ? '\n' : ''));
        const ends = [...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length];
        const chunks = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
        expect(linesOf(chunks)).toEqual(linesOf([bytes]));
      }),
      { numRuns: 500 },
    );
  });

  test('counts blank lines and leaves them out', () => {
    expect(linesOf(['one\n\n  \r\nfour'])).toEqual([
      { number: 1, text: 'one' },
      { number: 4, text: 'four' },
    ]);
  });

  test('takes a byte order mark off the first line only', () => {
    expect(linesOf(['\uFEFFone\n\uFEFFtwo']).map(({ text }) => text)).toEqual(['one', '\uFEFFtwo']);
  });

  test('says of a line that it is not UTF-8, and reads the others', () => {
    const bytes = Buffer.concat([
      Buffer.from('one\n'),
      Buffer.from([0xc3, 0x28]),
      Buffer.from('\nthree\n'),
      Buffer.from([0xff]),
    ]);
    expect(linesOf([bytes])).toEqual([
      { number: 1, text: 'one' },
      { number: 2, text: '', fault: 'it is not UTF-8' },
      { number: 3, text: 'three' },
      { number: 4, text: '', fault: 'it is not UTF-8' },
    ]);
  });

  test('refuses a line that is too long, wherever its chunks end, and reads the next', () => {
    const fault = 'it has more than 10 bytes';
    const expected = [
      { number: 1, text: '1234567890' },
      { number: 2, text: '', fault },
      { number: 3, text: 'three' },
    ];
    expect(linesOf(['1234567890\n123456', '78901\nthree\n'], 10)).toEqual(expected);
    expect(linesOf(['1234567890', '\n12345678901', '\nth', 'ree'], 10)).toEqual(expected);
    expect(linesOf(['1234567890\n12345678901\nthree'], 10)).toEqual(expected);
  });
});
