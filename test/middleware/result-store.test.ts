import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { directoryStore, memoryStore, type ResultStore, type RetentionOptions } from 'toolonion/middleware';
import { directories } from '../support/directories.ts';
import { ManualClock } from '../support/manual-clock.ts';

const directory = directories();
const owner = { sessionId: 'session', toolName: 'work', toolCallId: 'call' };

const makers: Readonly<Record<string, (options?: RetentionOptions) => ResultStore>> = {
  memoryStore,
  directoryStore: (options) => directoryStore(directory(), options),
};

async function put(store: ResultStore, text: string): Promise<string> {
  return String(await store.put(text, owner));
}

/** The text that is kept under an id; undefined where there is none. */
async function kept(store: ResultStore, id: string, sessionId = 'session'): Promise<string | undefined> {
  const found = await store.read(id, sessionId, { from: 0, length: 1_000_000_000 });
  return found && Buffer.from(found.bytes).toString();
}

/** Which of some ids can still be read. */
async function readable(store: ResultStore, ids: readonly string[]): Promise<readonly boolean[]> {
  return Promise.all(ids.map(async (id) => (await kept(store, id)) !== undefined));
}

describe.each(Object.entries(makers))('%s', (name, make) => {
  test('gives back every byte of what was put there, by any ranges', async () => {
    const store = make();
    const text = fc.string({ unit: 'binary', maxLength: 60 }).map((each) => each.toWellFormed());
    await fc.assert(
      fc.asyncProperty(text, fc.nat(70), fc.nat(70), async (given, from, length) => {
        const bytes = Buffer.from(given);
        const id = await put(store, given);
        const found = await store.read(id, 'session', { from, length });
        expect(found?.total).toBe(bytes.length);
        expect(Buffer.from(found?.bytes ?? [])).toEqual(bytes.subarray(from, from + length));
      }),
      { numRuns: 100 },
    );
  });

  test('has no bytes beyond the end, and none in an empty range', async () => {
    const store = make();
    const id = await put(store, 'abc');
    for (const range of [
      { from: 3, length: 5 },
      { from: 1e300, length: 5 },
      { from: 1, length: 0 },
    ])
      expect(await store.read(id, 'session', range)).toEqual({ bytes: new Uint8Array(), total: 3 });
    expect(await kept(store, await put(store, ''))).toBe('');
  });

  test('keeps a text with half a character as valid UTF-8', async () => {
    const store = make();
    expect(await kept(store, await put(store, 'a\ud83d'))).toBe('a\ufffd');
  });

  test('gives a result to no other session', async () => {
    const store = make();
    const id = await put(store, 'secret');
    for (const sessionId of ['', 'Session', 'session ', '../session', 'other'])
      expect(await kept(store, id, sessionId)).toBeUndefined();
    expect(await kept(store, id)).toBe('secret');
  });

  test('tells sessions apart whose ids are half a character', async () => {
    const store = make();
    const id = String(await store.put('secret', { ...owner, sessionId: '\ud800' }));
    for (const sessionId of ['\ud801', '\ufffd', '\\ud800']) expect(await kept(store, id, sessionId)).toBeUndefined();
    expect(await kept(store, id, '\ud800')).toBe('secret');
  });

  test.each([
    '',
    '.',
    '..',
    '../x',
    '/etc/passwd',
    'a\0b',
    '*',
    '__proto__',
    'constructor',
    'V1StGXR8_Z5jdHi6B-myT',
    '\ud83d',
    'x'.repeat(10_000_000),
  ])('has nothing under an id it has not given', async (id) => {
    const store = make();
    await put(store, 'abc');
    expect(await kept(store, id)).toBeUndefined();
  });

  test('gives ids that have nothing to do with the call, so that those of a thousand calls with the same id differ', async () => {
    const store = make();
    const ids = await Promise.all(
      Array.from({ length: 1000 }, async (_, index) =>
        store.put(`text ${index}`, { sessionId: '../s', toolName: 'a/b', toolCallId: '../x' }),
      ),
    );
    expect(new Set(ids).size).toBe(1000);
    for (const id of ids) expect(id).toMatch(/^[\w-]{21}$/);
    expect(await kept(store, String(ids[0]), '../s')).toBe('text 0');
    expect(await kept(store, String(ids[999]), '../s')).toBe('text 999');
  });

  test('does not let a reader change what is kept', async () => {
    const store = make();
    const id = await put(store, 'abc');
    const found = await store.read(id, 'session', { from: 0, length: 3 });
    found?.bytes.fill(0);
    expect(await kept(store, id)).toBe('abc');
  });

  test('has so many results at most, and the oldest goes first', async () => {
    const store = make({ maxResults: 2, now: () => 5 });
    const ids = [];
    for (const text of ['a', 'b', 'c', 'd']) ids.push(await put(store, text));
    expect(await readable(store, ids)).toEqual([false, false, true, true]);
  });

  test('has so many bytes at most, of UTF-8', async () => {
    const store = make({ maxBytes: 10 });
    const ids = [await put(store, 'aaa'), await put(store, '€€'), await put(store, 'b')];
    expect(await readable(store, ids)).toEqual([true, true, true]);
    ids.push(await put(store, 'c'));
    expect(await readable(store, ids)).toEqual([false, true, true, true]);
    ids.push(await put(store, 'x'.repeat(10)));
    expect(await readable(store, ids)).toEqual([false, false, false, false, true]);
  });

  test('takes no text that is larger than all it may have, and loses none for it', async () => {
    const store = make({ maxBytes: 10 });
    const id = await put(store, 'abc');
    expect(await store.put('€€€€', owner)).toBeUndefined();
    expect(await kept(store, id)).toBe('abc');
  });

  test('has a result so many milliseconds, whether or not another one comes', async () => {
    const clock = new ManualClock();
    const store = make({ maxAgeMs: 1000, now: clock.now });
    clock.jump(1);
    const id = await put(store, 'abc');
    clock.jump(1000);
    expect(await kept(store, id)).toBe('abc');
    clock.jump(1);
    expect(await kept(store, id)).toBeUndefined();
    await put(store, 'def');
    clock.jump(-1);
    expect(await kept(store, id)).toBeUndefined();
  });

  test('may be without limits', async () => {
    const store = make({ maxBytes: Infinity, maxAgeMs: Infinity, maxResults: Infinity });
    expect(await kept(store, await put(store, 'abc'))).toBe('abc');
  });

  test.each([
    [{ maxBytes: 0 }, '"maxBytes"'],
    [{ maxAgeMs: 0.5 }, '"maxAgeMs"'],
    [{ maxResults: -1 }, '"maxResults"'],
    [{ now: 5 }, '"now"'],
    [{ ttl: 1 }, 'no option "ttl"'],
  ])('refuses the option %j', (options, message) => {
    expect(() => make(options as RetentionOptions)).toThrow(message);
    expect(() => make(options as RetentionOptions)).toThrow(name);
  });
});

test('memoryStore answers at once', () => {
  const store = memoryStore();
  const id = store.put('abc', owner) as string;
  expect(store.read(id, 'session', { from: 1, length: 1 })).toEqual({ bytes: new Uint8Array([98]), total: 3 });
});
