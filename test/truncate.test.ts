import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  cutTexts,
  isJsonLonger,
  type JsonValue,
  type Keep,
  type Marker,
  type SizeUnit,
  shrinkJson,
  sizeOf,
  toJson,
} from 'toolonion';
import { anything } from './support/anything.ts';
import { nested } from './support/hostile.ts';

const marker: Marker = (leftOut, total, unit) => `[${leftOut}/${total} ${unit}]`;
const keeps: readonly Keep[] = ['head', 'tail', 'both'];
const units: readonly SizeUnit[] = ['characters', 'bytes'];

/** Text with what is easily cut in half: pairs of code units, lone halves, characters of one to four bytes. */
const trickyText = fc
  .array(fc.constantFrom('a', 'ü', '漢', '\u{1F98A}', '\ud83e', '\udd8a', '\n', '"', '👨‍👩‍👧'), { maxLength: 40 })
  .map((pieces) => pieces.join(''));

function sum(texts: readonly string[], unit: SizeUnit): number {
  return texts.reduce((size, text) => size + sizeOf(text, unit), 0);
}

describe('sizeOf', () => {
  test('counts UTF-16 code units or bytes of UTF-8', () => {
    expect(sizeOf('aü漢\u{1F98A}', 'characters')).toBe(5);
    expect(sizeOf('aü漢\u{1F98A}', 'bytes')).toBe(10);
    expect(sizeOf('\ud83e', 'bytes')).toBe(3);
    expect(sizeOf('', 'bytes')).toBe(0);
  });
});

