import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type Content,
  type ContentPart,
  createDispatcher,
  defineTool,
  describeError,
  forModel,
  type JsonSchema,
  type JsonValue,
  type Marker,
  type Middleware,
  named,
  namespaced,
  sizeOf,
  type Tool,
  ToolContext,
  type ToolDispatchResult,
  ToolFailure,
  type ToolOutcome,
  ToolOutput,
  textOf,
} from 'toolonion';
import {
  memoryStore,
  type OutputLimitOptions,
  outputLimit,
  type ResultStore,
  readResultTool,
  validation,
} from 'toolonion/middleware';
import { anything } from '../support/anything.ts';
import { nested } from '../support/hostile.ts';
import { lookout } from '../support/lookout.ts';
import { ManualClock, turns } from '../support/manual-clock.ts';

/** The result of a tool that answers this, its layer's answer, and what the layer was given. */
interface Ran {
  readonly result: ToolDispatchResult;
  readonly given: ToolOutcome | undefined;
  readonly passed: ToolOutcome | undefined;
}

async function limited(
  execute: () => unknown,
  options?: OutputLimitOptions,
  inside: Middleware[] = [],
  outputSchema?: JsonSchema,
): Promise<Ran> {
  const { seen, look } = lookout();
  const tool = defineTool({ name: 'work', description: 'Works.', ...(outputSchema && { outputSchema }), execute });
  const middleware = [look('passed'), outputLimit(options), look('given'), ...inside];
  const result = await createDispatcher({ tools: [tool], middleware }).dispatch({ name: 'work' });
  return { result, given: seen['given'], passed: seen['passed'] };
}

async function contentOf(answer: unknown, options?: OutputLimitOptions): Promise<Content> {
  return (await limited(() => answer, options)).result.content;
}

/** A text with characters of one to four bytes in it. */
const text = 'aé€😀'.repeat(100);
/** A short mark, so that small limits have room for some text. */
const short: Marker = (leftOut) => `[${leftOut}]`;
const large = 'x'.repeat(5000);
const link = (description: string): ContentPart => ({ type: 'resource_link', uri: 'file:///a', description });
const image = (bytes: number): ContentPart => ({ type: 'image', mimeType: 'image/png', data: new Uint8Array(bytes) });
const says = (text: string): ContentPart => ({ type: 'text', text });

describe('an answer within the limits passes untouched', () => {
  test.each([
    ['a text', 'x'.repeat(50_000)],
    ['nothing', ''],
    ['data', { a: [1, 2, 3] }],
    ['parts', [says('a'), image(10), link('b'), says('')]],
  ])('%s', async (_, answer) => {
    const { passed, given } = await limited(() => answer);
    expect(passed).toBe(given);
  });

  test('a soft failure, a hard one, a suspension', async () => {
    const soft = await limited(() => ToolOutput.error('No such file.'));
    expect(soft.passed).toBe(soft.given);
    const hard = await limited(() => {
      throw new Error('secret');
    });
    expect(hard.passed).toBe(hard.given);
    const asks = defineTool({
      name: 'work',
      description: 'Works.',
      execute: (_, call) => call.suspend({ reason: 'x'.repeat(100) }),
    });
    const result = await createDispatcher({ tools: [asks], middleware: [outputLimit({ limit: 10 })] }).dispatch({
      name: 'work',
    });
    expect(result).toMatchObject({ content: 'x'.repeat(100), control: { type: 'suspend' }, notes: [] });
  });

  test('in bytes, whatever the characters', async () => {
    const { passed, given } = await limited(() => text, { unit: 'bytes', limit: Buffer.byteLength(text) });
    expect(passed).toBe(given);
    expect(await contentOf(text, { unit: 'bytes', limit: Buffer.byteLength(text) - 1 })).toContain('bytes left out');
  });

  test('without any limit', async () => {
    const limits = { limit: Infinity, mediaLimit: Infinity, structuredLimit: Infinity };
    for (const answer of [
      'x'.repeat(1_000_000),
      [image(6_000_000), link('x'.repeat(100_000))],
      { a: 'x'.repeat(300_000) },
    ]) {
      const { passed, given } = await limited(() => answer, limits);
      expect(passed).toBe(given);
    }
  });
});

