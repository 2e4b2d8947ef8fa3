import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { cloneJson, copyJson, isPlainObject, kindOf, toJson } from 'toolonion';
import { anything } from './support/anything.ts';
import { endlessValues, hostileValues, nested } from './support/hostile.ts';

class Point {
  readonly x = 1;
}

/** All objects within a JSON value. */
function objectsIn(value: unknown): readonly object[] {
  if (typeof value !== 'object' || value === null) return [];
  return [value, ...Object.values(value).flatMap(objectsIn)];
}

describe('isPlainObject', () => {
  test.each([
    ['a literal', {}],
    ['what JSON.parse makes', JSON.parse('{"__proto__":1}')],
    ['an object without a prototype', Object.create(null)],
    ['an object of another realm', runInNewContext('({ a: 1 })')],
    ['a frozen object', Object.freeze({})],
  ])('takes %s', (_, value) => {
    expect(isPlainObject(value)).toBe(true);
  });

  test.each([
    ['null', null],
    ['a list', []],
    ['a list of another realm', runInNewContext('[]')],
    ['a class instance', new Point()],
    ['a Date', new Date()],
    ['a Map', new Map()],
    ['an Error of another realm', runInNewContext('new Error()')],
    ['a function', () => 1],
    ['a boxed text', Object('text')],
    ['a text', 'text'],
    ['undefined', undefined],
  ])('refuses %s', (_, value) => {
    expect(isPlainObject(value)).toBe(false);
  });

  test.each(hostileValues)('does not throw for %s', (_, value) => {
    expect(typeof isPlainObject(value)).toBe('boolean');
  });
});

describe('kindOf', () => {
  test.each([
    [null, 'null'],
    [undefined, 'undefined'],
    [true, 'true'],
    [1, 'a number'],
    [Number.NaN, 'NaN'],
    [Number.NEGATIVE_INFINITY, '-Infinity'],
    ['', 'a string'],
    [1n, 'a bigint'],
    [Symbol('s'), 'a symbol'],
    [() => 1, 'a function'],
    [[], 'an array'],
    [{}, 'an object'],
    [new Point(), 'a class instance'],
    [new Date(), 'a Date'],
    [new Map(), 'a Map'],
    [new Error('x'), 'an Error'],
    [new ArrayBuffer(1), 'an ArrayBuffer'],
    [new Uint8Array(1), 'a Uint8Array'],
    [new URL('http://a'), 'a URL'],
  ])('calls %p %s', (value, kind) => {
    expect(kindOf(value)).toBe(kind);
  });

  test('shows only the beginning of a tag an object gives itself', () => {
    const tagged = Object.assign(new Point(), { [Symbol.toStringTag]: 'T'.repeat(1_000_000) });
    expect(kindOf(tagged).length).toBeLessThan(50);
  });

  test.each(hostileValues)('has a name for %s', (_, value) => {
    expect(kindOf(value)).toMatch(/^an? .+/);
  });
});

describe.each([
  ['copyJson', copyJson],
  ['cloneJson', cloneJson as typeof copyJson],
])('%s', (_, copyOf) => {
  test('gives an equal value that shares no object with the first', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const value: unknown = JSON.parse(text);
        const copy = copyOf(value);
        expect(copy).toEqual(value);
        expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
        const shared = new Set(objectsIn(value));
        expect(objectsIn(copy).filter((object) => shared.has(object))).toEqual([]);
      }),
    );
  });

  test('copies a frozen value into one that can be changed', () => {
    const copy = copyOf(Object.freeze({ list: Object.freeze([1]) })) as { list: number[] };
    copy.list.push(2);
    expect(copy).toEqual({ list: [1, 2] });
  });

  test('keeps `__proto__`, `constructor` and `toString` as keys like any other', () => {
    const value: unknown = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":1},"toString":[]}');
    const copy = copyOf(value) as Record<string, unknown>;
    expect(Object.keys(copy)).toEqual(['__proto__', 'constructor', 'toString']);
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('copies no key that an object merely inherits', () => {
    const prototype = Object.prototype as unknown as Record<string, unknown>;
    prototype['inherited'] = { evil: true };
    try {
      expect(Object.keys(copyOf({ a: {} }) as object)).toEqual(['a']);
    } finally {
      delete prototype['inherited'];
    }
  });

  test('gives each of several places that share an object a copy of its own', () => {
    const shared = { n: 1 };
    const copy = copyOf({ a: shared, b: shared }) as { a: object; b: object };
    expect(copy).toEqual({ a: { n: 1 }, b: { n: 1 } });
    expect(copy.a).not.toBe(copy.b);
  });
});

