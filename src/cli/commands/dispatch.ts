import type { Dispatcher, ToolDispatchResult } from '../../index.ts';
import { emptyTrace, type Trace, tracedIn, withProbes } from '../../testing/index.ts';
import type { Command, Given } from '../command.ts';
import { describeResult } from '../describe-result.ts';
import { Input } from '../input.ts';
import { Interrupt } from '../interrupt.ts';
import { LateTools, NoLateTools } from '../late-tools.ts';
import { LineWriter } from '../line-writer.ts';
import { DISPATCHER_HELP, DISPATCHER_OPTIONS, openDispatcher } from '../open-dispatcher.ts';
import { startProgress } from '../progress.ts';
import { ProviderCalls } from '../provider-calls.ts';
import { lineOf } from '../result-line.ts';
import { type Format, Session } from '../session.ts';
import { complain, paintFor, widthOf } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';

const HELP = `Usage: toolonion dispatch --tools MODULE [OPTIONS] [FILE]

Dispatches tool calls, one after the other: a call a line in, from FILE or standard input, and a
result a line out, in the same order. The log goes to standard error, and so does what tools print.

A call is {"name": "read_file", "arguments": {"path": "a.txt"}, "id": "call_1"}. The arguments may
be an object, or its text; the id may be missing. It may also be a call as OpenAI, Anthropic, Gemini
or a client of MCP tells it. A result is what dispatch gives: resolvedToolName, content, isError,
notes, toolCallId, durationMs, requested, and where there are any structured, error, control.

${DISPATCHER_HELP}  --format FORMAT      json: a line for each result, and --log info unless it says otherwise;
                       text: for people to read, and --log silent
  --quiet              no log of these layers, and nothing about how far it is

Exit code: 0 if no call failed; 1 if one did, or if a tool failed where nobody waited for it; 2 if
the command cannot be used so, or results cannot be written; 130 after Ctrl-C, 143 after SIGTERM;
141 if whoever reads the results has gone away; 70 if the command itself is at fault.

After Ctrl-C the call under way is stopped and answered for, and all that are left are answered as
cancelled; after a second one the process ends.

Examples:
  echo '{"name":"add","arguments":{"a":1,"b":2}}' | toolonion dispatch --tools tools.js --allow add
  toolonion dispatch --tools tools.js --policy policy.json calls.jsonl > results.jsonl 2> log.jsonl
  toolonion dispatch --tools tools.js --policy policy.json --format text --quiet calls.jsonl
`;

export const dispatch: Command = {
  summary: 'tool calls in, results out, a line each',
  help: HELP,
  options: { ...DISPATCHER_OPTIONS, format: { type: 'string' }, quiet: { type: 'boolean', short: 'q' } },
  words: 1,
  run,
};

async function run(given: Given): Promise<number> {
  const [path] = given.words;
  const quiet = given.has('quiet');
  const asText = isText(given.text('format') ?? 'json');
  if (quiet && given.text('log') !== undefined) throw new UsageError('--quiet and --log exclude each other.');
  const input = Input.open(path);
  // A dispatcher of one's own tells its own host of late tools.
  const late = given.text('dispatcher') === undefined ? new LateTools() : new NoLateTools();
  const level = quiet || asText ? 'silent' : 'info';
  const dispatcher = await openDispatcher(given, { level, onLate: late.hear });
  // Not before: until calls can be answered, Ctrl-C is to end the process as it ends any other.
  const interrupt = new Interrupt(
    'Stopping: the call under way is being answered, and all that are left as cancelled. Once more ends at once.',
  );
  const format = (asText ? textFormat : jsonFormat)(dispatcher);
  const session = new Session(new ProviderCalls(dispatcher), format, new LineWriter(), interrupt, late);
  if (input.isTerminal && !quiet) complain('Reading calls from the terminal, one a line. Ctrl-D ends them.');
  // Whoever types sees how far it is, and must not be written over.
  const endProgress = quiet || input.isTerminal ? () => {} : startProgress(() => session.status(input));
  await session.answerAll(input).finally(endProgress);
  return session.exitCode;
}

function isText(format: string): boolean {
  if (format !== 'json' && format !== 'text') throw new UsageError(`--format must be json or text; got "${format}".`);
  return format === 'text';
}

function jsonFormat(dispatcher: Dispatcher): Format {
  return { dispatch: (call, signal) => dispatcher.dispatch(call, { signal }), print: lineOf };
}

/** Dispatches past probes, which see what each layer does. */
function textFormat(dispatcher: Dispatcher): Format {
  const { middleware, middlewareNames } = dispatcher;
  const probed = dispatcher.with({ middleware: withProbes(middleware) });
  const paint = paintFor(process.stdout);
  const width = widthOf(process.stdout);
  const traces = new WeakMap<ToolDispatchResult, Trace>();
  return {
    async dispatch(call, signal) {
      const trace = emptyTrace(middleware);
      const result = await probed.dispatch(call, { signal, settings: [tracedIn(trace)] });
      traces.set(result, trace);
      return result;
    },
    print: (result, line) => describeResult(result, line, middlewareNames, traces.get(result), width, paint),
    summary: (outcomes) => `\n${outcomes}`,
  };
}
