import { isPlainObject, type JsonSchema, printable, type Tool } from '../../index.ts';
import type { Command, Given } from '../command.ts';
import { MODULE_OPTIONS, openDispatcher } from '../open-dispatcher.ts';
import { print, printJson } from '../output.ts';
import { oneLine, type Paint, paintFor, widthOf } from '../terminal.ts';

const HELP = `Usage: toolonion tools --tools MODULE [--json]

Shows the tools a module exports: their names, what they say of themselves, and their arguments.

  --tools MODULE       a module that exports tools; may be repeated
  --dispatcher MODULE  in place of --tools: a module that exports a dispatcher
  --json               the whole schemas, as JSON

Examples:
  toolonion tools --tools tools.js
  toolonion tools --tools tools.js --json | jq '.[].inputSchema'
`;

export const tools: Command = {
  summary: 'the tools of a module: names, flags, arguments',
  help: HELP,
  options: { ...MODULE_OPTIONS, json: { type: 'boolean' } },
  words: 0,
  run,
};

async function run(given: Given): Promise<number> {
  const { tools: registered } = await openDispatcher(given, { level: 'silent' });
  const all = registered.tools;
  if (given.has('json')) {
    printJson(all.map(described));
    return 0;
  }
  const paint = paintFor(process.stdout);
  const width = widthOf(process.stdout);
  print(`${all.map((tool) => shown(tool, width, paint)).join('\n\n') || 'No tools.'}\n`);
  return 0;
}

/** A tool as data. */
function described(tool: Tool): object {
  const { concurrencySafe, readOnly = false, destructive = false, idempotent = false, schema } = tool;
  return {
    ...schema,
    readOnly,
    destructive,
    idempotent,
    concurrencySafe: typeof concurrencySafe === 'function' ? 'depends on the arguments' : concurrencySafe === true,
    runsHere: tool.execute !== undefined,
  };
}

/** A tool for people. */
function shown(tool: Tool, width: number, paint: Paint): string {
  const flags = flagsOf(tool);
  const head = paint(printable(tool.name), 'bold') + (flags.length > 0 ? `  ${paint(flags.join(', '), 'cyan')}` : '');
  const rows = argumentsOf(tool.schema.inputSchema);
  const nameWidth = Math.max(0, ...rows.map(({ name }) => name.length));
  const typeWidth = Math.max(0, ...rows.map(({ type }) => type.length));
  const lines = rows.map(({ name, type, text }) => {
    const line = `  ${name.padEnd(nameWidth)}  ${type.padEnd(typeWidth)}`;
    return text === ''
      ? line.trimEnd()
      : `${line}  ${paint(oneLine(text, Math.max(20, width - line.length - 2)), 'dim')}`;
  });
  return [head, `  ${oneLine(tool.description, width - 2)}`, ...lines].join('\n');
}

function flagsOf({ readOnly, destructive, idempotent, concurrencySafe, execute }: Tool): readonly string[] {
  return [
    readOnly === true ? 'read-only' : '',
    destructive === true ? 'destructive' : '',
    idempotent === true ? 'idempotent' : '',
    concurrencySafe === true ? 'concurrency-safe' : '',
    typeof concurrencySafe === 'function' ? 'concurrency-safe by its arguments' : '',
    execute === undefined ? 'does not run here' : '',
  ].filter((flag) => flag !== '');
}

interface Argument {
  /** With `?` where it may be left out. */
  readonly name: string;
  readonly type: string;
  readonly text: string;
}

function argumentsOf({ properties, required }: JsonSchema): readonly Argument[] {
  if (!isPlainObject(properties)) return [];
  const needed = Array.isArray(required) ? required : [];
  return Object.entries(properties).map(([name, schema]) => {
    const { description = '', default: fallback } = (isPlainObject(schema) ? schema : {}) as Record<string, unknown>;
    return {
      name: `${printable(name)}${needed.includes(name) ? '' : '?'}`,
      type: typeOf(schema) + (fallback === undefined ? '' : ` = ${oneLine(JSON.stringify(fallback), 30)}`),
      text: typeof description === 'string' ? description : '',
    };
  });
}

/** Levels of lists and choices that are told. */
const MAX_DEPTH = 3;

/** A type as a person would say it; the whole schema is in `--json`. */
function typeOf(schema: unknown, depth = 0): string {
  if (!isPlainObject(schema) || depth > MAX_DEPTH) return 'any';
  const { type, enum: values, const: value, items, anyOf, oneOf, $ref } = schema;
  if (value !== undefined) return oneLine(JSON.stringify(value), 40);
  if (Array.isArray(values)) return oneLine(values.map((each) => JSON.stringify(each)).join(' | '), 40);
  const choices = anyOf ?? oneOf;
  if (Array.isArray(choices))
    return oneLine([...new Set(choices.map((each) => typeOf(each, depth + 1)))].join(' | '), 40);
  if (typeof $ref === 'string') return printable($ref.split('/').at(-1) ?? '');
  const types = [type].flat().filter((each) => typeof each === 'string');
  if (types.length === 0) return 'any';
  const told = types.map((each) =>
    each === 'array' && items !== undefined ? listOf(typeOf(items, depth + 1)) : printable(each),
  );
  return [...new Set(told)].join(' | ');
}

function listOf(type: string): string {
  return type.includes(' | ') ? `(${type})[]` : `${type}[]`;
}
