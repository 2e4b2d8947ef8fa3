import {
  after,
  type Channel,
  checkOptions,
  type DispatchNote,
  isFunction,
  isJsonLonger,
  isLimit,
  isLimitMs,
  isOneOf,
  isPromise,
  type Keep,
  type Marker,
  type MaybePromise,
  type Middleware,
  type Next,
  named,
  type PerTool,
  perTool,
  perToolCheck,
  type SizeUnit,
  sizeOf,
  type Tool,
  type ToolCall,
  type ToolOutcome,
  withNote,
} from '../src/index.ts';
import { fits, limitContent, markerWith, type PutAway, truncated, usualMarker } from './parts/limit-content.ts';
import { LimitedParts } from './parts/limited-parts.ts';
import { readingOn, storeOf } from './results/read-result-tool.ts';
import { isResultStore, keep, MAX_ID, type ResultStore } from './results/result-store.ts';

/** Options of `outputLimit`. A limit may be Infinity. */
export interface OutputLimitOptions {
  /** The most text an answer may hold, over all its parts, in `unit`; as much again for resource links. Default: 50,000. */
  readonly limit?: PerTool<number>;
  /** Default: `characters`, as `length` counts them. */
  readonly unit?: SizeUnit;
  /** What is kept of a text that is too long. Default: `both`, for an error is often at the end. */
  readonly keep?: PerTool<Keep>;
  /**
   * Bytes the pictures, sounds, films and files of an answer may have together; one there is no room for is replaced whole.
   * Default: 5,000,000.
   */
  readonly mediaLimit?: PerTool<number>;
  /**
   * About how many characters of JSON `structured` may have; a larger one is left out whole, unless the tool declares an output
   * schema. Default: 200,000.
   */
  readonly structuredLimit?: PerTool<number>;
  /** The text that stands where something was left out. Default: one that tells how much, and to ask for less at a time. */
  readonly marker?: Marker;
  /**
   * Where the whole text is kept once it has been cut. Where the tools of the call include a `readResultTool` of this store, the model
   * is told to read on with it. Default: nowhere.
   */
  readonly store?: ResultStore;
  /** Milliseconds the store may take before the answer goes on without it. Default: 5,000. */
  readonly storeLimitMs?: number;
}

/** A host's marker whose faults cost no answer. */
function trusty(marker: Marker): Marker {
  return (...sizes) => {
    try {
      const text: unknown = marker(...sizes);
      return typeof text === 'string' ? text : usualMarker(...sizes);
    } catch {
      return usualMarker(...sizes);
    }
  };
}

/**
 * Keeps an answer within a size: text is cut, JSON is shrunk and stays JSON, media and structured data are whole or replaced. An
 * answer within the limits passes untouched; an error is an answer like any other.
 *
 * Inside the middlewares that call `next` again, outside redaction: a cut must never save half a secret.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example outputLimit({ limit: { default: 20_000, byTool: { read_file: 100_000 } }, keep: 'head' })
 */
