import { type Dispatcher, printable, type ToolCallRequest } from '../../index.ts';
import {
  type Cost,
  type LayerCost,
  type MeasuredCall,
  type Measurement,
  measure,
  type Span,
} from '../../testing/index.ts';
import { readCall } from '../calls.ts';
import type { Command, Given } from '../command.ts';
import { leave, onStall } from '../ending.ts';
import { Input } from '../input.ts';
import { Interrupt } from '../interrupt.ts';
import { LineReader } from '../lines.ts';
import { isOwn } from '../modules.ts';
import { DISPATCHER_HELP, DISPATCHER_OPTIONS, openDispatcher } from '../open-dispatcher.ts';
import { Outcomes } from '../outcomes.ts';
import { print } from '../output.ts';
import { startProgress } from '../progress.ts';
import {
  columns,
  complain,
  counted,
  duration,
  grouped,
  layerName,
  oneLine,
  type Paint,
  paintFor,
  rate,
  widthOf,
  wrapped,
} from '../terminal.ts';
import { UsageError } from '../usage-error.ts';

const HELP = `Usage: toolonion bench --dispatcher MODULE --calls FILE [OPTIONS]

Measures what dispatching the calls of a file costs: how long they take, what they allocate, and
what each layer adds.

Each call is dispatched to its tool: several times if the tool says that it is read-only or
idempotent, for ten seconds at the most, and once if not. The layers are then timed with stand-ins,
which give the recorded answers again: no tool runs more often, whatever layer is taken away. The
layers themselves run each time: a log is written, somebody is asked.

${DISPATCHER_HELP}  --calls FILE         calls, one a line, as toolonion dispatch takes them; - for standard input
  --repeats N          how often a call is dispatched to a tool that may run again; default 20
  --rounds N           rounds in which the layers are timed, for ten seconds at the most; default 31
  --show N             the call, counted from 1, that is drawn layer by layer; default: the one with
                       the largest median
  --json               all figures, as JSON
  --quiet              nothing about how far it is

Without --log there is none of these layers; a dispatcher of your own logs as it does.

Exit code: 0; 2 if the command cannot be used so, or a tool brought it down; 130 after Ctrl-C.

Examples:
  toolonion bench --dispatcher dispatcher.js --calls calls.jsonl 2> log.jsonl
  toolonion bench --tools tools.js --policy policy.json --calls calls.jsonl --json
`;

export const bench: Command = {
  summary: 'what calls cost, and what each layer adds',
  help: HELP,
  options: {
    ...DISPATCHER_OPTIONS,
    calls: { type: 'string' },
    repeats: { type: 'string' },
    rounds: { type: 'string' },
    show: { type: 'string' },
    json: { type: 'boolean' },
    quiet: { type: 'boolean', short: 'q' },
  },
  words: 0,
  run,
};

async function run(given: Given): Promise<number> {
  const path = given.text('calls');
  const [repeats, rounds, show] = ['repeats', 'rounds', 'show'].map((option) => given.count(option));
  if (path === undefined) throw new UsageError('--calls FILE is missing: calls, one a line.');
  const calls = await readCalls(path);
  if (show !== undefined && show > calls.length)
    throw new UsageError(`--show ${show}: there are ${calls.length} calls.`);
  const dispatcher = await openDispatcher(given, { level: 'silent' });
  if (!isOwn(dispatcher)) {
    throw new UsageError(
      '--dispatcher: its tools are of another copy of toolonion. Use the command of that copy: npx toolonion.',
    );
  }
  const interrupt = new Interrupt('Stopping the measurement.');
  onStall(() => {
    complain('A call waits for what will never come. Give its tool a time limit, or leave the call out.');
    leave(2);
  });
  let state = 'Beginning';
  const endProgress = given.has('quiet') ? () => {} : startProgress(() => state);
  const measuring = measure(dispatcher, calls, {
    ...(repeats !== undefined && { repeats }),
    ...(rounds !== undefined && { rounds }),
    signal: interrupt.signal,
    onProgress: ({ phase, done, total }) => {
      const what = phase === 'tools' ? 'calls dispatched' : 'rounds over the layers';
      state = `${grouped(done)} of ${grouped(total)} ${what}`;
    },
  });
  try {
    const measurement = await measuring;
    if (interrupt.exitCode !== undefined) return interrupt.exitCode;
    print(given.has('json') ? `${JSON.stringify(measurement, null, 2)}\n` : report(dispatcher, measurement, show));
    return 0;
  } catch (error) {
    if (interrupt.exitCode === undefined) throw error;
    return interrupt.exitCode;
  } finally {
    endProgress();
  }
}

/** The calls of a file. @throws UsageError naming the line that holds none: figures of half the calls would mislead. */
async function readCalls(path: string): Promise<readonly ToolCallRequest[]> {
  const input = Input.open(path);
  const reader = new LineReader();
  const lines = [];
  for await (const chunk of input.chunks()) lines.push(...reader.take(chunk));
  lines.push(...reader.end());
  const calls = lines.map((line) => {
    const read = readCall(line);
    if ('fault' in read)
      throw new UsageError(`--calls: line ${line.number} of "${path}" holds no call: ${read.fault}.`);
    return read.call;
  });
  if (calls.length === 0) throw new UsageError(`--calls: "${path}" holds no calls.`);
  return calls;
}

