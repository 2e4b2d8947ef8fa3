import { type Content, type ResourceLinkPart, textOf } from '../content.ts';
import { type ForModelOptions, forModel, leftOut, toldContent } from '../for-model.ts';
import { cloneJson, isPlainObject, type JsonObject, type JsonValue } from '../json.ts';
import { linkText } from '../media.ts';
import { checkOptions, isBoolean, type OptionChecks } from '../options.ts';
import type { ToolDispatchResult } from '../outcome.ts';
import type { ToolCallRequest } from '../request.ts';
import type { JsonSchema, ToolSchema } from '../schema.ts';
import { fitting, type NameRule, ToolNames } from './names.ts';
import { type Dialect, fitted } from './schema/dialect.ts';
import { Budget } from './schema/extent.ts';
import { type OneRoot, withOneRoot } from './schema/one-root.ts';
import { escaped, type SchemaLoss } from './schema/parts.ts';

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

/**
 * What a model is told of a result.
 *
 * @param options What the model can be shown. Links always are, as text.
 * @throws the signal of a runtime's own interrupt: such a call has no answer.
 */
export function toldOf(result: ToolDispatchResult, options: ForModelOptions = {}): Content {
  throwInterrupt(result);
  const { accepts } = options;
  return accepts === undefined ? toldContent(result) : forModel(result, { accepts: [...accepts, ...LINKS] });
}

const LINKS = ['resource_link'];

/** The same as text, with media described, for where only text is taken. */
export function toldAsText(result: ToolDispatchResult): string {
  throwInterrupt(result);
  const content = toldContent(result, LINKS);
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'resource_link' ? linkToldOf(part) : textOf([part]))).join('\n');
}

function throwInterrupt({ control }: ToolDispatchResult): void {
  if (control?.type === 'interrupt') throw control.signal;
}

/** A link as text, which is never blank. */
export function linkToldOf(part: ResourceLinkPart): string {
  const text = linkText(part);
  return text.trim() === '' ? leftOut(part) : text;
}

/** A value with no half of a surrogate pair in its texts, which providers take for broken JSON. The value itself where there is none. */
export function wellFormed<Value>(value: Value): Value {
  return /\\ud[89a-f]/i.test(JSON.stringify(value)) ? (mended(value) as Value) : value;
}

function mended(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(mended);
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key.toWellFormed(), mended(each)]));
}

/** The ids a provider wants its answers under: those it sent. A call that had none, or that of a call before it, has the one it was given. */
export function idsOf(all: readonly ToolDispatchResult[]): readonly string[] {
  // Most turns have one call.
  const seen = all.length > 1 ? new Set<string>() : undefined;
  return all.map(({ requested: { id }, toolCallId }, place) => {
    let told = id && seen?.has(id) !== true ? id : toolCallId;
    // Calls of one id that were dispatched one after the other keep it.
    for (let count = place; seen?.has(told); count++) told = `${toolCallId}_${count}`;
    seen?.add(told);
    return told;
  });
}

/** A call for the dispatcher. Written without spreads, which cost several times as much. */
export function requestOf(id: string | undefined, name: string, given: unknown, isCut: boolean): ToolCallRequest {
  if (isCut)
    return id === undefined
      ? { name, arguments: given, truncated: true }
      : { id, name, arguments: given, truncated: true };
  return id === undefined ? { name, arguments: given } : { id, name, arguments: given };
}

/** A call as it may be put back into the history. */
export interface Replayed {
  readonly id: string;
  readonly name: string;
  /** The arguments, as they were understood. */
  readonly input: JsonObject;
}

/** @throws TypeError when there is not a result for each call. */
export function checkCount(by: string, count: number, all: readonly ToolDispatchResult[]): void {
  if (all.length !== count)
    throw new TypeError(`${by}: takes a result for each call of the reply, which has ${count}, but got ${all.length}.`);
}

/** @throws TypeError when there is not a result for each call. */
export function replayedOf(
  count: number,
  all: readonly ToolDispatchResult[],
  { names: rule }: ToolRules,
  names?: ToolNames,
): readonly Replayed[] {
  checkCount('replay', count, all);
  const ids = idsOf(all);
  return all.map(({ requested: { name, input } }, place) => ({
    id: ids[place] as string,
    name: nameIn(name, names, rule),
    input: isPlainObject(input) ? ((names?.toldInput(name, input) ?? input) as JsonObject) : {},
  }));
}

/** The name of a tool in the history: one that the provider takes, whatever the model wrote. */
export function nameIn(name: string, names: ToolNames | undefined, rule: NameRule): string {
  return fitting(names?.told(name) ?? name, rule);
}

/** The arguments of a call in the history: its own, where they are an object, and otherwise as they were understood. */
export function inputIn(given: unknown, { input }: Replayed): Record<string, unknown> {
  return wellFormed(isPlainObject(given) ? given : input);
}

/** A list without what is nothing: a list that was put together from a stream can have holes, and servers leave out anything. */
export function present<Item>(list: readonly Item[] | null | undefined): readonly NonNullable<Item>[] {
  return (list ?? []).filter((item) => item !== null && item !== undefined) as NonNullable<Item>[];
}

/** Whether text is the JSON of an object. */
export function isObjectText(text: unknown): boolean {
  try {
    return typeof text === 'string' && isPlainObject(JSON.parse(text));
  } catch {
    return false;
  }
}

/** Where a provider has no flag for failures, the text says so. */
export function failureText(text: string): string {
  return /^error\b/i.test(text) ? text : `Error: ${text}`;
}
