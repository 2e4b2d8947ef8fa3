import pTimeout from 'p-timeout';
import {
  copyJson,
  isFunction,
  isPromise,
  isStandardSchema,
  type JsonSchema,
  type JsonValue,
  kindOf,
  type MaybePromise,
  type OptionChecks,
  type StandardResult,
  type StandardSchema,
  type Tool,
  type ToolCall,
  timersOf,
} from '../../src/index.ts';
import { ajvCheck, type SchemaCheck } from './ajv.ts';
import { standardFaults } from './faults.ts';
import type { RegExpEngine } from './patterns.ts';

/**
 * Makes a check of a JSON Schema in the place of ajv. It answers as a Standard Schema does, `{ value }` or `{ issues }`, and may change
 * the value it is given.
 */
export type SchemaCompiler = (schema: JsonSchema) => (value: JsonValue) => MaybePromise<StandardResult<unknown>>;

/** How schemas are compiled; options that every layer has which compiles them. */
export interface SchemaOptions {
  /** Compiles JSON Schemas where ajv cannot, as where no code may be made from text. Default: ajv. */
  readonly compile?: SchemaCompiler;
  /** Runs the patterns of JSON Schemas, as an engine does whose time is linear. Default: JavaScript's, for trusted tools only. */
  readonly regExp?: RegExpEngine;
  /** Hears, once for each tool, what of its schemas is read in another way than it was written. Default: nobody. */
  readonly onSchemaWarning?: (message: string, tool: Tool) => void;
}

/** Checks of `SchemaOptions`. */
export const SCHEMA_OPTIONS: OptionChecks = { compile: isFunction, regExp: isFunction, onSchemaWarning: isFunction };

/** Characters of a warning: what a schema holds can be of any length. */
const MAX_WARNING = 300;

/** Compiles one schema of a tool. @throws Error where it cannot be compiled. */
export function compileFor(
  tool: Tool,
  schema: JsonSchema | StandardSchema,
  { compile, regExp, onSchemaWarning }: SchemaOptions,
  defaults = true,
): SchemaCheck {
  if (isStandardSchema(schema)) return resultCheck((value) => schema['~standard'].validate(value));
  // A copy, for some write into the schema what they find.
  if (compile !== undefined) return resultCheck(compile(copyJson(schema) as JsonSchema));
  const warnings = new Set<string>();
  const options = {
    defaults,
    untrusted: tool.untrusted === true,
    warn: (message: string) => void warnings.add(message.slice(0, MAX_WARNING)),
  };
  const check = ajvCheck(schema, regExp === undefined ? options : { ...options, regExp });
  for (const message of warnings) tell(onSchemaWarning, message, tool);
  return check;
}

function tell(hear: SchemaOptions['onSchemaWarning'], message: string, tool: Tool): void {
  try {
    hear?.(message, tool);
  } catch {
    // Whoever listens badly keeps no tool from its work.
  }
}

/** The checks of one schema of each tool: compiled at its first use, kept no longer than the tool. */
export class ToolChecks {
  readonly #compile: (tool: Tool) => SchemaCheck;
  readonly #checks = new WeakMap<Tool, SchemaCheck | Unusable>();

  constructor(compile: (tool: Tool) => SchemaCheck) {
    this.#compile = compile;
  }

  /** The answer of the tool's check, or Unusable where it has none or the check itself fails. Never throws nor rejects. */
  run(tool: Tool, value: JsonValue): unknown {
    const check = this.of(tool);
    if (typeof check !== 'function') return check;
    try {
      const found = check(value);
      if (found === value) return value;
      // What only has a `then` may do with it what it likes.
      return isPromise(found) ? Promise.resolve(found).catch(unusable) : found;
    } catch (cause) {
      return unusable(cause);
    }
  }

  of(tool: Tool): SchemaCheck | Unusable {
    return this.#checks.get(tool) ?? this.#make(tool);
  }

  #make(tool: Tool): SchemaCheck | Unusable {
    let check: SchemaCheck | Unusable;
    try {
      check = this.#compile(tool);
    } catch (cause) {
      check = unusable(cause);
    }
    this.#checks.set(tool, check);
    return check;
  }
}

/** Stands for a check that cannot be made, and tells why: nothing is known of the value. */
export class Unusable {
  readonly cause: unknown;

  constructor(cause: unknown) {
    this.cause = cause;
  }
}

/** Milliseconds an asynchronous check may take, where a layer does not say otherwise. */
export const CHECK_LIMIT_MS = 30_000;

/** The answer of a check, waited for no longer than a limit, and no longer than the call lives. */
export function inTime(call: ToolCall, found: unknown, limitMs: number): MaybePromise<unknown> {
  if (!isPromise(found)) return found;
  return pTimeout(found, {
    milliseconds: limitMs,
    fallback: () => unusable(new Error(`The schema gave no answer within ${limitMs} ms.`)),
    customTimers: timersOf(call.clock),
    signal: call.signal,
  }).catch(unusable);
}

function unusable(cause: unknown): Unusable {
  return new Unusable(cause);
}

function resultCheck(validate: (value: JsonValue) => MaybePromise<StandardResult<unknown>>): SchemaCheck {
  return (value) => {
    const result = validate(value);
    return isPromise(result) ? Promise.resolve(result).then(answerOf) : answerOf(result);
  };
}

/** @throws TypeError for what is no result: a yes or no, as other validators answer, would let anything pass. */
function answerOf(result: StandardResult<unknown>): unknown {
  if (typeof result === 'object' && result?.issues !== undefined) return standardFaults(result.issues);
  if (typeof result !== 'object' || !('value' in result))
    throw new TypeError(`A validator must answer { value } or { issues }; one answered ${kindOf(result)}.`);
  return result.value;
}
