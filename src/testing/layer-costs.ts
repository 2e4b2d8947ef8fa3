import type { Dispatcher } from '../dispatcher.ts';
import type { Middleware } from '../middleware.ts';
import type { DispatchOptions, ToolCallRequest } from '../request.ts';
import type { LayerCost, MeasureSettings } from './measurement.ts';
import type { RecordedCall } from './record.ts';
import { bytesOf, percentile, spreadOf, type Task, timeOf, timeRounds } from './rounds.ts';
import { emptyTrace, spansOf, tracedIn, withProbes } from './spans.ts';
import { answeredBy, standIns } from './stand-in.ts';

/** What dispatching takes without the tools, and what of it each layer does. */
export interface LayerCosts {
  /** Calls the layers were timed on. */
  readonly sampled: number;
  /** Rounds that were timed. */
  readonly rounds: number;
  readonly durationsMs: readonly number[];
  readonly bytesPerCall: number;
  readonly layers: readonly LayerCost[];
  readonly probeUs: number;
}

/** A call with a stand-in for its tool. */
interface Rehearsal {
  readonly request: ToolCallRequest;
  readonly options: DispatchOptions;
}

/** Calls the layers are timed on, at most: evenly taken from all. */
const SAMPLE = 1000;
/** Milliseconds one pass over the sample may take; a slower sample is made smaller. */
const PASS_MS = 50;
/** Milliseconds of dispatching that make one round of one variant: long for the clock, short between two turns. */
const ROUND_MS = 8;
/** Passes in one round of one variant, however quick they seem. */
const MAX_PASSES = 2000;
/** Dispatches that are timed one by one, and over which bytes are counted: so many, or as many as there is time for. */
const COUNTED = 2000;
const COUNTED_MS = 200;

/**
 * Times the onion without its tools: whole, with each layer taken away, with all of them, and with probes between them. All variants
 * take turns over the same calls, so that what differs is the layers.
 */
export async function layerCosts(
  dispatcher: Dispatcher,
  recorded: readonly RecordedCall[],
  settings: MeasureSettings,
): Promise<LayerCosts> {
  const { signal, now } = settings;
  const layers = dispatcher.middleware;
  const variant = (list: readonly Middleware[]) => dispatcher.with({ middleware: [...list, standIns()] });
  const whole = variant(layers);
  const without = layers.map((_, place) => variant(layers.filter((_, other) => other !== place)));
  const sample = await sampleOf(recorded, whole, now);
  const passMs = Math.max(await timeOf(() => pass(whole, sample), 1, now), 0.001);

  const probed = new ProbedPasses(variant(withProbes(layers)), layers);
  const tasks = [whole, variant([]), ...without].map((each) => () => pass(each, sample));
  const [wholeUs = [], bareUs = [], ...withoutUs] = await timesOf(
    [...tasks, () => probed.pass(sample)],
    passMs,
    sample.length,
    settings,
  );
  const added = (less: readonly number[] = []) =>
    spreadOf(wholeUs.map((time, round) => time - (less[round] as number)));
  // The probes' own time is in the spans, as much in each. What is more than all layers cost together is theirs.
  const ownUs = probed.ownUs(sample.length);
  const excess = ownUs.reduce((sum, own) => sum + own, 0) - added(bareUs).median;
  const probeUs = layers.length === 0 ? 0 : Math.max(0, excess / layers.length);

  const passes = Math.ceil(Math.min(COUNTED / sample.length, COUNTED_MS / passMs));
  const bytesPerCall = await bytesFor(whole, sample, passes);
  const costs: LayerCost[] = [];
  for (const [place, { name }] of layers.entries()) {
    signal?.throwIfAborted();
    const takenAwayUs = added(withoutUs[place]);
    const bytes = bytesPerCall - (await bytesFor(without[place] as Dispatcher, sample, passes));
    costs.push({ name, takenAwayUs, ownUs: (ownUs[place] as number) - probeUs, bytes });
  }
  const durationsMs = await durationsOf(whole, sample, passes, now);
  return { layers: costs, sampled: sample.length, rounds: wholeUs.length, probeUs, durationsMs, bytesPerCall };
}

