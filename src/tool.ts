import type { ToolCall } from './call.ts';
import type { InferInput } from './infer-input.ts';
import { isPlainObject, kindOf } from './json.ts';
import { type JsonSchema, type ToolSchema, toJsonSchema } from './schema.ts';
import { checkSchemaBudget } from './schema-budget.ts';
import { isStandardSchema, type StandardSchema } from './standard-schema.ts';

/** What a tool says of itself, beside its schemas. Everything is optional; the defaults are the careful ones. */
interface ToolTraits<Input> {
  /** It has no side effects. Gates may let it pass unasked. Default: false. */
  readonly readOnly?: boolean;
  /** It can lose something. Default: false. */
  readonly destructive?: boolean;
  /** Running it twice is the same as once: the licence to retry. Default: false. */
  readonly idempotent?: boolean;
  /** It may run beside others, itself included: always, or, which takes a `schedule` layer, for these arguments. Default: false. */
  readonly concurrencySafe?: boolean | ((input: Input) => boolean);
  /** What it works on: with a `schedule` layer, calls with equal keys run one after the other. Default: none. */
  readonly resourceKey?: (input: Input) => string | undefined;
  /**
   * Its JSON Schemas come from a stranger, as those of an MCP server do: they have a budget, and what could hold up the process is not
   * run. See docs/guide/schemas.md. Default: false.
   */
  readonly untrusted?: boolean;
  /** Text for the system prompt while this tool is registered. Default: none. */
  readonly systemPrompt?: string;
}

/** A tool: made by `defineTool`, frozen, and independent of the object it was made from. */
export interface Tool<Input = never> extends ToolTraits<Input> {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema | StandardSchema;
  readonly outputSchema?: JsonSchema | StandardSchema;
  /** What is sent to a model. */
  readonly schema: ToolSchema;
  /**
   * Runs it. May return a value, a promise, or an async generator whose yields are its answer; see `toOutput` for what becomes
   * of the value. Missing on a tool that is only shown to the model and run elsewhere.
   */
  execute?(input: Input, call: ToolCall): unknown;
}

/** What `defineTool` takes. */
export interface ToolDefinition<Schema extends JsonSchema | StandardSchema> extends ToolTraits<InferInput<Schema>> {
  /** Not empty, no white space around it, unique among the tools it is used with. */
  readonly name: string;
  /** What it does, in a sentence or two for the model. */
  readonly description: string;
  /** The arguments: a JSON Schema of an object, or a zod, valibot or arktype schema. Default: no arguments. */
  readonly inputSchema?: Schema;
  /** The JSON Schema of `inputSchema`, where that is a Standard Schema that cannot say it. */
  readonly jsonSchema?: JsonSchema;
  /** What `structured` must satisfy. */
  readonly outputSchema?: JsonSchema | StandardSchema;
  /** The JSON Schema of `outputSchema`, where that is a Standard Schema that cannot say it. */
  readonly outputJsonSchema?: JsonSchema;
  readonly execute?: (input: InferInput<Schema>, call: ToolCall) => unknown;
}

const NO_ARGUMENTS: { readonly type: 'object'; readonly properties: Record<never, JsonSchema> } = Object.freeze({
  type: 'object',
  properties: Object.freeze({}),
});

const DEFINITION_TYPES: ReadonlyMap<string, readonly string[]> = new Map([
  ['name', ['string']],
  ['description', ['string']],
  ['inputSchema', ['object', 'function']],
  ['jsonSchema', ['object']],
  ['outputSchema', ['object', 'function']],
  ['outputJsonSchema', ['object']],
  ['readOnly', ['boolean']],
  ['destructive', ['boolean']],
  ['idempotent', ['boolean']],
  ['concurrencySafe', ['boolean', 'function']],
  ['resourceKey', ['function']],
  ['untrusted', ['boolean']],
  ['systemPrompt', ['string']],
  ['execute', ['function']],
]);

const defined = new WeakSet<object>();

/**
 * Makes a tool. `execute` receives the type its input schema describes.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example
 * const add = defineTool({
 *   name: 'add',
 *   description: 'Adds two numbers.',
 *   inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
 *   execute: ({ a, b }) => a + b,
 * });
 */
