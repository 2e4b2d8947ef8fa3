import { cloneJson, isPlainObject, type JsonValue } from '../json.ts';
import { checkOptions, isBoolean, type OptionChecks } from '../options.ts';
import type { JsonSchema, ToolSchema } from '../schema.ts';
import { type NameRule, ToolNames } from './names.ts';
import { type Dialect, fitted } from './schema/dialect.ts';
import { Budget } from './schema/extent.ts';
import { type OneRoot, withOneRoot } from './schema/one-root.ts';
import { escaped, type SchemaLoss } from './schema/parts.ts';
import { wellFormed } from './wire.ts';

/** Tools as a provider is told of them, and their names there. */
export interface WireTools<Definition> {
  readonly tools: Definition[];
  /** The way back: for the calls of the reply. */
  readonly names: ToolNames;
  /** What the provider is not told, or not as a rule, for it would refuse it. */
  readonly losses: readonly ToolLoss[];
}

/** Something that the schema of a tool says and a provider is not told, or not as a rule. */
export interface ToolLoss extends SchemaLoss {
  readonly tool: string;
}

/** An object schema, as every provider wants one for arguments. */
export interface ObjectSchema {
  type: 'object';
  [keyword: string]: unknown;
}

/** How tools are told. */
export interface DefinitionsOptions {
  /**
   * Whether the provider is to hold its model to the schemas, as far as it can: what else they say is told in their descriptions. A schema that it
   * cannot hold its model to at all is told as it is. Default: false.
   */
  readonly strict?: boolean;
}

const DEFINITIONS_OPTIONS: OptionChecks = { strict: isBoolean };

/** What a provider takes of tools. */
export interface ToolRules {
  readonly names: NameRule;
  /** What it can hold its model to. Default: nothing. */
  readonly dialect?: Dialect;
  /** Whether the arguments may be told by several schemas. Default: false. */
  readonly takesUnions?: boolean;
  /** What it takes for the names of arguments. Default: anything. */
  readonly arguments?: NameRule;
}

/** A tool as all providers are told of it. */
export interface ToldTool<Source> {
  readonly name: string;
  readonly description: string;
  readonly schema: ObjectSchema;
  /** Whether its provider can hold its model to the schema, and is to. */
  readonly isStrict: boolean;
  readonly source: Source;
}

/**
 * Definitions of tools in the form of a provider. Their schemas are copies, half surrogate pairs aside, and whole: `$defs`, `$ref` and descriptions as
 * they are, but for what the provider would refuse.
 *
 * @throws TypeError naming the option and what is allowed.
 */
export function definitionsOf<Source extends ToolSchema, Definition>(
  tools: Iterable<Source>,
  rules: ToolRules,
  options: DefinitionsOptions,
  shape: (tool: ToldTool<Source>) => Definition,
): WireTools<Definition> {
  checkOptions('definitions', options, DEFINITIONS_OPTIONS);
  const all = [...tools];
  const names = new ToolNames(
    all.map(({ name }) => name),
    rules.names,
  );
  const losses: ToolLoss[] = [];
  const dialect = options.strict ? rules.dialect : undefined;
  const budget = new Budget(dialect?.mostOfAll);
  const definitions = all.map((source) => {
    const { name: tool, description, inputSchema } = source;
    const one = rules.takesUnions ? whole(inputSchema) : withOneRoot(inputSchema);
    const strict = dialect && budget.within(fitted(one, dialect));
    for (const loss of [...one.losses, ...(strict?.losses ?? [])]) losses.push({ tool, ...loss });
    const schema = schemaOf(strict?.schema ?? one.schema);
    if (rules.arguments) {
      const own = names.addArguments(tool, Object.keys(schema['properties'] as object), rules.arguments);
      for (const name of renameArguments(schema, own))
        losses.push({
          tool,
          place: '',
          keyword: 'properties',
          message: `What else speaks of ${JSON.stringify(name)} has another name for it.`,
        });
    }
    const isStrict = strict?.schema !== undefined;
    return shape({ name: names.told(tool), description: description.toWellFormed(), schema, isStrict, source });
  });
  return { tools: definitions, names, losses };
}

function whole(schema: JsonSchema): OneRoot {
  return { schema, losses: [], wasUnion: false, isPartial: false };
}

function schemaOf(schema: Readonly<Record<string, unknown>>): ObjectSchema {
  const { type: _, properties, ...rest } = wellFormed(cloneJson(schema as JsonValue)) as Record<string, unknown>;
  // OpenAI refuses a schema without properties.
  return { type: 'object', properties: isPlainObject(properties) ? properties : {}, ...rest };
}

/** Gives arguments other names. @returns those that the schema speaks of elsewhere. */
function renameArguments(schema: ObjectSchema, names: ToolNames): readonly string[] {
  const { type, properties, required, ...others } = schema;
  const own = Object.entries(properties as Record<string, unknown>);
  const rest = JSON.stringify([others, properties]);
  const isElsewhere = (name: string) =>
    JSON.stringify(others).includes(JSON.stringify(name)) ||
    rest.includes(JSON.stringify(`#/properties/${escaped(name)}`).slice(0, -1));
  schema['properties'] = Object.fromEntries(own.map(([name, each]) => [names.told(name), each]));
  if (Array.isArray(required)) schema['required'] = required.map((name) => names.told(name));
  return own.map(([name]) => name).filter((name) => names.told(name) !== name && isElsewhere(name));
}
