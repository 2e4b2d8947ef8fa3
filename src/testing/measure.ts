import { type Clock, systemClock } from '../clock.ts';
import type { Dispatcher } from '../dispatcher.ts';
import { checkOptions, isCount, isFunction, isLimitMs, type OptionChecks } from '../options.ts';
import type { ToolCallRequest } from '../request.ts';
import { layerCosts } from './layer-costs.ts';
import { record } from './record.ts';
import { percentile, type Spread } from './rounds.ts';
import type { Span } from './spans.ts';

/** Options of `measure`. */
export interface MeasureOptions {
  /**
   * How often each call is dispatched to its tool, if the tool that runs says that it is read-only or idempotent. All other calls
   * are dispatched once. Default: 20.
   */
  readonly repeats?: number;
  /** Rounds in which the layers are timed, after three that are not counted. Default: 31. */
  readonly rounds?: number;
  /** Milliseconds after which no further round begins, neither of the calls nor over the layers. Default: 10,000 for each. */
  readonly limitMs?: number;
  /** Ends the measurement: the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Hears how far it is. */
  readonly onProgress?: (progress: MeasureProgress) => void;
  /** Default: the system's. */
  readonly clock?: Pick<Clock, 'now'>;
}

/** How far a measurement is. */
export interface MeasureProgress {
  /** `tools`: the calls are dispatched. `layers`: the layers are timed. */
  readonly phase: 'tools' | 'layers';
  readonly done: number;
  readonly total: number;
}

/** What calls cost. */
export interface Measurement {
  readonly calls: readonly MeasuredCall[];
  /** With the tools as they are. */
  readonly withTools: Cost;
  /** With stand-ins for the tools, which give the recorded answers: what is left is dispatching. */
  readonly dispatching: Cost;
  /** What each layer adds, outermost first. */
  readonly layers: readonly LayerCost[];
  /** On how many of the calls the layers were timed: as many as can take turns. */
  readonly sampled: number;
  /** Rounds in which they were timed. */
  readonly rounds: number;
  /** Microseconds one probe adds, already taken off the layers' own time: how exact that can be. */
  readonly probeUs: number;
}

/** One call, and what came of it. */
export interface MeasuredCall {
  readonly request: ToolCallRequest;
  /** What came of its last run, as `codeOf` tells it: `ok`, or the code of the error. */
  readonly outcome: string;
  /** How often it was dispatched. */
  readonly runs: number;
  /** The median of the runs. */
  readonly durationMs: number;
  /** The last run, layer by layer. */
  readonly spans: readonly Span[];
}

/** What dispatches cost. */
export interface Cost {
  /** How many were timed. */
  readonly dispatches: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** One after the other. */
  readonly perSecond: number;
  /** Bytes of heap allocated for a call. */
  readonly bytesPerCall: number;
}

/** What one layer adds to a call, by two ways of measuring that need not agree. */
export interface LayerCost {
  readonly name: string;
  /**
   * Microseconds a call takes longer with the layer than without it. Negative where it spares more than it costs, as a gate does
   * that keeps calls from the layers inside.
   */
  readonly takenAwayUs: Spread;
  /** Microseconds between the probes outside and inside it. What it waits for counts, and so does the event loop. */
  readonly ownUs: number;
  /** Bytes of heap a call takes more with the layer than without it. */
  readonly bytes: number;
}

/**
 * Measures what dispatching these calls costs: with the tools, without them, and for each layer. The dispatcher's layers run for
 * real, each time: a log is written, an approver asked. Tools run as `repeats` says and no oftener, whatever is taken away.
 *
 * @throws TypeError naming the option and what is allowed, or where there are no calls.
 * @example
 * const { dispatching, layers } = await measure(dispatcher, [{ name: 'read_file', arguments: '{"path":"README.md"}' }]);
 */
export async function measure(
  dispatcher: Dispatcher,
  calls: readonly ToolCallRequest[],
  options: MeasureOptions = {},
): Promise<Measurement> {
  checkOptions('measure', options, OPTIONS);
  checkCalls(dispatcher, calls);
  const { repeats = 20, rounds = 31, limitMs = 10_000, signal, onProgress, clock = systemClock } = options;
  const settings: MeasureSettings = { repeats, rounds, limitMs, signal, onProgress, now: () => clock.now() };
  const recording = await record(dispatcher, calls, settings);
  const { durationsMs, bytesPerCall, ...layers } = await layerCosts(dispatcher, recording.calls, settings);
  return {
    calls: recording.calls.map(({ answer: _, ...call }) => call),
    withTools: costOf(recording.durationsMs, recording.bytes / recording.durationsMs.length),
    dispatching: costOf(durationsMs, bytesPerCall),
    ...layers,
  };
}

/** Options with nothing left open. */
export interface MeasureSettings {
  readonly repeats: number;
  readonly rounds: number;
  readonly limitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ((progress: MeasureProgress) => void) | undefined;
  now(): number;
}

function checkCalls(dispatcher: Dispatcher, calls: readonly ToolCallRequest[]): void {
  if (typeof dispatcher?.dispatch !== 'function') throw new TypeError('measure takes a dispatcher first.');
  if (!Array.isArray(calls) || calls.length === 0)
    throw new TypeError('measure takes an array of calls, at least one.');
  const wrong = calls.findIndex((call) => typeof call?.name !== 'string');
  if (wrong >= 0) throw new TypeError(`measure takes calls: number ${wrong + 1} has no name.`);
}

function hasFunction(value: unknown, name: string): boolean {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, name) === 'function';
}

const OPTIONS: OptionChecks = {
  repeats: isCount(1),
  rounds: isCount(1),
  limitMs: isLimitMs,
  signal: (value) => hasFunction(value, 'throwIfAborted') || 'an AbortSignal',
  onProgress: isFunction,
  clock: (value) => hasFunction(value, 'now') || 'an object with the function now',
};

function costOf(durationsMs: readonly number[], bytesPerCall: number): Cost {
  const seconds = durationsMs.reduce((sum, duration) => sum + duration, 0) / 1000;
  return {
    dispatches: durationsMs.length,
    p50Ms: percentile(durationsMs, 0.5),
    p90Ms: percentile(durationsMs, 0.9),
    p99Ms: percentile(durationsMs, 0.99),
    maxMs: durationsMs.reduce((most, duration) => Math.max(most, duration), 0),
    perSecond: durationsMs.length / seconds,
    bytesPerCall,
  };
}
