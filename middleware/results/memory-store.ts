import { nanoid } from 'nanoid';
import {
  type Entry,
  isExpired,
  type ResultStore,
  type RetentionOptions,
  retentionOf,
  surplus,
} from './result-store.ts';

interface StoredText extends Entry {
  readonly id: string;
  readonly sessionId: string;
  readonly bytes: Uint8Array;
}

/**
 * Keeps results in memory, for as long as the process lives.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example outputLimit({ store: memoryStore({ maxBytes: 20_000_000, maxAgeMs: 3_600_000 }) })
 */
export function memoryStore(options: RetentionOptions = {}): ResultStore {
  const retention = retentionOf('memoryStore', options);
  /** In the order they came. */
  const results = new Map<string, StoredText>();

  return {
    put(text, { sessionId }) {
      const bytes = new TextEncoder().encode(text);
      if (bytes.length > retention.maxBytes) return undefined;
      const id = nanoid();
      results.set(id, { id, sessionId, bytes, size: bytes.length, storedAt: retention.now() });
      for (const { id: old } of surplus([...results.values()], retention)) results.delete(old);
      return id;
    },

    read(id, sessionId, { from, length }) {
      const result = results.get(id);
      if (result?.sessionId !== sessionId || isExpired(result, retention)) return undefined;
      // A copy, so that nobody who reads can change what is kept.
      return { bytes: result.bytes.slice(from, from + length), total: result.size };
    },
  };
}
