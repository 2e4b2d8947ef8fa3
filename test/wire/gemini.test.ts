import { describe, expect, test } from '@jest/globals';
import { type ContentPart, ToolOutput } from 'toolonion';
import { gemini, geminiInteractions } from 'toolonion/wire';
import { worker } from './shapes.ts';

const pixel = Buffer.from('pixel').toString('base64');
const image = { type: 'image', mimeType: 'image/png', data: pixel, name: 'a.png' } as const;
const call = (name: string, args: Record<string, unknown>, id?: string) => ({
  functionCall: { ...(id !== undefined && { id }), name, args },
});

describe('gemini: calls', () => {
  test('without ids are answered without, by name and order', async () => {
    const content = { role: 'model', parts: [call('work', { n: 1 }), call('work', { n: 2 })] };
    const requests = gemini.calls({ content });
    expect(requests).toEqual([
      { name: 'work', arguments: { n: 1 } },
      { name: 'work', arguments: { n: 2 } },
    ]);
    const results = await worker(({ n }: { n: number }) => n).dispatchAll(requests);
    expect(gemini.replay(content, results)).toBe(content);
    expect(gemini.results(results)).toEqual({
      role: 'user',
      parts: ['1', '2'].map((output) => ({ functionResponse: { name: 'work', response: { output } } })),
    });
  });

  test('with an empty id lose it, for the provider would look for its answer', async () => {
    const content = { parts: [call('work', {}, '')] };
    const results = await worker(() => 'Done.').dispatchAll(gemini.calls(content));
    expect(gemini.replay(content, results).parts).toEqual([call('work', {})]);
    expect(gemini.results(results).parts[0]?.functionResponse).not.toHaveProperty('id');
  });

  test('of a tool with another name there are answered by that name', async () => {
    const { tools, names } = gemini.definitions([{ name: '7/work', description: 'Works.', inputSchema: {} }]);
    const told = tools[0]?.functionDeclarations[0]?.name as string;
    expect(told).toMatch(/^_7_work_[0-9a-f]{8}$/);
    const content = { parts: [call(told, {}, 'a')] };
    const results = await worker(() => 'Done.').dispatchAll(gemini.calls(content, names));
    expect(results[0]?.requested.name).toBe('7/work');
    expect(gemini.replay(content, results, names)).toBe(content);
    expect(gemini.results(results, names).parts[0]?.functionResponse).toMatchObject({ id: 'a', name: told });
  });

  test('keep the signatures of thoughts, wherever they stand, and all other parts', async () => {
    const thought = { text: 'Let me see.', thought: true, thoughtSignature: 's1' };
    const wrong = { functionCall: { name: 'do work', args: 'no object' as never }, thoughtSignature: 's2' };
    const content = { role: 'model', parts: [thought, wrong, { text: '' }] };
    const results = await worker(() => 'Done.').dispatchAll(gemini.calls({ content, finishReason: 'STOP' }));
    expect(gemini.replay(content, results)).toEqual({
      role: 'model',
      parts: [thought, { functionCall: { name: 'do_work', args: {} }, thoughtSignature: 's2' }, { text: '' }],
    });
    expect(gemini.results(results).parts[0]?.functionResponse.name).toBe('do_work');
  });

  test.each([[{}], [{ content: undefined }], [{ content: {} }], [{ content: { parts: undefined } }], [{ parts: [] }]])(
    'are none in %j',
    (reply) => {
      expect(gemini.calls(reply)).toEqual([]);
    },
  );

  test.each([null, undefined, {}, { functionCall: null }, { text: 'Hm.' }])('are none in the part %j', (part) => {
    expect(gemini.calls({ parts: [part] as never[] })).toEqual([]);
  });

  test('without arguments or a name are left to the dispatcher', async () => {
    const parts = [{ functionCall: { name: 'work' } }, { functionCall: {} }];
    const results = await worker((given) => JSON.stringify(given)).dispatchAll(gemini.calls({ parts }));
    expect(gemini.results(results).parts.map((part) => part.functionResponse)).toEqual([
      { name: 'work', response: { output: '{}' } },
      { name: 'unnamed', response: { error: expect.stringMatching(/names no tool/) } },
    ]);
    const kept = [call('work', {}), call('unnamed', {})];
    expect(gemini.replay({ parts }, results).parts).toEqual(kept);
  });

  test.each(['MAX_TOKENS', 'SAFETY', 'OTHER', 'CONTINUATION'])(
    'are cut at the end of a reply that ends by %s',
    (reason) => {
      const parts = [call('work', {}), call('work', {})];
      const cut = (given: object[]) =>
        gemini.calls({ finishReason: reason, content: { parts: given } }).map(({ truncated }) => truncated);
      expect(cut(parts)).toEqual([undefined, true]);
      expect(cut([...parts, { text: 'And' }])).toEqual([undefined, undefined]);
    },
  );

  test('are all refused where the provider could not read one and does not say which', () => {
    const content = { parts: [call('work', {}), call('work', {}), { text: '' }] };
    const requests = gemini.calls({ finishReason: 'MALFORMED_FUNCTION_CALL', content });
    expect(requests.map(({ truncated }) => truncated)).toEqual([true, true]);
  });

  test('that are to continue are cut', () => {
    const parts = [{ functionCall: { name: 'work', willContinue: true } }, call('work', {})];
    expect(gemini.calls({ parts }).map(({ truncated }) => truncated)).toEqual([true, undefined]);
  });

  test('are not looked for in the whole reply', () => {
    expect(() => gemini.calls({ candidates: [] } as object)).toThrow(
      new TypeError('calls: takes a candidate of a reply, as in calls(reply.candidates[0]), not the whole reply.'),
    );
    expect(() => gemini.replay({ content: {} } as object, [])).toThrow(
      new TypeError('replay: takes the content of a candidate, as in replay(candidate.content, results).'),
    );
  });
});

