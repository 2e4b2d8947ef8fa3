import type { ToolCallRequest } from '../../index.ts';
import { measure } from '../../testing/index.ts';
import { benchReport } from '../bench-report.ts';
import { readCall } from '../calls.ts';
import type { Command, Given } from '../command.ts';
import { leave, onStall } from '../ending.ts';
import { Input } from '../input.ts';
import { Interrupt } from '../interrupt.ts';
import { LineReader } from '../lines.ts';
import { isOwn } from '../modules.ts';
import { DISPATCHER_HELP, DISPATCHER_OPTIONS, openDispatcher } from '../open-dispatcher.ts';
import { print, printJson } from '../output.ts';
import { startProgress } from '../progress.ts';
import { ProviderCalls } from '../provider-calls.ts';
import { complain, grouped } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';

const HELP = `Usage: toolonion bench --dispatcher MODULE --calls FILE [OPTIONS]

Measures what dispatching the calls of a file costs: how long they take, what they allocate, and
what each layer adds.

Each call is dispatched to its tool: several times if the tool says that it is read-only or
idempotent, for about ten seconds, and once if not. The layers are then timed with stand-ins,
which give the recorded answers again: no tool runs more often, whatever layer is taken away. The
layers themselves run each time: a log is written, somebody is asked.

${DISPATCHER_HELP}  --calls FILE         calls, one a line, as toolonion dispatch takes them; - for standard input
  --repeats N          how often a call is dispatched to a tool that may run again; default 20
  --rounds N           rounds in which the layers are timed, for about ten seconds; default 31
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
  const dispatcher = await openDispatcher(given, { level: 'silent' });
  const calls = await readCalls(path, new ProviderCalls(dispatcher));
  if (show !== undefined && show > calls.length)
    throw new UsageError(`--show ${show}: there are ${calls.length} calls.`);
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
    if (given.has('json')) printJson(measurement);
    else print(benchReport(dispatcher.middlewareNames, measurement, show));
    return 0;
  } catch (error) {
    if (interrupt.exitCode === undefined) throw error;
    return interrupt.exitCode;
  } finally {
    endProgress();
  }
}

/** The calls of a file. @throws UsageError naming the line that holds none: figures of half the calls would mislead. */
async function readCalls(path: string, providers: ProviderCalls): Promise<readonly ToolCallRequest[]> {
  const input = Input.open(path);
  const reader = new LineReader();
  const lines = [];
  for await (const chunk of input.chunks()) lines.push(...reader.take(chunk));
  lines.push(...reader.end());
  const calls = lines.map((line) => {
    const read = readCall(line, providers);
    if ('fault' in read)
      throw new UsageError(`--calls: line ${line.number} of "${path}" holds no call: ${read.fault}.`);
    return read.call;
  });
  if (calls.length === 0) throw new UsageError(`--calls: "${path}" holds no calls.`);
  return calls;
}
