import type { Dispatcher } from '../dispatcher.ts';
import { printable } from '../error.ts';
import { type Middleware, named } from '../middleware.ts';
import { codeOf, fail, type ToolDispatchResult } from '../outcome.ts';
import type { DispatchOptions, ToolCallRequest } from '../request.ts';
import type { Setting } from '../settings.ts';
import type { Tool } from '../tool.ts';
import type { MeasuredCall, MeasureSettings } from './measurement.ts';
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
  readonly durationsMs: number[];
  /** Whether it may be dispatched again, as far as is known. */
  repeatable: boolean;
  last?: Pick<RecordedCall, 'outcome' | 'spans' | 'answer'>;
}

/**
 * Dispatches calls to their tools, in rounds over all of them. The first and the last run of each goes past probes, which keep the
 * spans and the tool's answer. A call whose tool does not say that it may run twice is dispatched once, under whatever name the tool was called.
 */
export async function record(
  dispatcher: Dispatcher,
  requests: readonly ToolCallRequest[],
  { repeats, limitMs, signal, onProgress, now }: MeasureSettings,
): Promise<Recording> {
  const layers = dispatcher.middleware;
  const once = dispatcher.with({ middleware: withProbes(layers) });
  const again = dispatcher.with({ middleware: [...layers, repeatableOnly()] });
  const againProbed = dispatcher.with({ middleware: [...withProbes(layers), repeatableOnly()] });
  const options: DispatchOptions = signal === undefined ? {} : { signal };
  const takes = requests.map(
    // A copy: a request that says something else the second time must not run anything else.
    ({ ...request }): Take => ({
      request,
      durationsMs: [],
      repeatable: mayRunAgain(dispatcher.tools.get(request.name)),
    }),
  );
  let done = 0;
  let total = takes.length + (repeats - 1) * takes.filter(({ repeatable }) => repeatable).length;

  const allocated = countAllocated();
  let bytes = 0;
  try {
    await round(takes, (take) => probed(take, once));
    const repeated = takes.filter(({ repeatable }) => repeatable);
    total = takes.length + (repeats - 1) * repeated.length;
    const deadline = now() + limitMs;
    for (let left = repeated.length === 0 ? 0 : repeats - 2; left > 0 && now() < deadline; left--) {
      await round(repeated, (take) => timed(take, again));
    }
    if (repeats > 1) {
      total = done + repeated.length;
      await round(repeated, (take) => probed(take, againProbed));
    }
  } finally {
    bytes = allocated();
  }
  return { calls: takes.map(recorded), durationsMs: takes.flatMap((take) => take.durationsMs), bytes };

  async function round(list: readonly Take[], run: (take: Take) => Promise<unknown>): Promise<void> {
    for (const take of list) {
      await run(take);
      onProgress?.({ phase: 'tools', done: ++done, total });
      signal?.throwIfAborted();
    }
  }

  async function probed(take: Take, through: Dispatcher): Promise<void> {
    const trace = emptyTrace(layers);
    const result = await timed(take, through, [tracedIn(trace)]);
    take.last = {
      outcome: codeOf(result),
      spans: spansOf(trace, layers, result.durationMs),
      answer: answerOf(trace.at(-1)?.at(-1)),
    };
    take.repeatable &&= trace.at(-1)?.every(({ call }) => mayRunAgain(call.tool)) === true;
  }

  async function timed(take: Take, through: Dispatcher, settings?: Setting[]): Promise<ToolDispatchResult> {
    const startedAt = now();
    const result = await through.dispatch(take.request, settings === undefined ? options : { ...options, settings });
    take.durationsMs.push(now() - startedAt);
    return result;
  }
}

function mayRunAgain(tool: Tool | undefined): boolean {
  return tool?.readOnly === true || tool?.idempotent === true;
}

/** Innermost, where calls are repeated: a layer may lead one to another tool than the last time. */
function repeatableOnly(): Middleware {
  return named('repeatableOnly', (call, next) =>
    mayRunAgain(call.tool)
      ? next(call)
      : fail(call, 'internal', `Tool "${printable(call.toolName)}" may not run again.`),
  );
}

function recorded({ request, durationsMs, last }: Take): RecordedCall {
  return {
    request,
    runs: durationsMs.length,
    durationMs: percentile(durationsMs, 0.5),
    ...(last as NonNullable<Take['last']>),
  };
}
