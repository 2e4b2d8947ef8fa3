import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { directoryStore, type ResultStore } from 'toolonion/middleware';
import { directories } from '../support/directories.ts';
import { ManualClock } from '../support/manual-clock.ts';

const directory = directories();
const owner = { sessionId: 'session', toolName: 'work', toolCallId: 'call' };
const HOUR_MS = 3_600_000;

async function put(store: ResultStore, text: string): Promise<string> {
  return String(await store.put(text, owner));
}

async function kept(store: ResultStore, id: string): Promise<string | undefined> {
  const found = await store.read(id, 'session', { from: 0, length: 1_000_000 });
  return found && Buffer.from(found.bytes).toString();
}

/** The only file of a directory. */
function fileIn(path: string): string {
  const [name = '', ...others] = readdirSync(path);
  expect(others).toEqual([]);
  return join(path, name);
}

test('the directory is made, and only its owner may read what is in it', async () => {
  const path = join(directory(), 'a', 'b');
  await put(directoryStore(path), 'abc');
  expect(statSync(path).mode & 0o777).toBe(0o700);
  expect(statSync(fileIn(path)).mode & 0o777).toBe(0o600);
  expect(readFileSync(fileIn(path), 'utf8')).toBe('abc');
});

test('nothing of a call is in the name of a file', async () => {
  const path = directory();
  await directoryStore(path).put('abc', { sessionId: '../../session', toolName: '../tool', toolCallId: '../x\0' });
  expect(readdirSync(path)).toEqual([expect.stringMatching(/^\d+\.3\.[0-9a-f]{32}\.[\w-]{21}\.txt$/)]);
});

test('another store on the same directory, as of a later process, finds what is kept, for its session only', async () => {
  const path = directory();
  const id = await put(directoryStore(path), 'abc');
  const later = directoryStore(path);
  expect(await kept(later, id)).toBe('abc');
  expect(await later.read(id, 'other', { from: 0, length: 3 })).toBeUndefined();
});

test('what an earlier process left behind goes by age and by number, half-written files too', async () => {
  const path = directory();
  const clock = new ManualClock();
  const earlier = directoryStore(path, { now: clock.now });
  clock.jump(1);
  const ids = [await put(earlier, 'a'), await put(earlier, 'b')];
  const [name = ''] = readdirSync(path);
  writeFileSync(join(path, name.replace('.txt', '.part')), 'ha');
  clock.jump(HOUR_MS);
  const later = directoryStore(path, { now: clock.now, maxResults: 2 });
  ids.push(await put(later, 'c'));
  expect(await Promise.all(ids.map((id) => kept(later, id)))).toEqual([undefined, 'b', 'c']);
  expect(readdirSync(path)).toHaveLength(2);
  clock.jump(24 * HOUR_MS);
  await put(later, 'd');
  expect(readdirSync(path)).toHaveLength(2);
});

test('the oldest goes first, whoever has stored it, and whichever was written last', async () => {
  const path = directory();
  const at = (now: number) => directoryStore(path, { maxResults: 2, now: () => now });
  const newer = await put(at(1000), 'newer');
  const older = await put(at(900), 'older');
  const newest = await put(at(2000), 'newest');
  const texts = await Promise.all([older, newer, newest].map((id) => kept(at(2000), id)));
  expect(texts).toEqual([undefined, 'newer', 'newest']);
});

test('a file that is just being written is left to whoever writes it, and is not read', async () => {
  const path = directory();
  const store = directoryStore(path);
  const id = await put(store, 'abc');
  const staged = fileIn(path).replace('.txt', '.part');
  execFileSync('mv', [fileIn(path), staged]);
  expect(await kept(store, id)).toBeUndefined();
  await put(store, 'def');
  expect(readFileSync(staged, 'utf8')).toBe('abc');
});

test('a file it has not named is neither read nor counted nor removed', async () => {
  const path = directory();
  const names = ['notes.txt', '1.3.x.txt', '.hidden', `1.3.${'0'.repeat(32)}.${'a'.repeat(21)}.txt~`];
  for (const name of names) writeFileSync(join(path, name), 'x'.repeat(1000));
  mkdirSync(join(path, `1.3.${'0'.repeat(32)}.${'a'.repeat(21)}.txt`));
  const store = directoryStore(path, { maxBytes: 5, maxResults: 1 });
  const id = await put(store, 'abc');
  expect(await kept(store, id)).toBe('abc');
  expect(readdirSync(path)).toHaveLength(names.length + 2);
});