describe('copyJson', () => {
  test('leaves out keys that hold undefined, as JSON does', () => {
    expect(Object.keys(copyJson({ a: undefined, b: 1, c: undefined }) as object)).toEqual(['b']);
  });

  test.each([
    ['undefined', undefined, 'the value is or holds undefined'],
    ['a list with undefined', { list: [undefined] }, 'list is or holds undefined'],
    ['a list with holes', { list: new Array(3) }, 'list is or holds undefined'],
    ['NaN', { n: Number.NaN }, 'n is or holds NaN'],
    ['Infinity in a list', [Number.POSITIVE_INFINITY], 'the value is or holds Infinity'],
    ['a bigint', { n: 10n }, 'n is or holds a bigint'],
    ['a function', { f: () => 1 }, 'f is or holds a function'],
    ['a symbol', { s: Symbol('s') }, 's is or holds a symbol'],
    ['a Date, however deep', { a: { b: [{ c: new Date() }] } }, 'a is or holds a Date'],
    ['a class instance', { p: new Point() }, 'p is or holds a class instance'],
    ['a Map', { m: new Map() }, 'm is or holds a Map'],
    ['a boxed number', { n: Object(1) }, 'n is or holds a Number'],
  ])('refuses %s and names the place', (_, value, message) => {
    expect(() => copyJson(value)).toThrow(TypeError);
    expect(() => copyJson(value)).toThrow(message);
  });

  test('takes 256 levels and refuses what nests deeper', () => {
    expect(copyJson(nested(256))).toEqual(nested(256));
    expect(() => copyJson(nested(257))).toThrow('a nests deeper than 256 levels');
  });

  test('refuses a cycle as too deep', () => {
    const value: Record<string, unknown> = {};
    value['self'] = [value];
    expect(() => copyJson({ a: 1, value })).toThrow('value nests deeper than 256 levels');
  });

  test.each([
    ['objects', doubled({ a: 1 }, 40)],
    ['lists', Array(100_000).fill(Array(100_000).fill('text'))],
    ['texts in objects', Array(100_000).fill(Object.fromEntries(Array.from({ length: 1000 }, (__, n) => [n, 'text'])))],
  ])('refuses %s that refer to the same few so often that no memory could hold a copy', (_, value) => {
    expect(() => copyJson({ value })).toThrow('value holds more than 2000000 values');
  });

  test('does not tell what a getter threw', () => {
    const value = {
      get secret(): never {
        throw new Error('hunter2');
      },
    };
    expect(() => copyJson(value)).toThrow(TypeError);
    expect(() => copyJson(value)).toThrow(/^the value cannot be read$/);
  });

  test.each([...hostileValues, ...endlessValues])('copies, or refuses with a TypeError, %s', (_, value) => {
    let fault: unknown;
    try {
      JSON.stringify(copyJson({ value }));
    } catch (thrown) {
      fault = thrown;
    }
    expect(fault ?? { name: 'TypeError' }).toMatchObject({ name: 'TypeError' });
  });
});

