import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  createDispatcher,
  defineTool,
  type JsonObject,
  type Middleware,
  namespaced,
  type Tool,
  ToolContext,
  type ToolDispatchResult,
} from 'toolonion';
import {
  directoryStore,
  memoryStore,
  outputLimit,
  type ReadResultOptions,
  type ResultStore,
  readResultTool,
  validation,
} from 'toolonion/middleware';
import { directories } from '../support/directories.ts';

const directory = directories();
const context = new ToolContext({ sessionId: 'session' });

/** Calls the first of some tools, which reads from a store. */
function read(tools: readonly Tool[], input: JsonObject, middleware: readonly Middleware[] = [validation()]) {
  return createDispatcher({ tools, middleware, context }).dispatch({ name: tools[0]?.name ?? '', arguments: input });
}

async function put(store: ResultStore, text: string, sessionId = 'session'): Promise<string> {
  return String(await store.put(text, { sessionId, toolName: 'work', toolCallId: 'call' }));
}

/** What a page says of itself. */
interface Page {
  readonly text: string;
  readonly from: number;
  readonly to: number;
  readonly total: number;
  /** The arguments for the next page; undefined at the end. */
  readonly next: JsonObject | undefined;
}

const PAGE =
  /^(.*)\n\[Bytes (\d+) to (\d+) of (\d+)\. (?:To read on, call read_result with (\{.*\})|This is the end)\.\]$/s;

function pageIn({ content, error }: ToolDispatchResult): Page {
  expect(error).toBeUndefined();
  const [, text = '', from, to, total, next] = PAGE.exec(String(content)) ?? [];
  return { text, from: Number(from), to: Number(to), total: Number(total), next: next && JSON.parse(next) };
}

async function pages(store: ResultStore, id: string, pageBytes: number): Promise<readonly Page[]> {
  const tools = [readResultTool(store, { pageBytes })];
  const all: Page[] = [];
  for (let next: JsonObject | undefined = { id }; next !== undefined; ) {
    const page = pageIn(await read(tools, next, []));
    all.push(page);
    next = page.next;
  }
  return all;
}

const anyText = fc.string({ unit: 'binary', maxLength: 60 }).map((text) => text.toWellFormed());

