import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { createDispatcher, ToolContext, type ToolDispatchResult, textOf } from 'toolonion';
import { rules, standard, timeoutMs } from 'toolonion/middleware';
import { calls, type RecordedCall } from './calls.ts';
import * as tools from './tools.ts';
import { deedOf, type Trace, toolDeedOf, tracedIn, withProbes } from './trace.ts';

/** Colours, for terminals only. */
const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const;
type Style = keyof typeof CODES;

/** The lines the logging layer writes, kept here so that they do not get in the way of the table. */
const log: { readonly level: number; readonly toolCallId: string }[] = [];
const logger = pino({ base: null }, { write: (line) => log.push(JSON.parse(line)) });

const layers = standard({
  logging: { logger },
  permission: {
    check: rules({
      allow: ['list_*', 'read_*', 'search_*', 'count_*', 'wait_*', 'build_*'],
      deny: [{ tool: 'delete_*', reason: 'nothing may be deleted in a demo' }],
    }),
  },
  outputLimit: { limit: 1000 },
  timeout: { limitMs: 5000 },
});

let hear: (answer: string) => void = () => {};
const late = new Promise<string>((resolve) => {
  hear = resolve;
});
const dispatcher = createDispatcher({
  tools: Object.values(tools),
  middleware: withProbes(layers),
  context: new ToolContext({ cwd: fileURLToPath(new URL('../..', import.meta.url)) }),
  onLate: (outcome, call) => hear(`${call.name} answered "${textOf(outcome.content)}"`),
});

const places = [...layers.map((layer) => layer.name), 'tool'];
const columns = ['call', ...places, 'executed', 'ms'];
const widths = columns.map((column) => (column === 'call' ? 18 : Math.max(column.length, 8)));

say(`${calls.length} recorded tool calls, one by one through standard():`);
say('');
say(row(columns), 'bold');
for (const recorded of calls) await show(recorded);
say('');
say('logging: the level of its line.  passed: unchanged.  refused: answered in its own words.  cut: shortened.');
say('expired: no longer waited for.  -: not reached.  executed: whether the tool has run, as far as is known.');
say('');
say(`Late: ${await late}. Its call had been answered by then, so only onLate heard it.`);
say('Next: docs/guide/getting-started.md. Or change docs/examples/calls.ts, and run this again.');

async function show({ request, limitMs }: RecordedCall): Promise<void> {
  const trace: Trace = new Map();
  const settings = [tracedIn(trace), ...(limitMs === undefined ? [] : [timeoutMs(limitMs)])];
  const result = await dispatcher.dispatch(request, { settings });
  const executed = result.error?.executed ?? 'yes';
  say(row([request.name, ...deedsOf(result, trace), executed, result.durationMs.toFixed(1)]), styleOf(result));
  say(`   in   ${request.arguments || '(no arguments)'}`, 'dim');
  say(`   out  ${result.error?.code ?? 'ok'}: ${textOf(result.content)}`);
  for (const { type, by, message } of result.notes) say(`   note ${type} by ${by}: ${message}`);
}

/** What each layer did, as the probes on either side of it saw it. */
function deedsOf(result: ToolDispatchResult, trace: Trace): readonly string[] {
  const line = log.find(({ toolCallId }) => toolCallId === result.toolCallId);
  return places.map((place, index) => {
    if (place === 'logging') return line === undefined ? '-' : (pino.levels.labels[line.level] ?? '');
    const inside = places[index + 1];
    return inside === undefined ? toolDeedOf(trace.get(place)) : deedOf(trace.get(place), trace.get(inside));
  });
}

function row(cells: readonly string[]): string {
  return cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join(' ');
}

function styleOf(result: ToolDispatchResult): Style {
  if (result.isError) return 'red';
  return result.notes.length > 0 ? 'yellow' : 'green';
}

/** Prints one line of at most 120 columns, in colour on a terminal. */
function say(text: string, style?: Style): void {
  const line = text
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll(/\p{Cc}/gu, ' ')
    .trimEnd();
  const short = line.length > 120 ? `${line.slice(0, 119).toWellFormed()}…` : line;
  const coloured = process.stdout.isTTY === true && !process.env['NO_COLOR'] && style !== undefined;
  console.log(coloured ? `\u001b[${CODES[style]}m${short}\u001b[0m` : short);
}
