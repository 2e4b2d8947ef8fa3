import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type Content,
  type ContentPart,
  createDispatcher,
  defineTool,
  describePart,
  type MediaPart,
  mediaBytes,
  type ResourceLinkPart,
  ToolOutput,
} from 'toolonion';

const png = { type: 'image', mimeType: 'image/png' } as const;
const at = (url: string): MediaPart => ({ type: 'image', url });
const bytes = Uint8Array.from({ length: 100 }, (_, index) => index * 7);
const base64 = Buffer.from(bytes).toString('base64');

describe('mediaBytes', () => {
  test.each<[what: string, part: MediaPart, size: number | undefined]>([
    ['bytes', { ...png, data: bytes }, 100],
    ['a view of bytes', { ...png, data: bytes.subarray(10, 20) }, 10],
    ['no bytes', { ...png, data: new Uint8Array() }, 0],
    ['base64', { ...png, data: base64 }, 100],
    ['base64 without its padding', { ...png, data: base64.replaceAll('=', '') }, 100],
    ['base64 in lines', { ...png, data: base64.replaceAll(/.{76}/g, '$&\r\n') }, 100],
    ['base64 with blanks around it', { ...png, data: `\n\t${base64} \n` }, 100],
    ['base64 for addresses', { ...png, data: '-_-_-_8' }, 5],
    ['empty base64', { ...png, data: '' }, 0],
    ['only padding', { ...png, data: '====' }, 0],
    ['an address', at('https://example.org/a.png'), undefined],
    ['an address of another kind', at('file:///a.png'), undefined],
    ['an empty address', at(''), undefined],
    ['a data: URL', at(`data:image/png;base64,${base64}`), 100],
    ['a data: URL in capitals', at(`DATA:image/png; BASE64,${base64}`), 100],
    ['a data: URL with a parameter', at(`data:text/plain;charset=utf-8;base64,${base64}`), 100],
    ['a data: URL without a mime type', at(`data:;base64,${base64}`), 100],
    ['a data: URL of text', at('data:text/plain,caf%C3%A9, black'), 12],
    ['an empty data: URL', at('data:,'), 0],
    ['a data: URL that is none', at('data:image/png;base64'), undefined],
  ])('measures %s', (_, part, size) => {
    expect(mediaBytes(part)).toBe(size);
  });

  test('measures base64 by what it stands for, however it is written', () => {
    const written = fc.record({
      data: fc.uint8Array(),
      encoding: fc.constantFrom('base64', 'base64url'),
      line: fc.integer({ min: 1, max: 80 }),
      ending: fc.constantFrom('', '\n', '\r\n'),
    });
    fc.assert(
      fc.property(written, ({ data, encoding, line, ending }) => {
        const text = Buffer.from(data).toString(encoding as BufferEncoding);
        const lines = text.replaceAll(new RegExp(`.{${line}}`, 'g'), `$&${ending}`);
        expect(mediaBytes({ ...png, data: lines })).toBe(data.length);
        expect(mediaBytes(at(`data:image/png;base64,${text}`))).toBe(data.length);
      }),
    );
  });

  test('decodes nothing to measure 100 MB', () => {
    const data = 'AAAA'.repeat(35_000_000);
    const { external } = process.memoryUsage();
    expect(mediaBytes({ ...png, data })).toBe(105_000_000);
    expect(mediaBytes(at(`data:image/png;base64,${data}`))).toBe(105_000_000);
    expect(process.memoryUsage().external - external).toBeLessThan(50_000_000);
  });
});

