import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createDispatcher, type Dispatcher, defineTool, type Marker, type StreamEvent, sizeOf } from 'toolonion';
import { memoryStore, type OutputLimitOptions, outputLimit, readResultTool } from 'toolonion/middleware';
import { turns } from '../support/manual-clock.ts';
import { image, text } from '../support/parts.ts';
import { bothWays, joined, normal, streamed } from '../support/streamed.ts';

function yielding(
  pieces: Iterable<unknown>,
  options: OutputLimitOptions,
  more: Parameters<typeof createDispatcher>[0] = {},
) {
  const tool = defineTool({
    name: 'tool',
    description: 'Yields.',
    execute: async function* () {
      yield* pieces;
    },
  });
  const { tools = [] } = more;
  return createDispatcher({ ...more, tools: [tool, ...tools], middleware: [outputLimit(options)] });
}

const run = (dispatcher: Dispatcher) => bothWays(dispatcher, { id: 'c1', name: 'tool' });
const lines = (count: number) => Array.from({ length: count }, (_, line) => `line ${line}\n`);

describe('a stream within the limit', () => {
  test('leaves as it comes', async () => {
    const { events, result, compared } = await run(yielding(['a', image, 'b', 'c'], {}));
    expect(events).toEqual([text('a'), image, text('b'), text('c')]);
    expect(result.notes).toEqual([]);
    expect(compared[0]).toEqual(compared[1]);
  });

  test('leaves whole where it is larger than what is sure to be kept, in the end', async () => {
    const pieces = ['x'.repeat(400), 'y'.repeat(300), 'z'.repeat(300)];
    const { events, result } = await run(yielding(pieces, { limit: 1000 }));
    expect(events).toEqual([text(pieces[0] as string), text(pieces.slice(1).join(''))]);
    expect(result).toMatchObject({ content: pieces.join(''), notes: [] });
  });
});

