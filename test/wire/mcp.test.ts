import { describe, expect, test } from '@jest/globals';
import { type ContentPart, defineTool, ToolFailure, ToolOutput } from 'toolonion';
import { mcp, mcpSampling } from 'toolonion/wire';
import { worker } from './shapes.ts';

const pixel = Buffer.from('pixel').toString('base64');

describe('mcp', () => {
  test('tells of a tool all that the protocol has a word for', () => {
    const inputSchema = { type: 'object', properties: {} } as const;
    const outputSchema = { type: 'object', properties: { n: { type: 'number' } } } as const;
    const tool = { name: 'a.b', description: 'Works.', inputSchema, outputSchema };
    const { tools, names } = mcp.definitions([
      defineTool({ ...tool, readOnly: true, destructive: false, idempotent: true }),
      { ...tool, name: 'a b' },
      { ...tool, name: 'list', outputSchema: { type: 'array' } },
    ]);
    const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true };
    expect(tools).toEqual([
      { ...tool, annotations },
      { ...tool, name: names.told('a b') },
      { name: 'list', description: 'Works.', inputSchema },
    ]);
    expect(names.told('a b')).toMatch(/^a_b_[0-9a-f]{8}$/);
  });

  test('copies schemas, and says where data that are no object are not told', () => {
    const outputSchema = { type: 'object', properties: { a: { type: 'string' } } };
    const { tools, losses } = mcp.definitions([
      { name: 'a', description: '', inputSchema: {}, outputSchema },
      { name: 'b', description: '', inputSchema: {}, outputSchema: { type: 'array' } },
    ]);
    expect(tools[0]?.outputSchema).toEqual(outputSchema);
    expect(tools[0]?.outputSchema?.['properties']).not.toBe(outputSchema.properties);
    const message = 'It is not told: the protocol has no other data than objects.';
    expect(losses).toEqual([{ tool: 'b', place: '', keyword: 'outputSchema', message }]);
  });

  test('finds the call of a request, and none in any other message', () => {
    const params = { name: 'work', arguments: { n: 1 } };
    expect(mcp.calls({ id: 7, method: 'tools/call', params })).toEqual([{ id: '7', ...params }]);
    expect(mcp.calls({ id: 'a', method: 'tools/call', params: { name: 'work' } })).toEqual([
      { id: 'a', name: 'work', arguments: undefined },
    ]);
    for (const method of ['tools/list', 'initialize', undefined]) expect(mcp.calls({ id: 1, method })).toEqual([]);
  });

  test('answers a call that names nothing', async () => {
    const requests = mcp.calls({ id: 1, method: 'tools/call' });
    const [answer] = mcp.results(await worker(() => 'Done.').dispatchAll(requests));
    expect(answer).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/names no tool/) }] });
  });

  test('gives data, and takes an answer without the promised ones for a failure', async () => {
    const outputSchema = { type: 'object' } as const;
    const defined = mcp.definitions([{ name: 'work', description: '', inputSchema: {}, outputSchema }]);
    const answers = async (output: unknown) =>
      mcp.results(await worker(() => output).dispatchAll([{ name: 'work' }]), defined);
    expect(await answers({ content: [{ type: 'text', text: 'One.' }], structuredContent: { n: 1 } })).toMatchObject([
      { content: [{ type: 'text', text: 'One.' }], structuredContent: { n: 1 } },
    ]);
    expect(await answers('One.')).toMatchObject([
      { isError: true, content: [{ text: 'One.' }, { text: '[This answer lacks the data its tool promises.]' }] },
    ]);
  });

  test.each<[what: string, part: ContentPart, told: unknown]>([
    [
      'a picture',
      { type: 'image', mimeType: 'image/tiff', data: Buffer.from('pixel') },
      { type: 'image', mimeType: 'image/tiff', data: pixel },
    ],
    [
      'a picture in an address',
      { type: 'image', url: `data:image/png;base64,${pixel}` },
      { type: 'image', mimeType: 'image/png', data: pixel },
    ],
    [
      'base64 in lines, for addresses, without its padding',
      { type: 'audio', mimeType: 'audio/wav', data: 'cGl4\r\nZWw' },
      { type: 'audio', mimeType: 'audio/wav', data: pixel },
    ],
    [
      'what is no base64, which would fail the answer',
      { type: 'image', mimeType: 'image/png', data: 'pixel!' },
      { type: 'text', text: '[image of 4 bytes (image/png) left out: it cannot be shown here.]' },
    ],
    [
      'a file',
      { type: 'file', mimeType: 'application/pdf', data: pixel, name: 'a b.pdf' },
      { type: 'resource', resource: { uri: 'attachment:a%20b.pdf', mimeType: 'application/pdf', blob: pixel } },
    ],
    [
      'a picture somewhere',
      { type: 'image', url: 'https://example.com/a.png' },
      { type: 'resource_link', uri: 'https://example.com/a.png', name: 'https://example.com/a.png' },
    ],
    [
      'a link',
      { type: 'resource_link', uri: 'note://1', name: 'Note', description: 'A note.' },
      { type: 'resource_link', uri: 'note://1', name: 'Note', description: 'A note.' },
    ],
  ])('tells %s, in failures as well', async (_, part, told) => {
    for (const output of [ToolOutput.success([part]), ToolOutput.error([part])]) {
      const results = await worker(() => output).dispatchAll([{ name: 'work' }]);
      expect(mcp.results(results)[0]?.content).toEqual([told]);
      expect(mcpSampling.results(results).content[0]?.content).toEqual([told]);
    }
  });
});

describe('mcpSampling', () => {
  const use = { type: 'tool_use', id: 'a', name: 'work', input: {} };

  test('takes one block for a list of one', async () => {
    const requests = mcpSampling.calls({ content: use, stopReason: 'toolUse' });
    expect(requests).toEqual([{ id: 'a', name: 'work', arguments: {} }]);
    const results = await worker(() => ({
      content: [{ type: 'text', text: 'Done.' }],
      structuredContent: { n: 1 },
    })).dispatchAll(requests);
    expect(mcpSampling.replay({ content: use }, results)).toEqual({ role: 'assistant', content: [use] });
    expect(mcpSampling.results(results)).toEqual({
      role: 'user',
      content: [
        {
          type: 'tool_result',
          toolUseId: 'a',
          content: [{ type: 'text', text: 'Done.' }],
          structuredContent: { n: 1 },
        },
      ],
    });
  });

  test('finds no calls in text', () => {
    expect(mcpSampling.calls({ content: { type: 'text' } })).toEqual([]);
  });

  test('marks no call that something comes after', () => {
    const cut = (content: { type: string }[]) =>
      mcpSampling.calls({ content, stopReason: 'maxTokens' }).map(({ truncated }) => truncated);
    expect([cut([{ ...use }, use]), cut([use, { type: 'text' }])]).toEqual([[undefined, true], [undefined]]);
  });

  test('flags a failure', async () => {
    const fails = () => {
      throw new ToolFailure('No such file.');
    };
    const results = await worker(fails).dispatchAll([{ id: 'a', name: 'work' }]);
    expect(mcpSampling.results(results).content).toEqual([
      { type: 'tool_result', toolUseId: 'a', content: [{ type: 'text', text: 'No such file.' }], isError: true },
    ]);
  });
});