describe('a text that is too long', () => {
  test('I01, I09: is cut to the limit, and says how much is missing and how to get it', async () => {
    const { result } = await limited(() => 'x'.repeat(20_000_000));
    expect(result.content).toHaveLength(50_000);
    expect(result.content).toMatch(
      /x\n\[… 199\d{5} of 20000000 characters left out\. To see them, ask for less at a time: narrower arguments, a page, a range\.\]\nx/,
    );
    expect(result.notes).toEqual([
      { type: 'truncated', by: 'outputLimit', message: 'The answer had 20000000 characters; the limit is 50000.' },
    ]);
  });

  test('I03: keeps both ends, its beginning, or its end', async () => {
    const log = `first\n${'.\n'.repeat(50_000)}FAILED`;
    const both = String(await contentOf(log, { limit: 1000 }));
    expect(both).toMatch(/^first\n[\s\S]*FAILED$/);
    expect(String(await contentOf(log, { limit: 1000, keep: 'head' }))).toMatch(/^first\n[\s\S]*range\.\]\n$/);
    expect(String(await contentOf(log, { limit: 1000, keep: 'tail' }))).toMatch(/^\n\[…[\s\S]*FAILED$/);
    expect(String(await contentOf(log, { limit: 1000, keep: { default: 'head', byTool: { work: 'tail' } } }))).toMatch(
      /FAILED$/,
    );
  });

  test.each(['characters', 'bytes'] as const)(
    'I02: is valid Unicode within the limit, whichever %s it is cut at',
    async (unit) => {
      for (const keep of ['head', 'tail', 'both'] as const) {
        for (const broken of ['', '\ud83d', '\ude00']) {
          for (let limit = 1; limit < 60; limit++) {
            const content = String(
              await contentOf(`aaaaaaaaa😀${broken}${text}${broken}`, { unit, keep, limit, marker: short }),
            );
            expect(content.isWellFormed()).toBe(true);
            expect(unit === 'bytes' ? Buffer.byteLength(content) : content.length).toBeLessThanOrEqual(limit);
          }
        }
      }
    },
  );

  test('I02: is put right where it holds half a character, though it is not too long', async () => {
    expect(await contentOf('a\ud83d')).toBe('a\ufffd');
    expect(await contentOf([says('a\ud83d'), says('b')])).toEqual([says('a\ufffd'), says('b')]);
  });

  test('is cut by the limit of its tool', async () => {
    expect(await contentOf('x'.repeat(100), { limit: { default: 5, byTool: { work: 100 } } })).toHaveLength(100);
    expect(await contentOf('x'.repeat(100), { limit: { default: 100, byTool: { work: 50 } } })).toHaveLength(50);
  });

  test('has the marker the host wants', async () => {
    const marker: Marker = (leftOut, total, unit) => `<${leftOut}/${total} ${unit}>`;
    expect(await contentOf('x'.repeat(100), { limit: 40, keep: 'head', marker })).toBe(
      `${'x'.repeat(20)}<80/100 characters>`,
    );
  });

  test.each<[string, Marker]>([
    ['throws', () => raise('no marker')],
    ['gives no text', () => undefined as never],
    ['gives a promise', () => Promise.resolve('…') as never],
  ])('has the usual marker where the host’s %s', async (_, marker) => {
    const { result } = await limited(() => 'x'.repeat(1000), { limit: 300, keep: 'head', marker });
    expect(result).toMatchObject({ isError: false, content: expect.stringMatching(/^x+\n\[… \d+ of 1000 characters/) });
  });

  test('I02: is put right in the message of an error, as in its content', async () => {
    const { result } = await limited(() => {
      throw new ToolFailure('a\ud83d');
    });
    expect(result).toMatchObject({ content: 'a\ufffd', error: { message: 'a\ufffd' } });
  });

  test('is cut in an error too, in its content and its message, and the cause is kept', async () => {
    const cause = new Error('secret');
    const { result } = await limited(
      () => {
        throw new ToolFailure(`Wrong: ${'x'.repeat(100_000)}`, { cause });
      },
      { limit: 1000 },
    );
    expect(result).toMatchObject({ isError: true, error: { code: 'execution_failed', executed: 'yes' } });
    expect(result.content).toMatch(/^Wrong: x.*\n\[… 99\d{3} of 100007 characters left out/);
    expect(result.content.length).toBeLessThanOrEqual(1000);
    expect(result.error?.message).toBe(result.content);
    expect(describeError(result.error?.cause).cause?.message).toBe('secret');
    expect(JSON.stringify(result)).not.toContain('secret');
    const soft = await limited(() => ToolOutput.error('x'.repeat(100_000)), { limit: 1000 });
    expect(soft.result).toMatchObject({ isError: true, content: expect.stringMatching(/^x{400}/) });
    expect(soft.result.content.length).toBeLessThanOrEqual(1000);
  });
});

describe('an answer of parts', () => {
  test('has one budget for all its text', async () => {
    const parts = ['a', 'b', 'c'].map((letter) => says(letter.repeat(40)));
    const content = (await contentOf(parts, { limit: 60, marker: short })) as ContentPart[];
    expect(content).toEqual([says(`${'a'.repeat(27)}[65]`), says('c'.repeat(28))]);
  });

  test('keeps its media in place, whole', async () => {
    const parts = [says('a'.repeat(100)), image(1000), says('b'.repeat(100))];
    const { result, given } = await limited(() => parts, { limit: 20, marker: short, keep: 'tail' });
    expect(result.content).toEqual([says('[185]'), parts[1], says('b'.repeat(15))]);
    expect(result.content[1]).toBe(given?.content[1]);
  });

  test('I05: has media measured by their bytes, and one that is too large replaced by a few words', async () => {
    const data = Buffer.alloc(150_000, 7).toString('base64');
    const screenshot = { type: 'image', mimeType: 'image/png', data } as const;
    expect(await contentOf([screenshot, says('a')], { limit: 1000 })).toEqual([screenshot, says('a')]);
    expect(await contentOf([screenshot], { mediaLimit: 150_000 })).toEqual([screenshot]);
    const { result } = await limited(() => [screenshot, says('a')], { mediaLimit: 149_999 });
    expect(result.content).toEqual([
      says('[image of 150000 bytes (image/png) left out: too large. Ask for a smaller one.]'),
      says('a'),
    ]);
    expect(result.notes).toEqual([{ type: 'truncated', by: 'outputLimit', message: 'Parts left out whole: 1.' }]);
  });

  test('I08: has bytes a tool returns replaced in the same way', async () => {
    expect(await contentOf(new Uint8Array(11), { mediaLimit: 10 })).toEqual([
      says('[file of 11 bytes (application/octet-stream) left out: too large. Ask for a smaller one.]'),
    ]);
  });

  test('has one budget for all its media', async () => {
    const content = (await contentOf([image(6), image(6), image(4)], { mediaLimit: 10 })) as ContentPart[];
    expect(content.map(({ type }) => type)).toEqual(['image', 'text', 'image']);
  });

  test('cannot hide a large text in an address or a link', async () => {
    const url = `data:image/png;base64,${'A'.repeat(400)}`;
    const padded = `data:image/png;${'x'.repeat(400)},A`;
    const parts: ContentPart[] = [
      { type: 'image', url },
      { type: 'image', url: padded },
      link('x'.repeat(500)),
      link('y'),
    ];
    expect(await contentOf(parts, { mediaLimit: 100, limit: 400 })).toEqual([
      says('[image of 300 bytes (image/png) left out: too large. Ask for a smaller one.]'),
      says('[image of 208 bytes (image/png) left out: too large. Ask for a smaller one.]'),
      says('[resource_link of 510 characters at file:///a left out: too large. Ask for a smaller one.]'),
      link('y'),
    ]);
  });

  test('cannot grow by what stands for media', async () => {
    const content = (await contentOf(new Array(1000).fill(image(2)), { mediaLimit: 1, limit: 500 })) as ContentPart[];
    expect(content.reduce((size, part) => size + (part.type === 'text' ? part.text.length : 0), 0)).toBeLessThanOrEqual(
      500,
    );
  });

  test.each<[string, object, string]>([
    ['the name of a picture', { type: 'image', mimeType: 'image/png', data: 'AAAA', name: large }, 'image of 5010'],
    ['the type of a file', { type: 'file', mimeType: large, data: 'AAAA' }, 'file of 5000'],
    ['a link’s type', { type: 'resource_link', uri: 'a', mimeType: large }, 'resource_link of 5002'],
    [
      'a link’s description that is no text',
      { type: 'resource_link', uri: 'a', description: { large } },
      'link of 5014',
    ],
    ['a link’s field nobody knows', { type: 'resource_link', uri: 'a', _meta: [large] }, 'link of 5006'],
  ])('cannot hide a large text in %s', async (_, part, says) => {
    const { result } = await limited(() => [part], { limit: 1000 });
    expect(result.content).toEqual([{ type: 'text', text: expect.stringContaining(`${says} characters`) }]);
    expect(result.notes).toMatchObject([{ type: 'truncated', message: 'Parts left out whole: 1.' }]);
  });

  test('cannot hide a large text in what nobody knows beside a text, which stays', async () => {
    const parts = [
      { type: 'text', text: 'a', data: 'small' },
      { type: 'text', text: 'b', data: { large } },
    ];
    expect(await contentOf(parts, { limit: 1000 })).toEqual([parts[0], says('b')]);
  });

  test('ends for a part that throws when it is made text', async () => {
    const hostile = {
      type: 'resource_link',
      uri: 'a',
      description: { toString: () => raise('no'), toJSON: () => raise('no') },
    };
    expect((await limited(() => [hostile], { limit: 10 })).result.isError).toBe(false);
  });

  test('keeps fields of its parts that nobody here knows', async () => {
    const part = { type: 'text', text: 'x'.repeat(100), audience: ['user'] };
    expect(await contentOf([part], { limit: 50 })).toMatchObject([{ audience: ['user'] }]);
  });
});

describe('JSON that is too long', () => {
  const rows = Array.from({ length: 10_000 }, (_, id) => ({ id, name: `row ${id}`, tags: ['a', 'b'] }));

  test.each([
    ['many rows', rows],
    ['one long text', [{ big: 'x'.repeat(1_000_000) }]],
    ['many keys', Object.fromEntries(rows.map((row) => [row.name, row.id]))],
    ['great depth', rows.slice(0, 150).reduce<JsonValue>((inner, { id }) => ({ id, inner }), 'x'.repeat(5000))],
  ])('I04: stays JSON within the limit: %s', async (_, value) => {
    for (const limit of [1000, 100, 20]) {
      for (const unit of ['characters', 'bytes'] as const) {
        const content = String(await contentOf(value, { limit, unit }));
        expect(() => JSON.parse(content)).not.toThrow();
        expect(unit === 'bytes' ? Buffer.byteLength(content) : content.length).toBeLessThanOrEqual(limit);
      }
    }
  });

  test('I04: says inside what is missing, and the model reads how to get it', async () => {
    const { result } = await limited(() => rows, { limit: 1000 });
    const shown = JSON.parse(String(result.content)) as unknown[];
    expect(shown[0]).toEqual(rows[0]);
    expect(shown.at(-1)).toMatch(/^… 99\d\d more items$/);
    const size = JSON.stringify(rows).length;
    expect(forModel(result)).toContain(
      `[This is a shortened view of an answer of ${size} characters. To see more, ask for less at a time: narrower arguments, a page, a range.]`,
    );
    expect(result.notes[0]).toMatchObject({ type: 'truncated', by: 'outputLimit', forModel: true });
  });

  test('I04: stays JSON in a part of its own too, as MCP servers send it', async () => {
    const { result, given } = await limited(() => [says(JSON.stringify(rows)), image(10)], { limit: 1000 });
    const [first, second] = result.content as readonly ContentPart[];
    const shown = textOf([first as ContentPart]);
    expect(JSON.parse(shown)[0]).toEqual(rows[0]);
    expect(shown.length).toBeLessThanOrEqual(1000);
    expect(second).toBe(given?.content[1]);
    expect(result.notes).toMatchObject([{ type: 'truncated', forModel: true }]);
  });

  test('is cut like any text where the limit is too small for any JSON', async () => {
    expect(await contentOf([1, 2, 3], { limit: 2 })).toHaveLength(2);
  });

  test('is cut like any text where it is not JSON after all', async () => {
    expect(await contentOf(`[INFO] ${'x'.repeat(200)}`, { limit: 50, marker: short, keep: 'head' })).toBe(
      `[INFO] ${'x'.repeat(38)}[162]`,
    );
  });
});

describe('structured data', () => {
  const answer = (length: number) => ToolOutput.json({ a: 'x'.repeat(length) }, 'See the data.');

  test('is whole within its own limit, whatever becomes of the text', async () => {
    const { result } = await limited(() => ({ a: 'x'.repeat(100) }), { limit: 50 });
    expect(result.structured).toEqual({ a: 'x'.repeat(100) });
    expect(result.content).not.toContain('x'.repeat(60));
  });

  test('I04, I06: is left out whole beyond it, with a note', async () => {
    const { result } = await limited(() => answer(1000), { structuredLimit: 500 });
    expect('structured' in result).toBe(false);
    expect(result).toMatchObject({ content: 'See the data.', isError: false });
    expect(result.notes).toEqual([
      {
        type: 'truncated',
        by: 'outputLimit',
        message: 'The structured answer was left out: it is longer than 500 characters of JSON.',
      },
    ]);
  });

  test('has 200,000 characters by default, or what its tool may have', async () => {
    expect((await limited(() => answer(199_000))).result.structured).toBeDefined();
    expect((await limited(() => answer(201_000))).result.structured).toBeUndefined();
    const structuredLimit = { byTool: { work: 300_000 } };
    expect((await limited(() => answer(201_000), { structuredLimit })).result.structured).toBeDefined();
  });

  test('is always whole where the tool declares what it answers', async () => {
    const { result, passed, given } = await limited(() => answer(300_000), {}, [], { type: 'object' });
    expect(result.structured).toEqual({ a: 'x'.repeat(300_000) });
    expect(passed).toBe(given);
  });
});

test('structured data that a layer made too deep for any stack is left out', async () => {
  const deepens: Middleware = named('deepens', async (call, next) => ({
    ...(await next(call)),
    structured: nested(100_000) as JsonValue,
  }));
  const { result } = await limited(() => 'a', {}, [deepens]);
  expect(result).toMatchObject({ isError: false, content: 'a', notes: [{ type: 'truncated' }] });
  expect('structured' in result).toBe(false);
});

test('whatever a tool answers, its text is within the limit and well-formed, and what was JSON is JSON', async () => {
  const part = fc.oneof(
    fc.record({ type: fc.constant('text'), text: fc.string({ unit: 'binary', maxLength: 80 }) }),
    fc.record({ type: fc.constant('resource_link'), uri: fc.string({ maxLength: 80 }) }),
    fc.record({ type: fc.constant('image'), mimeType: fc.string(), data: fc.uint8Array({ maxLength: 80 }) }),
  );
  const answer = fc.oneof(anything, fc.string({ unit: 'binary', maxLength: 200 }), fc.array(part, { maxLength: 5 }));
  const units = fc.constantFrom('characters' as const, 'bytes' as const);
  await fc.assert(
    fc.asyncProperty(
      answer,
      fc.nat(150),
      units,
      fc.constantFrom('head' as const, 'tail' as const, 'both' as const),
      async (given, extra, unit, keep) => {
        const limit = 5 + extra;
        const { result, given: whole } = await limited(() => given, {
          limit,
          unit,
          keep,
          mediaLimit: 50,
          structuredLimit: 50,
        });
        expect(result.error).toBeUndefined();
        const { content, structured } = result;
        const texts =
          typeof content === 'string'
            ? [content]
            : content.flatMap((each) => (each.type === 'text' ? [each.text] : []));
        expect(texts.every((each) => each.isWellFormed())).toBe(true);
        expect(texts.reduce((size, each) => size + sizeOf(each, unit), 0)).toBeLessThanOrEqual(limit);
        if (whole?.structured !== undefined && typeof whole.structured === 'object' && whole.structured !== null)
          expect(() => JSON.parse(String(content))).not.toThrow();
        if (structured !== undefined) expect(structured).toBe(whole?.structured);
      },
    ),
    { numRuns: 500 },
  );
});

test('fields of an outcome that nobody here knows survive', async () => {
  const adds: Middleware = named('adds', async (call, next) => ({ ...(await next(call)), cost: 5 }));
  const { result } = await limited(() => answerOf('x'.repeat(1000)), { limit: 50, structuredLimit: 10 }, [adds]);
  expect(result).toMatchObject({ cost: 5, notes: [{ type: 'truncated' }, { type: 'truncated' }] });
});

function raise(thrown: unknown): never {
  throw typeof thrown === 'string' ? new Error(thrown) : thrown;
}

function answerOf(content: string): ToolOutput {
  return ToolOutput.json({ content }, content);
}

test('I07: a cut answer does not keep the whole text alive', async () => {
  const { result } = await limited(() => 'x'.repeat(1_000_000), { limit: 1000 });
  expect(JSON.stringify(result).length).toBeLessThan(2000);
});

test('a frozen outcome is fine', async () => {
  const freezes: Middleware = named('freezes', async (call, next) => Object.freeze(await next(call)));
  expect((await limited(() => 'x'.repeat(100), { limit: 50 }, [freezes])).result.content).toHaveLength(50);
});

/** The result of a call of the first tool, whose answer is cut, and the dispatcher it was made with. */
async function stored(
  answer: unknown,
  options: OutputLimitOptions & { readonly store: ResultStore },
  tools: readonly Tool[] = [readResultTool(options.store)],
): Promise<ToolDispatchResult> {
  const work = defineTool({ name: 'work', description: 'Works.', execute: () => answer });
  const dispatcher = createDispatcher({ tools: [work, ...tools], middleware: [outputLimit(options)], context });
  return dispatcher.dispatch({ name: 'work' });
}

const context = new ToolContext({ sessionId: 'session' });

/** All of the text a store has under an id. */
async function keptIn(store: ResultStore, id: string): Promise<string> {
  const found = await store.read(id, 'session', { from: 0, length: 1_000_000_000 });
  return Buffer.from(found?.bytes ?? []).toString();
}

/** What the model is told to call to read on. */
function calledFor(content: Content): { readonly tool: string; readonly id: string; readonly from: number } {
  const [, tool = '', json = '{}'] = /call (\S+) with (\{"id":.*?\})\./.exec(textOf(content)) ?? [];
  return { tool, ...JSON.parse(json) };
}

describe('with a store, a text that is cut', () => {
  test('says how to read on, from where it was cut', async () => {
    const store = memoryStore();
    const { content, notes } = await stored(`first ${'€'.repeat(1000)} last`, { store, limit: 300, keep: 'head' });
    const { tool, id, from } = calledFor(content);
    const head = textOf(content).split('\n[…')[0] ?? '';
    expect(content).toMatch(
      /€\n\[… 8\d\d of 1011 characters left out\. To see them, call read_result with \{"id":"[\w-]{21}","from":\d+\}\.\]\n$/,
    );
    expect({ tool, from }).toEqual({ tool: 'read_result', from: Buffer.byteLength(head) });
    expect(await keptIn(store, id)).toBe(`first ${'€'.repeat(1000)} last`);
    expect(notes).toEqual([
      { type: 'truncated', by: 'outputLimit', message: 'The answer had 1011 characters; the limit is 300.' },
      { type: 'stored', by: 'outputLimit', message: `The whole text is kept as "${id}".` },
    ]);
  });

  test.each(['characters', 'bytes'] as const)(
    'goes on where it stopped, to the character, whichever %s it is cut at, and stays within the limit',
    async (unit) => {
      const parts = [says(`aé€${text}`), image(3), says(''), says(text), says('end')];
      const whole = [`aé€${text}`, text, 'end'].join('\n');
      for (let limit = 240; limit < 260; limit++) {
        const store = memoryStore();
        const content = (await stored(parts, { store, limit, unit, keep: 'head' })).content as readonly ContentPart[];
        expect(content.reduce((sum, part) => sum + sizeOf(textOf([part]), unit), 0)).toBeLessThanOrEqual(limit);
        expect(content[1]).toEqual(parts[1]);
        const { id, from } = calledFor(content);
        const head = textOf(content).split('\n[…')[0] ?? '';
        expect(head.length).toBeGreaterThan(0);
        const rest = await restIn(store, id, from);
        expect(`${head}${rest}`).toBe(whole);
      }
    },
  );

  test('goes on in the part where it stopped, with a newline between the parts', async () => {
    const store = memoryStore();
    const parts = ['a', 'b', 'c'].map((letter) => says(letter.repeat(100)));
    const { content } = await stored(parts, { store, limit: 260, keep: 'head' });
    const { id, from } = calledFor(content);
    const shown = textOf(content).split('\n[…')[0];
    expect(shown).toMatch(/^a{100}\nb{10,}$/);
    expect(`${shown}${await restIn(store, id, from)}`).toBe(textOf(parts));
  });

  test('is read from its beginning where only its end was kept', async () => {
    const { content } = await stored('x'.repeat(1000), { store: memoryStore(), limit: 300, keep: 'tail' });
    expect(calledFor(content).from).toBe(0);
  });

  test('stays JSON where it is JSON, and the model is told how to read on', async () => {
    const store = memoryStore();
    const rows = Array.from({ length: 1000 }, (_, id) => ({ id }));
    const result = await stored(rows, { store, limit: 100 });
    expect(JSON.parse(String(result.content))[0]).toEqual({ id: 0 });
    const { id, from } = calledFor(forModel(result));
    expect(from).toBe(0);
    expect(await keptIn(store, id)).toBe(JSON.stringify(rows));
    expect(forModel(result)).toContain('This is a shortened view of an answer of');
  });

  test('is told of in a note for the model where the limit has no room for the marker', async () => {
    for (let limit = 1; limit < 160; limit++) {
      const result = await stored('x'.repeat(1000), { store: memoryStore(), limit });
      expect(result.content.length).toBeLessThanOrEqual(limit);
      expect(calledFor(forModel(result))).toMatchObject({ tool: 'read_result', from: expect.any(Number) });
    }
  });

  test('is told of in a note for the model where the marker is the host’s', async () => {
    const result = await stored('x'.repeat(1000), { store: memoryStore(), limit: 300, marker: short });
    expect(result.content).toMatch(/^x+\[706\]x+$/);
    expect(calledFor(forModel(result))).toMatchObject({ tool: 'read_result', from: 0 });
  });

  test('is kept as valid Unicode', async () => {
    const store = memoryStore();
    const { content } = await stored(`\ud83d${'x'.repeat(1000)}`, { store, limit: 300 });
    expect(await keptIn(store, calledFor(content).id)).toBe(`\ufffd${'x'.repeat(1000)}`);
  });

  test('is kept in an error as well', async () => {
    const store = memoryStore();
    const soft = await stored(ToolOutput.error('x'.repeat(1000)), { store, limit: 300 });
    expect(await keptIn(store, calledFor(soft.content).id)).toBe('x'.repeat(1000));
    const hard = await stored(Promise.reject(new ToolFailure('x'.repeat(1000))), { store, limit: 300 });
    expect(await keptIn(store, calledFor(hard.content).id)).toBe('x'.repeat(1000));
    expect(hard.error?.message.length).toBeLessThanOrEqual(300);
  });

  test('leaves what the tool returned as it was', async () => {
    const answer = { content: [says('x'.repeat(1000)), image(3)], isError: false };
    const before = structuredClone(answer);
    await stored(answer, { store: memoryStore(), limit: 300 });
    expect(answer).toEqual(before);
  });

  test('is read on under the name the tool has among those of the call', async () => {
    const store = memoryStore();
    const name = async (tools: readonly Tool[]) =>
      calledFor((await stored('x'.repeat(1000), { store, limit: 300 }, tools)).content).tool;
    expect(await name([readResultTool(store, { name: 'more' })])).toBe('more');
    expect(await name(namespaced('results', [readResultTool(store)]))).toBe('results__read_result');
    expect(await name([readResultTool(memoryStore(), { name: 'other' }), readResultTool(store)])).toBe('read_result');
  });

  test('is kept, but not offered, where no tool of the call reads from the store', async () => {
    const store = memoryStore();
    for (const tools of [[], [readResultTool(memoryStore())]]) {
      const { content, notes } = await stored('x'.repeat(1000), { store, limit: 300 }, tools);
      expect(content).toBe(await contentOf('x'.repeat(1000), { limit: 300 }));
      const [, id = ''] = /kept as "(.*)"/.exec(notes[1]?.message ?? '') ?? [];
      expect(await keptIn(store, id)).toBe('x'.repeat(1000));
    }
  });

  test('is read on by the tool, page by page, to its end', async () => {
    const store = memoryStore();
    const log = Array.from({ length: 5000 }, (_, line) => `line ${line} 😀`).join('\n');
    const work = defineTool({ name: 'work', description: 'Works.', execute: () => log });
    const dispatcher = createDispatcher({
      tools: [work, readResultTool(store, { pageBytes: 7001 })],
      middleware: [validation(), outputLimit({ store, limit: 500, keep: 'head' })],
    });
    let { content } = await dispatcher.dispatch({ name: 'work' });
    let read = textOf(content).split('\n[…')[0];
    for (let { tool, ...input } = calledFor(content); tool !== ''; { tool, ...input } = calledFor(content)) {
      ({ content } = await dispatcher.dispatch({ name: tool, arguments: input }));
      read += textOf(content).replace(/\n\[Bytes .*\]$/, '');
    }
    expect(read).toBe(log);
  });

  test('has sessions of its own: another one is told to call the tool again', async () => {
    const store = memoryStore();
    const work = defineTool({ name: 'work', description: 'Works.', execute: () => 'x'.repeat(1000) });
    const dispatcher = createDispatcher({
      tools: [work, readResultTool(store)],
      middleware: [outputLimit({ store, limit: 300 })],
    });
    const { tool, ...input } = calledFor((await dispatcher.dispatch({ name: 'work' })).content);
    const call = { name: tool, arguments: input };
    expect((await dispatcher.dispatch(call)).isError).toBe(false);
    const other = await dispatcher.dispatch(call, { context: new ToolContext() });
    expect(other).toMatchObject({ isError: true, content: expect.stringContaining('Call the tool again') });
  });
});

describe('a store is not asked', () => {
  const store: ResultStore = { put: () => raise('asked'), read: () => raise('asked') };

  test.each<[string, unknown, OutputLimitOptions]>([
    ['for a text within the limit, however close', 'x'.repeat(300), { limit: 300 }],
    ['for one in bytes', '€'.repeat(100), { limit: 300, unit: 'bytes' }],
    ['for parts within it', [says('x'.repeat(150)), image(9), says('x'.repeat(150))], { limit: 300 }],
    ['for a text that is only put right', 'x\ud83d', {}],
    ['for media that are left out', [image(1000)], { mediaLimit: 10 }],
    ['for data that are left out', ToolOutput.json({ a: 'x'.repeat(1000) }, 'See the data.'), { structuredLimit: 10 }],
  ])('%s', async (_, answer, options) => {
    const { notes } = await stored(answer, { ...options, store });
    expect(notes.map(({ type }) => type)).not.toContain('not_stored');
  });
});

test.each<[string, ResultStore['put'], string]>([
  ['keeps', () => 'an id', 'The whole text is kept as "an id".'],
  ['is not waited for with', async () => 'an id', 'The whole text could not be kept: the call was aborted.'],
  ['may fail with', async () => raise('no'), 'The whole text could not be kept: the call was aborted.'],
])('a store %s the text of a call that was aborted', async (_, put, note) => {
  const controller = new AbortController();
  const work = defineTool({
    name: 'work',
    description: 'Works.',
    async *execute() {
      yield 'x'.repeat(1000);
      controller.abort();
      yield 'y';
    },
  });
  const middleware = [outputLimit({ store: { put, read: () => undefined }, limit: 300 })];
  const dispatcher = createDispatcher({ tools: [work], middleware });
  const { content, notes } = await dispatcher.dispatch({ name: 'work' }, { signal: controller.signal });
  expect(content).toMatch(/^x/);
  expect(notes?.map(({ message }) => message)).toContain(note);
});

test('a store may answer with anything that can be awaited', async () => {
  const put = () => ({ then: (resolve: (id: string) => void) => resolve('an id') });
  const store = { put, read: () => undefined } as unknown as ResultStore;
  expect(calledFor((await stored('x'.repeat(1000), { store, limit: 300 })).content).id).toBe('an id');
});

test('the store is told whose the text is', async () => {
  const owners: unknown[] = [];
  const store: ResultStore = { put: (_, owner) => String(owners.push(owner)), read: () => undefined };
  await stored('x'.repeat(1000), { store, limit: 300 });
  expect(owners).toEqual([{ sessionId: 'session', toolName: 'work', toolCallId: expect.any(String) }]);
});

test('whatever the id of a call is, or how often it comes, its text is kept by itself', async () => {
  const store = memoryStore();
  let run = 0;
  const work = defineTool({ name: 'work', description: 'Works.', execute: () => `${run++} ${'x'.repeat(1000)}` });
  const middleware = [outputLimit({ store, limit: 300 })];
  const dispatcher = createDispatcher({ tools: [work, readResultTool(store)], middleware, context });
  const ids = ['../x', '../x', 'a/b', '', undefined, '\0'];
  for (const [index, id] of ids.entries()) {
    const { content } = await dispatcher.dispatch({ name: 'work', ...(id !== undefined && { id }) });
    expect(await keptIn(store, calledFor(content).id)).toBe(`${index} ${'x'.repeat(1000)}`);
  }
});

describe('a store that fails costs no answer: one that', () => {
  const never = () => new Promise<never>(() => {});

  test.each<[string, () => unknown, string]>([
    ['throws', () => raise('secret'), 'the store failed'],
    ['rejects', () => Promise.reject(new Error('secret')), 'the store failed'],
    ['rejects with nothing', () => Promise.reject(), 'the store failed'],
    [
      'rejects as a full disk does',
      () => Promise.reject(Object.assign(new Error('secret'), { code: 'ENOSPC' })),
      'the store failed (ENOSPC)',
    ],
    ['has secrets in its codes', () => raise(Object.assign(new Error(), { code: 'secret' })), 'the store failed'],
    ['refuses', () => undefined, 'it is too large for the store'],
    ['refuses later', async () => undefined, 'it is too large for the store'],
    ['answers null', () => null, 'the store gave no valid id'],
    ['answers a number', async () => 5, 'the store gave no valid id'],
    ['answers no id', () => '', 'the store gave no valid id'],
    ['answers an id that is none', () => 'x'.repeat(201), 'the store gave no valid id'],
    ['answers half a character', () => '\ud83d', 'the store gave no valid id'],
    ['answers an id with a quote', () => 'a"b', 'the store gave no valid id'],
    ['answers an id with a backslash', () => 'a\\b', 'the store gave no valid id'],
    ['answers an id of two lines', () => 'a\nb', 'the store gave no valid id'],
    ['answers an id that is not ASCII', () => 'é', 'the store gave no valid id'],
    ['answers a hostile promise', () => ({ then: () => raise('secret') }), 'the store failed'],
  ])('%s', async (_, put, fault) => {
    const store = { put, read: () => undefined } as unknown as ResultStore;
    const result = await stored('x'.repeat(1000), { store, limit: 300 });
    expect(result.content).toBe(await contentOf('x'.repeat(1000), { limit: 300 }));
    expect(result.notes.slice(1)).toEqual([
      { type: 'not_stored', by: 'outputLimit', message: `The whole text could not be kept: ${fault}.`, forModel: true },
    ]);
    expect(JSON.stringify(result)).not.toContain('secret');
  });

  test('hangs is waited for five seconds, and leaves no timer', async () => {
    const clock = new ManualClock();
    const store = { put: never, read: () => undefined };
    const work = defineTool({ name: 'work', description: 'Works.', execute: () => 'x'.repeat(1000) });
    const tools = [work, readResultTool(store)];
    for (const [options, limitMs] of [
      [{}, 5000],
      [{ storeLimitMs: 20 }, 20],
    ] as const) {
      const middleware = [outputLimit({ store, limit: 300, ...options })];
      const pending = createDispatcher({ tools, middleware, clock }).dispatch({ name: 'work' });
      await clock.advance(limitMs - 1);
      expect(clock.pending).toBe(1);
      await clock.advance(1);
      expect(forModel(await pending)).toContain(
        `[The whole text could not be kept: the store took longer than ${limitMs} ms.]`,
      );
      expect(clock.pending).toBe(0);
    }
  });

  test('answers in time leaves no timer', async () => {
    const clock = new ManualClock();
    const kept = memoryStore();
    const store: ResultStore = { ...kept, put: async (text, owner) => kept.put(text, owner) };
    const work = defineTool({ name: 'work', description: 'Works.', execute: () => 'x'.repeat(1000) });
    const middleware = [outputLimit({ store, limit: 300 })];
    const { content } = await createDispatcher({
      tools: [work, readResultTool(store)],
      middleware,
      clock,
      context,
    }).dispatch({
      name: 'work',
    });
    expect(await keptIn(store, calledFor(content).id)).toBe('x'.repeat(1000));
    expect(clock.pending).toBe(0);
  });

  test('hangs holds up no call that is cancelled', async () => {
    const clock = new ManualClock();
    const { seen, look } = lookout();
    const controller = new AbortController();
    const store = { put: never, read: () => undefined };
    const work = defineTool({ name: 'work', description: 'Works.', execute: () => 'x'.repeat(1000) });
    const middleware = [look('passed'), outputLimit({ store, limit: 300 })];
    const pending = createDispatcher({ tools: [work], middleware, clock }).dispatch(
      { name: 'work' },
      { signal: controller.signal },
    );
    await turns();
    controller.abort();
    expect((await pending).content).toMatch(/^x/);
    expect(seen['passed']?.notes[1]?.message).toContain('the call was aborted');
    expect(clock.pending).toBe(0);
  });
});

test('a store that answers at once costs no promise', async () => {
  const store = memoryStore();
  let passed: unknown;
  const look: Middleware = named('look', (call, next) => {
    passed = next(call);
    return passed as ToolOutcome;
  });
  const work = defineTool({ name: 'work', description: 'Works.', execute: () => 'x'.repeat(1000) });
  await createDispatcher({ tools: [work], middleware: [look, outputLimit({ store, limit: 300 })] }).dispatch({
    name: 'work',
  });
  expect(passed).toMatchObject({ isError: false });
});

/** The rest of what a store has, from a byte that begins a character. */
async function restIn(store: ResultStore, id: string, from: number): Promise<string> {
  const found = await store.read(id, 'session', { from, length: 1_000_000_000 });
  return new TextDecoder('utf-8', { fatal: true }).decode(found?.bytes);
}

test.each([
  [{ limit: 0 }, /"limit" of outputLimit must be a whole number of at least 1, or Infinity; got 0/],
  [{ limit: 1.5 }, /"limit"/],
  [{ limit: { byTool: { work: -1 } } }, /"limit" .* for each tool/],
  [{ unit: 'tokens' }, /"unit" .* one of "characters", "bytes"/],
  [{ keep: 'middle' }, /"keep" .* one of "head", "tail", "both"/],
  [{ mediaLimit: -1 }, /"mediaLimit" .* at least 0, or Infinity/],
  [{ structuredLimit: Number.NaN }, /"structuredLimit"/],
  [{ marker: '…' }, /"marker" .* a function/],
  [{ store: {} }, /"store" .* a store, such as memoryStore\(\)/],
  [{ store: null }, /"store"/],
  [{ storeLimitMs: 0 }, /"storeLimitMs" .* milliseconds above 0/],
  [{ max: 1 }, /has no option "max"/],
])('the option %j is refused', (options, message) => {
  expect(() => outputLimit(options as OutputLimitOptions)).toThrow(message);
});
