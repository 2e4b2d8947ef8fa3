import { describe, expect, test } from '@jest/globals';
import { type Content, type ContentPart, type DispatchNote, forModel, type ToolOutcome } from 'toolonion';

function outcome(content: Content, notes: readonly DispatchNote[] = []): ToolOutcome {
  return { resolvedToolName: 'a', content, isError: false, notes };
}

const told: DispatchNote = { type: 'edited', by: 'permission', message: 'The path was changed.', forModel: true };
const also: DispatchNote = { type: 'truncated', by: 'outputLimit', message: 'It was cut.', forModel: true };
const silent: DispatchNote = { type: 'cached', by: 'memoize', message: 'From the cache.' };
const text = { type: 'text', text: 'a' } as const;
const image = { type: 'image', url: 'https://a' } as const;

describe('forModel', () => {
  test('gives the content where there is nothing else to know', () => {
    const parts = [text, image];
    expect(forModel(outcome('a', [silent]))).toBe('a');
    expect(forModel(outcome(parts, [silent, { ...told, forModel: false }]))).toBe(parts);
  });

  test('appends the notes the model has to know, in their order', () => {
    expect(forModel(outcome('a', [told, silent, also]))).toBe('a\n\n[The path was changed.]\n\n[It was cut.]');
    expect(forModel(outcome([image], [told, also]))).toEqual([
      image,
      { type: 'text', text: '[The path was changed.]\n\n[It was cut.]' },
    ]);
  });

  test.each([[''], [' \n\t'], [[]], [[{ type: 'text', text: '' }]], [[{ type: 'text', text: ' \n' }]]] as [Content][])(
    'says that there is no output instead of %j, which a provider would refuse',
    (content) => {
      const nothing = typeof content === 'string' ? '(no output)' : [{ type: 'text', text: '(no output)' }];
      expect(forModel(outcome(content))).toEqual(nothing);
      expect(JSON.stringify(forModel(outcome(content, [told])))).toMatch(/\(no output\).*\[The path was changed\.\]/);
    },
  );

  test('leaves out blank parts beside others', () => {
    expect(forModel(outcome([{ type: 'text', text: '' }, image, text]))).toEqual([image, text]);
  });

  test('puts well-formed text in the place of half a character, which a provider would refuse', () => {
    const half: DispatchNote = { ...told, message: 'b\udc00' };
    expect(forModel(outcome('a\ud800', [half]))).toBe('a\ufffd\n\n[b\ufffd]');
    expect(forModel(outcome([{ type: 'text', text: 'a\ud800' }, image], [half]))).toEqual([
      { type: 'text', text: 'a\ufffd' },
      image,
      { type: 'text', text: '[b\ufffd]' },
    ]);
  });

  test('leaves the outcome as it was', () => {
    const given = Object.freeze(outcome(Object.freeze([text]), Object.freeze([told])));
    const before = JSON.stringify(given);
    expect(forModel(given)).not.toBe(given.content);
    expect(JSON.stringify(given)).toBe(before);
  });
});