test('gemini: no tools are told as none, for a tool without functions is refused', () => {
  expect(gemini.definitions([]).tools).toEqual([]);
});

describe('gemini: answers', () => {
  const answered = async (parts: readonly ContentPart[], options?: { accepts: readonly string[] }) => {
    const results = await worker(() => ToolOutput.success(parts)).dispatchAll([{ name: 'work' }]);
    const [only] = gemini.results(results, undefined, options).parts;
    return { output: only?.functionResponse.response, media: only?.functionResponse.parts };
  };

  test('show media beside the text, which tells where they belong', async () => {
    const pdf = { type: 'file', mimeType: 'application/pdf', data: pixel } as const;
    const { output, media } = await answered([
      { type: 'text', text: 'First:' },
      image,
      { type: 'text', text: 'then' },
      pdf,
    ]);
    expect(output).toEqual({
      output: 'First:\n[image of 5 bytes (image/png) named "a.png"]\nthen\n[file of 5 bytes (application/pdf)]',
    });
    expect(media).toEqual([
      { inlineData: { mimeType: 'image/png', data: pixel } },
      { inlineData: { mimeType: 'application/pdf', data: pixel } },
    ]);
  });

  test.each<[what: string, part: ContentPart, told: string]>([
    ['a picture that moves', { ...image, mimeType: 'image/gif' }, 'image of 5 bytes (image/gif) named "a.png"'],
    ['a sound', { ...image, type: 'audio', mimeType: 'audio/wav' }, 'audio of 5 bytes (audio/wav) named "a.png"'],
    ['a picture somewhere', { type: 'image', url: 'https://example.com/a.png' }, 'image at https://example.com/a.png'],
  ])('describe %s', async (_, part, told) => {
    expect(await answered([part])).toEqual({
      output: { output: `[${told} left out: it cannot be shown here.]` },
      media: undefined,
    });
  });

  test('describe all media for models that take none, and tell links', async () => {
    const link = { type: 'resource_link', uri: 'note://1', name: 'Note' } as const;
    expect(await answered([image, link], { accepts: [] })).toEqual({
      output: {
        output: '[image of 5 bytes (image/png) named "a.png" left out: it cannot be shown here.]\nNote\nnote://1',
      },
      media: undefined,
    });
  });
});

describe('geminiInteractions', () => {
  const step = (id: string, name = 'work') => ({ type: 'function_call', id, name, arguments: {} });

  test('tells functions, and answers their calls by id and name', async () => {
    const { tools, names } = geminiInteractions.definitions([
      { name: 'do work', description: 'Works.', inputSchema: { properties: { a: { type: 'string' } } } },
    ]);
    expect(tools).toEqual([
      {
        type: 'function',
        name: names.told('do work'),
        description: 'Works.',
        parameters: { type: 'object', properties: { a: { type: 'string' } } },
      },
    ]);
    const steps = [
      { type: 'thought', signature: 's' },
      step('a', names.told('do work')),
      { type: 'code_execution_call', id: 'b' },
    ];
    const requests = geminiInteractions.calls({ status: 'requires_action', steps }, names);
    expect(requests).toEqual([{ id: 'a', name: 'do work', arguments: {} }]);
    const results = await worker(() => 'Done.').dispatchAll(requests);
    expect(geminiInteractions.replay({ steps }, results, names)).toEqual(steps);
    expect(geminiInteractions.results(results, names)).toEqual([
      {
        type: 'function_result',
        call_id: 'a',
        name: names.told('do work'),
        is_error: true,
        result: expect.any(String),
      },
    ]);
  });

  test.each(['incomplete', 'failed', 'cancelled', 'budget_exceeded', 'requires_continuation'])(
    'marks the last call of a reply that is %s',
    (status) => {
      const cut = (steps: { type: string }[]) =>
        geminiInteractions.calls({ status, steps }).map(({ truncated }) => truncated);
      expect(cut([step('a'), step('b')])).toEqual([undefined, true]);
      expect(cut([step('a'), { type: 'model_output' }])).toEqual([undefined]);
    },
  );

  test('finds no calls where there are no steps', () => {
    expect(geminiInteractions.calls({ status: 'completed' })).toEqual([]);
    expect(geminiInteractions.replay({}, [])).toEqual([]);
  });

  test.each<[what: string, part: ContentPart, told: unknown]>([
    ['a picture', image, { type: 'image', data: pixel, mime_type: 'image/png' }],
    [
      'a document',
      { type: 'file', mimeType: 'application/pdf', data: pixel },
      { type: 'document', data: pixel, mime_type: 'application/pdf' },
    ],
    [
      'a picture somewhere',
      { type: 'image', url: 'https://example.com/a' },
      { type: 'text', text: '[image at https://example.com/a left out: it cannot be shown here.]' },
    ],
    ['a link', { type: 'resource_link', uri: 'note://1' }, { type: 'text', text: 'note://1' }],
  ])('tells %s', async (_, part, told) => {
    const results = await worker(() => ToolOutput.success([part])).dispatchAll([{ id: 'a', name: 'work' }]);
    expect(geminiInteractions.results(results)[0]?.result).toEqual([told]);
  });
});
