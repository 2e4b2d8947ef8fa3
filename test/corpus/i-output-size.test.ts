import { describe, expect, test } from '@jest/globals';
import {
  type ContentPart,
  createDispatcher,
  defineTool,
  forModel,
  type JsonSchema,
  type Marker,
  PermissionCheck,
  sizeOf,
  type ToolDispatchResult,
  ToolFailure,
  ToolOutput,
  textOf,
} from 'toolonion';
import { allowAll, type OutputLimitOptions, standard } from 'toolonion/middleware';
import { ManualClock } from '../support/manual-clock.ts';

/** What becomes of a tool's answer in the usual onion. */
async function answered(
  execute: () => unknown,
  outputLimit: OutputLimitOptions = {},
  outputSchema?: JsonSchema,
): Promise<ToolDispatchResult> {
  const tool = defineTool({ name: 'work', description: 'Works.', ...(outputSchema && { outputSchema }), execute });
  const clock = new ManualClock();
  const middleware = standard({ permission: { check: allowAll }, logging: false, outputLimit });
  const result = await createDispatcher({ tools: [tool], middleware, clock }).dispatch({ name: 'work' });
  expect(clock.pending).toBe(0);
  return result;
}

const text = (length: number) => 'x'.repeat(length);
const says = (said: string): ContentPart => ({ type: 'text', text: said });
const short: Marker = (leftOut) => `[${leftOut}]`;
const REMEDY = 'ask for less at a time: narrower arguments, a page, a range.';

/** Ways in which tools answer with 20 million characters. */
const huge: readonly (readonly [style: string, execute: () => unknown])[] = [
  ['returns', () => text(20e6)],
  ['resolves', async () => text(20e6)],
  [
    'yields',
    async function* () {
      for (let step = 0; step < 20; step++) yield text(1e6);
    },
  ],
  ['answers in parts', () => Array.from({ length: 20 }, () => says(text(1e6)))],
  ['tells of a failure itself', () => ToolOutput.error(text(20e6))],
  [
    'fails with',
    () => {
      throw new ToolFailure(text(20e6));
    },
  ],
  ['passes on another result', () => ({ content: [says(text(20e6))], isError: false })],
];

describe('one limit for all tools', () => {
  test.each(huge)(
    'I01: no answer is longer than the limit, though a tool %s 20 million characters',
    async (_, execute) => {
      const result = await answered(execute);
      const { content } = result;
      const said = typeof content === 'string' ? content : content.map((part) => textOf([part])).join('');
      expect(said.length).toBeLessThanOrEqual(50_000);
      expect(said.length).toBeGreaterThan(49_900);
      expect(said).toMatch(/\d+ of 20000000 characters left out/);
      expect(result.notes).toContainEqual({
        type: 'truncated',
        by: 'outputLimit',
        message: 'The answer had 20000000 characters; the limit is 50000.',
      });
      expect(JSON.stringify(result).length).toBeLessThan(200_000);
    },
  );

  test('I01: a tool may have a limit of its own', async () => {
    const limit = { default: 100, byTool: { 'wor*': 1000 } };
    expect((await answered(() => text(1000), { limit })).content).toBe(text(1000));
    const cut = (await answered(() => text(1100), { limit })).content;
    expect(cut).toMatch(/^x{400,}\n\[… \d+ of 1100 .*\]\nx{400,}$/);
    expect(cut.length).toBeLessThanOrEqual(1000);
  });

  test('I01: answers of calls that run at once are each cut to the limit', async () => {
    const tool = defineTool({ name: 'work', description: 'Works.', execute: async () => text(100_000) });
    const middleware = standard({ permission: { check: allowAll }, logging: false });
    const dispatcher = createDispatcher({ tools: [tool], middleware, clock: new ManualClock() });
    const results = await dispatcher.dispatchAll([{ name: 'work' }, { name: 'work' }]);
    expect(results.map(({ content }) => content.length <= 50_000 && content.length > 49_900)).toEqual([true, true]);
  });
});

