import {
  after,
  checkOptions,
  copyJson,
  failure,
  isCount,
  isPlainObject,
  isPromise,
  type JsonValue,
  type MaybePromise,
  type Middleware,
  type Next,
  named,
  printable,
  type Tool,
  type ToolCall,
  type ToolError,
  type ToolOutcome,
  toolError,
  unrunnable,
  type Validation,
  withNote,
} from '../src/index.ts';
import { compileSchema, Faults, type SchemaCheck } from './schema-check.ts';

/** Options of `validation`. */
export interface ValidationOptions {
  /** The most faults one message names. Default: 8. */
  readonly maxFaults?: number;
  /** The most characters of one fault. Default: 300. */
  readonly maxFaultCharacters?: number;
}

/** The validating middleware, which can also be asked to compile before the first call. */
export interface ValidationMiddleware extends Middleware {
  /**
   * Compiles the input schemas of these tools now, instead of at the first call of each.
   *
   * @throws TypeError naming each tool whose schema cannot be used, and why.
   */
  precompile(tools: Iterable<Tool>): void;
}

/**
 * Checks arguments against the tool's input schema before anybody is asked or anything runs; the tool receives a private copy
 * with the schema's defaults and transforms. A message to the model names each fault: where, what was expected, what was there.
 * Calls nobody can run (unknown tool, unreadable arguments) are answered here as well.
 *
 * Outside the gate, so that nobody is asked about a call that cannot run; the gate has edited arguments checked here again.
 *
 * @throws TypeError naming the option and what is allowed.
 */
export function validation(options: ValidationOptions = {}): ValidationMiddleware {
  checkOptions('validation', options, { maxFaults: isCount(1), maxFaultCharacters: isCount(20) });
  const { maxFaults = 8, maxFaultCharacters = 300 } = options;
  const checks = new WeakMap<Tool, SchemaCheck | Unusable>();

  function layer(call: ToolCall, next: Next): MaybePromise<ToolOutcome> {
    const refusal = unrunnable(call);
    if (refusal !== undefined) return refusal;
    const check = checkOf(call.tool as Tool);
    if (typeof check !== 'function') return failure(call, unusable(call, check.cause));
    const found = check(copyJson(call.input));
    return isPromise(found) ? found.then((settled) => goOn(call, next, settled)) : goOn(call, next, found);
  }

  function goOn(call: ToolCall, next: Next, found: unknown): MaybePromise<ToolOutcome> {
    if (found instanceof Faults) return failure(call, invalid(call, found));
    const outcome = next(call.with({ parsed: found, validator: validate }));
    if (call.tool?.inputSchema === call.tool?.schema.inputSchema) return outcome;
    const dropped = droppedKeys(call.input, found);
    return dropped.length === 0 ? outcome : after(outcome, (settled) => withNote(settled, droppedNote(dropped)));
  }

  /** For whoever edits the arguments further inside. */
  function validate(call: ToolCall, input: JsonValue): MaybePromise<Validation> {
    const check = checkOf(call.tool as Tool);
    if (typeof check !== 'function') return { valid: false, error: unusable(call, check.cause) };
    const found = check(copyJson(input));
    return isPromise(found) ? found.then((settled) => verdict(call, input, settled)) : verdict(call, input, found);
  }

  function verdict(call: ToolCall, input: JsonValue, found: unknown): Validation {
    if (found instanceof Faults) return { valid: false, error: invalid(call, found) };
    return { valid: true, input, parsed: found };
  }

  function invalid(call: ToolCall, faults: Faults): ToolError {
    const list = faults.describe(maxFaults, maxFaultCharacters);
    const message = `The arguments of tool "${nameOf(call)}" are invalid:\n${list}\nSend the call again with these put right.`;
    return toolError('invalid_arguments', message);
  }

  function checkOf(tool: Tool): SchemaCheck | Unusable {
    const known = checks.get(tool);
    if (known !== undefined) return known;
    const check = compiled(tool);
    checks.set(tool, check);
    return check;
  }

  function precompile(tools: Iterable<Tool>): void {
    const faults = [...tools].flatMap((tool) => {
      const check = checkOf(tool);
      return typeof check === 'function' ? [] : `"${tool.name}": ${(check.cause as Error).message}`;
    });
    if (faults.length > 0) throw new TypeError(`The input schema of these tools cannot be used:\n${faults.join('\n')}`);
  }

  return Object.assign(named('validation', layer), { precompile });
}

/** A schema that cannot be used, and why. */
interface Unusable {
  readonly cause: unknown;
}

function compiled(tool: Tool): SchemaCheck | Unusable {
  try {
    return compileSchema(tool.inputSchema);
  } catch (cause) {
    return { cause };
  }
}

function unusable(call: ToolCall, cause: unknown): ToolError {
  const message = `Tool "${nameOf(call)}" cannot be used: its own description is faulty. Nothing is wrong with the call. Use another tool.`;
  return toolError('internal', message, { cause });
}

/** Keys a Standard Schema took away, as zod does with those it does not know: a misspelt option must not vanish unseen. */
function droppedKeys(input: JsonValue, parsed: unknown): readonly string[] {
  if (!isPlainObject(parsed) || !isPlainObject(input)) return [];
  return Object.keys(input).filter((key) => !Object.hasOwn(parsed, key));
}

function droppedNote(keys: readonly string[]) {
  const list = keys.slice(0, 10).map(printable).join(', ');
  return {
    type: 'dropped_keys',
    by: 'validation',
    message: `The tool knows no such arguments, so they were left out: ${list}.`,
    forModel: true,
  };
}

function nameOf(call: ToolCall): string {
  return printable(call.tool?.name ?? call.name);
}