describe('describePart', () => {
  const link = { type: 'resource_link', uri: 'file:///a.csv' } as const;

  test.each<[part: MediaPart | ResourceLinkPart, words: string]>([
    [{ ...png, data: bytes }, 'image of 100 bytes (image/png)'],
    [{ ...png, data: base64, name: 'a.png' }, 'image of 100 bytes (image/png) named "a.png"'],
    [{ ...png, data: '' }, 'image of 0 bytes (image/png)'],
    [{ type: 'audio', mimeType: 'Audio/WAV; rate=8000', data: 'AAAA' }, 'audio of 3 bytes (audio/wav)'],
    [{ type: 'file', mimeType: '', data: 'AAAA', name: ' ' }, 'file of 3 bytes'],
    [{ type: 'video', url: 'https://example.org/a.mp4' }, 'video at https://example.org/a.mp4'],
    [{ ...png, url: 'HTTP://example.org/ä' }, 'image at HTTP://example.org/ä (image/png)'],
    [at(`https://example.org/${'a'.repeat(200)}`), 'image'],
    [at('https://example.org/a b'), 'image'],
    [at('https://example.org/\u202egnp.a'), 'image'],
    [at('https://example.org/\ud800'), 'image'],
    [at('file:///etc/passwd'), 'image'],
    [at('blob:https://example.org/1'), 'image'],
    [at('data:image/png;base64,AAAA'), 'image of 3 bytes (image/png)'],
    [{ ...at('data:image/png;base64,AAAA'), mimeType: 'image/gif' }, 'image of 3 bytes (image/gif)'],
    [at('data:,abc'), 'image of 3 bytes'],
    [link, 'resource_link at file:///a.csv'],
    [{ ...link, mimeType: 'text/csv', name: 'A' }, 'resource_link at file:///a.csv (text/csv) named "A"'],
    [{ ...link, uri: 'DATA:text/plain,secret' }, 'resource_link'],
    [{ ...link, uri: `note:${'a'.repeat(200)}` }, 'resource_link'],
  ])('describes %j', (part, words) => {
    expect(describePart(part)).toBe(words);
  });

  test('takes another size, as of the characters a link has', () => {
    expect(describePart(link, '5010 characters')).toBe('resource_link of 5010 characters at file:///a.csv');
    expect(describePart({ ...png, data: base64 }, '1 KB')).toBe('image of 1 KB (image/png)');
  });

  test('shows names and mime types escaped and short', () => {
    const name = `a\u202e\n${'b'.repeat(100)}`;
    const words = describePart({ type: 'image', mimeType: `image/\ud800\u0000${'x'.repeat(100)}`, data: '', name });
    expect(words).toBe(
      `image of 0 bytes (image/\ufffd\\u{0}${'x'.repeat(56)}…) named "a\\u{202e}\\u{a}${'b'.repeat(61)}…"`,
    );
  });

  test('passes over what should be text and is not, as a tool may give it beside an address', () => {
    const part = { type: 'image', url: 'https://a', mimeType: 5, name: { first: 'a' } } as unknown as MediaPart;
    expect(describePart(part)).toBe('image at https://a');
  });
});

const kinds = ['image', 'audio', 'video', 'file'] as const;
const carriers: Readonly<Record<string, object>> = {
  bytes: { mimeType: 'a/b', data: bytes },
  base64: { mimeType: 'a/b', data: base64 },
  'an address': { url: 'https://example.org/a', name: 'a' },
};
const matrix = kinds.flatMap((type) =>
  Object.entries(carriers).map(([carrier, more]) => [type, carrier, { type, ...more } as MediaPart] as const),
);

describe.each(matrix)('media of the kind %s as %s', (_, __, part) => {
  const other: MediaPart = { type: 'image', mimeType: 'image/gif', data: 'R0lG' };
  const says = (text: string): ContentPart => ({ type: 'text', text });
  const answered = async (execute: () => unknown) => {
    const { content, structured, isError } = await createDispatcher({
      tools: [defineTool({ name: 'show', description: 'Shows.', execute })],
    }).dispatch({ name: 'show' });
    return { content, structured, isError };
  };
  const is = (content: Content, structured?: unknown) => ({ content, structured, isError: false });

  test('are an answer alone, in a list, and beside data', async () => {
    const structured = { rows: [1, 2] };
    expect(await answered(() => part)).toEqual(is([part]));
    expect(await answered(async () => [part])).toEqual(is([part]));
    expect(await answered(() => [says('a'), part, other, says('b')])).toEqual(is([says('a'), part, other, says('b')]));
    expect(await answered(() => ToolOutput.success([part, other]))).toEqual(is([part, other]));
    expect(await answered(() => ToolOutput.json(structured, [part]))).toEqual(is([part], structured));
    expect(await answered(() => ({ content: [part], structured }))).toEqual(is([part], structured));
  });

  const streams: Readonly<Record<string, readonly unknown[]>> = {
    'in a chunk each': [part, other],
    'in one chunk': [[part, other]],
    'in an output': [ToolOutput.success([part, other])],
    'in outputs': [{ content: [part] }, { content: [other] }],
  };

  test.each(Object.entries(streams))('are the same answer where they are yielded %s', async (_, chunks) => {
    const streamed = async function* () {
      yield* chunks;
    };
    expect(await answered(streamed)).toEqual(is([part, other]));
  });

  test('are one part where they are the only chunk', async () => {
    const streamed = async function* () {
      yield part;
    };
    expect(await answered(streamed)).toEqual(is([part]));
  });

  test('keep their place between texts, which are joined', async () => {
    const streamed = async function* () {
      yield 'a';
      yield [says('b'), part];
      yield other;
      yield 'c';
      yield [says('d')];
      yield part;
    };
    expect(await answered(streamed)).toEqual(is([says('ab'), part, other, says('cd'), part]));
  });
});