/** Microseconds of a call, by task and round. */
async function timesOf(
  tasks: readonly Task[],
  passMs: number,
  callsInPass: number,
  { rounds, limitMs, signal, onProgress, now }: MeasureSettings,
): Promise<readonly (readonly number[])[]> {
  const passes = Math.min(MAX_PASSES, Math.max(1, Math.floor(ROUND_MS / passMs)));
  const deadline = now() + limitMs;
  const times = await timeRounds(tasks, passes, rounds, now, (round) => {
    signal?.throwIfAborted();
    onProgress?.({ phase: 'layers', done: Math.max(0, round), total: rounds });
    return round < 1 || now() < deadline;
  });
  const made = times[0]?.length ?? 0;
  onProgress?.({ phase: 'layers', done: made, total: made });
  return times.map((list) => list.map((timeMs) => (timeMs * 1000) / callsInPass));
}

/** Passes over a sample through an onion with probes. */
class ProbedPasses {
  readonly #dispatcher: Dispatcher;
  readonly #layers: readonly Middleware[];
  /** Milliseconds in each layer alone, pass by pass. */
  readonly #ownMs: number[][];

  constructor(dispatcher: Dispatcher, layers: readonly Middleware[]) {
    this.#dispatcher = dispatcher;
    this.#layers = layers;
    this.#ownMs = layers.map(() => []);
  }

  async pass(sample: readonly Rehearsal[]): Promise<void> {
    const totals = this.#layers.map(() => 0);
    for (const { request, options } of sample) {
      const trace = emptyTrace(this.#layers);
      const settings = [...(options.settings ?? []), tracedIn(trace)];
      const { durationMs } = await this.#dispatcher.dispatch(request, { settings });
      const spans = spansOf(trace, this.#layers, durationMs);
      for (const place of totals.keys()) totals[place] = (totals[place] as number) + (spans[place]?.ownMs ?? 0);
    }
    for (const [place, total] of totals.entries()) this.#ownMs[place]?.push(total);
  }

  /** Microseconds a call spends in each layer alone. */
  ownUs(callsInPass: number): readonly number[] {
    return this.#ownMs.map((list) => (percentile(list, 0.5) * 1000) / callsInPass);
  }
}

/** The calls, or so many of them, taken evenly, that a pass over them is quick. */
async function sampleOf(
  recorded: readonly RecordedCall[],
  dispatcher: Dispatcher,
  now: () => number,
): Promise<readonly Rehearsal[]> {
  const all = evenly(recorded, SAMPLE).map(({ request, answer }) => ({
    request,
    options: { settings: [answeredBy(answer)] },
  }));
  let count = all.length;
  // Twice, for what a first pass takes is the time of compilers.
  for (let attempt = 0; attempt < 2; attempt++) {
    const until = now() + PASS_MS;
    for (count = 0; count < all.length && now() < until; count++) await pass(dispatcher, all.slice(count, count + 1));
  }
  return evenly(all, Math.max(1, count));
}

function evenly<Value>(values: readonly Value[], most: number): readonly Value[] {
  const step = Math.max(1, values.length / most);
  return Array.from({ length: Math.min(most, values.length) }, (_, index) => values[Math.floor(index * step)] as Value);
}

async function pass(dispatcher: Dispatcher, sample: readonly Rehearsal[]): Promise<void> {
  for (const { request, options } of sample) await dispatcher.dispatch(request, options);
}

async function durationsOf(
  dispatcher: Dispatcher,
  sample: readonly Rehearsal[],
  passes: number,
  now: () => number,
): Promise<readonly number[]> {
  const durations: number[] = [];
  for (let count = 0; count < passes * sample.length; count++) {
    const { request, options } = sample[count % sample.length] as Rehearsal;
    durations.push(await timeOf(() => dispatcher.dispatch(request, options), 1, now));
  }
  return durations;
}

async function bytesFor(dispatcher: Dispatcher, sample: readonly Rehearsal[], passes: number): Promise<number> {
  return (await bytesOf(() => pass(dispatcher, sample), passes)) / sample.length;
}