describe('forModel with what the model can be shown', () => {
  const png = { type: 'image', mimeType: 'image/png', data: 'AAAA' } as const;
  const gif = { type: 'image', mimeType: 'Image/GIF; a=b', data: 'AAAAAA==', name: 'a.gif' } as const;
  const somewhere = { type: 'image', url: 'https://example.org/a' } as const;
  const within = { type: 'image', url: 'data:image/png;base64,AAAA' } as const;
  const picture = { type: 'file', mimeType: 'image/png', data: 'AAAA' } as const;
  const sound = { type: 'audio', mimeType: 'audio/wav', data: new Uint8Array(9) } as const;
  const link = { type: 'resource_link', uri: 'note:a', mimeType: 'image/png' } as const;
  const parts: readonly ContentPart[] = [png, gif, somewhere, within, picture, sound, link, text];

  test.each<[accepts: readonly string[], shown: readonly ContentPart[]]>([
    [[], [text]],
    [['text'], [text]],
    [['image'], [png, gif, somewhere, within, text]],
    [['image/png'], [png, within, picture, text]],
    [['IMAGE/PNG; a=b'], [png, within, picture, text]],
    [['image/gif'], [gif, text]],
    [['image/*'], [png, gif, somewhere, within, picture, text]],
    [['*/png'], [png, within, picture, text]],
    [['*/*'], [png, gif, somewhere, within, picture, sound, text]],
    [
      ['audio', 'resource_link'],
      [sound, link, text],
    ],
    [
      ['file', 'video/*'],
      [picture, text],
    ],
    [['*'], parts],
  ])('shows of all kinds, where it accepts %j, those and text, and the others described', (accepts, shown) => {
    const told = forModel(outcome(parts), { accepts }) as readonly ContentPart[];
    expect(told).toHaveLength(parts.length);
    expect(told.filter((part) => parts.includes(part))).toEqual(shown);
    for (const [index, part] of told.entries()) if (part !== parts[index]) expect(part.type).toBe('text');
  });

  test('describes the others in their place, and ends with the notes', () => {
    expect(forModel(outcome([text, gif, somewhere, png, link, text], [told]), { accepts: ['image/png'] })).toEqual([
      text,
      { type: 'text', text: '[image of 4 bytes (image/gif) named "a.gif" left out: it cannot be shown here.]' },
      { type: 'text', text: '[image at https://example.org/a left out: it cannot be shown here.]' },
      png,
      { type: 'text', text: '[resource_link at note:a (image/png) left out: it cannot be shown here.]' },
      text,
      { type: 'text', text: '[The path was changed.]' },
    ]);
  });

  test('gives the same parts where all of them are accepted, or nothing is said', () => {
    for (const options of [{}, { accepts: ['*'] }, { accepts: ['image', 'audio', 'file', 'resource_link'] }])
      expect(forModel(outcome(parts), options)).toBe(parts);
    expect(forModel(outcome('a'), { accepts: [] })).toBe('a');
  });

  test('leaves the outcome as it was, data included', () => {
    const given = Object.freeze({ ...outcome(Object.freeze([png])), structured: Object.freeze({ picture: 'AAAA' }) });
    expect(forModel(given, { accepts: [] })).not.toBe(given.content);
    expect(given).toEqual({ ...outcome([png]), structured: { picture: 'AAAA' } });
  });

  test('tells nothing a tool should not have said: no data, no character that cannot be seen', () => {
    const hostile: readonly ContentPart[] = [
      { type: 'image', mimeType: 'image/png\u0000', data: 'SECRET', name: 'a\u202e\ud800\n' },
      { type: 'file', url: 'data:text/plain;base64,SECRET', mimeType: 5 as unknown as string },
      { type: 'video', url: `https://example.org/${'SECRET'.repeat(100)}` },
      { type: 'resource_link', uri: 'data:,SECRET' },
    ];
    const texts = [
      'image of 4 bytes (image/png\\u{0}) named "a\\u{202e}\ufffd\\u{a}"',
      'file of 4 bytes',
      'video',
      'resource_link',
    ].map((words) => ({ type: 'text', text: `[${words} left out: it cannot be shown here.]` }));
    expect(forModel(outcome(hostile), { accepts: [] })).toEqual(texts);
  });

  test.each<[unknown, string]>([
    [{ accepts: 'image' }, 'Option "accepts" of forModel must be an array of kinds (text, image, '],
    [{ accepts: ['images'] }, 'Option "accepts" of forModel must be an array of kinds (text, image, '],
    [{ accepts: [5] }, 'Option "accepts" of forModel must be an array of kinds (text, image, '],
    [{ accepts: [''] }, 'Option "accepts" of forModel must be an array of kinds (text, image, '],
    [{ accept: ['image'] }, 'forModel has no option "accept". Its options: accepts.'],
    [null, 'forModel takes its options as an object.'],
    [true, 'forModel takes its options as an object.'],
  ])('refuses %j', (options, message) => {
    expect(() => forModel(outcome('a'), options as { accepts: [] })).toThrow(TypeError);
    expect(() => forModel(outcome('a'), options as { accepts: [] })).toThrow(message);
  });
});

test('takes the place that `map` hands in for no options', () => {
  const results = [{ resolvedToolName: 'tool', content: 'x', isError: false, notes: [] }];
  expect(results.map(forModel as (result: (typeof results)[0]) => unknown)).toEqual(['x']);
});
