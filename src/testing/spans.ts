import type { ToolCall } from '../call.ts';
import { isPromise } from '../maybe-promise.ts';
import { type Middleware, named } from '../middleware.ts';
import type { ToolOutcome } from '../outcome.ts';
import { type SettingKey, settingKey } from '../settings.ts';

/** One time a call passed a place between two layers: on its way in, and an outcome on its way out. */
export interface Passage {
  readonly call: ToolCall;
  /** Milliseconds on the call's clock. */
  readonly enteredAt: number;
  /** Undefined as long as nothing has come out. */
  leftAt?: number;
  outcome?: ToolOutcome;
  /** Whether the outcome was there at once, or a promise of it. */
  atOnce?: boolean;
}

/** What passed each place: first outside the outermost layer, last outside the tool. A retry makes a place be passed again. */
export type Trace = readonly Passage[][];

/** Has a call written down: `dispatch(request, { settings: [tracedIn(emptyTrace(layers))] })`. */
export const tracedIn: SettingKey<Trace> = settingKey<Trace>();

export function emptyTrace(layers: readonly Middleware[]): Trace {
  return [...layers.map(() => []), []];
}

/** The same layers with probes between them, which see and change nothing. */
export function withProbes(layers: readonly Middleware[]): readonly Middleware[] {
  return [...layers.flatMap((layer, place) => [probe(place, layer.name), layer]), probe(layers.length, 'tool')];
}

function probe(place: number, inside: string): Middleware {
  return named(`outside ${inside}`, (call, next) => {
    const passages = call.setting(tracedIn)?.[place];
    if (passages === undefined) return next(call);
    const passage: Passage = { call, enteredAt: call.clock.now() };
    passages.push(passage);
    const outcome = next(call);
    if (!isPromise(outcome)) return left(passage, outcome, true);
    return outcome.then((settled) => left(passage, settled, false));
  });
}

function left(passage: Passage, outcome: ToolOutcome, atOnce: boolean): ToolOutcome {
  passage.leftAt = passage.call.clock.now();
  passage.outcome = outcome;
  passage.atOnce = atOnce;
  return outcome;
}

/** The time a call spent in one layer and in all that is inside it. */
export interface Span {
  /** The name of the layer; `tool` for the innermost. */
  readonly name: string;
  /** When it was entered and left, in milliseconds since the outermost was entered; several times where a layer called `next` again. */
  readonly passages: readonly { readonly enteredMs: number; readonly leftMs: number }[];
  /** Milliseconds in it and in all that is inside. */
  readonly totalMs: number;
  /** Milliseconds in it alone. */
  readonly ownMs: number;
}

/** Spans of a trace, outermost first. What has never come out ends with the dispatch, after `durationMs`. */
export function spansOf(trace: Trace, layers: readonly Middleware[], durationMs: number): readonly Span[] {
  const startedAt = trace[0]?.[0]?.enteredAt ?? 0;
  const passages = trace.map((place) =>
    place.map(({ enteredAt, leftAt }) => ({
      enteredMs: enteredAt - startedAt,
      leftMs: leftAt === undefined ? durationMs : leftAt - startedAt,
    })),
  );
  const totals = passages.map((place) => place.reduce((sum, { enteredMs, leftMs }) => sum + leftMs - enteredMs, 0));
  return passages.map((passed, place) => {
    const totalMs = totals[place] as number;
    const name = layers[place]?.name ?? 'tool';
    return { name, passages: passed, totalMs, ownMs: totalMs - (totals[place + 1] ?? 0) };
  });
}