describe('a stream beyond the limit', () => {
  test.each(['head', 'both', 'tail'] as const)('with keep %s is what dispatch gives, piece by piece', async (keep) => {
    const { events, result, compared } = await run(yielding(lines(500), { limit: 1000, keep }));
    expect(compared[0]).toEqual(compared[1]);
    expect(joined(events)).toEqual(result.content);
    expect(String(result.content).length).toBeLessThanOrEqual(1000);
    expect(events.length > 1).toBe(keep !== 'tail');
  });

  test('lets its first piece leave at once, and the tool go on when nobody will get what it yields', async () => {
    let yields = 0;
    const pieces = (function* () {
      for (; yields < 300; ) yield `piece ${yields++}\n`;
    })();
    const stream = yielding(pieces, { limit: 600 }).stream({ name: 'tool' });
    expect((await stream.next()).value).toEqual(text('piece 0\n'));
    await turns();
    expect(yields).toBe(1);
    const { events, result } = await streamed(stream);
    expect(joined([text('piece 0\n'), ...events])).toEqual(result.content);
  });

  test('never cuts a character in half, wherever a piece ends', async () => {
    const halves = [...'ab😀cd😀'.repeat(60)].flatMap((character) => character.split(''));
    for (const unit of ['characters', 'bytes'] as const) {
      const { events, result, compared } = await run(yielding(halves, { limit: 300, unit }));
      expect(compared[0]).toEqual(compared[1]);
      expect(String(joined(events)).isWellFormed()).toBe(true);
      expect(sizeOf(String(result.content), unit)).toBeLessThanOrEqual(300);
    }
  });

  test('holds back what may be JSON until it is known to be none', async () => {
    const json = JSON.stringify(Array.from({ length: 200 }, (_, id) => ({ id })));
    const whole = await run(yielding(json.match(/.{1,20}/g) ?? [], { limit: 500 }));
    expect(whole.events).toEqual([text(whole.result.content as string)]);
    expect(() => JSON.parse(whole.result.content as string)).not.toThrow();

    const link = yielding(['[', 'a link](b) and', ' more'], { limit: 500 }).stream({ name: 'tool' });
    expect((await link.next()).value).toEqual(text('[a link](b) and'));
    expect((await link.next()).value).toEqual(text(' more'));

    const short = await run(yielding(['{"a":', '1}', image, 'x'], { limit: 1000 }));
    expect(short.events).toEqual([text('{"a":1}'), image, text('x')]);
  });

  test('replaces media there is no room for, at their place', async () => {
    const { events, result, compared } = await run(yielding(['a', image, image, 'b'], { mediaLimit: 10, limit: 1000 }));
    expect(events).toEqual([
      text('a'),
      image,
      text('[image of 8 bytes (image/png) left out: too large. Ask for a smaller one.]'),
      text('b'),
    ]);
    expect(joined(events)).toEqual(normal(result.content));
    expect(compared[0]).toEqual(compared[1]);
  });

  test('goes to the store, and its marker says where to read on', async () => {
    const store = memoryStore();
    const dispatcher = yielding(lines(200), { limit: 600, store }, { tools: [readResultTool(store)] });
    const { events, result } = await streamed(dispatcher.stream({ name: 'tool' }));
    expect(joined(events)).toBe(result.content);
    expect(result.content).toContain('call read_result with {"id":');
    expect(events.length).toBeGreaterThan(2);
    const [arguments_ = ''] = /\{.*\}/.exec(String(result.content)) ?? [];
    const page = await streamed(dispatcher.stream({ name: 'read_result', arguments: arguments_ }));
    expect(joined(page.events)).toBe(page.result.content);
    expect(page.result.notes).toEqual([]);
  });

  test('keeps room for the longest id a store may give', async () => {
    const store = { ...memoryStore(), put: () => '~'.repeat(200) };
    const more = { tools: [readResultTool(store)] };
    const { events, result } = await run(yielding(Array(9000).fill('x'), { limit: 3000, store }, more));
    expect(result.content).toContain(`{"id":"${'~'.repeat(200)}"`);
    expect(events.length).toBeGreaterThan(2);
    expect(joined(events)).toBe(result.content);
  });

  test('keeps room for a marker of the host that is shorter for huge numbers', async () => {
    const marker: Marker = (leftOut) => (leftOut < 1e6 ? `[${leftOut} characters left out]` : '[…]');
    const { events, result } = await run(yielding(Array(5000).fill('x'), { limit: 1000, keep: 'head', marker }));
    expect(result.content).toMatch(/x\[\d+ characters left out\]$/);
    expect(events.length).toBeGreaterThan(2);
    expect(joined(events)).toBe(result.content);
  });

  test('has room for what stands beside the words of one text, and none for that of texts which are joined', async () => {
    const beside = { annotations: { note: 'n'.repeat(300) } };
    const link = { type: 'resource_link', uri: `https://x.test/${'p'.repeat(500)}` };
    for (const words of ['a', 'abcd']) {
      const texts = [...words].map((word) => ({ ...text(word), ...beside }));
      const { events, result, compared } = await run(yielding([...texts, link, 'end'], { limit: 700 }));
      expect(events.some(({ type }) => type === 'resource_link')).toBe(words === 'abcd');
      expect(joined(events)).toEqual(normal(result.content));
      expect(compared[0]).toEqual(compared[1]);
    }
  });

  test('that fails half-way keeps the beginning and the failure', async () => {
    const dispatcher = yielding(
      (function* () {
        yield* lines(300);
        throw new Error('no');
      })(),
      { limit: 800 },
    );
    const { events, result } = await streamed(dispatcher.stream({ name: 'tool' }));
    expect(result).toMatchObject({ isError: true, error: { code: 'execution_failed' } });
    expect(result.content).toMatch(/^line 0\n[\s\S]*Tool "tool" failed\.[\s\S]*$/);
    expect(joined(events)).toBe(result.content);
  });
});

test('whatever is yielded, dispatch and stream give the same, and the parts are the content', async () => {
  const piece = fc.oneof(
    fc.string({ maxLength: 30, unit: 'binary' }),
    fc.constantFrom<unknown>(
      '{"a":[',
      '1,2',
      ']}',
      '[',
      image,
      { n: 1 },
      'é€😀',
      [text('x'), image],
      '\ud83d',
      '\ude00',
    ),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { maxLength: 30 }),
      fc.integer({ min: 1, max: 400 }),
      fc.constantFrom('head', 'both', 'tail'),
      fc.constantFrom('characters', 'bytes'),
      fc.constantFrom(0, 10, 1000),
      async (pieces, limit, keep, unit, mediaLimit) => {
        const { events, result, compared } = await run(yielding(pieces, { limit, keep, unit, mediaLimit }));
        expect(compared[0]).toEqual(compared[1]);
        const out = joined(events);
        expect(out).toEqual(normal(result.content));
        const size = (events as readonly StreamEvent[]).reduce(
          (sum, event) => sum + (event.type === 'text' ? sizeOf(event.text, unit) : 0),
          0,
        );
        expect(size).toBeLessThanOrEqual(limit);
      },
    ),
    { numRuns: 500 },
  );
});
