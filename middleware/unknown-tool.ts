import {
  after,
  checkOptions,
  type DispatchNote,
  isBoolean,
  isListOf,
  type Middleware,
  named,
  printable,
  type ReadonlyToolRegistry,
  type Tool,
  withNote,
} from '../src/index.ts';

/** Options of `unknownTool`. */
export interface UnknownToolOptions {
  /** What a model may put before a name. Default: `functions`, `default_api`, `tools` and `google`, each with `.` or `:`. */
  readonly prefixes?: readonly string[];
  /** Whether names are taken for equal that differ only in the case of letters and in `-`, `_`, `.`, `:`, `/` and spaces. Default: true. */
  readonly normalise?: boolean;
}

const PREFIXES = ['functions', 'default_api', 'tools', 'google'].flatMap((each) => [`${each}.`, `${each}:`]);

const arePrefixes = isListOf(
  (prefix) => typeof prefix === 'string' && prefix !== '',
  'an array of texts, such as ["functions."]',
);

/**
 * Finds the tool that was meant where none has the name that was asked for: behind a prefix, before a control token of the model's, or
 * written in another way. What could be two tools is none. The result's `resolvedToolName` tells which it was.
 *
 * Outside validation and the gate, which then see the tool that will run.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example unknownTool({ prefixes: ['functions.', 'mcp__files__'] })
 */
export function unknownTool(options: UnknownToolOptions = {}): Middleware {
  checkOptions('unknownTool', options, { prefixes: arePrefixes, normalise: isBoolean });
  const { prefixes = PREFIXES, normalise = true } = options;
  const indexes = new WeakMap<ReadonlyToolRegistry, NormalNames>();

  return named('unknownTool', function unknownTool(call, next) {
    const tool = call.tool === undefined ? meant(call.name, call.tools) : undefined;
    if (tool === undefined) return next(call);
    return after(next(call.with({ tool })), (outcome) => withNote(outcome, noteOf(call.name, tool)));
  });

  /** The one tool a name can stand for. */
  function meant(name: string, tools: ReadonlyToolRegistry): Tool | undefined {
    const found = new Set<Tool | undefined>();
    for (const written of writtenNames(name, prefixes, normalise)) {
      found.add(tools.get(written));
      // All names without a letter or digit would be equal.
      const form = normalise ? normal(written) : '';
      if (form !== '') for (const tool of indexOf(tools).get(form) ?? []) found.add(tool);
    }
    found.delete(undefined);
    return found.size === 1 ? [...found][0] : undefined;
  }

  function indexOf(tools: ReadonlyToolRegistry): NormalNames {
    let index = indexes.get(tools);
    if (index === undefined) {
      index = normalNames(tools);
      indexes.set(tools, index);
    }
    return index;
  }
}

/** Tools by their names in normal form. */
type NormalNames = ReadonlyMap<string, readonly Tool[]>;

function normalNames(tools: Iterable<Tool>): NormalNames {
  const names = new Map<string, Tool[]>();
  for (const tool of tools) {
    const name = normal(tool.name);
    names.set(name, [...(names.get(name) ?? []), tool]);
  }
  return names;
}

/** Where a model's control token begins: `<|channel|>`, `</tool_call>`. */
const CONTROL_TOKEN = /<(?:[/|\uFF5C]|tool_call)/;

/** Characters of a name that are looked at: no tool has one as long. */
const MAX_NAME = 256;

/** Around a name: white space, quotes. */
const AROUND = /^[\s"'`]+|[\s"'`]+$/g;

/** A name as it may have been meant: without what follows a control token, without the number of the call, without each prefix. */
function writtenNames(name: string, prefixes: readonly string[], inAnyCase: boolean): readonly string[] {
  const cased = (text: string) => (inAnyCase ? text.toLowerCase() : text);
  const [written = ''] = name.slice(0, MAX_NAME).split(CONTROL_TOKEN, 1);
  const whole = written.replace(AROUND, '');
  return [whole, whole.replace(/:\d{1,4}$/, '')].flatMap((each) => [
    each,
    ...prefixes.filter((prefix) => cased(each).startsWith(cased(prefix))).map((prefix) => each.slice(prefix.length)),
  ]);
}

function normal(name: string): string {
  return name.toLowerCase().replace(/[-_.:/\s]/g, '');
}

function noteOf(asked: string, { name }: Tool): DispatchNote {
  const message = `There is no tool named "${printable(asked)}"; it was taken for "${printable(name)}".`;
  return { type: 'resolved', by: 'unknownTool', message };
}
