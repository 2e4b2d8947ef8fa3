import {
  after,
  checkOptions,
  type DispatchNote,
  isPlainObject,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  type Middleware,
  mapSubschemas,
  named,
  type OptionCheck,
  printable,
  type Tool,
  type ToolCall,
  withNote,
} from '../src/index.ts';

/** Other names, by the name that they stand for. */
export type Aliases = Readonly<Record<string, readonly string[]>>;

/** Options of `alias`. */
export interface AliasOptions {
  /** Other names of tools. Default: none. */
  readonly tools?: Aliases;
  /** Other names of arguments at the top, by tool. Default: none. */
  readonly arguments?: Readonly<Record<string, Aliases>>;
}

const areAliases: OptionCheck = (value) => faultIn(value) ?? true;
const areByTool: OptionCheck = (value) => {
  if (!isPlainObject(value)) return 'aliases by tool';
  const [name, fault] = Object.entries(value)
    .map(([tool, aliases]) => [tool, faultIn(aliases)] as const)
    .find(([, each]) => each !== undefined) ?? [''];
  return fault === undefined || `for "${printable(name)}" ${fault}`;
};

/**
 * Lets tools and their arguments go by other names, as where they were renamed, or where models write another word. What has a name of its own keeps
 * it: a tool of that name, an argument that the schema names, and one that is there under its own name already.
 *
 * Outside all that looks at names: validation, the gate, and what is set by tool then see the tool's own.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example alias({ tools: { read_file: ['cat', 'open_file'] }, arguments: { read_file: { path: ['file', 'filename'] } } })
 */
export function alias(options: AliasOptions): Middleware {
  checkOptions('alias', options ?? {}, { tools: areAliases, arguments: areByTool });
  const tools = meanings(options?.tools ?? {});
  const keys = new Map(Object.entries(options?.arguments ?? {}).map(([tool, aliases]) => [tool, meanings(aliases)]));

  return named('alias', function alias(call, next) {
    const tool = call.tool ?? call.tools.get(tools.get(call.name) ?? '');
    const own = tool && keys.get(tool.name);
    const input = own && call.malformed === undefined ? renamed(call, tool, own) : undefined;
    if (tool === call.tool && input === undefined) return next(call);
    const inner = call.with({ ...(tool && { tool }), ...(input && { input: input.input }) });
    const taken = [
      ...(tool === call.tool ? [] : [[call.name, tool?.name as string] as const]),
      ...(input?.taken ?? []),
    ];
    return after(next(inner), (outcome) => withNote(outcome, noteOf(taken)));
  });
}

/** Arguments by their own names; undefined where they are already. Of several names for one the first counts that was given for it. */
function renamed(call: ToolCall, tool: Tool, keys: ReadonlyMap<string, string>) {
  const given = call.input;
  if (!isPlainObject(given)) return undefined;
  const known = namedIn(tool);
  const found = new Map<string, string>();
  for (const [alias, key] of keys)
    if (Object.hasOwn(given, alias) && !known.has(alias) && !Object.hasOwn(given, key) && !found.has(key))
      found.set(key, alias);
  if (found.size === 0) return undefined;
  const names = new Map([...found].map(([key, alias]) => [alias, key]));
  const entries = Object.entries(given as JsonObject).map(([key, value]): [string, JsonValue] => [
    names.get(key) ?? key,
    value,
  ]);
  return { input: Object.fromEntries(entries), taken: [...names] };
}

const namesOfTools = new WeakMap<Tool, ReadonlySet<string>>();

/** All arguments that a schema names, in whatever branch. */
function namedIn(tool: Tool): ReadonlySet<string> {
  const known = namesOfTools.get(tool) ?? new Set(propertiesIn(tool.schema.inputSchema));
  namesOfTools.set(tool, known);
  return known;
}

function propertiesIn(schema: JsonSchema): readonly string[] {
  const found = Object.keys(isPlainObject(schema.properties) ? schema.properties : {});
  mapSubschemas(schema, (each) => {
    found.push(...propertiesIn(each));
    return each;
  });
  return found;
}

function noteOf(taken: readonly (readonly [alias: string, meant: string])[]): DispatchNote {
  const told = taken.map(([alias, meant]) => `"${printable(alias)}" was taken for "${printable(meant)}"`);
  return { type: 'aliased', by: 'alias', message: `${told.join(', and ')}.` };
}

/** What each alias stands for, in the order in which they were given. */
function meanings(aliases: Aliases): ReadonlyMap<string, string> {
  return new Map(Object.entries(aliases).flatMap(([name, all]) => all.map((each) => [each, name] as const)));
}

/** What is wrong with aliases; undefined where nothing is. */
function faultIn(value: unknown): string | undefined {
  if (!isPlainObject(value)) return 'lists of names by name, such as { query: ["q"] }';
  const seen = new Map<string, string>();
  for (const [name, all] of Object.entries(value)) {
    if (!Array.isArray(all)) return `lists of names by name; that of "${printable(name)}" is none`;
    for (const each of all) {
      if (typeof each !== 'string' || each.trim() === '')
        return `names that are not blank, as one of "${printable(name)}" is`;
      if (each !== name && Object.hasOwn(value, each))
        return `names that nothing else has; "${printable(each)}" has aliases itself`;
      if (seen.has(each))
        return `names that stand for one thing; "${printable(each)}" stands for "${printable(seen.get(each) ?? '')}" and "${printable(name)}"`;
      seen.set(each, name);
    }
  }
  return undefined;
}