describe('toJson', () => {
  test('gives JSON as it is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => expect(JSON.stringify(toJson(value))).toBe(JSON.stringify(value))),
    );
  });

  test('gives something that JSON holds for anything, and the same for that', () => {
    fc.assert(
      fc.property(anything, (value) => {
        const json = toJson(value);
        const text = JSON.stringify(json);
        expect(typeof text).toBe('string');
        expect(JSON.stringify(JSON.parse(text))).toBe(text);
        expect(toJson(json)).toEqual(json);
        // It refuses whatever is not JSON through and through.
        expect(copyJson(json)).toEqual(json);
      }),
    );
  });

  test('gives JSON as it is to whoever looks closer than JSON does', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => expect(toJson(value)).toEqual(value)));
  });

  test('writes dates, collections, bytes, errors and big numbers so that they can be read', () => {
    const value = {
      at: new Date(0),
      bad: new Date(Number.NaN),
      map: new Map<unknown, unknown>([[1, new Set(['a'])]]),
      bytes: Buffer.from('x'),
      view: new DataView(new ArrayBuffer(1)),
      buffer: new ArrayBuffer(2),
      url: new URL('http://a'),
      big: 10n,
      error: new RangeError('too far'),
      aborted: new DOMException('gone', 'AbortError'),
      boxed: [Object('text'), Object(1), Object(true), Object(1n)],
      pattern: /a\/b/gi,
    };
    expect(toJson(value)).toEqual({
      at: '1970-01-01T00:00:00.000Z',
      bad: null,
      map: [[1, ['a']]],
      bytes: 'eA==',
      view: 'AA==',
      buffer: 'AAA=',
      url: 'http://a/',
      big: '10',
      error: { name: 'RangeError', message: 'too far' },
      aborted: { name: 'AbortError', message: 'gone' },
      boxed: ['text', 1, true, '1'],
      pattern: '/a\\/b/gi',
    });
  });

  test('knows the dates, collections and errors of another realm', () => {
    const value: unknown = runInNewContext(
      '({ at: new Date(0), set: new Set([1]), error: new TypeError("t"), list: [1n] })',
    );
    expect(toJson(value)).toEqual({
      at: '1970-01-01T00:00:00.000Z',
      set: [1],
      error: { name: 'TypeError', message: 't' },
      list: ['1'],
    });
  });

  test('drops functions, symbols and undefined from objects', () => {
    expect(Object.keys(toJson({ f: () => 1, s: Symbol('s'), u: undefined, ok: 1 }) as object)).toEqual(['ok']);
  });

  test('puts null for functions, symbols, undefined and holes in lists, and for what is nothing on its own', () => {
    expect(toJson([() => 1, Symbol('s'), undefined, ...Array(1), Number.NaN, Number.POSITIVE_INFINITY])).toEqual(
      Array(6).fill(null),
    );
    expect([undefined, () => 1, Symbol('s'), Number.NaN].map(toJson)).toEqual([null, null, null, null]);
  });

  test.each([
    ['a promise', Promise.resolve(1), '[Promise]'],
    ['a promise of another realm', runInNewContext('Promise.resolve(1)'), '[Promise]'],
    ['a promise with more to it', Object.assign(Promise.resolve(1), { a: 1 }), '[Promise]'],
    ['a weak set', new WeakSet(), '[WeakSet]'],
    ['headers', new Headers({ a: 'b' }), '[Headers]'],
    ['a generator', (function* () {})(), '[Generator]'],
    ['a proxy of a Set', new Proxy(new Set([1]), {}), '[Set]'],
    ['a boxed symbol', Object(Symbol('s')), '[Symbol]'],
    [
      'a tag of its own',
      Object.assign(new Point(), { x: undefined, [Symbol.toStringTag]: 'T'.repeat(99) }),
      `[${'T'.repeat(40)}]`,
    ],
  ])('leaves a remark in the place of %s, which shows nothing of what it holds', (_, value, remark) => {
    expect(toJson({ value })).toEqual({ value: remark });
  });

  test('shows what an object shows, though it has a tag', () => {
    const tagged = Object.assign(new Point(), { [Symbol.toStringTag]: 'Tagged' });
    expect(toJson([tagged, new (class {})(), { [Symbol.toStringTag]: 'Plain' }])).toEqual([{ x: 1 }, {}, {}]);
  });

  test('hears of a promise that fails, for nobody else can', async () => {
    const failing = [Promise.reject(new Error('a')), runInNewContext('Promise.reject(new Error("b"))')];
    expect(toJson(failing)).toEqual(['[Promise]', '[Promise]']);
    // A rejection that nobody has heard of fails the test.
    await new Promise((resolve) => setImmediate(resolve));
  });

  test('marks a cycle, and nothing that is merely shared', () => {
    const shared = { n: 1 };
    const value: Record<string, unknown> = { first: shared, second: [shared, shared] };
    value['self'] = value;
    value['map'] = new Map([['back', value]]);
    expect(toJson(value)).toEqual({
      first: { n: 1 },
      second: [{ n: 1 }, { n: 1 }],
      self: '[Circular]',
      map: [['back', '[Circular]']],
    });
  });

  test('marks the one property that cannot be read, and keeps the others', () => {
    const value = Object.defineProperty({ a: 1, c: 3 }, 'b', {
      enumerable: true,
      get: () => {
        throw new Error('hostile');
      },
    });
    expect(toJson(value)).toEqual({ a: 1, b: '[Unreadable]', c: 3 });
  });

  test('asks an object for its own JSON once, as JSON.stringify does', () => {
    const spreads = {
      a: 1,
      toJSON() {
        return { ...this, b: 2 };
      },
    };
    class Same {
      readonly a = 1;
      toJSON(): this {
        return this;
      }
    }
    class Table extends Map<string, number> {
      toJSON(): unknown {
        return { rows: [...this], same: this };
      }
    }
    expect(toJson(new Table([['a', 1]]))).toEqual({ rows: [['a', 1]], same: '[Circular]' });
    const keys: unknown[] = [];
    const keyed = { toJSON: (key: unknown) => keys.push(key) };
    for (const value of [spreads, new Same()]) expect(toJson(value)).toEqual(JSON.parse(JSON.stringify(value)));
    toJson({ here: keyed, list: [keyed] });
    expect(keys).toEqual(['here', '0']);
  });

  test('keeps `__proto__` as a key like any other', () => {
    const value: unknown = JSON.parse('{"a":{"__proto__":{"polluted":true}}}');
    expect(JSON.stringify(toJson(value))).toBe('{"a":{"__proto__":{"polluted":true}}}');
  });

  test('stops at 200 levels and says so', () => {
    const text = JSON.stringify(toJson(nested(100_000)));
    expect(text).toContain('"[Nested too deep]"');
    expect(text.length).toBeLessThan(2000);
  });

  test('bounds values that refer to the same few so often that no memory could hold them', () => {
    expect(JSON.stringify(toJson(Array(100_000).fill(Array(100_000).fill(1))))).toContain('[Too large]');
  });

  test('bounds text, keys and bytes, so that the JSON of anything fits into one string', () => {
    const megabytes = 'x'.repeat(10_000_000);
    const json = toJson({
      texts: Array(1000).fill(megabytes),
      keys: Array(1000).fill({ [megabytes]: 1 }),
      bytes: Buffer.alloc(70_000_000),
    }) as { texts: string[]; bytes: string };
    expect(json.texts.at(0)).toBe(megabytes);
    expect(json.texts.at(-1)).toBe('[Too large]');
    expect(json.bytes).toBe('[Too large]');
    expect(JSON.stringify(json).length).toBeLessThan(80_000_000);
  });

  test('uses the built-in methods of dates and collections, not those a subclass put in their place', () => {
    class Dated extends Date {
      override toISOString(): string {
        return { not: 'text' } as unknown as string;
      }
    }
    class Listed extends Set<number> {
      override [Symbol.iterator](): SetIterator<number> {
        throw new Error('hostile');
      }
    }
    const listed = new Listed();
    listed.add(1);
    expect(toJson([new Dated(0), listed])).toEqual(['1970-01-01T00:00:00.000Z', [1]]);
  });

  test.each([...hostileValues, ...endlessValues])('gives JSON for %s', (_, value) => {
    const json = toJson([value]);
    expect(typeof JSON.stringify(json)).toBe('string');
    expect(toJson(json)).toEqual(json);
  });
});

/** A small value that unfolds to 2 to the power of `times` copies. */
function doubled(value: object, times: number): object {
  return times === 0 ? value : doubled([value, value], times - 1);
}
