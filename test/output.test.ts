import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type ContentPart, createDispatcher, defineTool, isContent, ToolOutput, toJson, toOutput } from 'toolonion';
import { anything } from './support/anything.ts';
import { hostileValues } from './support/hostile.ts';

class Row {
  readonly id = 1;
}

const part = { type: 'text', text: 'a' } as const;

describe('toOutput', () => {
  test('takes text as it is', () => {
    expect(toOutput('a\ud800')).toEqual({ content: 'a\ud800', isError: false });
    expect(toOutput('Error: no')).toEqual({ content: 'Error: no', isError: false });
  });

  test('takes nothing for empty text', () => {
    expect(toOutput(undefined)).toEqual({ content: '', isError: false });
  });

  test.each([
    [null, 'null'],
    [0, '0'],
    [false, 'false'],
    [[], '[]'],
    [{}, '{}'],
    [{ a: [1, 'b'] }, '{"a":[1,"b"]}'],
    [10n, '"10"'],
    [Number.NaN, 'null'],
    [() => 1, 'null'],
    [Symbol('s'), 'null'],
    [new Row(), '{"id":1}'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [new Date(Number.NaN), 'null'],
    [new Map([['a', 1]]), '[["a",1]]'],
    [new Set([1]), '[1]'],
    [new URL('http://a'), '"http://a/"'],
    [Object('text'), '"text"'],
  ])('takes %p for data, which it shows as JSON', (value, text) => {
    expect(toOutput(value)).toEqual({ content: text, isError: false, structured: JSON.parse(text) });
  });

  test('takes a part, or a list of parts, for content', () => {
    const image = { type: 'image', mimeType: 'image/png', data: new Uint8Array(1) } as const;
    expect(toOutput(image)).toEqual({ content: [image], isError: false });
    expect(toOutput([part, image])).toEqual({ content: [part, image], isError: false });
  });

  test('takes a list for data if one of its items is no valid part', () => {
    expect(toOutput([part, { type: 'text' }])).toMatchObject({
      content: '[{"type":"text","text":"a"},{"type":"text"}]',
    });
    expect(toOutput([part, ...new Array(1)])).toMatchObject({ structured: [part, null] });
  });

  test.each([
    ['a Buffer', Buffer.from('abc').subarray(1)],
    ['typed numbers', new Uint16Array([0x6362])],
    ['a view', new DataView(new TextEncoder().encode('abcd').buffer, 1, 2)],
    ['a buffer', new TextEncoder().encode('bc').buffer],
    ['shared bytes', shared('bc')],
  ])('takes %s for a file of these bytes', (_, value) => {
    const { content, isError } = toOutput(value);
    expect(isError).toBe(false);
    expect(content).toMatchObject([{ type: 'file', mimeType: 'application/octet-stream' }]);
    const [file] = content as readonly ContentPart[];
    expect(new TextDecoder().decode((file as { data: Uint8Array }).data)).toBe('bc');
  });

  test('copies bytes and parts, so that a tool which goes on using its own changes no answer', () => {
    const bytes = new Uint8Array([1]);
    const mutable: { type: 'text'; text: string } = { ...part };
    const outputs = [toOutput(bytes), toOutput([mutable]), toOutput({ content: [mutable] }), toOutput(mutable)];
    const before = JSON.stringify(outputs);
    bytes[0] = 9;
    mutable.text = 'changed';
    expect(JSON.stringify(outputs)).toBe(before);
  });

  test.each([
    [{ content: 'a' }, { content: 'a', isError: false }],
    [
      { content: 'a', isError: true },
      { content: 'a', isError: true },
    ],
    [
      { content: [part], isError: false },
      { content: [part], isError: false },
    ],
    [{ content: [] }, { content: [], isError: false }],
    [
      { content: 'a', isError: undefined, structured: undefined },
      { content: 'a', isError: false },
    ],
    [
      { content: 'a', structured: null },
      { content: 'a', isError: false, structured: null },
    ],
    [
      { content: 'a', structured: { at: new Date(0) } },
      { content: 'a', isError: false, structured: { at: '1970-01-01T00:00:00.000Z' } },
    ],
    [Object.freeze({ content: Object.freeze([part]) }), { content: [part], isError: false }],
    [ToolOutput.error('no'), { content: 'no', isError: true }],
  ])('takes %j for a ToolOutput', (value, output) => {
    expect(toOutput(value)).toEqual(output);
  });

  test.each([
    [{ structuredContent: { a: 1 } }, { content: '{"a":1}', isError: false, structured: { a: 1 } }],
    [
      { content: [], structuredContent: { a: 1 } },
      { content: '{"a":1}', isError: false, structured: { a: 1 } },
    ],
    [
      { content: [part], structuredContent: { a: 1 }, isError: true, _meta: {} },
      { content: [part], isError: true, structured: { a: 1 } },
    ],
    [
      { content: [part], structuredContent: null, _meta: null },
      { content: [part], isError: false },
    ],
    [
      { content: [{ type: 'resource', resource: { uri: 'a:b', mimeType: 'text/plain', text: 'c' } }] },
      { content: [{ type: 'text', text: 'c' }], isError: false },
    ],
    [
      { content: [{ type: 'resource', resource: { uri: 'a:b', mimeType: 'image/png', blob: 'AAAA' } }] },
      { content: [{ type: 'file', name: 'a:b', mimeType: 'image/png', data: 'AAAA' }], isError: false },
    ],
    [
      [{ type: 'resource', resource: { uri: 'a:b', blob: 'AAAA' } }],
      {
        content: [{ type: 'file', name: 'a:b', mimeType: 'application/octet-stream', data: 'AAAA' }],
        isError: false,
      },
    ],
  ])('takes %j, as the Model Context Protocol has it, for a ToolOutput', (value, output) => {
    expect(toOutput(value)).toEqual(output);
  });

  test.each([
    [{ isError: true }],
    [{ isError: true, message: 'no' }],
    [{ isError: true, content: 'no', code: 17 }],
    [{ isError: true, content: null }],
    [{ isError: true, content: [{ type: 'chart' }] }],
    [{ isError: true, structured: 1 }],
  ])('takes %j for data that are a failure', (value) => {
    expect(toOutput(value)).toEqual({ content: JSON.stringify(value), isError: true, structured: value });
  });

  test('takes an Error that is returned for a failure, and one inside for data', () => {
    const json = { name: 'TypeError', message: 'x' };
    for (const error of [new TypeError('x'), runInNewContext('new TypeError("x")')])
      expect(toOutput(error)).toEqual({ content: JSON.stringify(json), isError: true, structured: json });
    expect(toOutput({ last: new TypeError('x') })).toMatchObject({ isError: false, structured: { last: json } });
  });

  test('takes an instance of a class for data, unless it has the flag', () => {
    class Page {
      readonly content = 'a';
    }
    class Answer extends Page {
      get isError(): boolean {
        return true;
      }
    }
    expect(toOutput(new Page())).toMatchObject({ isError: false, structured: { content: 'a' } });
    expect(toOutput(new Answer())).toEqual({ content: 'a', isError: true });
  });

  test.each([
    ['rows of a directory', [{ type: 'file', name: 'a', path: 'a', sha: 'b', size: 1, url: 'https://a' }]],
    ['a film that was found', { type: 'video', url: 'https://a', title: 'A film', views: 7 }],
    ['a row among parts', [part, { type: 'image', url: 'https://a', width: 1 }]],
  ])('takes %s for data: a part has fewer keys', (_, value) => {
    expect(toOutput(value)).toEqual({ content: JSON.stringify(value), isError: false, structured: value });
    const parts = [value].flat();
    expect(toOutput({ content: parts })).toEqual({ content: parts, isError: false });
  });

  test('takes what a part has beyond its keys for JSON, as all data are', () => {
    const odd: Record<string, unknown> = { type: 'text', text: 'a', n: 1n, at: new Date(0), f: () => 1, u: undefined };
    odd['self'] = odd;
    expect(toOutput({ type: 'file', url: 'a:b', mimeType: 1n, name: undefined }).content).toEqual([
      { type: 'file', url: 'a:b', mimeType: '1' },
    ]);
    const [copy] = toOutput(odd).content as readonly ContentPart[];
    expect(Object.keys(copy as object)).toEqual(['type', 'text', 'n', 'at', 'self']);
    expect(copy).toMatchObject({ n: '1', at: '1970-01-01T00:00:00.000Z' });
    const own = JSON.parse('{"type":"text","text":"a","__proto__":{"text":1}}');
    expect(JSON.stringify(toOutput(own).content)).toBe(JSON.stringify([own]));
  });

  test.each([
    ['a Buffer', Buffer.from('bc')],
    ['a buffer', new TextEncoder().encode('bc').buffer],
    ['a view', new DataView(new TextEncoder().encode('abcd').buffer, 1, 2)],
    ['shared bytes', shared('bc')],
  ])('takes %s for the data of a part', (_, data) => {
    for (const given of [
      { type: 'image', mimeType: 'image/png', data },
      { content: [{ type: 'image', mimeType: 'image/png', data }] },
    ])
      expect(toOutput(given).content).toEqual([
        { type: 'image', mimeType: 'image/png', data: new TextEncoder().encode('bc') },
      ]);
  });

  test('ends for a list of parts whose own iterator never does', () => {
    const parts = Object.assign([part], {
      *[Symbol.iterator]() {
        for (;;) yield part;
      },
    });
    for (const value of [parts, { content: parts }])
      expect(toOutput(value)).toEqual({ content: [part], isError: false });
  });

  test.each([
    [{ content: 'a', title: 'more keys' }],
    [{ content: 'a', isError: 'yes' }],
    [{ content: 'a', isError: null }],
    [{ content: 1 }],
    [{ content: part }],
    [{ content: [part, 'a'] }],
    [{ content: [{ type: 'image', data: 'AAAA' }] }],
    [{ content: null, structured: {} }],
    [{ isError: false }],
    [{ structured: 1 }],
    [{ structuredContent: 1 }],
    [{ content: 'a', structuredContent: {}, title: 'more keys' }],
    [JSON.parse('{"content":"a","__proto__":{"isError":true}}')],
  ])('takes %j, which only resembles a ToolOutput, for data', (value) => {
    expect(toOutput(value)).toEqual({ content: JSON.stringify(value), isError: false, structured: value });
  });

  test('reads a getter once, so that what was checked is what is kept', () => {
    let reads = 0;
    const wavering = {
      type: 'text',
      get text(): unknown {
        return ++reads % 2 === 1 ? 'a' : { not: 'text' };
      },
    };
    for (const value of [wavering, [wavering], { content: [wavering] }]) {
      reads = 0;
      expect(isContent(toOutput(value).content)).toBe(true);
    }
  });

  test('H06: keeps a shared object in each of its places, and marks only a cycle', () => {
    const row = { id: 1 };
    const value: Record<string, unknown> = { first: row, second: row };
    value['self'] = value;
    expect(toOutput(value).structured).toEqual({ first: { id: 1 }, second: { id: 1 }, self: '[Circular]' });
  });

  test('keeps `__proto__` in data as a key like any other', () => {
    expect(toOutput(JSON.parse('{"__proto__":{"admin":true}}')).content).toBe('{"__proto__":{"admin":true}}');
  });

  test('shows data as well-formed text, whatever texts they hold', () => {
    expect((toOutput({ half: '\ud800' }).content as string).isWellFormed()).toBe(true);
  });

  test('gives plain output for anything, and the same for that', () => {
    const optional = { requiredKeys: [] as [] };
    const type = fc.constantFrom('text', 'image', 'audio', 'video', 'file', 'resource_link', 'resource');
    const textOrOdd = fc.oneof(fc.string(), anything);
    const partKeys = { type, text: textOrOdd, data: textOrOdd, url: textOrOdd, uri: textOrOdd, mimeType: textOrOdd };
    const resource = fc.record({ uri: textOrOdd, text: textOrOdd, blob: textOrOdd, mimeType: textOrOdd }, optional);
    const partLike = fc.record({ ...partKeys, name: anything, more: anything, resource }, optional);
    const content = fc.oneof(anything, fc.string(), fc.array(fc.oneof(partLike, partLike, anything)));
    const isError = fc.oneof(fc.boolean(), anything);
    const outputLike = fc.record(
      { content, isError, structured: anything, structuredContent: anything, _meta: anything },
      optional,
    );
    fc.assert(
      fc.property(fc.oneof(anything, partLike, fc.array(partLike), outputLike), (value) => {
        const output = toOutput(value);
        expect(isContent(output.content)).toBe(true);
        expect(typeof output.isError).toBe('boolean');
        expect(typeof JSON.stringify(output)).toBe('string');
        if (output.structured !== undefined) expect(toJson(output.structured)).toEqual(output.structured);
        expect(toOutput(output)).toEqual(output);
      }),
      { numRuns: 1000 },
    );
  });

  test('leaves JSON as it is: data, and their text', () => {
    const isData = (value: unknown) =>
      value === null || typeof value !== 'object' || !('isError' in value || 'content' in value);
    fc.assert(
      fc.property(fc.jsonValue().filter(isData), (value) => {
        const { content, structured, isError } = toOutput(value);
        expect(isError).toBe(false);
        if (typeof value === 'string') expect([content, structured]).toEqual([value, undefined]);
        else expect([content, structured]).toEqual([JSON.stringify(value), value]);
      }),
    );
  });

  test.each(hostileValues)('gives plain output for %s', (_, value) => {
    const part = { type: 'text', text: 'a', more: value };
    const whole = [value, { content: value }, { content: [value] }, { content: 'a', structured: value }];
    const inside = [
      part,
      [part],
      { content: [part] },
      { isError: value, content: 'a' },
      { isError: true, more: value },
    ];
    for (const given of [...whole, ...inside]) {
      const output = toOutput(given);
      expect(isContent(output.content)).toBe(true);
      expect(typeof JSON.stringify(output)).toBe('string');
    }
  });

  test('gives plain output where the JSON would be longer than any text', () => {
    const output = toOutput(Array(1000).fill('x'.repeat(10_000_000)));
    expect(output.content.length).toBeLessThan(80_000_000);
    expect(output.structured).toContain('[Too large]');
  });

  test('is what a dispatch makes of what a tool returns, even if that is hostile', async () => {
    for (const [name, value] of hostileValues) {
      const tool = defineTool({ name: 'odd', description: name, execute: () => value });
      const result = await createDispatcher({ tools: [tool] }).dispatch({ name: 'odd' });
      expect(isContent(result.content)).toBe(true);
      expect(typeof JSON.stringify(result)).toBe('string');
    }
  });
});

describe('ToolOutput', () => {
  test('makes successes and soft failures', () => {
    expect(ToolOutput.text('a')).toEqual({ content: 'a', isError: false });
    expect(ToolOutput.success([part])).toEqual({ content: [part], isError: false });
    expect(ToolOutput.error('no')).toEqual({ content: 'no', isError: true });
    expect(ToolOutput.error([part])).toEqual({ content: [part], isError: true });
  });

  test('makes data with a text that is its JSON, or better', () => {
    expect(ToolOutput.json({ n: 1n })).toEqual({ content: '{"n":"1"}', isError: false, structured: { n: '1' } });
    expect(ToolOutput.json([1], 'one number')).toEqual({ content: 'one number', isError: false, structured: [1] });
    expect(ToolOutput.json(undefined)).toEqual({ content: 'null', isError: false, structured: null });
  });

  test('tells successes from failures', () => {
    expect(ToolOutput.isSuccess(ToolOutput.text('a'))).toBe(true);
    expect(ToolOutput.isError(ToolOutput.text('a'))).toBe(false);
    expect(ToolOutput.isSuccess(ToolOutput.error('a'))).toBe(false);
    expect(ToolOutput.isError(ToolOutput.error('a'))).toBe(true);
  });

  test('shows the text of an output', () => {
    const file = { type: 'file', url: 'https://a' } as const;
    expect(ToolOutput.textContent(ToolOutput.success([part, file, part]))).toBe('a\na');
  });
});

function shared(text: string): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer(text.length);
  new Uint8Array(buffer).set(new TextEncoder().encode(text));
  return buffer;
}
