import { expect, test } from '@jest/globals';
import { listed } from 'toolonion';

test.each([
  [0, ''],
  [1, '<0>'],
  [3, '<0>, <1>, <2>'],
  [4, '<0>, <1>, <2>, and 1 more'],
  [100_000, '<0>, <1>, <2>, and 99997 more'],
])('%d items are written up to the bound, and the rest is counted', (length, expected) => {
  const items = Array.from({ length }, (_, index) => index);
  expect(listed(items, (item) => `<${item}>`, { most: 3 })).toBe(expected);
});

test('the separator stands before the count as well', () => {
  expect(listed(['a', 'b', 'c'], String, { most: 2, separator: '; ' })).toBe('a; b; and 1 more');
});

test('what is not written is not shown to the writer', () => {
  const seen: string[] = [];
  listed(['a', 'b'], (item) => String(seen.push(item)), { most: 1 });
  expect(seen).toEqual(['a']);
});
