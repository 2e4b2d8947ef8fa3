import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { nearestNames, notFound, similarity } from 'toolonion';

describe('similarity', () => {
  test.each([
    ['read_file', 'read_file', 1],
    ['READ_file', 'read_FILE', 1],
    ['abcd', 'wxyz', 0],
    ['read', 'reed', 3 / 4 + 0.1 * (2 / 4)],
    ['grep', 'rep', 3 / 4],
    ['file_read', 'read_file', 4 / 9],
    ['', '', 1],
    ['', 'a', 0],
  ])('of %j and %j is %d', (one, other, score) => {
    expect(similarity(one, other)).toBeCloseTo(score, 10);
  });

  test('is the same both ways, from 0 to 1, and 1 for a name and itself', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (one, other) => {
        const score = similarity(one, other);
        expect(score).toBeGreaterThanOrEqual(0);
        expect(score).toBeLessThanOrEqual(1);
        expect(similarity(other, one)).toBeCloseTo(score, 10);
        expect(similarity(one, one)).toBe(1);
      }),
    );
  });
});

describe('nearestNames', () => {
  const names = ['write_file', 'read_file', 'read_dir', 'grep', 'web_search'];

  test('gives the best first, and no more than asked for', () => {
    expect(nearestNames('read_fil', names)).toEqual(['read_file', 'read_dir', 'write_file']);
    expect(nearestNames('read_fil', names, { most: 1 })).toEqual(['read_file']);
    expect(nearestNames('read_fil', names, { least: 0.9 })).toEqual(['read_file']);
  });

  test('gives none where nothing is near', () => {
    expect(nearestNames('python', ['view', 'grep'])).toEqual([]);
    expect(nearestNames('anything', [])).toEqual([]);
  });

  test('finds what a look at each name would find', () => {
    fc.assert(
      fc.property(fc.string(), fc.uniqueArray(fc.string()), (name, all) => {
        const near = all.filter((each) => similarity(name, each) >= 0.4);
        expect(new Set(nearestNames(name, all, { most: Number.POSITIVE_INFINITY }))).toEqual(new Set(near));
      }),
    );
  });
});

test('the error for an unknown name suggests the nearest, printable and in bounds', () => {
  expect(notFound('reed_file', ['grep', 'read_file']).message).toBe(
    'There is no tool named "reed_file". Did you mean "read_file"? Available tools: grep, read_file.',
  );
  expect(notFound('read', ['read_a', 'read_b', 'read_c']).message).toContain('"read_a", "read_b" or "read_c"?');
  const long = Array.from({ length: 1000 }, (_, index) => `tool_\u202E${'x'.repeat(1000)}${index}`);
  const { message } = notFound(`tool_\u0000${'x'.repeat(1_000_000)}`, long);
  expect(message.length).toBeLessThan(2000);
  expect(message).not.toMatch(/\p{Cc}|\u202E/u);
});
