import {
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
  succeed,
  type Tool,
} from '../../index.ts';
import type { Command, Given } from '../command.ts';
import { parseJson, readText } from '../json-file.ts';
import { loadTools } from '../modules.ts';
import { print, printJson } from '../output.ts';
import { parsePolicy, readPolicy } from '../policy-file.ts';
import { complain, harmless, type Paint, paintFor, type Style } from '../terminal.ts';
import { UsageError } from '../usage-error.ts';

const HELP = `Usage: toolonion policy check FILE [--tools MODULE]
       toolonion policy explain FILE TOOL [ARGUMENTS] [--tools MODULE] [--json]

A policy says in JSON what tools may do: for all of them, and for some by name.

  check      reads the file and names what is wrong in it
  explain    says what would become of a call, and which rule decides

  --tools MODULE  a module that exports tools; may be repeated. check then warns of entries that fit
                  no tool, and explain fills in what the tool's schema would
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

Exit code: 0; 1 if check finds a fault or a likely mistake; 2 if the command cannot be used so.

Examples:
  toolonion policy check policy.json --tools tools.js
  toolonion policy explain policy.json write_file '{"path":"notes/today"}' --tools tools.js
`;

export const policy: Command = {
  summary: 'checks a policy file, and explains what it decides',
  help: HELP,
  options: { tools: { type: 'string', multiple: true }, json: { type: 'boolean' } },
  words: 4,
  run,
};

async function run(given: Given): Promise<number> {
  const [verb = '', ...words] = given.words;
  const [file, name, text] = words;
  if (verb === 'check' && words.length === 1 && !given.has('json')) return check(file as string, given);
  if (verb === 'explain' && (words.length === 2 || words.length === 3)) {
    return explain(file as string, name as string, argumentsIn(text), given);
  }
  throw new UsageError(
    'Give policy check FILE, or policy explain FILE TOOL [ARGUMENTS] [--json]. See toolonion policy --help.',
  );
}

async function check(path: string, given: Given): Promise<number> {
  const text = await readText(path, 'FILE');
  const modules = given.texts('tools');
  const faults = faultsIn(text, path, await loadTools(modules));
  for (const fault of faults) complain(fault);
  if (faults.length > 0) return 1;
  const checked =
    modules.length > 0 ? ', and its names are those of tools' : '. Give --tools MODULE to have its names checked, too';
  print(`"${path}" can be used${checked}.\n`);
  return 0;
}

/** What is wrong with a policy, or probably. */
function faultsIn(text: string, path: string, tools: readonly Tool[]): readonly string[] {
  try {
    const parsed = parsePolicy(text, path);
    return tools.length === 0 ? [] : parsed.warnings(tools).map((warning) => `"${path}": ${warning}`);
  } catch (error) {
    if (UsageError.is(error)) return [error.message];
    throw error;
  }
}

async function explain(path: string, name: string, given: JsonObject, { has, texts }: Given): Promise<number> {
  const read = await readPolicy(path, 'FILE');
  const modules = texts('tools');
  const prepared = modules.length === 0 ? { input: given } : await prepare(await loadTools(modules), name, given);
  const { input } = prepared;
  const explanation = 'refused' in prepared ? { refused: prepared.refused } : read.explain(name, input);
  if (has('json')) {
    printJson({ tool: name, arguments: input, ...explanation });
    return 0;
  }
  const paint = paintFor(process.stdout);
  const rows = 'refused' in explanation ? refusal(explanation.refused) : described(explanation, modules.length > 0);
  print(
    `${printable(name)} ${harmless(JSON.stringify(input))}\n${rows.map((each) => `${row(each, paint)}\n`).join('')}`,
  );
  return 0;
}

function argumentsIn(text = '{}'): JsonObject {
  const value = parseJson(text, 'ARGUMENTS');
  if (isPlainObject(value)) return value as JsonObject;
  throw new UsageError(`ARGUMENTS have to be an object, as in '{"path":"a.txt"}', not ${kindOf(value)}.`);
}

/** The arguments as the rules would see them: checked, with what the tool's schema fills in; or why they would not get there. */
async function prepare(tools: readonly Tool[], name: string, input: JsonObject): Promise<Prepared> {
  let seen: unknown = input;
  const look = named('look', (call) => {
    seen = call.parsed;
    return succeed(call, { content: '', isError: false });
  });
  const { error } = await createDispatcher({ tools, middleware: [validation(), look] }).dispatch({
    name,
    arguments: input,
  });
  return error === undefined ? { input: seen } : { input, refused: error.message };
}

type Prepared = { readonly input: unknown } | { readonly input: unknown; readonly refused: string };

type Row = readonly [label: string, text: string, style?: Style];

const WORDS: Readonly<Record<PolicyVerdict, Row>> = {
  allow: ['would be', 'allowed', 'green'],
  ask: ['would be', 'asked about, and denied where nobody can be asked', 'yellow'],
  deny: ['would be', 'denied', 'red'],
};

function refusal(message: string): readonly Row[] {
  const lines = message.split('\n').map((line): Row => ['', line]);
  return [['would be', 'refused before it is judged', 'red'], ...lines];
}

function described(explanation: PolicyExplanation, isPrepared: boolean): readonly Row[] {
  const { verdict, reason, decidedBy, overruled, limitMs, outputLimit, logValues } = explanation;
  const rows: Row[] = [WORDS[verdict]];
  if (reason !== undefined) rows.push(['reason', reason]);
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
  if (!isPrepared)
    rows.push(['but', 'for arguments just as given: --tools MODULE has them checked, and defaults filled in']);
  return rows;
}

function sourced<Value>({ value, place }: PolicySource<Value>, say: (value: Value) => string, layer: string): string {
  return value === undefined ? `the default of ${layer}` : `${say(value)}, by ${place}`;
}

function row([label, text, style]: Row, paint: Paint): string {
  const told = harmless(text).replaceAll('\n', ' ');
  return `  ${paint(label.padEnd(12), 'dim')}${style === undefined ? told : paint(told, style)}`;
}
