import type { Dispatcher } from '../dispatcher.ts';
import { codeOf, type ToolDispatchResult } from '../outcome.ts';
import type { DispatchOptions, ToolCallRequest } from '../request.ts';
import type { MeasuredCall, MeasureOptions } from './measure.ts';
import { countAllocated, percentile } from './rounds.ts';
import { emptyTrace, spansOf, tracedIn, withProbes } from './spans.ts';
import { type Answer, answerOf } from './stand-in.ts';

/** A call, what came of it, and what its tool answered. */
export interface RecordedCall extends MeasuredCall {
  readonly answer: Answer;
}

/** All that was recorded, and what the dispatches took. */
export interface Recording {
  readonly calls: readonly RecordedCall[];
  readonly durationsMs: readonly number[];
  readonly bytes: number;
}

/** A call while it is recorded. */
interface Take {
  readonly request: ToolCallRequest;
  /** How often its tool may run. */
  readonly runs: number;
  readonly durationsMs: number[];
  last?: Pick<RecordedCall, 'outcome' | 'spans' | 'answer'>;
}

/**
 * Dispatches calls to their tools, in rounds over all of them; the last run of each goes past probes, which keep the spans and the
 * tool's answer. A tool that does not say that it may run twice runs once.
 */
export async function record(
  dispatcher: Dispatcher,
  requests: readonly ToolCallRequest[],
  {
    repeats = 20,
    signal,
    onProgress,
    now,
  }: Pick<MeasureOptions, 'repeats' | 'signal' | 'onProgress'> & { now(): number },
): Promise<Recording> {
  const takes = requests.map(
    (request): Take => ({ request, runs: isRepeatable(dispatcher, request) ? repeats : 1, durationsMs: [] }),
  );
  const total = takes.reduce((sum, { runs }) => sum + runs, 0);
  const options: DispatchOptions = signal === undefined ? {} : { signal };
  const probed = dispatcher.with({ middleware: withProbes(dispatcher.middleware) });
  const allocated = countAllocated();
  let done = 0;
  for (let round = 0; round < repeats; round++) {
    for (const take of takes) {
      if (round >= take.runs) continue;
      if (round === take.runs - 1) take.last = await lastRun(take);
      else await timed(take, () => dispatcher.dispatch(take.request, options));
      onProgress?.({ phase: 'tools', done: ++done, total });
      signal?.throwIfAborted();
    }
  }
  const durationsMs = takes.flatMap((take) => take.durationsMs);
  return { calls: takes.map(recorded), durationsMs, bytes: allocated() };

  async function timed(take: Take, dispatch: () => Promise<ToolDispatchResult>): Promise<ToolDispatchResult> {
    const startedAt = now();
    const result = await dispatch();
    take.durationsMs.push(now() - startedAt);
    return result;
  }

  async function lastRun(take: Take): Promise<NonNullable<Take['last']>> {
    const trace = emptyTrace(dispatcher.middleware);
    const settings = [tracedIn(trace)];
    const result = await timed(take, () => probed.dispatch(take.request, { ...options, settings }));
    return {
      outcome: codeOf(result),
      spans: spansOf(trace, dispatcher.middleware, result.durationMs),
      answer: answerOf(trace.at(-1)?.at(-1)),
    };
  }
}

function isRepeatable({ tools }: Dispatcher, request: ToolCallRequest | null): boolean {
  const tool = tools.get(request?.name ?? '');
  return tool?.readOnly === true || tool?.idempotent === true;
}

function recorded({ request, durationsMs, last }: Take): RecordedCall {
  return {
    request,
    runs: durationsMs.length,
    durationMs: percentile(durationsMs, 0.5),
    ...(last as NonNullable<Take['last']>),
  };
}
