import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  checkOptions,
  isBoolean,
  isCount,
  isFunction,
  isListOf,
  isOneOf,
  type PerTool,
  perTool,
  perToolCheck,
  wildcard,
} from 'toolonion';

const checks = {
  size: isCount(1),
  quiet: isBoolean,
  hook: isFunction,
  keep: isOneOf('head', 'tail'),
  even: isListOf((item) => Number(item) % 2 === 0, 'an array of even numbers'),
  limit: perToolCheck(isCount(0)),
};

describe('checkOptions', () => {
  test.each([
    [{}],
    [{ size: 1, quiet: false, hook: () => 1, keep: 'tail', even: [2, 4], limit: 0 }],
    [{ even: [] }],
    [{ size: undefined, quiet: undefined }],
    [Object.assign(Object.create(null), { size: 1 })],
    [Object.freeze({ limit: Object.freeze({ default: 1, byTool: Object.freeze({ a: 0 }) }) })],
    [{ limit: { byTool: {} } }],
    [{ limit: { default: undefined, byTool: { a: undefined } } }],
  ])('takes %p', (options) => {
    expect(() => checkOptions('shield', options, checks)).not.toThrow();
  });

  test.each([
    [{ size: 0 }, 'Option "size" of shield must be a whole number of at least 1; got 0.'],
    [{ size: 1.5 }, 'must be a whole number of at least 1; got 1.5.'],
    [{ size: Number.NaN }, 'must be a whole number of at least 1; got NaN.'],
    [{ size: Number.POSITIVE_INFINITY }, 'must be a whole number of at least 1; got Infinity.'],
    [{ size: 2 ** 53 }, 'must be a whole number of at least 1; got 9007199254740992.'],
    [{ size: 1n }, 'must be a whole number of at least 1; got 1.'],
    [{ size: '1' }, 'must be a whole number of at least 1; got "1".'],
    [{ size: null }, 'must be a whole number of at least 1; got null.'],
    [{ quiet: 'no' }, 'Option "quiet" of shield must be true or false; got "no".'],
    [{ quiet: 0 }, 'must be true or false; got 0.'],
    [{ hook: {} }, 'Option "hook" of shield must be a function; got an object.'],
    [{ hook: [] }, 'must be a function; got an array.'],
    [{ hook: Symbol('s') }, 'must be a function; got a symbol.'],
    [{ keep: 'both' }, 'Option "keep" of shield must be one of "head", "tail"; got "both".'],
    [{ keep: () => 'a'.repeat(1000) }, 'must be one of "head", "tail"; got a function.'],
    [{ keep: new Map() }, 'must be one of "head", "tail"; got a Map.'],
    [{ even: [2, 3] }, 'Option "even" of shield must be an array of even numbers; got an array.'],
    [{ even: 2 }, 'must be an array of even numbers; got 2.'],
    [{ limit: -1 }, 'Option "limit" of shield must be a whole number of at least 0; got -1.'],
    [
      { limit: { default: -1, byTool: {} } },
      'must be a whole number of at least 0, for each tool ("default" has -1); got an object.',
    ],
    [
      { limit: { byTool: { a: 'x' } } },
      'must be a whole number of at least 0, for each tool ("a" has "x"); got an object.',
    ],
    [
      { limit: { byTool: { a: null } } },
      'must be a whole number of at least 0, for each tool ("a" has null); got an object.',
    ],
    [
      { limit: { byTool: {}, defualt: 1 } },
      'must be one value, or { default, byTool } and nothing else; got an object.',
    ],
    [{ limit: { default: 1 } }, 'must be a whole number of at least 0; got an object.'],
    [{ limit: { byTool: new Map([['a', 1]]) } }, 'must be a whole number of at least 0; got an object.'],
    [{ sise: 1 }, 'shield has no option "sise". Its options: size, quiet, hook, keep, even, limit.'],
    [{ constructor: 1 }, 'shield has no option "constructor".'],
    [JSON.parse('{"__proto__":1}'), 'shield has no option "__proto__".'],
    [{ unknown: undefined }, 'shield has no option "unknown".'],
    [null, 'shield takes its options as an object.'],
    [undefined, 'shield takes its options as an object.'],
    [[], 'shield takes its options as an object.'],
    [() => 1, 'shield takes its options as an object.'],
  ])('refuses %p and says what is allowed', (options, message) => {
    expect(() => checkOptions('shield', options, checks)).toThrow(TypeError);
    expect(() => checkOptions('shield', options, checks)).toThrow(message);
  });

  test('says where there are no options at all', () => {
    expect(() => checkOptions('shield', { a: 1 }, {})).toThrow('Its options: none.');
  });

  test('shows only the beginning of a long text', () => {
    expect(() => checkOptions('shield', { size: 'x'.repeat(10_000_000) }, checks)).toThrow(/got "x{60}"\.$/);
  });
});

describe('perTool', () => {
  test('gives one value for all tools', () => {
    const limit = perTool(5, 1);
    expect([limit('a'), limit('constructor')]).toEqual([5, 5]);
    expect(perTool(0, 1)('a')).toBe(0);
    expect(perTool(false, true)('a')).toBe(false);
  });

  test('gives the fallback where nothing was given', () => {
    expect(perTool(undefined, 1)('a')).toBe(1);
    expect(perTool({ byTool: { a: 2 } }, 1)('b')).toBe(1);
    expect(perTool<number>({ default: undefined, byTool: {} } as unknown as PerTool<number>, 1)('b')).toBe(1);
  });

  test('gives some tools values of their own', () => {
    const limit = perTool({ default: 5, byTool: { a: 0, b: 7 } }, 1);
    expect(['a', 'b', 'c'].map(limit)).toEqual([0, 7, 5]);
  });

  test('finds names as they are, `__proto__` and `constructor` too', () => {
    const option: PerTool<number> = { default: 5, byTool: JSON.parse('{"__proto__":1,"toString":2}') };
    expect(['__proto__', 'toString', 'constructor', 'valueOf'].map(perTool(option, 0))).toEqual([1, 2, 5, 5]);
  });

  test('takes a pattern where a tool has no value of its own, the first that fits', () => {
    const limit = perTool({ default: 9, byTool: { 'read_*': 1, read_file: 0, '*_file': 2, 'a*b*c': 3 } }, 8);
    const names = ['read_dir', 'read_file', 'write_file', 'read__file', 'abc', 'aXbYc', 'ab', 'other'];
    expect(names.map(limit)).toEqual([1, 0, 2, 1, 3, 3, 9, 9]);
  });

  test('does not follow later changes of the option', () => {
    const byTool: Record<string, number> = { a: 1 };
    const limit = perTool({ byTool }, 0);
    byTool['a'] = 2;
    expect(limit('a')).toBe(1);
  });
});

describe('wildcard', () => {
  const characters = fc.constantFrom('a', 'b', '*', '.', '\n');
  const texts = fc.string({ unit: characters, maxLength: 8 });

  test('fits what a regular expression would, whatever stands around the stars', () => {
    const escaped = (text: string) => text.replaceAll('.', '\\.').replaceAll('*', '.*');
    fc.assert(
      fc.property(texts, texts, (pattern, name) => {
        expect(wildcard(pattern)(name)).toBe(new RegExp(`^${escaped(pattern)}$`, 's').test(name));
      }),
      { numRuns: 2000 },
    );
  });

  test('takes no longer for a name made to be slow', () => {
    const fits = wildcard(`${'a*'.repeat(50)}b`);
    expect(fits('a'.repeat(200_000))).toBe(false);
  });
});
