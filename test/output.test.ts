import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type ContentPart, createDispatcher, defineTool, isContent, ToolOutput, toOutput } from 'toolonion';
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
    [new Error('x'), '{"name":"Error","message":"x"}'],
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
    [{ content: 'a', title: 'more keys' }],
    [{ content: 'a', isError: 'yes' }],
    [{ content: 'a', isError: null }],
    [{ content: 1 }],
    [{ content: part }],
    [{ content: [part, 'a'] }],
    [{ content: [{ type: 'image', data: 'AAAA' }] }],
    [{ content: null, structured: {} }],
    [{ isError: true }],
    [{ structured: 1 }],
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
    const outputLike = fc.record({ content: anything, isError: anything, structured: anything }, { requiredKeys: [] });
    fc.assert(
      fc.property(fc.oneof(anything, outputLike), (value) => {
        const output = toOutput(value);
        expect(isContent(output.content)).toBe(true);
        expect(typeof output.isError).toBe('boolean');
        expect(typeof JSON.stringify(output)).toBe('string');
        expect(toOutput(output)).toEqual(output);
      }),
    );
  });

  test.each(hostileValues)('gives plain output for %s', (_, value) => {
    for (const given of [value, { content: value }, { content: [value] }, { content: 'a', structured: value }]) {
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
