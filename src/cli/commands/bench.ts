import { type Dispatcher, printable, type ToolCallRequest } from '../../index.ts';
import type { Cost, MeasuredCall, Measurement, Span } from '../../testing/index.ts';
import { measure } from '../../testing/index.ts';
import { readCall } from '../calls.ts';
import type { Command, Given } from '../command.ts';
import { Input } from '../input.ts';
import { Interrupt } from '../interrupt.ts';
import { LineReader } from '../lines.ts';
import { isOwn } from '../modules.ts';
import { DISPATCHER_HELP, DISPATCHER_OPTIONS, openDispatcher } from '../open-dispatcher.ts';
import { Progress } from '../progress.ts';
import { print } from '../stdout.ts';
import { columns, counted, duration, oneLine, type Paint, paintFor, summaryOf, widthOf } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';

const HELP = `Usage: toolonion bench --dispatcher MODULE --calls FILE [OPTIONS]

Measures what dispatching the calls of a file costs: how long they take, what they allocate, and
what each layer adds.

Each call is dispatched to its tool: several times if the tool says that it is read-only or
idempotent, and once if not. The layers are then timed with stand-ins, which give the recorded
answers again; so no tool runs oftener, whatever layer is taken away. The layers themselves run each
time: a log is written, somebody is asked.

${DISPATCHER_HELP}  --calls FILE         calls, one a line, as toolonion dispatch takes them; - for standard input
  --repeats N          how often a call is dispatched to a tool that may run again; default 20
  --rounds N           rounds in which the layers are timed; default 31
  --show N             the call, counted from 1, that is drawn layer by layer; default: the slowest
  --json               all figures, as JSON
  --quiet              nothing about how far it is

Examples:
  toolonion bench --dispatcher dispatcher.js --calls calls.jsonl
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
  run,
};

async function run(given: Given): Promise<number> {
  const path = given.text('calls');
  const [repeats, rounds, show] = ['repeats', 'rounds', 'show'].map((option) => given.count(option));
  if (path === undefined) throw new UsageError('--calls FILE is missing: calls, one a line.');
  const interrupt = new Interrupt('Stopping the measurement.');
  const dispatcher = await openDispatcher(given, { level: 'silent' });
  if (!isOwn(dispatcher)) {
    throw new UsageError(
      '--dispatcher: its tools are of another copy of toolonion. Use the command of that copy: npx toolonion.',
    );
  }
  const calls = await readCalls(path);
  if (show !== undefined && show > calls.length)
    throw new UsageError(`--show ${show}: there are ${calls.length} calls.`);
  const progress = new Progress();
  let state = 'Beginning';
  if (!given.has('quiet')) progress.start(() => state);
  try {
    const measurement = await measure(dispatcher, calls, {
      ...(repeats !== undefined && { repeats }),
      ...(rounds !== undefined && { rounds }),
      signal: interrupt.signal,
      onProgress: ({ phase, done, total }) => {
        const what = phase === 'tools' ? 'calls dispatched' : 'rounds over the layers';
        state = `${counted(done)} of ${counted(total)} ${what}`;
      },
    });
    progress.end();
    print(given.has('json') ? `${JSON.stringify(measurement, null, 2)}\n` : report(dispatcher, measurement, show));
    return 0;
  } catch (error) {
    if (interrupt.exitCode === undefined) throw error;
    return interrupt.exitCode;
  } finally {
    progress.end();
  }
}

/** The calls of a file. @throws UsageError naming the line that holds none: figures of half the calls would mislead. */
async function readCalls(path: string): Promise<readonly ToolCallRequest[]> {
  const input = await Input.open(path);
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
  const { calls, withTools, dispatching, layers, sampled, probeUs } = measurement;
  const onion = middlewareNames.length === 0 ? 'no layers' : middlewareNames.map(nameOf).join(' › ');
  const sections = [
    `${summaryOf(countedOutcomes(calls))} Through ${onion}.`,
    columns([COST_HEAD, costRow('with the tools', withTools), costRow('with stand-ins', dispatching)], paint),
  ];
  if (layers.length > 0) {
    sections.push(
      paint(`What each layer adds to a call (with stand-ins for the tools, ${counted(sampled)} of the calls)`, 'bold'),
      columns([LAYER_HEAD, ...layers.map(layerRow)], paint),
      explanation(probeUs, paint),
    );
  }
  const number = show ?? slowest(calls) + 1;
  sections.push(waterfall(number, calls[number - 1] as MeasuredCall, paint));
  return `${sections.join('\n\n')}\n`;
}

const COST_HEAD = ['', 'dispatches', 'p50', 'p90', 'p99', 'most', 'per second', 'bytes a call'];

function costRow(
  name: string,
  { dispatches, p50Ms, p90Ms, p99Ms, maxMs, perSecond, bytesPerCall }: Cost,
): readonly string[] {
  const times = [p50Ms, p90Ms, p99Ms, maxMs].map(duration);
  return [name, counted(dispatches), ...times, counted(perSecond), counted(bytesPerCall)];
}

/** A layer may have no name, and a stranger's may have any. */
function nameOf(layer: string): string {
  return printable(layer) || '(no name)';
}

const LAYER_HEAD = ['layer', 'taken away', 'middle 80 %', 'own time', 'bytes'];

function layerRow({ name, takenAwayUs, ownUs, bytes }: Measurement['layers'][number]): readonly string[] {
  const us = (value: number) => duration(value / 1000);
  return [
    name || '(no name)',
    us(takenAwayUs.median),
    `${us(takenAwayUs.low)} to ${us(takenAwayUs.high)}`,
    us(ownUs),
    counted(bytes),
  ];
}

function explanation(probeUs: number, paint: Paint): string {
  const lines = [
    'taken away: how much quicker a call is without the layer, in the middle and in most of the rounds; what is',
    'negative spares more than it costs, or is lost in the noise.',
    `own time: between probes outside and inside it, less ${duration(probeUs / 1000)} that a probe takes. Waiting counts.`,
    'The two differ where layers share work, or where taking one away changes what the others have to do.',
  ];
  return lines.map((line) => paint(line, 'dim')).join('\n');
}

function countedOutcomes(calls: readonly MeasuredCall[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { outcome } of calls) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  return counts;
}

function slowest(calls: readonly MeasuredCall[]): number {
  return calls.reduce((most, { durationMs }, index) => (durationMs > (calls[most]?.durationMs ?? 0) ? index : most), 0);
}

/** One call, layer by layer: where its time went. */
function waterfall(number: number, { request, outcome, spans }: MeasuredCall, paint: Paint): string {
  const head = paint(
    `Call ${number}, ${oneLine(request.name, 40)}: ${outcome}; the last time it was dispatched`,
    'bold',
  );
  const totalMs = spans[0]?.totalMs ?? 0;
  if (totalMs === 0) return `${head}\nIt did not reach the first layer.`;
  const nameWidth = Math.max(...spans.map(({ name }) => nameOf(name).length));
  const barWidth = Math.max(10, widthOf(process.stdout) - nameWidth - 36);
  const rows = spans.map((span) => {
    const times = span.passages.length === 0 ? 'not reached' : `${duration(span.totalMs)}, own ${duration(span.ownMs)}`;
    return `${nameOf(span.name).padEnd(nameWidth)}  ${paint(bar(span, totalMs, barWidth), 'cyan')}  ${times}`;
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