/** Text with characters of one to four bytes, and with halves of some. */
const mixed = `${'a'.repeat(9)}\u{1F98A} ü漢👨‍👩‍👧 \ud83e${'\u{1F98A}é'.repeat(30)}\udd8a`;

test.each([
  ['head', 'characters'],
  ['head', 'bytes'],
  ['tail', 'characters'],
  ['tail', 'bytes'],
  ['both', 'characters'],
  ['both', 'bytes'],
] as const)('I02: a text is well-formed and within the limit at every cut point: %s, %s', async (keep, unit) => {
  for (let limit = 1; limit <= sizeOf(mixed, unit) + 1; limit++) {
    for (const answer of [mixed, [says(mixed.slice(0, 40)), says(mixed.slice(40))]]) {
      const { content } = await answered(() => answer, { keep, unit, limit, marker: short });
      const texts = typeof content === 'string' ? [content] : content.map((part) => textOf([part]));
      expect(texts.every((each) => each.isWellFormed())).toBe(true);
      expect(texts.reduce((size, each) => size + sizeOf(each, unit), 0)).toBeLessThanOrEqual(limit);
    }
  }
});

test('I02: half a character that was in the answer is put right, in an error’s message too', async () => {
  expect((await answered(() => 'fox \ud83e')).content).toBe('fox \ufffd');
  const failed = await answered(() => {
    throw new ToolFailure('fox \udd8a');
  });
  expect(failed).toMatchObject({ content: 'fox \ufffd', error: { message: 'fox \ufffd' } });
});

test('I03: the last line of a long log is kept, with its first', async () => {
  const log = `Building\n${'compiling a file\n'.repeat(6000)}FAILED: main.c, line 7`;
  expect((await answered(() => log)).content).toMatch(
    /^Building\ncompiling[\s\S]*left out[\s\S]*\nFAILED: main\.c, line 7$/,
  );
  expect((await answered(() => log, { keep: 'tail' })).content).toMatch(/^\n\[… [\s\S]*FAILED: main\.c, line 7$/);
  expect((await answered(() => log, { keep: 'head' })).content).toMatch(/^Building[\s\S]*a range\.\]\n$/);
});

const rows = Array.from({ length: 10_000 }, (_, id) => ({ id, name: `row ${id}` }));

test.each<[string, unknown, string]>([
  ['one huge text', [{ big: text(1e6) }], 'more characters'],
  ['ten thousand rows', rows, 'more items'],
  ['ten thousand keys', Object.fromEntries(rows.map(({ id, name }) => [name, id])), 'more keys'],
  ['rows in an object', { total: 10_000, rows }, 'more items'],
  ['JSON a tool wrote itself', JSON.stringify(rows, null, 2), 'more items'],
  ['escapes', ['\u0000"\\\n'.repeat(10_000)], 'more characters'],
  ['characters of four bytes', ['\u{1F98A}'.repeat(10_000)], 'more characters'],
])('I04: JSON that is too long stays JSON, and says what is missing: %s', async (_, answer, says) => {
  const whole = typeof answer === 'string' ? JSON.parse(answer) : answer;
  for (const unit of ['characters', 'bytes'] as const) {
    const result = await answered(() => answer, { limit: 1000, unit });
    const content = String(result.content);
    expect(sizeOf(content, unit)).toBeLessThanOrEqual(1000);
    expect(Array.isArray(JSON.parse(content))).toBe(Array.isArray(whole));
    expect(content).toContain(says);
    expect(result.notes).toContainEqual(expect.objectContaining({ type: 'truncated', forModel: true }));
    expect(forModel(result)).toContain(REMEDY);
  }
});