function report({ middlewareNames }: Dispatcher, measurement: Measurement, show: number | undefined): string {
  const paint = paintFor(process.stdout);
  const width = widthOf(process.stdout);
  const { calls, withTools, dispatching, layers, sampled, rounds, probeUs } = measurement;
  const onion = middlewareNames.length === 0 ? 'no layers' : middlewareNames.map(layerName).join(' › ');
  const outcomes = new Outcomes();
  for (const { outcome } of calls) outcomes.add(outcome, outcome !== 'ok');
  const sections = [
    wrapped(`${outcomes} Through ${onion}.`, width).join('\n'),
    columns([COST_HEAD, costRow('with the tools', withTools), costRow('with stand-ins', dispatching)], paint),
    columns([CALL_HEAD, ...slowest(calls).map((index) => callRow(index, calls[index] as MeasuredCall))], paint),
  ];
  if (layers.length > 0) {
    const taken = sampled === calls.length ? 'all calls' : `${grouped(sampled)} of the calls`;
    sections.push(
      paint(`What each layer adds to a call (stand-ins for the tools, ${taken}, ${counted(rounds, 'round')})`, 'bold'),
      columns([LAYER_HEAD, ...layers.map((layer) => layerRow(layer, rounds))], paint),
      explanation(probeUs, width, paint),
    );
  }
  const index = show === undefined ? (slowest(calls)[0] as number) : show - 1;
  sections.push(waterfall(index, calls[index] as MeasuredCall, width, paint));
  return `${sections.join('\n\n')}\n`;
}

const COST_HEAD = ['', 'dispatches', 'p50', 'p90', 'p99', 'most', 'per second', 'bytes a call'];

function costRow(
  name: string,
  { dispatches, p50Ms, p90Ms, p99Ms, maxMs, perSecond, bytesPerCall }: Cost,
): readonly string[] {
  const times = [p50Ms, p90Ms, p99Ms, maxMs].map(duration);
  return [name, grouped(dispatches), ...times, rate(perSecond), grouped(bytesPerCall)];
}

/** Calls that are listed. */
const LISTED = 5;
const CALL_HEAD = ['slowest calls', '', 'outcome', 'dispatched', 'median'];

/** Indices of the slowest calls, the slowest first. */
function slowest(calls: readonly MeasuredCall[]): readonly number[] {
  const durationOf = (index: number) => calls[index]?.durationMs ?? 0;
  return [...calls.keys()].sort((a, b) => durationOf(b) - durationOf(a)).slice(0, LISTED);
}

function callRow(index: number, { request, outcome, runs, durationMs }: MeasuredCall): readonly string[] {
  const times = runs === 1 ? 'once, cold' : `${grouped(runs)} times`;
  return [`call ${grouped(index + 1)}`, oneLine(request.name, 40), printable(outcome), times, duration(durationMs)];
}

const LAYER_HEAD = ['layer', 'taken away', 'middle 80 %', 'own time', 'bytes'];

/** Fewer rounds tell nothing of the noise. */
const TELLING_ROUNDS = 7;

function layerRow({ name, takenAwayUs, ownUs, bytes }: LayerCost, rounds: number): readonly string[] {
  const us = (value: number) => duration(value / 1000);
  const { median, low, high } = takenAwayUs;
  // A difference that may as well be none is not told from the noise.
  const told = rounds < TELLING_ROUNDS || (low <= 0 && high >= 0) ? `~ ${us(median)}` : us(median);
  return [layerName(name), told, `${us(low)} to ${us(high)}`, us(ownUs), grouped(bytes)];
}

function explanation(probeUs: number, width: number, paint: Paint): string {
  const lines = [
    'taken away: how much longer a call takes with the layer than without it, in the middle and in most of the rounds. With ~ it cannot be told from nothing: more --rounds may tell. Less than nothing: the layer spares more than it costs.',
    `own time: between probes outside and inside the layer, less ${duration(probeUs / 1000)} that a probe takes. Waiting counts; less than nothing is nothing.`,
    'The two differ where layers share work, or where taking one away changes what the others have to do.',
  ];
  return lines.flatMap((line) => wrapped(line, width).map((part) => paint(part, 'dim'))).join('\n');
}

/** One call, layer by layer: where its time went. */
function waterfall(
  index: number,
  { request, outcome, spans, runs }: MeasuredCall,
  width: number,
  paint: Paint,
): string {
  const when = runs === 1 ? 'dispatched once, so all was cold' : `the last of ${grouped(runs)} times`;
  const head = paint(
    `Call ${grouped(index + 1)}, ${oneLine(request.name, 40)}: ${printable(outcome)}; ${when}`,
    'bold',
  );
  const totalMs = spans[0]?.totalMs ?? 0;
  if (totalMs === 0) return `${head}\nIt did not reach the first layer.`;
  const nameWidth = Math.max(...spans.map(({ name }) => layerName(name).length));
  const barWidth = Math.max(10, width - nameWidth - 36);
  const rows = spans.map((span) => {
    const { name, passages, ownMs } = span;
    const times = passages.length === 0 ? 'not reached' : `${duration(span.totalMs)}, own ${duration(ownMs)}`;
    return `${layerName(name).padEnd(nameWidth)}  ${paint(bar(span, totalMs, barWidth), 'cyan')}  ${times}`;
  });
  return [head, ...rows].join('\n');
}

/** From when to when a layer was at work; with gaps where it was entered again. */
function bar({ passages }: Span, totalMs: number, width: number): string {
  const cells = Array<string>(width).fill(' ');
  for (const { enteredMs, leftMs } of passages) {
    const from = Math.min(width - 1, Math.floor((enteredMs / totalMs) * width));
    const to = Math.max(from + 1, Math.min(width, Math.round((leftMs / totalMs) * width)));
    cells.fill('█', from, to);
  }
  return cells.join('');
}
