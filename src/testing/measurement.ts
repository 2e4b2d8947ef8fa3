import type { Clock } from '../clock.ts';
import type { ToolCallRequest } from '../request.ts';
import type { Spread } from './rounds.ts';
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
  /**
   * Milliseconds after which no further round begins, neither of the calls, but for their last, nor over the layers, but for the
   * first. Default: 10,000 for each.
   */
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

/** Options with nothing left open. */
export interface MeasureSettings {
  readonly repeats: number;
  readonly rounds: number;
  readonly limitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ((progress: MeasureProgress) => void) | undefined;
  now(): number;
}
