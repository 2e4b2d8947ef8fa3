import { printable } from '../index.ts';
import type { Cost, LayerCost, MeasuredCall, Measurement, Span } from '../testing/index.ts';
import { Outcomes } from './outcomes.ts';
import {
  columns,
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
} from './terminal.ts';

/** A measurement for people to read. @param show The call that is drawn, counted from 1. Default: the slowest. */
export function benchReport(layerNames: readonly string[], measurement: Measurement, show: number | undefined): string {
  const paint = paintFor(process.stdout);
  const width = widthOf(process.stdout);
  const { calls, withTools, dispatching, layers, sampled, rounds, probeUs } = measurement;
  const onion = layerNames.length === 0 ? 'no layers' : layerNames.map(layerName).join(' › ');
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