test('I04: data for programs is whole or not there', async () => {
  const small = await answered(() => rows.slice(0, 1000), { limit: 100 });
  expect(small.structured).toEqual(rows.slice(0, 1000));
  const large = await answered(() => rows);
  expect(large).not.toHaveProperty('structured');
  expect(large.notes).toContainEqual(
    expect.objectContaining({ message: expect.stringContaining('left out: it is longer') }),
  );
  const declared = await answered(() => rows, {}, { type: 'array' });
  expect(declared.structured).toEqual(rows);
});

/** 200,000 characters of base64, which are 150,000 bytes. */
const base64 = Buffer.alloc(150_000, 7).toString('base64');
const screenshot = { type: 'image', mimeType: 'image/png', data: base64 } as const;

test('I05: a picture beside a text is measured by its bytes, never cut, and replaced whole where it is too large', async () => {
  expect((await answered(() => [screenshot, says('Done.')])).content).toEqual([screenshot, says('Done.')]);
  expect((await answered(() => [screenshot, says('Done.')], { limit: 5 })).content).toEqual([
    screenshot,
    says('Done.'),
  ]);
  const { content, notes } = await answered(() => [screenshot, says('Done.')], { mediaLimit: 149_999 });
  expect(content).toEqual([
    says('[image of 150000 bytes (image/png) left out: too large. Ask for a smaller one.]'),
    says('Done.'),
  ]);
  expect(notes).toEqual([{ type: 'truncated', by: 'outputLimit', message: 'Parts left out whole: 1.' }]);
});

test.each<[string, object]>([
  ['raw bytes', { type: 'audio', mimeType: 'audio/wav', data: new Uint8Array(2000) }],
  ['an address that holds them', { type: 'video', url: `data:video/mp4;base64,${text(2000)}` }],
  ['a name', { ...screenshot, data: 'AAAA', name: text(2000) }],
  ['a link’s description', { type: 'resource_link', uri: 'file:///a', description: text(2000) }],
])('I05: nothing large passes as %s', async (_, part) => {
  const result = await answered(() => [part], { limit: 1000, mediaLimit: 1000 });
  expect(result.content).toEqual([says(expect.stringContaining('left out: too large') as unknown as string)]);
});

test('I06: a picture that stands in the data as well is not told to the model as text', async () => {
  const both = () => ({ content: [screenshot], isError: false, structured: { picture: base64 } });
  const whole = await answered(both);
  expect(forModel(whole)).toEqual([screenshot]);
  expect(whole).not.toHaveProperty('structured');
  const cut = await answered(() => ({ picture: base64, size: 3 }), { limit: 1000 });
  expect(String(forModel(cut)).length).toBeLessThan(1200);
  expect(JSON.parse(String(cut.content))).toMatchObject({ size: 3 });
});

test('I07: nothing of a cut answer is kept beside it', async () => {
  const result = await answered(() => text(80_000), { limit: 10_000 });
  expect(JSON.stringify(result).length).toBeLessThan(11_000);
  const failed = await answered(
    () => {
      throw new ToolFailure(text(80_000), { cause: new Error(text(80_000)) });
    },
    { limit: 1000 },
  );
  expect(JSON.stringify(failed).length).toBeLessThan(3000);
});

test('I08: bytes are described, not shown, where the host takes none', async () => {
  const limits = { mediaLimit: 0 };
  const described = (kind: string) => [
    says(`[file of 3000 bytes (${kind}) left out: too large. Ask for a smaller one.]`),
  ];
  for (const bytes of [
    Buffer.alloc(3000),
    new Uint8Array(3000),
    new ArrayBuffer(3000),
    new DataView(new ArrayBuffer(3000)),
  ])
    expect((await answered(() => bytes, limits)).content).toEqual(described('application/octet-stream'));
  const zip = { type: 'file', mimeType: 'application/zip', data: new Uint8Array(3000) };
  expect((await answered(() => zip, limits)).content).toEqual(described('application/zip'));
});