export function defineTool<const Schema extends JsonSchema | StandardSchema = typeof NO_ARGUMENTS>(
  definition: ToolDefinition<Schema>,
): Tool<InferInput<Schema>> {
  checkDefinition(definition);
  const { name, description, inputSchema, jsonSchema, outputSchema, outputJsonSchema, ...rest } = definition;
  const owner = `inputSchema of tool "${name}"`;
  const shown = toJsonSchema(jsonSchema ?? inputSchema ?? NO_ARGUMENTS, 'input', owner);
  if (!describesObject(shown)) {
    throw new TypeError(
      `${owner} must describe an object, as arguments always are; its type is ${JSON.stringify(shown.type)}.`,
    );
  }
  const outputOwner = `outputSchema of tool "${name}"`;
  const shownOutput = outputSchema && toJsonSchema(outputJsonSchema ?? outputSchema, 'output', outputOwner);
  if (definition.untrusted === true) {
    checkSchemaBudget(shown, owner);
    if (shownOutput !== undefined) checkSchemaBudget(shownOutput, outputOwner);
  }
  const schema: ToolSchema = Object.freeze({
    name,
    description,
    inputSchema: shown,
    ...(shownOutput && { outputSchema: shownOutput }),
  });
  const tool = {
    ...rest,
    name,
    description,
    inputSchema: isStandardSchema(inputSchema) ? inputSchema : shown,
    ...(outputSchema && { outputSchema: isStandardSchema(outputSchema) ? outputSchema : (shownOutput as JsonSchema) }),
    schema,
  };
  return made(tool) as Tool<InferInput<Schema>>;
}

/** Google's schemas have their types in capitals, and some allow null beside. */
function describesObject({ type }: JsonSchema): boolean {
  return type === undefined || [type].flat().some((name) => String(name).toLowerCase() === 'object');
}

/**
 * The same tools under names of their own, so that those of two sources never meet: `send` of `mail` becomes `mail__send`.
 *
 * @param separator What stands between; providers take letters, digits, `_` and `-`. Default: `__`.
 * @throws TypeError for a namespace that is empty or has white space around it, and for what `defineTool` has not made.
 * @example createDispatcher({ tools: [...namespaced('mail', mailTools), ...namespaced('chat', chatTools)] })
 */
export function namespaced(namespace: string, tools: Iterable<Tool>, separator = '__'): readonly Tool[] {
  if (typeof namespace !== 'string' || namespace === '' || namespace.trim() !== namespace)
    throw new TypeError('A namespace must be text, not empty, without white space around it.');
  return [...tools].map((tool) => {
    if (!isTool(tool)) throw new TypeError(`A namespace holds tools made by defineTool, not ${kindOf(tool)}.`);
    const name = `${namespace}${separator}${tool.name}`;
    return made({ ...tool, name, schema: Object.freeze({ ...tool.schema, name }) });
  });
}

function made<Made extends object>(tool: Made): Readonly<Made> {
  defined.add(tool);
  return Object.freeze(tool);
}

/** Whether a value was made by `defineTool`. */
export function isTool(value: unknown): value is Tool {
  return typeof value === 'object' && value !== null && defined.has(value);
}

function checkDefinition(definition: { readonly name: string; readonly description: string }): void {
  if (!isPlainObject(definition)) {
    throw new TypeError(
      `defineTool takes a plain object with at least name and description, not ${kindOf(definition)}. ` +
        'What a class inherits would be lost: name it, as in { name, description, execute: (input) => instance.run(input) }.',
    );
  }
  const { name } = definition;
  if (typeof name !== 'string' || name === '' || name.trim() !== name) {
    throw new TypeError(
      `The name of a tool must be text, not empty, without white space around it; got ${typeof name === 'string' ? JSON.stringify(name) : kindOf(name)}.`,
    );
  }
  if (typeof definition.description !== 'string') {
    throw new TypeError(`description of tool "${name}" must be text; a model cannot use a tool it knows nothing of.`);
  }
  for (const [option, value] of Object.entries(definition)) {
    const allowed = DEFINITION_TYPES.get(option);
    if (allowed === undefined) {
      throw new TypeError(
        `Unknown option "${option}" of tool "${name}". Allowed: ${[...DEFINITION_TYPES.keys()].join(', ')}.`,
      );
    }
    if (value !== undefined && (value === null || !allowed.includes(typeof value))) {
      throw new TypeError(
        `${option} of tool "${name}" must be ${allowed.join(' or ')}, not ${value === null ? 'null' : typeof value}.`,
      );
    }
  }
}

/**
 * Whether a call with these arguments may run beside others: the tool's flag, or its answer for them. A predicate that throws or
 * answers anything but true means no.
 */
export function isConcurrencySafe<Input>(tool: Tool<Input>, input: Input): boolean {
  const { concurrencySafe } = tool;
  if (typeof concurrencySafe !== 'function') return concurrencySafe === true;
  try {
    const safe: unknown = concurrencySafe(input);
    // A promise is no answer here; that it may reject is nobody's concern.
    if (typeof safe === 'object') Promise.resolve(safe).catch(() => {});
    return safe === true;
  } catch {
    return false;
  }
}
