import { after, type Middleware, named, settingKey, type ToolCall, type ToolOutcome } from 'toolonion';

/** What passed one place in the onion: a call on its way in, an outcome on its way out. */
interface Passage {
  readonly call: ToolCall;
  outcome?: ToolOutcome;
}

/** What was seen of one call, by the name of the layer right inside each place; `tool` for the innermost. */
export type Trace = Map<string, Passage>;

/** Has a call written down: `dispatch(request, { settings: [tracedIn(new Map())] })`. */
export const tracedIn = settingKey<Trace>();

/** The same layers with probes between them, which see and change nothing. */
export function withProbes(layers: readonly Middleware[]): readonly Middleware[] {
  return [...layers.flatMap((layer) => [probe(layer.name), layer]), probe('tool')];
}

function probe(place: string): Middleware {
  return named(`outside ${place}`, (call, next) => {
    const passage: Passage = { call };
    call.setting(tracedIn)?.set(place, passage);
    return after(next(call), (outcome) => {
      passage.outcome = outcome;
      return outcome;
    });
  });
}

/** What a layer did, from what was seen outside and inside of it. */
export function deedOf(outside: Passage | undefined, inside: Passage | undefined): string {
  const answer = outside?.outcome;
  if (outside === undefined || answer === undefined) return '-';
  if (inside === undefined) return answer.isError ? 'refused' : 'answered';
  if (inside.call.aborted && !outside.call.aborted) return 'expired';
  if (answer === inside.outcome) return 'passed';
  if (answer.isError && inside.outcome?.isError !== true) return 'refused';
  const added = answer.notes.find((note) => inside.outcome?.notes.includes(note) !== true);
  return added?.type === 'truncated' ? 'cut' : (added?.type ?? 'changed');
}

/** What became of the tool. */
export function toolDeedOf(inside: Passage | undefined): string {
  if (inside?.outcome === undefined) return '-';
  const { error } = inside.outcome;
  if (error === undefined) return 'answered';
  return error.executed === 'yes' ? 'failed' : error.executed === 'no' ? '-' : 'aborted';
}
