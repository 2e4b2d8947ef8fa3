import pTimeout from 'p-timeout';
import {
  checkOptions,
  describeError,
  isFunction,
  isLimit,
  isPromise,
  type MaybePromise,
  type OptionCheck,
  type ToolCall,
  timersOf,
} from '../../src/index.ts';

/** Where the whole text of an answer is kept that was cut. */
export interface ResultStore {
  /** Keeps a text; answers the id to read it by, up to 200 printable ASCII characters without quote and backslash, not to be guessed, or undefined if it is too large. */
  put(text: string, owner: ResultOwner): MaybePromise<string | undefined>;
  /**
   * All bytes of a range that there are, none cut off at the end; undefined for an id that it does not have, not any longer, or not of
   * this session. The id comes from a model and may be any text.
   */
  read(id: string, sessionId: string, range: ByteRange): MaybePromise<StoredBytes | undefined>;
}

/** The call whose answer is kept. Only its session may read it. */
export interface ResultOwner {
  readonly sessionId: string;
  readonly toolName: string;
  readonly toolCallId: string;
}

/** A piece of a text, in bytes of UTF-8. */
export interface ByteRange {
  /** From 0; it may be beyond the end. */
  readonly from: number;
  /** It may reach beyond the end. */
  readonly length: number;
}

/** What a store has of a range. */
export interface StoredBytes {
  readonly bytes: Uint8Array;
  /** Bytes of the whole text. */
  readonly total: number;
}

/** How much a store keeps, and how long. What is beyond goes, the oldest first, with the next result. */
export interface RetentionOptions {
  /** Bytes all results may have together, and so the most that one may have. May be Infinity. Default: 100,000,000. */
  readonly maxBytes?: number;
  /** Milliseconds a result can be read. May be Infinity. Default: 86,400,000, a day. */
  readonly maxAgeMs?: number;
  /** May be Infinity. Default: 1,000. */
  readonly maxResults?: number;
  /** The time in milliseconds since 1970. Default: `Date.now`. */
  readonly now?: () => number;
}

/** @internal Checks the options of a store, and fills in its defaults. */
export function retentionOf(owner: string, options: RetentionOptions): Required<RetentionOptions> {
  checkOptions(owner, options, { maxBytes: isLimit(1), maxAgeMs: isLimit(1), maxResults: isLimit(1), now: isFunction });
  const { maxBytes = 100_000_000, maxAgeMs = 86_400_000, maxResults = 1_000, now = Date.now } = options;
  return { maxBytes, maxAgeMs, maxResults, now };
}

/** @internal What a store knows of each result. */
export interface Entry {
  readonly size: number;
  readonly storedAt: number;
}

/** @internal Whether a result is too old to be read. */
export function isExpired({ storedAt }: Entry, { maxAgeMs, now }: Required<RetentionOptions>): boolean {
  return now() - storedAt > maxAgeMs;
}

/** @internal Those that have to go, of results in the order they came: the newest there is no room for, and all before it. */
export function surplus<Each extends Entry>(
  entries: readonly Each[],
  retention: Required<RetentionOptions>,
): readonly Each[] {
  let room = retention.maxBytes;
  const last = entries.findLastIndex((entry, index) => {
    room -= entry.size;
    return room < 0 || entries.length - index > retention.maxResults || isExpired(entry, retention);
  });
  return entries.slice(0, last + 1);
}

/** @internal */
export const isResultStore: OptionCheck = (value) => {
  const { put, read } = (value ?? {}) as Partial<ResultStore>;
  return (typeof put === 'function' && typeof read === 'function') || 'a store, such as memoryStore()';
};

/** What a model can copy and JSON needs not escape. */
const ID = /^[ !#-[\]-~]+$/;

/** @internal Characters an id may have. */
export const MAX_ID = 200;

/** @internal What became of a text that was to be kept. */
export type Kept = { readonly id: string } | { readonly fault: string };

/**
 * @internal Gives the text of an answer to a store. A store that throws, hangs or answers rubbish is a fault and no failure. That of a
 * call that was aborted has to answer at once.
 */
export function keep(store: ResultStore, text: string, call: ToolCall, limitMs: number): MaybePromise<Kept> {
  const { id: toolCallId, toolName, context } = call;
  try {
    const answer: unknown = store.put(text, { sessionId: context.sessionId, toolName, toolCallId });
    return isPromise(answer) ? keptWithin(answer, call, limitMs) : keptAs(answer);
  } catch (thrown) {
    return failed(thrown);
  }
}

async function keptWithin(answer: Promise<unknown>, call: ToolCall, limitMs: number): Promise<Kept> {
  try {
    return await pTimeout(Promise.resolve(answer).then(keptAs), {
      milliseconds: limitMs,
      fallback: () => ({ fault: `the store took longer than ${limitMs} ms` }),
      customTimers: timersOf(call.clock),
      signal: call.signal,
    });
  } catch (thrown) {
    return call.aborted ? { fault: 'the call was aborted' } : failed(thrown);
  }
}

function keptAs(id: unknown): Kept {
  if (id === undefined) return { fault: 'it is too large for the store' };
  const isId = typeof id === 'string' && id.length <= MAX_ID && ID.test(id);
  return isId ? { id } : { fault: 'the store gave no valid id' };
}

/** The model reads it, so of what was thrown it has no more than the code of a system error, such as ENOSPC. */
function failed(thrown: unknown): Kept {
  const { code = '' } = describeError(thrown, 0);
  return { fault: `the store failed${/^E[A-Z0-9_]{1,40}$/.test(code) ? ` (${code})` : ''}` };
}
