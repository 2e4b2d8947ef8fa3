import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type Content,
  type ContentPart,
  createDispatcher,
  deepFreeze,
  defineTool,
  describePart,
  forModel,
  isPlainObject,
  type JsonSchema,
  type MediaPart,
  type ToolDispatchResult,
  ToolFailure,
  ToolOutput,
} from 'toolonion';
import { anthropic, gemini, geminiInteractions, mcp, mcpSampling, openaiChat, openaiResponses } from 'toolonion/wire';
import { type Answer, PROVIDERS, type Sent, SHAPES, worker } from './shapes.ts';

const RUNS = { numRuns: 2000 };

const word = fc.string({ unit: 'binary', maxLength: 80 });
const toolName = fc.oneof(
  word,
  fc.stringMatching(/^[A-Za-z0-9_.-]{1,200}$/),
  fc.constantFrom('a.b', 'a_b', 'a/b', '__proto__'),
);
const description = fc.string({ unit: 'grapheme', maxLength: 40 });
const property = fc.oneof(
  fc.record({ type: fc.constantFrom('string', 'number', 'boolean'), description }),
  fc.constant({ $ref: '#/$defs/node' }),
  fc.record({ enum: fc.array(fc.jsonValue(), { minLength: 1, maxLength: 3 }) }),
);
const inputSchema = fc.record(
  {
    type: fc.constant('object'),
    $defs: fc.dictionary(word, property, { maxKeys: 3 }),
    properties: fc.dictionary(word, property, { maxKeys: 4 }),
    required: fc.uniqueArray(word, { maxLength: 2 }),
    description,
  },
  { requiredKeys: ['type'] },
);
const toolSchema = fc.record({ name: toolName, description, inputSchema });
const input = fc.dictionary(word, fc.jsonValue(), { maxKeys: 4 });
const id = fc.option(fc.string({ maxLength: 30 }), { nil: undefined });

const base64 = fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString('base64'));
const mimeType = fc.constantFrom(
  'image/png',
  'image/jpeg',
  'application/pdf',
  'image/tiff',
  'audio/wav',
  'Image/PNG; q=1',
);
const url = fc.constantFrom(
  'https://example.com/a.png',
  'http://a.example/b',
  'file:///etc/passwd',
  'data:image/png;base64,AAAA',
  'x',
  '',
);
const part: fc.Arbitrary<ContentPart> = fc.oneof(
  fc.record({ type: fc.constant('text' as const), text: description }),
  fc.record({ type: fc.constantFrom('image' as const, 'audio' as const, 'file' as const), mimeType, data: base64 }),
  fc.record({ type: fc.constantFrom('image' as const, 'file' as const), url }),
  fc.record({ type: fc.constantFrom('image' as const, 'file' as const), url, mimeType, name: description }),
  fc.record({ type: fc.constant('resource_link' as const), uri: url, name: description }),
);
const content: fc.Arbitrary<Content> = fc.oneof(description, fc.array(part, { maxLength: 4 }));

describe.each(SHAPES)('$title', (shape) => {
  test('tells each tool once, under a name the provider takes, and finds its way back to all of them', () => {
    const check = (schemas: { name: string; description: string; inputSchema: { type: string } }[]) => {
      const { tools, names } = shape.define(schemas);
      expect(tools.length).toBe(schemas.length);
      expect(new Set(tools.map(({ name }) => name)).size).toBe(schemas.length);
      for (const [place, { name, description, inputSchema }] of schemas.entries()) {
        const told = tools[place] as (typeof tools)[number];
        expect(told.name).toMatch(shape.name);
        expect([names.told(name), names.meant(told.name)]).toEqual([told.name, name]);
        if (shape.name.test(name)) expect(told.name).toBe(name);
        expect(told.description).toBe(description);
        const { type, ...rest } = { properties: {}, ...inputSchema };
        const schema = told.schema as JsonSchema;
        for (const told of Object.keys(schema.properties ?? {}))
          if (shape.argument) expect(told).toMatch(shape.argument);
        expect(shape.argument ? withMeantArguments(schema, (input) => names.meantInput(name, input)) : schema).toEqual({
          type,
          ...rest,
        });
        expect(Object.isFrozen(told.schema)).toBe(false);
      }
    };
    const schemas = fc.uniqueArray(toolSchema, { selector: ({ name }) => name, maxLength: 5 });
    fc.assert(
      fc.property(schemas, (given) => check(deepFreeze(given) as typeof given)),
      RUNS,
    );
  });

  test('hands on each call of a reply, in order, with its id, its name and its arguments as they were', () => {
    const sent = fc.array(fc.record({ id, name: fc.constantFrom('a.b', 'read'), input }), {
      minLength: 1,
      maxLength: 4,
    });
    const check = (calls: { id: string | undefined; name: string; input: Record<string, unknown> }[]) => {
      const { names } = shape.define(['a.b', 'read'].map((name) => ({ name, description: '', inputSchema: {} })));
      const asSent = calls.map((call) => ({
        ...(call.id !== undefined && { id: call.id }),
        name: names.told(call.name),
        input: call.input,
      }));
      const requests = shape.calls(deepFreeze(asSent) as typeof asSent, names);
      expect(requests.map((request) => [request.id, request.name, 'truncated' in request])).toEqual(
        calls.map((call) => [call.id, call.name, false]),
      );
      const read = requests.map(({ arguments: given }) => (typeof given === 'string' ? JSON.parse(given) : given));
      expect(JSON.stringify(read)).toBe(JSON.stringify(calls.map((call) => call.input)));
    };
    fc.assert(fc.property(sent, check), RUNS);
  });

  test('answers each call under its id with all that was told, or a note of what could not be', async () => {
    let next: Content = '';
    const dispatcher = worker(() => ToolOutput.success(next));
    await fc.assert(
      fc.asyncProperty(id, content, async (callId, given) => {
        next = given;
        const result = await dispatcher.dispatch({ ...(callId !== undefined && { id: callId }), name: 'work' });
        const [answer] = shape.results([deepFreeze(result) as typeof result]) as [Answer];
        expect(answer.id).toBe(callId || result.toolCallId);
        expect(answer.isError).not.toBe(true);
        expect(lossesOf(forModel(result), answer.content)).toEqual([]);
      }),
      RUNS,
    );
  });
});