test('a symbolic link is not followed, nor is its target removed', async () => {
  const path = directory();
  const secret = join(directory(), 'secret');
  writeFileSync(secret, 'abc');
  const store = directoryStore(path, { maxResults: 1 });
  const id = await put(store, 'def');
  const file = fileIn(path);
  rmSync(file);
  symlinkSync(secret, file);
  expect(await kept(store, id)).toBeUndefined();
  await put(store, 'ghi');
  await put(store, 'jkl');
  expect(readFileSync(secret, 'utf8')).toBe('abc');
  expect(readFileSync(file, 'utf8')).toBe('abc');
});

test('a file that somebody has cut off is not found, or what is left would pass for the answer of a tool', async () => {
  const path = directory();
  const store = directoryStore(path);
  const id = await put(store, 'abcdef');
  writeFileSync(fileIn(path), 'abc');
  expect(await kept(store, id)).toBeUndefined();
});

test('a directory that was removed is made anew, and what was in it is not found', async () => {
  const path = directory();
  const store = directoryStore(path);
  const id = await put(store, 'abc');
  rmSync(path, { recursive: true });
  expect(await kept(store, id)).toBeUndefined();
  expect(await kept(store, await put(store, 'def'))).toBe('def');
});

test('what cannot be written is told, and nothing is left of it', async () => {
  const path = directory();
  writeFileSync(join(path, 'file'), '');
  await expect(put(directoryStore(join(path, 'file')), 'abc')).rejects.toMatchObject({ code: 'EEXIST' });
  await expect(put(directoryStore(join(path, 'file', 'x')), 'abc')).rejects.toMatchObject({ code: 'ENOTDIR' });
  expect(readdirSync(path)).toEqual(['file']);
});

test('where the limits cannot be kept nothing is, or the directory would grow without end', async () => {
  const path = directory();
  const times = [5];
  const now = () => times.pop() ?? raise('no time');
  await expect(put(directoryStore(path, { now }), 'abc')).rejects.toThrow('no time');
  expect(readdirSync(path)).toEqual([]);
});

test('a directory that has become read-only refuses, and is read', async () => {
  const path = directory();
  const store = directoryStore(path);
  const id = await put(store, 'abc');
  chmodSync(fileIn(path), 0o444);
  chmodSync(path, 0o555);
  chmodSync(dirname(path), 0o711);
  await asOrdinaryUser(async () => {
    await expect(put(store, 'def')).rejects.toMatchObject({ code: 'EACCES' });
    expect(await kept(store, id)).toBe('abc');
  });
});

/** The superuser may write everywhere. */
async function asOrdinaryUser(work: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return work();
  process.seteuid?.(65_534);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
  }
}

test('a thousand results at once are kept within the limits, and nothing half-written is left', async () => {
  const path = directory();
  const store = directoryStore(path, { maxResults: 50 });
  const ids = await Promise.all(Array.from({ length: 1000 }, (_, index) => put(store, `text ${index}`)));
  expect(readdirSync(path).every((name) => name.endsWith('.txt'))).toBe(true);
  expect(readdirSync(path)).toHaveLength(50);
  expect(await kept(store, ids.at(-1) ?? '')).toBe('text 999');
});

test('two stores that write to one directory at once do not break each other', async () => {
  const path = directory();
  const stores = [directoryStore(path, { maxResults: 20 }), directoryStore(path, { maxResults: 20 })] as const;
  const work = Array.from({ length: 200 }, async (_, index) => {
    const store = stores[index % 2 === 0 ? 0 : 1];
    return kept(store, await put(store, `text ${index}`));
  });
  const texts = await Promise.all(work);
  // Each may have gone by then, but is never another one, nor half.
  for (const [index, text] of texts.entries()) expect([undefined, `text ${index}`]).toContain(text);
  await put(stores[0], 'last');
  expect(readdirSync(path)).toHaveLength(20);
});

test('a text of 50 MB is read by pieces', async () => {
  const store = directoryStore(directory());
  const id = await put(store, `${'x'.repeat(50_000_000)}end`);
  const found = await store.read(id, 'session', { from: 50_000_000, length: 10 });
  expect(found).toEqual({ bytes: new Uint8Array(Buffer.from('end')), total: 50_000_003 });
});

test('a relative path is meant from where the process is when the store is made', async () => {
  const path = directory();
  const cwd = process.cwd();
  process.chdir(path);
  const store = directoryStore('results');
  process.chdir(cwd);
  await put(store, 'abc');
  expect(readdirSync(join(path, 'results'))).toHaveLength(1);
});

test.each([undefined, '', 5])('the path %p is refused', (path) => {
  expect(() => directoryStore(path as string)).toThrow('directoryStore takes the path of a directory');
});

function raise(message: string): never {
  throw new Error(message);
}
