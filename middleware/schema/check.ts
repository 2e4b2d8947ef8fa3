import {
  isPromise,
  isStandardSchema,
  type JsonSchema,
  type JsonValue,
  type StandardResult,
  type StandardSchema,
  type Tool,
} from '../../src/index.ts';
import { type AjvOptions, ajvCheck } from './ajv.ts';
import { standardFaults } from './faults.ts';

/** Checks a value, which it may change in place: the answer is the value after defaults and transforms, or Faults. */
export type SchemaCheck = (value: JsonValue) => unknown;

/**
 * Compiles a schema. A JSON Schema is read by the draft its `$schema` names; one that names none we know by 2020-12, or by
 * draft-07 where that fails.
 *
 * @throws Error where it cannot be compiled.
 */
export function compileSchema(schema: JsonSchema | StandardSchema, options: AjvOptions = {}): SchemaCheck {
  return isStandardSchema(schema) ? standardCheck(schema) : ajvCheck(schema, options);
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
      return isPromise(found) ? found.then(undefined, unusable) : found;
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

function unusable(cause: unknown): Unusable {
  return new Unusable(cause);
}

function standardCheck(schema: StandardSchema): SchemaCheck {
  return (value) => {
    const result = schema['~standard'].validate(value);
    return isPromise(result) ? result.then(standardResult) : standardResult(result);
  };
}

function standardResult(result: StandardResult<unknown>): unknown {
  const { issues } = result;
  return issues === undefined ? result.value : standardFaults(issues);
}