/** A schema with the names that its arguments have for the tool. */
function withMeantArguments(schema: JsonSchema, meant: (input: unknown) => unknown): unknown {
  const { properties = {}, required } = schema;
  const wanted = required?.map((name) => Object.keys(meant({ [name]: true }) as object)[0]);
  return { ...schema, properties: meant(properties), ...(wanted && { required: wanted }) };
}

const leftOut = (part: MediaPart) => `[${describePart(part)} left out: it cannot be shown here.]`;

/** What of a content is neither in an answer nor noted there. */
function lossesOf(told: Content, answer: unknown): readonly unknown[] {
  const text = JSON.stringify(answer);
  const has = (piece: string) => text.includes(JSON.stringify(piece).slice(1, -1));
  if (typeof told === 'string') return answer === told ? [] : [told];
  return told.filter((each) => {
    if (each.type === 'text') return !has(each.text);
    if (each.type === 'resource_link') return !has(each.uri);
    const { data, url = '' } = each;
    return !has(leftOut(each)) && !has(typeof data === 'string' ? data : url.replace(/^data:.*,/, ''));
  });
}

describe.each(PROVIDERS)('$title', (shape) => {
  test('says of a failure that it is one', async () => {
    const dispatcher = worker(() => {
      throw new ToolFailure('No such file.');
    });
    const [answer] = shape.results(await dispatcher.dispatchAll([{ id: 'a', name: 'work' }])) as [Answer];
    expect(answer).toEqual(
      answer.isError === undefined
        ? { id: 'a', content: 'Error: No such file.', isError: undefined }
        : { id: 'a', content: 'No such file.', isError: true },
    );
  });

  test('says so once', async () => {
    const dispatcher = worker(() => {
      throw new ToolFailure('Error: no such file.');
    });
    const [answer] = shape.results(await dispatcher.dispatchAll([{ id: 'a', name: 'work' }])) as [Answer];
    expect(answer.content).toBe('Error: no such file.');
  });

  test('tells calls of one id apart, in the order of the calls', async () => {
    const dispatcher = worker(({ text }: { text: string }) => text);
    const requests = ['a', 'b', 'c'].map((text) => ({ id: 'same', name: 'work', input: { text } }));
    const results = await dispatcher.dispatchAll(shape.calls(requests));
    const [, second, third] = results.map(({ toolCallId }) => toolCallId);
    expect(shape.results(results).map((each) => [each.id, each.content])).toEqual([
      ['same', 'a'],
      [second, 'b'],
      [third, 'c'],
    ]);
  });

  test('keeps a reply in the history as it was, where nothing is wrong with it', async () => {
    const dispatcher = worker(() => 'Done.');
    const sent = fc.uniqueArray(
      fc.record({ id: fc.string({ minLength: 1 }), name: fc.constantFrom('work', 'other'), input }),
      { selector: (call) => call.id, maxLength: 4 },
    );
    const check = async (calls: { id: string; name: string; input: Record<string, unknown> }[]) => {
      const results = await dispatcher.dispatchAll(shape.calls(calls));
      expect(JSON.stringify(shape.replay(deepFreeze(calls) as typeof calls, results))).toBe(JSON.stringify(calls));
    };
    await fc.assert(fc.asyncProperty(sent, check), RUNS);
  });

  test('mends a reply for the history, whatever is wrong with it, so that each of its calls has its answer', async () => {
    const dispatcher = worker(() => 'Done.');
    const wrong = fc.constantFrom<unknown>(undefined, null, 'text', '{"a":', [], 7, true, { a: 1 });
    const sent = fc.array(fc.record({ id: fc.constantFrom(undefined, '', 'a', 'b'), name: toolName, input: wrong }), {
      maxLength: 4,
    });
    const check = async (calls: { id: string | undefined; name: string; input: unknown }[]) => {
      const asSent = deepFreeze(calls) as unknown as Sent[];
      const results = await dispatcher.dispatchAll(shape.calls(asSent));
      const kept = shape.replay(asSent, results);
      const ids = kept.map((call) => call.id as string);
      expect(ids).toEqual(shape.results(results).map((answer) => answer.id));
      expect([new Set(ids).size, ids.includes('')]).toEqual([calls.length, false]);
      for (const [place, { name, input: given }] of kept.entries()) {
        expect(name).toMatch(shape.name);
        expect(given).toEqual(isPlainObject(calls[place]?.input) ? calls[place]?.input : {});
      }
    };
    await fc.assert(fc.asyncProperty(sent, check), RUNS);
  });

  test('puts names back as they were told', async () => {
    const dispatcher = worker(() => 'Done.');
    const { names } = shape.define([{ name: 'a.b', description: '', inputSchema: {} }]);
    const sent = [{ id: 'a', name: names.told('a.b'), input: {} }];
    const results = await dispatcher.dispatchAll(shape.calls(sent, names));
    expect(results[0]?.requested.name).toBe('a.b');
    expect(shape.replay(sent, results, names)).toEqual(sent);
  });

  test('keeps nothing that is nothing in the history, and finds what a reply ends with before it', async () => {
    const sent = [{ id: 'a', name: 'work', input: {} }];
    const holes = [null, ...sent, undefined] as Sent[];
    const requests = shape.calls(holes, undefined, true);
    expect(requests.map(({ truncated }) => truncated)).toEqual([true]);
    expect(shape.replay(holes, await worker(() => 'Done.').dispatchAll(requests))).toEqual(sent);
  });

  test('refuses to mend a reply with the results of another', async () => {
    const results = await worker(() => 'Done.').dispatchAll([{ name: 'work' }]);
    expect(() => shape.replay([], results)).toThrow(
      new TypeError('replay: takes a result for each call of the reply, which has 0, but got 1.'),
    );
  });

  test('tells calls of one id apart that were dispatched one after the other', async () => {
    const dispatcher = worker(() => 'Done.');
    const sent = ['x', 'x', 'x_1', 'x'].map((each) => ({ id: each, name: 'work', input: {} }));
    const results: ToolDispatchResult[] = [];
    for (const request of shape.calls(sent)) results.push(await dispatcher.dispatch(request));
    const ids = shape.results(results).map((answer) => answer.id);
    expect([ids[0], new Set(ids).size]).toEqual(['x', 4]);
    expect(shape.replay(sent, results).map((call) => call.id)).toEqual(ids);
  });

  test('keeps long names apart, within what the provider takes', () => {
    const long = ['a', 'b'].map((end) => `${'x/'.repeat(100)}${end}`);
    const { tools, names } = shape.define(long.map((name) => ({ name, description: '', inputSchema: {} })));
    for (const { name } of tools) expect(name).toMatch(shape.name);
    expect(tools.map(({ name }) => names.meant(name))).toEqual(long);
  });

  test('leaves no half of a surrogate pair in a definition or in the history', async () => {
    const half = 'a\ud83d';
    const [told] = shape.define([
      { name: 'work', description: half, inputSchema: { properties: { a: { description: half } } } },
    ]).tools;
    const sent = [{ id: 'a', name: 'work', input: { text: half } }];
    const kept = shape.replay(sent, await worker(() => 'Done.').dispatchAll(shape.calls(sent)));
    // Written out, half a pair is an escape.
    expect(JSON.stringify([told?.description, told?.schema])).not.toMatch(/\\ud83d/);
    // Arguments that are text are left as they are where that is JSON.
    if (!shape.title.startsWith('openai')) expect(JSON.stringify(kept)).not.toMatch(/\\ud83d/);
  });

  test('gives a call without id the one its result has', async () => {
    const dispatcher = worker(() => 'Done.');
    const results = await dispatcher.dispatchAll(
      shape.calls([
        { name: 'work', input: {} },
        { id: '', name: 'work', input: {} },
      ]),
    );
    expect(shape.results(results).map(({ id }) => id)).toEqual(results.map(({ toolCallId }) => toolCallId));
    expect(new Set(results.map(({ toolCallId }) => toolCallId)).size).toBe(2);
  });

  test('marks only the last call of a reply that was cut, and the dispatcher refuses it', async () => {
    const worked: unknown[] = [];
    const dispatcher = worker((input) => worked.push(input));
    const requests = shape.calls(
      [
        { id: 'a', name: 'work', input: { n: 1 } },
        { id: 'b', name: 'work', input: { n: 2 } },
      ],
      undefined,
      true,
    );
    expect(requests.map(({ truncated }) => truncated)).toEqual([undefined, true]);
    const answers = await dispatcher.dispatchAll(requests);
    expect(answers.map(({ isError }) => isError)).toEqual([false, true]);
    expect(worked).toEqual([{ n: 1 }]);
  });

  test('has no calls where a reply has none, and no results where there are none', () => {
    expect(shape.calls([])).toEqual([]);
    expect(shape.results([])).toEqual([]);
  });

  test('throws the signal of a runtime that stopped the call itself', async () => {
    const signal = { stop: true };
    const throws = () => {
      throw signal;
    };
    const dispatcher = createDispatcher({
      tools: [defineTool({ name: 'work', description: 'Works.', execute: throws })],
      isControlSignal: (thrown) => thrown === signal,
    });
    const results = await dispatcher.dispatchAll([{ id: 'a', name: 'work' }]);
    let thrown: unknown;
    try {
      shape.results(results);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBe(signal);
  });

  test('keeps the name of a tool that was not told, for the dispatcher to answer', () => {
    const { names } = shape.define([{ name: 'a.b', description: '', inputSchema: {} }]);
    expect(shape.calls([{ id: 'a', name: 'unknown', input: {} }], names)).toMatchObject([{ name: 'unknown' }]);
  });
});

const TEXT_ONLY = PROVIDERS.filter(({ title }) => title !== 'mcpSampling');

describe.each(TEXT_ONLY)('$title', (shape) => {
  test('describes the media of a failure', async () => {
    const image = { type: 'image', mimeType: 'image/png', data: 'AAAA' } as const;
    const dispatcher = worker(() => ToolOutput.error([{ type: 'text', text: 'See:' }, image]));
    const [answer] = shape.results(await dispatcher.dispatchAll([{ id: 'a', name: 'work' }])) as [Answer];
    const text = 'See:\n[image of 3 bytes (image/png) left out: it cannot be shown here.]';
    expect(answer.content).toBe(answer.isError === undefined ? `Error: ${text}` : text);
  });
});

test('a tool that is called as another is told keeps apart from it', () => {
  for (const shape of SHAPES) {
    const told = shape.define([{ name: 'a.b', description: '', inputSchema: {} }]).tools[0]?.name as string;
    const { tools, names } = shape.define(['a/b', told].map((name) => ({ name, description: '', inputSchema: {} })));
    expect(tools[1]?.name).toBe(told);
    expect(tools[0]?.name).not.toBe(told);
    expect(tools.map(({ name }) => names.meant(name))).toEqual(['a/b', told]);
  }
});

describe('what a result may hold', () => {
  const pixel = Buffer.from('pixel').toString('base64');
  const address = 'https://example.com/a';
  const inline = (media_type: string, data: string) => ({ type: 'base64', media_type, data });
  const fromAddress = { type: 'url', url: address };
  const described = (text: string) => ({ type: 'text', text: `[${text} left out: it cannot be shown here.]` });

  test.each<[what: string, part: ContentPart, block: unknown]>([
    [
      'a picture',
      { type: 'image', mimeType: 'image/png', data: pixel },
      { type: 'image', source: inline('image/png', pixel) },
    ],
    [
      'bytes',
      { type: 'image', mimeType: 'Image/GIF; q=1', data: Buffer.from('pixel') },
      { type: 'image', source: inline('image/gif', pixel) },
    ],
    [
      'a picture that came as a file',
      { type: 'file', mimeType: 'image/webp', data: pixel },
      { type: 'image', source: inline('image/webp', pixel) },
    ],
    [
      'base64 in lines, without its padding',
      { type: 'image', mimeType: 'image/png', data: 'cGl4\r\nZWw' },
      { type: 'image', source: inline('image/png', pixel) },
    ],
    [
      'a picture in an address',
      { type: 'image', url: `data:image/png;base64,${pixel}` },
      { type: 'image', source: inline('image/png', pixel) },
    ],
    ['a picture somewhere', { type: 'image', url: address }, { type: 'image', source: fromAddress }],
    [
      'a document',
      { type: 'file', mimeType: 'application/pdf', data: pixel, name: 'a.pdf' },
      { type: 'document', source: inline('application/pdf', pixel), title: 'a.pdf' },
    ],
    [
      'a document somewhere',
      { type: 'file', mimeType: 'application/pdf', url: address },
      { type: 'document', source: fromAddress },
    ],
    [
      'a picture of another kind',
      { type: 'image', mimeType: 'image/tiff', data: pixel },
      described('image of 5 bytes (image/tiff)'),
    ],
    [
      'a picture of another kind somewhere',
      { type: 'image', mimeType: 'image/tiff', url: address },
      described(`image at ${address} (image/tiff)`),
    ],
    ['an empty picture', { type: 'image', mimeType: 'image/png', data: '' }, described('image of 0 bytes (image/png)')],
    ['a sound', { type: 'audio', mimeType: 'audio/wav', data: pixel }, described('audio of 5 bytes (audio/wav)')],
    ['a file on this machine', { type: 'image', url: 'file:///home/a.png' }, described('image')],
    ['an address that is none', { type: 'image', url: 'https://' }, described('image at https://')],
    ['a file somewhere, whatever it is', { type: 'file', url: address }, described(`file at ${address}`)],
    ['a link', { type: 'resource_link', uri: 'note://1', name: 'Note' }, { type: 'text', text: 'Note\nnote://1' }],
    ['a link to nothing', { type: 'resource_link', uri: '' }, described('resource_link')],
    [
      'a type that is often misspelt',
      { type: 'image', mimeType: 'image/jpg', data: pixel },
      { type: 'image', source: inline('image/jpeg', pixel) },
    ],
    [
      'a data: address for data',
      { type: 'image', mimeType: 'image/png', data: `data:image/png;base64,${pixel}` },
      { type: 'image', source: inline('image/png', pixel) },
    ],
    [
      'base64 for addresses',
      { type: 'image', mimeType: 'image/png', data: '-_-_' },
      { type: 'image', source: inline('image/png', '+/+/') },
    ],
    [
      'what is no base64',
      { type: 'image', mimeType: 'image/png', data: 'pixel!' },
      described('image of 4 bytes (image/png)'),
    ],
    [
      'two pieces of base64',
      { type: 'image', mimeType: 'image/png', data: 'AA==AA==' },
      described('image of 3 bytes (image/png)'),
    ],
    [
      'a picture somewhere that came as a file',
      { type: 'file', mimeType: 'image/png', url: address },
      { type: 'image', source: fromAddress },
    ],
    [
      'an address of this machine',
      { type: 'image', url: 'https://localhost:8443/a' },
      described('image at https://localhost:8443/a'),
    ],
    [
      'an address of this network',
      { type: 'image', url: 'https://10.0.0.1/a' },
      described('image at https://10.0.0.1/a'),
    ],
    [
      'an address of a network of its own',
      { type: 'image', url: 'https://printer.local/a' },
      described('image at https://printer.local/a'),
    ],
    ['an address with a password', { type: 'image', url: 'https://me:secret@example.com/a' }, described('image')],
    ['an address with blanks', { type: 'image', url: ' https://example.com/a' }, described('image')],
    [
      'a long title of pairs',
      { type: 'file', mimeType: 'application/pdf', url: address, name: `${'a'.repeat(499)}😀` },
      { type: 'document', source: fromAddress, title: `${'a'.repeat(499)}\ufffd` },
    ],
  ])('anthropic: %s', async (_, part, block) => {
    const dispatcher = worker(() => ToolOutput.success([part]));
    const { content } = anthropic.results(await dispatcher.dispatchAll([{ name: 'work' }]));
    expect(content[0]?.content).toEqual([block]);
  });
});

test('what a model cannot be shown is described, as its user says', async () => {
  const [png, pdf] = ['image/png', 'application/pdf'].map(
    (mimeType) => ({ type: 'file', mimeType, data: 'AAAA' }) as const,
  );
  const results = await worker(() => ToolOutput.success([png, pdf] as never)).dispatchAll([{ id: 'a', name: 'work' }]);
  const accepts = ['image/*'];
  const output = [{ type: 'function_call' }];
  for (const told of [
    anthropic.results(results, { accepts }),
    openaiResponses.results(results, { output }, { accepts }),
    gemini.results(results, undefined, { accepts }),
    geminiInteractions.results(results, undefined, { accepts }),
  ]) {
    expect(JSON.stringify(told)).toMatch(/image\/png(;base64)?.*AAAA|AAAA.*image\/png/);
    expect(JSON.stringify(told)).toContain('[file of 3 bytes (application/pdf) left out: it cannot be shown here.]');
  }
  expect(() => anthropic.results(results, { accepts: ['pictures'] })).toThrow(/accepts/);
});

describe('what a response may hold', () => {
  const pixel = Buffer.from('pixel').toString('base64');
  const address = 'https://example.com/a';

  test.each<[what: string, part: ContentPart, told: unknown]>([
    [
      'a picture',
      { type: 'image', mimeType: 'image/png', data: pixel },
      { type: 'input_image', image_url: `data:image/png;base64,${pixel}`, detail: 'auto' },
    ],
    [
      'a picture somewhere',
      { type: 'image', url: address },
      { type: 'input_image', image_url: address, detail: 'auto' },
    ],
    [
      'a document',
      { type: 'file', mimeType: 'application/pdf', data: pixel, name: 'a.pdf' },
      { type: 'input_file', file_data: `data:application/pdf;base64,${pixel}`, filename: 'a.pdf' },
    ],
    [
      'a document without a name',
      { type: 'file', mimeType: 'application/pdf', data: pixel },
      { type: 'input_file', file_data: `data:application/pdf;base64,${pixel}`, filename: 'document.pdf' },
    ],
    [
      'a document somewhere',
      { type: 'file', mimeType: 'application/pdf', url: address },
      { type: 'input_file', file_url: address },
    ],
    [
      'a sound',
      { type: 'audio', mimeType: 'audio/wav', data: pixel },
      { type: 'input_text', text: '[audio of 5 bytes (audio/wav) left out: it cannot be shown here.]' },
    ],
    ['a link', { type: 'resource_link', uri: 'note://1' }, { type: 'input_text', text: 'note://1' }],
  ])('openaiResponses: %s', async (_, part, told) => {
    const dispatcher = worker(() => ToolOutput.success([part]));
    const output = [{ type: 'function_call', call_id: 'a', name: 'work', arguments: '{}' }];
    const results = await dispatcher.dispatchAll(openaiResponses.calls({ output }));
    expect(openaiResponses.results(results, { output })).toEqual([
      { type: 'function_call_output', call_id: 'a', output: [told] },
    ]);
  });

  test('openaiResponses: calls of custom tools, of namespaces and of programs are answered as what they are', async () => {
    const output = [
      { type: 'reasoning', id: 'r', summary: [] },
      { type: 'custom_tool_call', id: 'i1', call_id: 'a', name: 'work', input: 'ls' },
      { type: 'function_call', id: 'i2', call_id: 'b', name: 'send', namespace: 'mail', arguments: '{}' },
      {
        type: 'function_call',
        call_id: 'c',
        name: 'work',
        arguments: '{}',
        caller: { type: 'program', caller_id: 'p' },
      },
      { type: 'web_search_call', id: 'w', status: 'completed' },
    ];
    const requests = openaiResponses.calls({ output });
    expect(requests).toEqual([
      { id: 'a', name: 'work', arguments: { input: 'ls' } },
      { id: 'b', name: 'mail__send', arguments: '{}' },
      { id: 'c', name: 'work', arguments: '{}' },
    ]);
    const results = await worker((given) => JSON.stringify(given)).dispatchAll(requests);
    expect(openaiResponses.results(results, { output })).toMatchObject([
      { type: 'custom_tool_call_output', call_id: 'a', output: '{"input":"ls"}' },
      { type: 'function_call_output', call_id: 'b', output: expect.stringMatching(/^Error: /) },
      { type: 'function_call_output', call_id: 'c', caller: { type: 'program', caller_id: 'p' } },
    ]);
    expect(openaiResponses.replay({ output }, results)).toEqual(output);
  });

  test('openaiResponses: a call that says that it is incomplete is refused, wherever it stands', () => {
    const call = { type: 'function_call', call_id: 'a', name: 'work', arguments: '{}' };
    const output = [
      { ...call, status: 'incomplete' },
      { ...call, call_id: 'b', status: 'completed' },
    ];
    expect(openaiResponses.calls({ output }).map(({ truncated }) => truncated)).toEqual([true, undefined]);
  });

  test('openaiResponses: results of another reply are refused', async () => {
    const results = await worker(() => 'Done.').dispatchAll([{ name: 'work' }]);
    expect(() => openaiResponses.results(results, { output: [] })).toThrow(
      new TypeError('results: takes a result for each call of the reply, which has 0, but got 1.'),
    );
  });
});

describe('what a reply may hold', () => {
  test.each<[what: string, read: () => unknown, found: unknown]>([
    ['openaiChat: no message', () => openaiChat.calls({ message: null, finish_reason: 'error' } as never), []],
    ['openaiResponses: no output', () => openaiResponses.replay({}, []), []],
    ['openaiResponses: no output to answer', () => openaiResponses.results([], {}), []],
    ['anthropic: no content', () => anthropic.calls({ content: null }), []],
    ['anthropic: no content to put back', () => anthropic.replay({}, []).content, []],
    ['gemini: no candidate', () => gemini.calls(undefined as never), []],
    ['gemini: no content to put back', () => gemini.replay(undefined as never, []), undefined],
    ['geminiInteractions: no steps', () => geminiInteractions.calls({ steps: null }), []],
    ['mcpSampling: no content', () => mcpSampling.calls({} as never), []],
    ['mcpSampling: no content to put back', () => mcpSampling.replay({} as never, []).content, []],
    [
      'mcp: no params',
      () => mcp.calls({ id: null, method: 'tools/call' }),
      [{ name: undefined, arguments: undefined }],
    ],
    [
      'openaiChat: a custom call of nothing',
      () => openaiChat.calls({ tool_calls: [{ id: 'a', type: 'custom' } as never] }),
      [{ id: 'a', name: '', arguments: undefined }],
    ],
    [
      'openaiResponses: no name in a namespace',
      () =>
        openaiResponses.calls({
          output: [{ type: 'function_call', call_id: 'a', namespace: 'mail', arguments: '{}' } as never],
        }),
      [{ id: 'a', name: 'mail__', arguments: '{}' }],
    ],
  ])('%s', (_, read, found) => {
    expect(read()).toEqual(found);
  });

  test('openaiChat: a custom call of nothing has a name and an input in the history', async () => {
    const message = { tool_calls: [{ id: 'a', type: 'custom' } as never] };
    const results = await worker(() => 'Done.').dispatchAll(openaiChat.calls(message));
    expect(openaiChat.replay(message, results).tool_calls).toEqual([
      { id: 'a', type: 'custom', custom: { name: 'unnamed', input: '' } },
    ]);
  });

  test('gemini: a call whose id is no text has none, in the history as in its answer', async () => {
    const content = { parts: [{ functionCall: { id: 5, name: 'work', args: {} } }] };
    const results = await worker(() => 'Done.').dispatchAll(gemini.calls(content));
    expect(gemini.replay(content, results)).toEqual({ parts: [{ functionCall: { name: 'work', args: {} } }] });
    expect(gemini.results(results).parts[0]?.functionResponse).not.toHaveProperty('id');
  });

  test('half of a surrogate pair in the name of an argument does not come into the history', async () => {
    const content = [{ type: 'tool_use', id: 'a', name: 'work', input: { 'a\ud83d': 'b\ud83d' } }];
    const results = await worker(() => 'Done.').dispatchAll(anthropic.calls({ content }));
    expect(anthropic.replay({ content }, results).content[0]?.input).toEqual({ 'a\ufffd': 'b\ufffd' });
  });

  test('openaiChat: the text of a custom tool is its argument', () => {
    const tool_calls = [{ id: 'a', type: 'custom' as const, custom: { name: 'run', input: 'ls' } }];
    expect(openaiChat.calls({ tool_calls })).toEqual([{ id: 'a', name: 'run', arguments: { input: 'ls' } }]);
  });

  test.each([[{}], [{ tool_calls: null }], [{ tool_calls: [] }], [{ message: {} }]])(
    'openaiChat: no calls in %j',
    (reply) => {
      expect(openaiChat.calls(reply)).toEqual([]);
    },
  );

  test('openaiChat: a list of no calls, which the provider refuses, does not come into the history', () => {
    const holes = new Array<never>(1);
    for (const tool_calls of [[], null, holes])
      expect(openaiChat.replay({ content: 'Hm.', tool_calls }, [])).toEqual({ content: 'Hm.' });
    const plain: { content: string; tool_calls?: [] } = { content: 'Hm.' };
    expect(openaiChat.replay(plain, [])).toBe(plain);
  });

  test.each(['length', 'content_filter', 'model_length', 'insufficient_system_resource'])(
    'openaiChat: the last call of a reply that ends by %s is cut',
    (finish_reason) => {
      const call = { id: 'a', function: { name: 'work', arguments: '' } };
      const message = { tool_calls: [call, { ...call, id: 'b' }] };
      expect(openaiChat.calls({ finish_reason, message }).map(({ truncated }) => truncated)).toEqual([undefined, true]);
      for (const whole of ['tool_calls', 'stop', null])
        expect(openaiChat.calls({ finish_reason: whole, message }).some(({ truncated }) => truncated)).toBe(false);
    },
  );

  test('openaiChat: half of a surrogate pair in the text of arguments does not come into the history', async () => {
    const asked = { name: 'work', arguments: '{"text":"a\ud83d"}' };
    const message = { tool_calls: [{ id: 'a', type: 'function' as const, function: asked }] };
    const results = await worker(() => 'Done.').dispatchAll(openaiChat.calls(message));
    const kept = openaiChat.replay(message, results);
    expect(kept.tool_calls[0]?.function.arguments).toBe('{"text":"a\ufffd"}');
  });

  test('openaiChat: a call of a custom tool is put back as it is, or with the id of its answer', async () => {
    const custom = { name: 'work', input: 'ls' };
    const kept = async (id: string) => {
      const message = { tool_calls: [{ id, type: 'custom' as const, custom }] };
      const results = await worker(() => 'Done.').dispatchAll(openaiChat.calls(message));
      return { message, results, kept: openaiChat.replay(message, results) };
    };
    const good = await kept('a');
    expect(good.kept).toBe(good.message);
    const { results, kept: mended } = await kept('');
    expect(mended.tool_calls).toEqual([{ id: results[0]?.toolCallId, type: 'custom', custom }]);
  });

  test('openaiChat: a call without its type has it in the history', async () => {
    const message = { tool_calls: [{ id: 'a', function: { name: 'work', arguments: '{}' }, custom: null }] };
    const results = await worker(() => 'Done.').dispatchAll(openaiChat.calls(message));
    expect(openaiChat.replay(message, results).tool_calls[0]).toMatchObject({ type: 'function', id: 'a' });
  });

  test('openaiChat: a choice in the place of its message is refused for the history', () => {
    expect(() => openaiChat.replay({ message: {} } as object, [])).toThrow(
      new TypeError('replay: takes the message of a choice, as in replay(choice.message, results).'),
    );
  });

  test('openaiResponses: half of a surrogate pair in the text of arguments does not come into the history', async () => {
    const output = [{ type: 'function_call', call_id: 'a', name: 'work', arguments: '{"text":"a\ud83d"}' }];
    const results = await worker(() => 'Done.').dispatchAll(openaiResponses.calls({ output }));
    expect(openaiResponses.replay({ output }, results)[0]?.arguments).toBe('{"text":"a\ufffd"}');
  });

  test('openaiResponses: what the package adds to a call is not sent back', async () => {
    const call = { type: 'function_call', call_id: 'a', name: 'work', arguments: '{}' };
    const output = [{ ...call, parsed_arguments: null }];
    const results = await worker(() => 'Done.').dispatchAll(openaiResponses.calls({ output }));
    expect(openaiResponses.replay({ output }, results)).toEqual([call]);
  });

  test('openaiResponses: the last call of a reply that a filter stopped is cut', () => {
    const output = [{ type: 'function_call', call_id: 'a', name: 'work', arguments: '' }];
    const requests = openaiResponses.calls({ output, incomplete_details: { reason: 'content_filter' } });
    expect(requests).toMatchObject([{ truncated: true }]);
  });

  test('anthropic: a message whose content is plain text stays what it says', () => {
    expect(anthropic.replay({ content: 'Hm.' }, []).content).toEqual([{ type: 'text', text: 'Hm.' }]);
  });

  test('anthropic: blank text of a reply, which the provider refuses, does not come into the history', async () => {
    const use = { type: 'tool_use', id: 'a', name: 'work', input: {} };
    const content = [{ type: 'text', text: '\n\n' }, use, { type: 'text', text: 'Hm.' }];
    const results = await worker(() => 'Done.').dispatchAll(anthropic.calls({ content }));
    expect(anthropic.replay({ content }, results).content).toEqual(content.slice(1));
  });

  test('anthropic: a tool of the provider’s toolset is no other of its name, and its answer tells the toolset', async () => {
    const use = { type: 'tool_use', id: 'a', name: 'work', input: {} };
    const reply = {
      content: [
        { ...use, toolset_name: 'browser' },
        { ...use, id: 'b', toolset_name: null },
      ],
    };
    const requests = anthropic.calls(reply);
    expect(requests.map(({ name }) => name)).toEqual(['browser__work', 'work']);
    const results = await worker(() => 'Done.').dispatchAll(requests);
    expect(anthropic.replay(reply, results).content).toEqual(reply.content);
    const told = (answers: readonly object[]) =>
      answers.map((answer) => ('toolset_name' in answer ? answer.toolset_name : undefined));
    expect(told(anthropic.results(results, { reply }).content)).toEqual(['browser', undefined]);
    expect(told(anthropic.results(results).content)).toEqual([undefined, undefined]);
    expect(() => anthropic.results(results, { reply: { content: [] } })).toThrow(/has 0, but got 2/);
  });

  test('openaiChat: the whole reply in the place of a choice is refused', () => {
    const reply = { choices: [{ message: {} }], tool_calls: null };
    expect(() => openaiChat.calls(reply)).toThrow(
      new TypeError('calls: takes a choice of a reply, as in calls(reply.choices[0]), not the whole reply.'),
    );
  });

  test.each<[what: string, call: object, mended: object, answer: string]>([
    [
      'null for an id',
      { id: null, function: { name: 'work', arguments: '{}' } },
      { name: 'work', arguments: '{}' },
      'Done.',
    ],
    [
      'a number for an id',
      { id: 7, function: { name: 'work', arguments: '{}' } },
      { name: 'work', arguments: '{}' },
      'Done.',
    ],
    ['no arguments', { id: 'a', function: { name: 'work' } }, { name: 'work', arguments: '{}' }, 'Done.'],
    [
      'null for arguments',
      { id: 'a', function: { name: 'work', arguments: null } },
      { name: 'work', arguments: '{}' },
      'Done.',
    ],
    [
      'an object',
      { id: 'a', function: { name: 'work', arguments: { a: 1 } } },
      { name: 'work', arguments: '{"a":1}' },
      'Done.',
    ],
    [
      'no name',
      { id: 'a', function: { arguments: '{}' } },
      { name: 'unnamed', arguments: '{}' },
      'Error: The call names no tool.',
    ],
    [
      'no function',
      { id: 'a', function: null },
      { name: 'unnamed', arguments: '{}' },
      'Error: The call names no tool.',
    ],
  ])('openaiChat: servers that only resemble the provider send %s', async (_, call, mended, answer) => {
    // A hole, as where the first delta of a stream had the index 1.
    const message = { tool_calls: [undefined, call] as never[] };
    const results = await worker(() => 'Done.').dispatchAll(openaiChat.calls(message));
    const [kept] = openaiChat.replay(message, results).tool_calls as { id: string; function: object }[];
    const [told] = openaiChat.results(results);
    expect(kept?.function).toEqual(mended);
    expect([typeof kept?.id, kept?.id]).toEqual(['string', told?.tool_call_id]);
    expect(told?.content).toContain(answer);
  });

  test('anthropic: what the provider runs itself is no call', () => {
    const content = [
      { type: 'text', text: 'Hm.' },
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
    ];
    expect(anthropic.calls({ content })).toEqual([]);
    expect(anthropic.calls({ content: 'Hm.' })).toEqual([]);
  });

  test.each(['max_tokens', 'model_context_window_exceeded', 'refusal', 'stop_sequence'])(
    'anthropic: %s after a whole call spares it',
    (stop_reason) => {
      const use = { type: 'tool_use', id: 'a', name: 'run', input: {} };
      const text = { type: 'text', text: 'And n' };
      expect(anthropic.calls({ content: [use, text], stop_reason })).toEqual([{ id: 'a', name: 'run', arguments: {} }]);
      expect(anthropic.calls({ content: [text, use], stop_reason })).toMatchObject([{ truncated: true }]);
    },
  );
});
