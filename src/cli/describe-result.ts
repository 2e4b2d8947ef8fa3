import { codeOf, printable, type ToolDispatchResult, type ToolOutcome, textOf } from '../index.ts';
import type { Passage, Trace } from '../testing/spans.ts';
import { duration, oneLine, type Paint } from './terminal.ts';

/** Columns before a line's text. */
const INDENT = 7;

/** A result for people to read: what went in, the way it took through the onion, and what came out. */
export function describeResult(
  result: ToolDispatchResult,
  names: readonly string[],
  trace: Trace,
  width: number,
  paint: Paint,
): string {
  const { requested, toolCallId, error, notes, durationMs } = result;
  const style = result.isError ? 'red' : notes.length > 0 ? 'yellow' : 'green';
  const ran = error === undefined ? '' : `, ran: ${error.executed}`;
  const head = `${requested.name || '(no name)'}  ${codeOf(result)}${ran}  ${duration(durationMs)}  ${toolCallId}`;
  const room = width - INDENT;
  const line = (label: string, text: string) => `${paint(`  ${label.padEnd(INDENT - 2)}`, 'dim')}${text}`;
  return [
    paint(oneLine(head, width), style),
    line('in', oneLine(requested.rawArguments ?? JSON.stringify(requested.input), room) || '(no arguments)'),
    line('way', wrapped(wayOf(names, trace), room)),
    line('out', oneLine(textOf(result.content), room) || '(no text)'),
    ...notes.map(({ type, by, message }) => line('note', oneLine(`${type} by ${by}: ${message}`, room))),
  ].join('\n');
}

/** The layers a call went through, each with what it did where it did more than pass the call on. */
function wayOf(names: readonly string[], trace: Trace): readonly string[] {
  const steps = trace.flatMap((passages, place) => {
    const outside = passages.at(-1);
    if (outside === undefined) return [];
    const name = place < names.length ? printable(names[place] as string) || '(no name)' : 'tool';
    const deed = place < names.length ? deedOf(outside, trace[place + 1]?.at(-1)) : toolDeedOf(outside.outcome);
    return deed === undefined ? name : `${name}: ${deed}`;
  });
  return steps.length === 0 ? ['not dispatched'] : steps;
}

/** Steps on as many lines as they need. */
function wrapped(steps: readonly string[], room: number): string {
  const lines: string[] = [];
  for (const step of steps) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + step.length + 5 <= room) lines[lines.length - 1] = `${last} › ${step}`;
    else lines.push(step);
  }
  return lines.join(` ›\n${' '.repeat(INDENT)}`);
}

/** What a layer did, from what was seen outside and inside of it; undefined where it changed nothing. */
function deedOf(outside: Passage, inside: Passage | undefined): string | undefined {
  const answer = outside.outcome;
  if (answer === undefined) return 'gave no answer';
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
