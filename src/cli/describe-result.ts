import {
  codeOf,
  describeError,
  printable,
  redactor,
  type ToolDispatchResult,
  type ToolOutcome,
  textOf,
} from '../index.ts';
import type { Passage, Trace } from '../testing/index.ts';
import type { Line } from './lines.ts';
import { duration, layerName, oneLine, type Paint, wrapped } from './terminal.ts';

/** Columns before a line's text. */
const INDENT = 7;
/** Lines an answer or a note may take. */
const MOST_LINES = 3;

/** A result for people to read: what went in, the way it took through the onion, and what came out. */
export function describeResult(
  result: ToolDispatchResult,
  line: Line,
  names: readonly string[],
  trace: Trace | undefined,
  width: number,
  paint: Paint,
): string {
  const { requested, error, notes, durationMs } = result;
  const style = result.isError ? 'red' : notes.length > 0 ? 'yellow' : 'green';
  const head = [
    requested.name || `line ${line.number}`,
    codeOf(result) + (error === undefined ? '' : `, ran: ${error.executed}`),
    ...(trace === undefined ? [] : [duration(durationMs)]),
    ...(trace === undefined ? [] : [requested.id ?? '']),
  ];
  const room = width - INDENT;
  const cause = causeOf(result);
  const row = (label: string, lines: readonly string[]) =>
    paint(`  ${label.padEnd(INDENT - 2)}`, 'dim') + lines.join(`\n${' '.repeat(INDENT)}`);
  const sent = trace === undefined ? line.text : (requested.rawArguments ?? JSON.stringify(requested.input));
  return [
    paint(oneLine(head.join(' '), width), style),
    row('in', [oneLine(sent, room) || '(nothing)']),
    ...(trace === undefined ? [] : [row('way', wayOf(names, trace, room))]),
    row('out', wrapped(textOf(result.content) || '(no text)', room, MOST_LINES)),
    ...(cause === undefined ? [] : [row('why', wrapped(cause, room, MOST_LINES))]),
    ...notes.map(({ type, by, message }) => row('note', wrapped(`${type} by ${by}: ${message}`, room, MOST_LINES))),
  ].join('\n');
}

/** What the model is not told, and the person at the command line may know; nothing where the answer says it already. */
function causeOf({ error }: ToolDispatchResult): string | undefined {
  if (error === undefined || !('cause' in error) || error.code === 'timeout' || error.code === 'cancelled')
    return undefined;
  const { name, message } = redact(describeError(error.cause)) as { readonly name: string; readonly message: string };
  return error.message === message ? undefined : `${name}: ${message}`;
}

const redact = redactor();

/** The layers a call went through, each with what it did where it did more than pass the call on; on as many lines as it takes. */
function wayOf(names: readonly string[], trace: Trace, room: number): readonly string[] {
  const steps = trace.flatMap((passages, place) => {
    const outside = passages.at(-1);
    if (outside === undefined) return [];
    const name = place < names.length ? layerName(names[place] as string) : 'tool';
    const deed = place < names.length ? deedOf(outside, trace[place + 1]?.at(-1)) : toolDeedOf(outside.outcome);
    return deed === undefined ? name : `${name}: ${printable(deed)}`;
  });
  const lines: string[] = [];
  for (const step of steps) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + step.length + 5 <= room) lines[lines.length - 1] = `${last} › ${step}`;
    else lines.push(step);
  }
  return lines.length === 0
    ? ['not dispatched']
    : lines.map((each, index) => (index < lines.length - 1 ? `${each} ›` : each));
}

/** What a layer did, from what was seen outside and inside of it; undefined where it changed nothing. */
function deedOf(outside: Passage, inside: Passage | undefined): string | undefined {
  const answer = outside.outcome;
  if (answer === undefined) return 'gave no answer';
  if (answer.error?.code === 'internal' && answer !== inside?.outcome) return 'failed';
  if (inside === undefined && answer.error?.code === 'cancelled') return 'cancelled';
  if (inside === undefined) return answer.isError ? 'refused' : 'answered';
  if (inside.call.aborted && !outside.call.aborted) return 'stopped waiting';
  if (answer === inside.outcome) return undefined;
  if (answer.isError && inside.outcome?.isError !== true) return 'refused';
  return answer.notes.find((note) => inside.outcome?.notes.includes(note) !== true)?.type ?? 'changed';
}

function toolDeedOf(outcome: ToolOutcome | undefined): string | undefined {
  if (outcome === undefined) return 'gave no answer';
  if (outcome.error === undefined) return 'answered';
  return { yes: 'failed', no: 'did not run', stopped: 'was stopped', unknown: 'may still run' }[outcome.error.executed];
}
