import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { nanoid } from 'nanoid';
import {
  type ByteRange,
  type Entry,
  isExpired,
  type ResultStore,
  type RetentionOptions,
  retentionOf,
  type StoredBytes,
  surplus,
} from './result-store.ts';

/** Milliseconds after which a file that is still being written has been left behind. */
const STAGING_LIMIT_MS = 600_000;

/** A file's name says all there is to know of it: when it was stored, its size, whose it is, its id. */
const NAME = /^(\d{1,16})\.(\d{1,16})\.([0-9a-f]{32})\.([\w-]{21})\.(txt|part)$/;

interface StoredFile extends Entry {
  readonly name: string;
  readonly session: string;
  readonly id: string;
  readonly isStaged: boolean;
}

/**
 * Keeps results as files of a directory, which is made when it is missing. Several processes may share it, and later ones find what
 * earlier ones have kept. Only the owner can read what is in it. Files of other names and symbolic links are left alone.
 *
 * @param path Relative to the working directory the process has now.
 * @throws TypeError naming the option and what is allowed.
 * @example outputLimit({ store: directoryStore('/var/lib/agent/results', { maxBytes: 1_000_000_000 }) })
 */
export function directoryStore(path: string, options: RetentionOptions = {}): ResultStore {
  if (typeof path !== 'string' || path === '') throw new TypeError('directoryStore takes the path of a directory.');
  const retention = retentionOf('directoryStore', options);
  const directory = resolve(path);
  let lastStoredAt = 0;
  let sweeping: Promise<void> = Promise.resolve();
  let nextSweep: Promise<void> | undefined;

  return {
    async put(text, { sessionId }) {
      const bytes = new TextEncoder().encode(text);
      if (bytes.length > retention.maxBytes) return undefined;
      // Later than the one before, so that of two in a millisecond the older goes first.
      lastStoredAt = Math.max(Math.floor(retention.now()), lastStoredAt + 1);
      const id = nanoid();
      const name = `${lastStoredAt}.${bytes.length}.${hashOf(sessionId)}.${id}`;
      const staged = join(directory, `${name}.part`);
      const file = join(directory, `${name}.txt`);
      await mkdir(directory, { recursive: true, mode: 0o700 });
      try {
        await writeFile(staged, bytes, { flag: 'wx', mode: 0o600 });
        await rename(staged, file);
        await swept();
      } catch (thrown) {
        await Promise.allSettled([rm(staged, { force: true }), rm(file, { force: true })]);
        throw thrown;
      }
      return id;
    },

    async read(id, sessionId, range) {
      const session = hashOf(sessionId);
      // What a model gave is compared with what is there, and never part of a path.
      const file = (await list()).find((each) => each.id === id && each.session === session && !each.isStaged);
      if (file === undefined || isExpired(file, retention)) return undefined;
      return slice(join(directory, file.name), file.size, range);
    },
  };

  /** A sweep that begins after this: the next one, which all who wait for the present one share. */
  function swept(): Promise<void> {
    nextSweep ??= sweeping
      .catch(() => {})
      .then(() => {
        nextSweep = undefined;
        sweeping = sweep();
        return sweeping;
      });
    return nextSweep;
  }

  async function sweep(): Promise<void> {
    const files = await list();
    const stored = files.filter(({ isStaged }) => !isStaged).sort((a, b) => a.storedAt - b.storedAt);
    const left = files.filter(({ isStaged, storedAt }) => isStaged && retention.now() - storedAt > STAGING_LIMIT_MS);
    const gone = [...surplus(stored, retention), ...left];
    // What cannot be removed now is tried again with the next result.
    await Promise.allSettled(gone.map(({ name }) => rm(join(directory, name), { force: true })));
  }

  async function list(): Promise<readonly StoredFile[]> {
    const entries = await unlessAbsent(readdir(directory, { withFileTypes: true }));
    return (entries ?? []).flatMap((entry) => (entry.isFile() ? fileOf(entry.name) : []));
  }
}

function fileOf(name: string): readonly StoredFile[] {
  const [, storedAt, size, session = '', id = '', ending] = NAME.exec(name) ?? [];
  if (ending === undefined) return [];
  return [{ name, storedAt: Number(storedAt), size: Number(size), session, id, isStaged: ending === 'part' }];
}

/** A session's name may be anything, and is nobody's business. */
function hashOf(sessionId: string): string {
  return createHash('sha256').update(JSON.stringify(sessionId)).digest('hex').slice(0, 32);
}

async function slice(path: string, total: number, { from, length }: ByteRange): Promise<StoredBytes | undefined> {
  const file = await unlessAbsent(open(path, constants.O_RDONLY | constants.O_NOFOLLOW));
  if (file === undefined) return undefined;
  try {
    // Of another size it has been changed, and is no answer of any tool.
    if ((await file.stat()).size !== total) return undefined;
    const bytes = new Uint8Array(Math.max(0, Math.min(length, total - from)));
    const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
    return { bytes: bytes.subarray(0, bytesRead), total };
  } finally {
    await file.close();
  }
}

/** Undefined for what is not there, or is a link. */
async function unlessAbsent<Value>(work: Promise<Value>): Promise<Value | undefined> {
  try {
    return await work;
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ELOOP') return undefined;
    throw thrown;
  }
}