test('I08: where the caller says what the model can be shown, anything else is described: its kind and its bytes', async () => {
  const zip = { type: 'file', mimeType: 'application/zip', data: Buffer.alloc(3000).toString('base64') };
  const result = await answered(() => ({ content: [screenshot, zip], structured: { files: 1 } }));
  const described = says('[file of 3000 bytes (application/zip) left out: it cannot be shown here.]');
  expect(forModel(result, { accepts: ['image'] })).toEqual([screenshot, described]);
  expect(forModel(result, { accepts: ['image', 'application/*'] })).toBe(result.content);
  expect(forModel(result)).toBe(result.content);
  expect(result).toMatchObject({ content: [screenshot, zip], structured: { files: 1 } });
});

test('I08: bytes that a tool embeds are a file like any other', async () => {
  const blob = 'A'.repeat(40_000);
  const resource = { uri: 'file:///a', mimeType: 'application/zip', blob };
  const embedding = () => ({ content: [{ type: 'resource', resource }] });
  const whole = await answered(embedding, { limit: 1000 });
  expect(whole.content).toEqual([{ type: 'file', name: 'file:///a', mimeType: 'application/zip', data: blob }]);
  const replaced = await answered(embedding, { mediaLimit: 0 });
  expect(JSON.stringify(replaced.content)).toMatch(/file of 30000 bytes \(application\/zip\) named .* left out/);
});

test('I09: what stands for what was left out says how much it is and how to get it, in the host’s words if it has some', async () => {
  const { content } = await answered(() => text(100_000), { keep: 'head' });
  expect(content).toMatch(
    /x\n\[… 50\d{3} of 100000 characters left out\. To see them, ask for less at a time: .*\]\n$/,
  );
  const marker: Marker = (leftOut, total, unit) => `<${leftOut}/${total} ${unit}, use offset>`;
  const own = await answered(() => text(100), { limit: 50, keep: 'head', unit: 'bytes', marker });
  expect(own.content).toBe(`${text(23)}<77/100 bytes, use offset>`);
});

test.each<[string, Marker]>([
  [
    'throws',
    () => {
      throw new Error('no marker');
    },
  ],
  ['gives no text', () => undefined as never],
  ['gives more text than the limit', () => text(10_000)],
])('I09: an answer is cut to the limit though the host’s marker %s', async (_, marker) => {
  const result = await answered(() => text(1000), { limit: 300, marker });
  expect(result.isError).toBe(false);
  expect(result.content.length).toBeGreaterThan(290);
  expect(result.content.length).toBeLessThanOrEqual(300);
});

test.each([['{"id":1234567890123456789,"t":"x"}'], ['{"n":1E400}'], ['{"n":123456789012345678901234567890}']])(
  'I04: JSON with a number that would become another one is cut as text: %s',
  async (row) => {
    const { content } = await answered(() => `[${Array(3000).fill(row).join(',')}]`, { limit: 1000 });
    expect(content).toContain(row);
    expect(String(content).length).toBeLessThanOrEqual(1000);
  },
);

test('I02: what the engine and its layers say is well-formed, and so is what is sent of parts', async () => {
  const half = 'half \ud83d';
  const link = { type: 'resource_link', uri: 'file:///a', name: half, mimeType: half, description: half };
  const sent = forModel(await answered(() => [link], {}));
  expect(JSON.stringify(sent)).not.toContain('\\ud83d');
  const tool = defineTool({ name: 'work', description: '…', execute: (_, call) => call.suspend({ reason: half }) });
  const waiting = await createDispatcher({ tools: [tool] }).dispatch({ name: 'work' });
  const middleware = standard({ logging: false, permission: { check: () => PermissionCheck.deny(half) } });
  const denied = await createDispatcher({ tools: [tool], middleware }).dispatch({ name: 'work' });
  for (const { content } of [waiting, denied]) expect(String(content).isWellFormed()).toBe(true);
});