export function outputLimit(options: OutputLimitOptions = {}): Middleware {
  checkOptions('outputLimit', options, {
    limit: perToolCheck(isLimit(1)),
    unit: isOneOf('characters', 'bytes'),
    keep: perToolCheck(isOneOf('head', 'tail', 'both')),
    mediaLimit: perToolCheck(isLimit(0)),
    structuredLimit: perToolCheck(isLimit(0)),
    marker: isFunction,
    store: isResultStore,
    storeLimitMs: isLimitMs,
  });
  const { unit = 'characters', store, storeLimitMs = 5_000 } = options;
  const marker = options.marker === undefined ? usualMarker : trusty(options.marker);
  const limitOf = perTool(options.limit, 50_000);
  const keepOf = perTool<Keep>(options.keep, 'both');
  const mediaLimitOf = perTool(options.mediaLimit, 5_000_000);
  const structuredLimitOf = perTool(options.structuredLimit, 200_000);

  return named('outputLimit', function outputLimit(call, next) {
    if (call.channel !== undefined && !isReader(call.tool)) return limitParts(call, next, call.channel);
    const outcome = next(call);
    return isPromise(outcome) ? outcome.then((settled) => limit(call, settled)) : limit(call, outcome);
  });

  function limitParts(call: ToolCall, next: Next, channel: Channel): MaybePromise<ToolOutcome> {
    const { toolName } = call;
    const cut = { limit: limitOf(toolName), unit, keep: keepOf(toolName), marker };
    const parts = new LimitedParts(channel, cut, mediaLimitOf(toolName), longestMarker(call));
    return after(next(call.with({ channel: parts })), (outcome) =>
      after(limit(call, outcome), (limited) => parts.finish(call, limited)),
    );
  }

  /** The size of the marker for the longest answer, with the longest way to read on. */
  function longestMarker(call: ToolCall): number {
    const reader = readerOf(call);
    const markers = [
      marker,
      ...(reader === undefined ? [] : [markerWith((before) => readingOn(reader.name, LONGEST_ID, before))]),
    ];
    return Math.max(...markers.flatMap((each) => SIZES.map((size) => sizeOf(each(size, size, unit, size), unit))));
  }

  function readerOf({ tools }: ToolCall): Tool | undefined {
    return store && tools.tools.find((tool) => storeOf(tool) === store);
  }

  function limit(call: ToolCall, outcome: ToolOutcome): MaybePromise<ToolOutcome> {
    if (outcome.control !== undefined) return outcome;
    const { resolvedToolName: name, content } = outcome;
    const most = limitOf(name);
    if (fits(content, most, unit) || isPage(call, outcome)) return limitStructured(call, outcome);
    const cut = { limit: most, unit, keep: keepOf(name), marker };
    const limited = limitContent(outcome, cut, mediaLimitOf(name), (text) => putAway(call, text));
    return after(limited, (small) => limitStructured(call, small));
  }

  function limitStructured(call: ToolCall, outcome: ToolOutcome): ToolOutcome {
    const { resolvedToolName: name, structured } = outcome;
    if (structured === undefined || call.tool?.outputSchema !== undefined) return outcome;
    const most = structuredLimitOf(name);
    return isJsonLonger(structured, most) ? withoutStructured(outcome, most) : outcome;
  }

  function putAway(call: ToolCall, text: string): MaybePromise<PutAway> {
    if (store === undefined) return { notes: [] };
    return after(keep(store, text, call, storeLimitMs), (kept) => {
      if ('fault' in kept) return { notes: [notStored(kept.fault)] };
      const notes = [stored(kept.id)];
      const reader = readerOf(call);
      return reader === undefined ? { notes } : { notes, readOn: (from) => readingOn(reader.name, kept.id, from) };
    });
  }
}

const LONGEST_ID = 'x'.repeat(MAX_ID);

/** Numbers of all lengths: a host's marker may be shorter for larger ones. */
const SIZES = Array.from({ length: 16 }, (_, digits) => 10 ** digits - 1);

/** Whether an answer is a page of another one: it has a limit of its own, and where it was cut there would be no way to read on. */
function isPage({ tool }: ToolCall, { resolvedToolName }: ToolOutcome): boolean {
  return tool?.name === resolvedToolName && isReader(tool);
}

function isReader(tool: Tool | undefined): boolean {
  return tool !== undefined && storeOf(tool) !== undefined;
}

function withoutStructured(outcome: ToolOutcome, limit: number): ToolOutcome {
  const { structured: _, ...rest } = outcome;
  return withNote(
    rest,
    truncated(`The structured answer was left out: it is longer than ${limit} characters of JSON.`),
  );
}

function stored(id: string): DispatchNote {
  return { type: 'stored', by: 'outputLimit', message: `The whole text is kept as ${JSON.stringify(id)}.` };
}

function notStored(fault: string): DispatchNote {
  const message = `The whole text could not be kept: ${fault}.`;
  return { type: 'not_stored', by: 'outputLimit', message, forModel: true };
}
