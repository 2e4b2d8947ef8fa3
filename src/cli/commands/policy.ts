import {
  type Policy,
  type PolicyExplanation,
  type PolicySource,
  type PolicyVerdict,
  validation,
} from '../../../middleware/index.ts';
import {
  createDispatcher,
  isPlainObject,
  type JsonObject,
  kindOf,
  named,
  printable,
  stopped,
  type Tool,
} from '../../index.ts';
import { faultOf } from '../../json-fault.ts';
import type { Command, Given } from '../command.ts';
import { loadTools } from '../modules.ts';
import { readPolicy } from '../open-dispatcher.ts';
import { print } from '../stdout.ts';
import { complain, type Paint, paintFor, type Style } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';

const HELP = `Usage: toolonion policy check FILE [--tools MODULE]
       toolonion policy explain FILE TOOL [ARGUMENTS] [--tools MODULE] [--json]

A policy says in JSON what tools may do: for all of them, and for some by name.

  check      reads the file and names every fault in it
  explain    says what would become of a call, and which rule decides

  --tools MODULE  a module that exports tools: check then warns of entries that fit no tool, and
                  explain fills in what the tool's schema would
  --json          the explanation as JSON

A policy:
  {
    "$schema": "./node_modules/toolonion/policy.schema.json",
    "default": { "permission": "deny", "limitMs": 10000, "outputLimit": 20000 },
    "tools": {
      "read_*": { "permission": "allow" },
      "write_file": {
        "permission": [
          { "verdict": "allow",
            "when": { "path": { "type": "string", "pattern": "^notes/[a-z]+$" } } },
          { "verdict": "deny",
            "when": { "append": { "const": false } }, "reason": "nothing is overwritten" }
        ],
        "limitMs": "none", "logValues": true
      }
    }
  }

Of the rules that speak of a call, deny beats ask beats allow. Where none of them speaks, the
default decides; without one, deny. Nobody can be asked on the command line, so ask denies there.

Exit code: 0, or 1 if check finds a fault or a likely mistake, 2 if the command cannot be used so.

Examples:
  toolonion policy check policy.json --tools tools.js
  toolonion policy explain policy.json write_file '{"path":"notes/today"}'
`;

export const policy: Command = {
  summary: 'checks a policy file, and explains what it decides',
  help: HELP,
  options: { tools: { type: 'string' }, json: { type: 'boolean' } },
  run,
};

async function run(given: Given): Promise<number> {
  const [verb, ...words] = given.words;
  if (verb === 'check' && words.length === 1) return check(words[0] as string, given);
  if (verb === 'explain' && (words.length === 2 || words.length === 3)) return explain(words, given);
  throw new UsageError('Give check FILE, or explain FILE TOOL [ARGUMENTS].');
}

async function check(path: string, given: Given): Promise<number> {
  let read: Policy;
  try {
    read = await readPolicy(path, 'The policy');
  } catch (error) {
    complain((error as Error).message);
    return 1;
  }
  const module = given.text('tools');
  const warnings = module === undefined ? [] : read.warnings(await loadTools(module));
  for (const warning of warnings) complain(`"${path}": ${warning}`);
  if (warnings.length > 0) return 1;
  const checked =
    module === undefined
      ? '. Give --tools MODULE to have its names checked, too'
      : ', and its names are those of tools';
  print(`"${path}" can be used${checked}.\n`);
  return 0;
}

async function explain([path, name, text]: readonly string[], given: Given): Promise<number> {
  const read = await readPolicy(path as string, 'The policy');
  const module = given.text('tools');
  const input = argumentsIn(text);
  const prepared = module === undefined ? { input } : await prepare(await loadTools(module), name as string, input);
  const explanation = explained(read, name as string, prepared.input);
  if (given.has('json')) {
    const refused = prepared.refused === undefined ? {} : { refused: prepared.refused };
    print(`${JSON.stringify({ tool: name, arguments: prepared.input, ...refused, ...explanation }, null, 2)}\n`);
    return 0;
  }
  const lines =
    prepared.refused === undefined
      ? described(explanation)
      : [['would be', `refused before it is judged: ${prepared.refused}`, 'red'] as const];
  const paint = paintFor(process.stdout);
  print(
    `${printable(name as string)} ${JSON.stringify(prepared.input)}\n${lines.map((line) => row(line, paint)).join('\n')}\n`,
  );
  return 0;
}

function argumentsIn(text = '{}'): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UsageError(`ARGUMENTS are no JSON: they go wrong at character ${faultOf(text) + 1} of ${text.length}.`);
  }
  if (!isPlainObject(value))
    throw new UsageError(`ARGUMENTS have to be an object, as in '{"path":"a.txt"}'; they are ${kindOf(value)}.`);
  return value as JsonObject;
}

/** The arguments as the rules would see them: checked, with what the tool's schema fills in. */
async function prepare(tools: readonly Tool[], name: string, input: JsonObject): Promise<Prepared> {
  let seen: unknown = input;
  const look = named('look', (call) => {
    seen = call.parsed;
    return stopped(call);
  });
  const { error } = await createDispatcher({ tools, middleware: [validation(), look] }).dispatch({
    name,
    arguments: input,
  });
  return error?.code === 'cancelled' ? { input: seen } : { input, refused: error?.message ?? '' };
}

interface Prepared {
  readonly input: unknown;
  /** Why the call would not get as far as the rules. */
  readonly refused?: string;
}

/** A rule that cannot be asked denies. */
function explained(
  read: Policy,
  name: string,
  input: unknown,
): PolicyExplanation | { readonly verdict: 'deny'; readonly reason: string } {
  try {
    return read.explain(name, input);
  } catch (error) {
    return { verdict: 'deny', reason: (error as Error).message };
  }
}

type Row = readonly [label: string, text: string, style?: Style];

const WORDS: Readonly<Record<PolicyVerdict, Row>> = {
  allow: ['would be', 'allowed', 'green'],
  ask: ['would be', 'asked about, and denied where nobody can be asked', 'yellow'],
  deny: ['would be', 'denied', 'red'],
};

function described(explanation: ReturnType<typeof explained>): readonly Row[] {
  const { verdict, reason } = explanation;
  const rows: Row[] = [WORDS[verdict]];
  if (reason !== undefined) rows.push(['reason', reason]);
  if (!('overruled' in explanation)) return rows;
  const { decidedBy, overruled, limitMs, outputLimit, logValues } = explanation;
  rows.push(['decided by', decidedBy ?? 'nothing in the policy: what no rule speaks of is denied']);
  for (const rule of overruled) rows.push(['overruled', `${rule.place}, which says ${rule.verdict}`]);
  rows.push(['time limit', sourced(limitMs, (value) => (value === 'none' ? 'none' : `${value} ms`), 'timeout')]);
  rows.push([
    'answer',
    sourced(
      outputLimit,
      (value) => (value === 'none' ? 'as long as it is' : `up to ${value} characters`),
      'outputLimit',
    ),
  ]);
  rows.push(['log', sourced(logValues, (value) => (value ? 'with values' : 'without values'), 'logging')]);
  return rows;
}

function sourced<Value>({ value, place }: PolicySource<Value>, say: (value: Value) => string, layer: string): string {
  return value === undefined ? `the default of ${layer}` : `${say(value)}, by ${place}`;
}

function row([label, text, style]: Row, paint: Paint): string {
  return `  ${paint(label.padEnd(11), 'dim')}${style === undefined ? text : paint(text, style)}`;
}
