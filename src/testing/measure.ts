import { systemClock } from '../clock.ts';
import type { Dispatcher } from '../dispatcher.ts';
import { checkOptions, isCount, isFunction, isLimitMs, type OptionChecks } from '../options.ts';
import type { ToolCallRequest } from '../request.ts';
import { layerCosts } from './layer-costs.ts';
import type { Cost, Measurement, MeasureOptions, MeasureSettings } from './measurement.ts';
import { record } from './record.ts';
import { percentile } from './rounds.ts';

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
