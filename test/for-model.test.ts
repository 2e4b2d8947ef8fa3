import { describe, expect, test } from '@jest/globals';
import { type Content, type DispatchNote, forModel, type ToolOutcome } from 'toolonion';

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
