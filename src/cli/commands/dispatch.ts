import type { Dispatcher } from '../../index.ts';
import { emptyTrace, type Trace, tracedIn, withProbes } from '../../testing/spans.ts';
import type { Command, Given } from '../command.ts';
import { describeResult } from '../describe-result.ts';
import { Input } from '../input.ts';
import { Interrupt } from '../interrupt.ts';
import { LateTools } from '../late-tools.ts';
import { DISPATCHER_HELP, DISPATCHER_OPTIONS, openDispatcher } from '../open-dispatcher.ts';
import { Progress } from '../progress.ts';
import { LineWriter, lineOf } from '../result-lines.ts';
import { type Format, Session } from '../session.ts';
import { paintFor, summaryOf, widthOf } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';

const HELP = `Usage: toolonion dispatch --tools MODULE [OPTIONS] [FILE]

Dispatches tool calls, one after the other: a call a line in, from FILE or standard input, and a
result a line out, in the same order. The log goes to standard error, and so does what tools print.

A call is {"name": "read_file", "arguments": {"path": "a.txt"}, "id": "call_1"}. The arguments may
be an object, or its text, as most providers give it; the id may be missing. A result is what
dispatch gives: content, isError, error, notes, toolCallId, durationMs, requested.

${DISPATCHER_HELP}  --format FORMAT      json, a line for each result, or text, for people to read
  --quiet              no log, and nothing about how far it is

Exit code: 0 if no call failed, 1 if one did, 2 if the command cannot be used so, 130 after Ctrl-C,
141 if whoever reads the results has gone away.

After Ctrl-C the call under way is stopped and answered for, and all that are left are answered as
cancelled; after a second one nothing more is written.

Examples:
  echo '{"name":"add","arguments":{"a":1,"b":2}}' | toolonion dispatch --tools tools.js --allow add
  toolonion dispatch --tools tools.js --policy policy.json calls.jsonl > results.jsonl 2> log.jsonl
  toolonion dispatch --tools tools.js --policy policy.json --format text --quiet calls.jsonl
`;

export const dispatch: Command = {
  summary: 'tool calls in, results out, a line each',
  help: HELP,
  options: { ...DISPATCHER_OPTIONS, format: { type: 'string' }, quiet: { type: 'boolean', short: 'q' } },
  run,
};

async function run(given: Given): Promise<number> {
  const quiet = given.has('quiet');
  const format = formatOf(given);
  if (given.words.length > 1) throw new UsageError('Give one file of calls, or none for standard input.');
  const writer = new LineWriter();
  const interrupt = new Interrupt(
    'Stopping: the call under way is being answered, and all that are left as cancelled. Once more ends at once.',
  );
  const progress = new Progress();
  const late = new LateTools();
  const dispatcher = await openDispatcher(given, {
    level: quiet ? 'silent' : 'info',
    beforeLog: () => progress.clear(),
    onLate: late.hear,
  });
  const input = await Input.open(given.words[0]);
  interrupt.onInterrupt = () => input.expectNoMore();
  const session = new Session(format(dispatcher), writer, interrupt, late);
  if (!quiet) progress.start(() => session.status(input));
  await session.answerAll(input).finally(() => progress.end());
  return session.exitCode;
}

function formatOf(given: Given): (dispatcher: Dispatcher) => Format {
  const name = given.text('format') ?? 'json';
  if (name === 'json') return jsonFormat;
  if (name === 'text') return textFormat;
  throw new UsageError(`--format must be json or text; got "${name}".`);
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
  let trace: Trace = [];
  return {
    dispatch(call, signal) {
      trace = emptyTrace(middleware);
      return probed.dispatch(call, { signal, settings: [tracedIn(trace)] });
    },
    print(result) {
      const text = describeResult(result, middlewareNames, trace, width, paint);
      trace = [];
      return text;
    },
    summary: (outcomes) => `\n${summaryOf(outcomes)}`,
  };
}