describe('cutTexts', () => {
  const cut = (text: string, limit: number, keep: Keep, unit: SizeUnit = 'characters') =>
    cutTexts([text], { limit, unit, keep, marker }).join('');

  test('keeps the beginning, the end, or both', () => {
    const text = `beginning${'.'.repeat(1000)}end`;
    expect(cut(text, 40, 'head')).toBe('beginning.........[994/1012 characters]');
    expect(cut(text, 40, 'tail')).toBe('[994/1012 characters]...............end');
    expect(cut(text, 40, 'both')).toBe('beginning[994/1012 characters]......end');
  });

  test('keeps the last line of a long log, where the failure is', () => {
    const log = `${'ok\n'.repeat(50_000)}FAILED: disk full`;
    expect(cut(log, 1000, 'both')).toMatch(/FAILED: disk full$/);
    expect(cut(log, 1000, 'tail')).toMatch(/FAILED: disk full$/);
  });

  test.each(keeps.flatMap((keep) => units.map((unit) => [keep, unit] as const)))(
    'keeps to the limit and stays well-formed at every cut point: %s, %s',
    (keep, unit) => {
      const text = `${'x'.repeat(9)}\u{1F98A}fox\ud83e ü漢\u{1F98A}\udd8a${'\u{1F98A}'.repeat(40)}`;
      for (let limit = 0; limit <= sizeOf(text, unit); limit++) {
        const kept = cut(text, limit, keep, unit);
        expect(kept.isWellFormed()).toBe(true);
        expect(sizeOf(kept, unit)).toBeLessThanOrEqual(limit);
      }
    },
  );

  test('keeps several texts to one limit, each at its place, well-formed, with as much of them as fits', () => {
    const texts = fc.array(trickyText, { maxLength: 6 });
    fc.assert(
      fc.property(
        texts,
        fc.nat(200),
        fc.constantFrom(...keeps),
        fc.constantFrom(...units),
        (given, limit, keep, unit) => {
          const kept = cutTexts(given, { limit, unit, keep, marker });
          expect(kept.length).toBe(given.length);
          expect(kept.every((text) => text.isWellFormed())).toBe(true);
          const total = sum(given, unit);
          if (total <= limit) {
            expect(kept).toEqual(given.map((text) => text.toWellFormed()));
            return;
          }
          const size = sum(kept, unit);
          expect(size).toBeLessThanOrEqual(limit);
          const shown = kept.join('').match(/\[(\d+)\/(\d+) \w+\]/);
          if (shown === null) return;
          expect(Number(shown[2])).toBe(total);
          expect(Number(shown[1])).toBe(total - (size - sizeOf(shown[0], unit)));
          // No character of a text that is cut has more than four bytes, and the number in the marker may be shorter than its room.
          expect(size).toBeGreaterThan(limit - 2 * 4 - marker(total, total, unit, total).length / 2);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test('gives texts back as they are when they are within the limit', () => {
    const texts = ['a', '', '\u{1F98A}'];
    expect(cutTexts(texts, { limit: 3, unit: 'characters', keep: 'both', marker })).toBe(texts);
    expect(cutTexts([], { limit: 0, unit: 'bytes', keep: 'head', marker })).toEqual([]);
  });

  test('mends a lone half of a character even where nothing is cut', () => {
    expect(cut('a\ud83e', 10, 'both')).toBe('a\ufffd');
    expect(cut('a\ud83e', 4, 'both', 'bytes')).toBe('a\ufffd');
  });

  test('shares one limit between texts in their order', () => {
    const texts = ['aaaaa', 'bbbbb', 'ccccc', 'ddddd'];
    const short: Marker = () => '…';
    const share = (limit: number, keep: Keep) => cutTexts(texts, { limit, unit: 'characters', keep, marker: short });
    expect(share(13, 'head')).toEqual(['aaaaa', 'bbbbb', 'cc…', '']);
    expect(share(11, 'head')).toEqual(['aaaaa', 'bbbbb', '…', '']);
    expect(share(13, 'tail')).toEqual(['…', 'bb', 'ccccc', 'ddddd']);
    expect(share(13, 'both')).toEqual(['aaaaa', 'b…', 'c', 'ddddd']);
  });

  test('puts the marker where the first text is lost, not where one is merely mended', () => {
    const texts = ['\ud83e', 'b'.repeat(100)];
    const [first, second] = cutTexts(texts, { limit: 40, unit: 'characters', keep: 'head', marker });
    expect(first).toBe('\ufffd');
    expect(second).toContain('[');
  });

  test('cuts the marker itself where not even that has room', () => {
    expect(cut('x'.repeat(100), 3, 'head')).toBe('[10');
    expect(cut('x'.repeat(100), 0, 'both')).toBe('');
  });

  test('keeps to the limit even if the marker grows when it is asked again, or is half a character', () => {
    let asked = 0;
    const growing: Marker = () => 'm'.repeat(++asked * 10);
    const odd: Marker = () => '\ud83e';
    for (const keep of keeps) {
      asked = 0;
      const grown = cutTexts(['x'.repeat(100)], { limit: 30, unit: 'characters', keep, marker: growing }).join('');
      expect(grown.length).toBeLessThanOrEqual(30);
      const halved = cutTexts(['x'.repeat(100)], { limit: 30, unit: 'bytes', keep, marker: odd }).join('');
      expect(halved.isWellFormed()).toBe(true);
      expect(Buffer.byteLength(halved)).toBeLessThanOrEqual(30);
    }
  });

  test('cuts 10 MB by bytes', () => {
    const text = 'ü漢\u{1F98A}'.repeat(1_200_000);
    for (const keep of keeps) {
      const kept = cut(text, 50_000, keep, 'bytes');
      expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(50_000);
      expect(Buffer.byteLength(kept)).toBeGreaterThan(49_900);
    }
  });
});

describe('shrinkJson', () => {
  const smallest = { characters: 3, bytes: 5 } as const;

  test('gives JSON within the limit, for any value and any limit that has room for the smallest remark', () => {
    const value = fc.jsonValue({ stringUnit: 'binary', maxDepth: 6 });
    fc.assert(
      fc.property(value, fc.nat(300), fc.constantFrom(...units), (given, extra, unit) => {
        const limit = smallest[unit] + extra;
        const text = shrinkJson(given as JsonValue, limit, unit);
        expect(() => JSON.parse(text)).not.toThrow();
        expect(sizeOf(text, unit)).toBeLessThanOrEqual(limit);
        expect(text.isWellFormed()).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('gives JSON within the limit as it is, and JSON within the limit for anything else', () => {
    fc.assert(
      fc.property(anything, fc.nat(300), fc.constantFrom(...units), (given, extra, unit) => {
        const value = toJson(given);
        const whole = JSON.stringify(value);
        const limit = smallest[unit] + extra;
        const text = shrinkJson(value, limit, unit);
        if (sizeOf(whole, unit) <= limit) expect(text).toBe(whole);
        expect(() => JSON.parse(text)).not.toThrow();
        expect(sizeOf(text, unit)).toBeLessThanOrEqual(limit);
      }),
      { numRuns: 500 },
    );
  });

  test.each([Number.POSITIVE_INFINITY, 0.5, 3.7, 0, -1, Number.NEGATIVE_INFINITY])(
    'gives JSON for a limit of %p',
    (limit) => {
      for (const unit of units) {
        const text = shrinkJson({ a: ['x'.repeat(100)] }, limit, unit);
        expect(JSON.parse(text)).toEqual(limit === Number.POSITIVE_INFINITY ? { a: ['x'.repeat(100)] } : '…');
      }
    },
  );

  test('ends for what nests deeper than any stack', () => {
    const text = shrinkJson(nested(1_000_000) as JsonValue, 10_000, 'characters');
    expect(text).toMatch(/^\{"a":.*"…"\}+$/);
    expect(() => JSON.parse(text)).not.toThrow();
  });

  test('says how much of a text, a list and an object is missing', () => {
    const value = { texts: ['x'.repeat(1000)], rows: Array(1000).fill(1) };
    const json = JSON.parse(shrinkJson(value, 400, 'characters'));
    expect(json.texts[0]).toMatch(/^x+… \(\d+ more characters\)$/);
    expect(json.rows.at(-1)).toMatch(/^… \d+ more items$/);
    const keys = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`key${index}`, index]));
    expect(JSON.parse(shrinkJson(keys, 400, 'characters'))['…']).toMatch(/^\d+ more keys$/);
  });

  test('counts keys that become the same when they are shortened as missing', () => {
    const value = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`${'k'.repeat(1000)}${index}`, index]));
    const json = JSON.parse(shrinkJson(value, 200, 'characters'));
    expect(json['…']).toBe('49 more keys');
  });

  test('makes no text longer by shortening it', () => {
    const value = Array(50).fill('0123456789abcdef');
    const json = JSON.parse(shrinkJson(value, 300, 'characters')) as string[];
    expect(json[0]).toBe('0123456789abcdef');
  });

  test('keeps `__proto__` as a key like any other', () => {
    const value = JSON.parse(`{"__proto__":{"a":"${'x'.repeat(1000)}"}}`) as JsonValue;
    expect(shrinkJson(value, 100, 'characters')).toMatch(/^\{"__proto__":\{"a":"x+…/);
  });

  test('shrinks one huge item, many rows and deep nesting', () => {
    let deep: JsonValue = 'bottom';
    for (let level = 0; level < 190; level++) deep = level % 2 === 0 ? [deep] : { deep };
    const rows = Array.from({ length: 10_000 }, (_, id) => ({ id, name: `row ${id}` }));
    for (const value of [[{ big: 'x'.repeat(1_000_000) }], rows, deep]) {
      const text = shrinkJson(value, 1000, 'characters');
      expect(text.length).toBeLessThanOrEqual(1000);
      expect(Array.isArray(JSON.parse(text))).toBe(Array.isArray(value));
    }
  });

  test('uses most of the room it has', () => {
    const rows = Array.from({ length: 10_000 }, (_, id) => ({ id, name: `row ${id}` }));
    expect(shrinkJson(rows, 10_000, 'characters').length).toBeGreaterThan(2_500);
  });
});

describe('isJsonLonger', () => {
  test('knows to the character whether the JSON of a value is longer', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const { length } = JSON.stringify(value);
        expect(isJsonLonger(value as JsonValue, length - 1)).toBe(true);
        expect(isJsonLonger(value as JsonValue, length)).toBe(false);
      }),
      { numRuns: 1000 },
    );
  });

  test.each([
    ['""'],
    ['[]'],
    ['{}'],
    ['[[],{}]'],
    ['{"a":[]}'],
    ['"\\n\\"\\u0000"'],
    ['null'],
    ['-1.5e+300'],
    ['[1,2,3]'],
  ])('measures %s', (text) => {
    expect(isJsonLonger(JSON.parse(text), text.length - 1)).toBe(true);
    expect(isJsonLonger(JSON.parse(text), text.length)).toBe(false);
  });

  test('counts what nests a thousand levels as longer, and ends', () => {
    expect(isJsonLonger(nested(990) as JsonValue, Number.POSITIVE_INFINITY)).toBe(false);
    expect(isJsonLonger(nested(1_000_000) as JsonValue, Number.POSITIVE_INFINITY)).toBe(true);
  });

  test('stops as soon as it knows', () => {
    const untouchable = new Proxy([], {
      get: () => {
        throw new Error('read too far');
      },
    });
    expect(isJsonLonger(['x'.repeat(100), untouchable], 50)).toBe(true);
    expect(isJsonLonger({ a: 'x'.repeat(100), b: untouchable }, 50)).toBe(true);
  });
});