describe.each<[string, () => ResultStore]>([
  ['memoryStore', memoryStore],
  ['directoryStore', () => directoryStore(directory())],
])('pages from a %s', (_, make) => {
  test('have every character once, none cut in half, whatever their size', async () => {
    const store = make();
    await fc.assert(
      fc.asyncProperty(anyText, fc.integer({ min: 1, max: 40 }), async (text, pageBytes) => {
        const all = await pages(store, await put(store, text), pageBytes);
        expect(all.map((page) => page.text).join('')).toBe(text);
        for (const [index, page] of all.entries()) {
          expect(page.from).toBe(all[index - 1]?.to ?? 0);
          expect(Buffer.byteLength(page.text)).toBe(page.to - page.from);
          expect(page.to - page.from).toBeLessThan(pageBytes + 4);
          if (page.total > 0) expect(page.to).toBeGreaterThan(page.from);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('have every character once, too, where the model counts for itself and hits the middle of one', async () => {
    const store = make();
    await fc.assert(
      fc.asyncProperty(anyText, fc.integer({ min: 1, max: 40 }), async (text, bytes) => {
        const id = await put(store, text);
        let all = '';
        for (let from = 0; from < Buffer.byteLength(text); from += bytes)
          all += pageIn(await read([readResultTool(store)], { id, from, bytes }, [])).text;
        expect(all).toBe(text);
      }),
      { numRuns: 60 },
    );
  });

  test('have a byte order mark like any other character, wherever it stands', async () => {
    const store = make();
    const text = '\ufeffa\ufeff\ufeffb';
    const all = await pages(store, await put(store, text), 4);
    expect(all.map((page) => page.text)).toEqual(['\ufeffa', '\ufeff\ufeff', 'b']);
  });

  test('of one line of 5 MB are read from any place', async () => {
    const store = make();
    const id = await put(store, `${'x'.repeat(5_000_000)}😀end`);
    const page = pageIn(await read([readResultTool(store)], { id, from: 4_999_999 }));
    expect(page).toEqual({ text: 'x😀end', from: 4_999_999, to: 5_000_007, total: 5_000_007, next: undefined });
  });

  test('have 20,000 bytes, or fewer if so many are asked for', async () => {
    const store = make();
    const id = await put(store, 'x'.repeat(50_000));
    expect(pageIn(await read([readResultTool(store)], { id }))).toMatchObject({
      to: 20_000,
      total: 50_000,
      next: { id, from: 20_000 },
    });
    expect(pageIn(await read([readResultTool(store)], { id, bytes: 5 }))).toMatchObject({ text: 'xxxxx', to: 5 });
  });

  test('are counted from the end where "from" is negative', async () => {
    const store = make();
    const id = await put(store, 'first €last');
    const at = async (from: number) => pageIn(await read([readResultTool(store)], { id, from }));
    expect(await at(-4)).toMatchObject({ text: 'last', from: 9, to: 13, next: undefined });
    // In the middle of a character: it begins before.
    expect(await at(-5)).toMatchObject({ text: 'last', from: 9 });
    expect(await at(-7)).toMatchObject({ text: '€last', from: 6 });
    expect(await at(-1_000_000)).toMatchObject({ text: 'first €last', from: 0 });
    expect(await at(-Number.MAX_VALUE)).toMatchObject({ from: 0 });
  });

  test('are empty beyond the end, and say so', async () => {
    const store = make();
    const id = await put(store, 'abc');
    for (const from of [3, 4, Number.MAX_VALUE])
      expect(pageIn(await read([readResultTool(store)], { id, from }))).toEqual({
        text: '',
        from: 3,
        to: 3,
        total: 3,
        next: undefined,
      });
  });

  test('of another session, or under an id there is not, are a failure that says what to do', async () => {
    const store = make();
    const tools = [readResultTool(store)];
    const foreign = await put(store, 'secret', 'other');
    for (const id of [foreign, '', '../x', 'a\0b', `${foreign}\n`, 'x'.repeat(1_000_000)]) {
      for (const from of [0, -5]) {
        const { content, error } = await read(tools, { id, from });
        expect(error).toMatchObject({ code: 'execution_failed', retryable: false });
        expect(content).toMatch(
          /^There is no result ".{0,80}" to read, or no longer\. Call the tool again that gave it\.$/,
        );
      }
    }
  });
});

test.each([
  {},
  { id: 5 },
  { id: 'x', bytes: 0 },
  { id: 'x', bytes: 1e9 },
  { id: 'x', bytes: 'many' },
  { id: 'x', from: 0.5 },
])('the arguments %j are refused', async (input) => {
  expect((await read([readResultTool(memoryStore())], input)).error?.code).toBe('invalid_arguments');
});

test('without a layer that checks arguments, a page is neither larger than allowed nor empty', async () => {
  const store = memoryStore();
  const tools = [readResultTool(store, { pageBytes: 5 })];
  const id = await put(store, 'x'.repeat(100));
  expect(pageIn(await read(tools, { id, bytes: 1e9 }, []))).toMatchObject({ to: 5 });
  for (const bytes of [0, -5]) expect(pageIn(await read(tools, { id, bytes }, []))).toMatchObject({ to: 1 });
  for (const input of [{ id, bytes: 'x' }, { id, from: 'x' }, { id, bytes: 1.5 }, { id: 5 }, {}])
    expect((await read(tools, input, [])).error?.code).toBe('execution_failed');
});

test.each<[string, () => unknown]>([
  ['throws', () => raise('secret')],
  ['rejects', () => Promise.reject(new Error('secret'))],
  ['answers null', () => null],
  ['answers text', () => 'secret'],
  ['answers an empty object', () => ({})],
  ['answers fewer bytes than there are', () => ({ bytes: new Uint8Array(3), total: 10 })],
  ['answers more bytes than there are', () => ({ bytes: new Uint8Array(10), total: 3 })],
  ['answers no number of bytes', () => ({ bytes: new Uint8Array(3), total: Number.NaN })],
  ['answers no bytes', () => ({ bytes: { length: 3 }, total: 3 })],
])('a store that %s fails the call that reads, and tells nothing', async (_, answer) => {
  const store = { put: () => 'x', read: answer } as unknown as ResultStore;
  for (const from of [0, -5]) {
    const { error, content } = await read([readResultTool(store)], { id: 'x', from });
    expect(error?.code).toBe('execution_failed');
    expect(content).not.toContain('secret');
  }
});

test('the tool may be run without asking, again, and beside others', () => {
  expect(readResultTool(memoryStore())).toMatchObject({
    name: 'read_result',
    readOnly: true,
    idempotent: true,
    concurrencySafe: true,
  });
});

test('a page names the tool it came from, under whatever name', async () => {
  const store = memoryStore();
  const id = await put(store, 'abc');
  const reader = readResultTool(store, { name: 'more', pageBytes: 1 });
  expect((await read([reader], { id })).content).toContain(`call more with {"id":"${id}","from":1}`);
  expect((await read(namespaced('results', [reader]), { id })).content).toContain('call results__more with');
});

test('outputLimit leaves its pages alone, however small the limit is, and under another name as well', async () => {
  const store = memoryStore();
  const id = await put(store, 'x'.repeat(1000));
  const reader = readResultTool(store);
  for (const tools of [[reader], namespaced('results', [reader])]) {
    for (const options of [{ limit: 10 }, { limit: 10, store }, { limit: 10, store: memoryStore() }]) {
      const { content, notes } = await read(tools, { id }, [outputLimit(options)]);
      expect(content).toMatch(/^x{1000}\n\[Bytes 0 to 1000 of 1000\. This is the end\.\]$/);
      expect(notes).toEqual([]);
    }
  }
});

test('outputLimit cuts what another tool answers in the place of the reader', async () => {
  const reader = readResultTool(memoryStore());
  const work = defineTool({ name: 'work', description: 'Works.', execute: () => 'x'.repeat(1000) });
  const reroutes: Middleware = (call, next) => next(call.with({ tool: work }));
  const { content } = await read([reader], { id: 'x' }, [outputLimit({ limit: 10 }), reroutes]);
  expect(content).toHaveLength(10);
});

test.each([
  [{ pageBytes: 0 }, '"pageBytes" of readResultTool'],
  [{ pageBytes: Infinity }, '"pageBytes"'],
  [{ name: '' }, 'The name of a tool'],
  [{ size: 1 }, 'no option "size"'],
])('the option %j is refused', (options, message) => {
  expect(() => readResultTool(memoryStore(), options as ReadResultOptions)).toThrow(message);
});

test.each([undefined, null, 'x', {}, { put: () => '' }])('%p is refused as a store', (store) => {
  expect(() => readResultTool(store as unknown as ResultStore)).toThrow('a store, such as memoryStore()');
});

function raise(message: string): never {
  throw new Error(message);
}
