import {
  after,
  copyJson,
  describeError,
  isBoolean,
  isLimitMs,
  type JsonValue,
  type MaybePromise,
  type OptionChecks,
  type PerTool,
  perTool,
  perToolCheck,
  type Tool,
  type ToolCall,
} from '../../src/index.ts';
import {
  CHECK_LIMIT_MS,
  compileFor,
  inTime,
  SCHEMA_OPTIONS,
  type SchemaOptions,
  ToolChecks,
  Unusable,
} from './check.ts';
import { Faults } from './faults.ts';
import { repairBySchema } from './repair.ts';

/** How arguments are checked, and what is put right in them. */
export interface ArgumentOptions extends SchemaOptions {
  /** Whether JSON in a text is read where the schema wants a list or an object and takes no text. Default: true. */
  readonly unwrapText?: PerTool<boolean>;
  /** Whether a null counts as missing where the schema takes none and lets the key be missing. Default: true. */
  readonly dropNulls?: PerTool<boolean>;
  /** Whether a text becomes a number or a truth value where it is one and the schema takes no text. Default: false. */
  readonly coerce?: PerTool<boolean>;
  /** Milliseconds an asynchronous schema may take; Infinity waits. Default: 30,000. */
  readonly limitMs?: number;
}

/** Checks of `ArgumentOptions`. */
export const ARGUMENT_OPTIONS: OptionChecks = {
  ...SCHEMA_OPTIONS,
  unwrapText: perToolCheck(isBoolean),
  dropNulls: perToolCheck(isBoolean),
  coerce: perToolCheck(isBoolean),
  limitMs: isLimitMs,
};

/** Arguments as they are in the end, what the tool's check makes of them, and what was put right before. */
export interface Examined {
  readonly input: JsonValue;
  /** What the tool is to receive, or Faults, or Unusable. */
  readonly answer: unknown;
  readonly done: readonly string[];
}

/** Checks arguments against the input schemas of tools. */
export class ArgumentCheck {
  readonly #checks: ToolChecks;
  readonly #limitMs: number;
  readonly #unwrapText: (toolName: string) => boolean;
  readonly #dropNulls: (toolName: string) => boolean;
  readonly #coerce: (toolName: string) => boolean;

  constructor(options: ArgumentOptions) {
    this.#checks = new ToolChecks((tool) => compileFor(tool, tool.inputSchema, options));
    this.#limitMs = options.limitMs ?? CHECK_LIMIT_MS;
    this.#unwrapText = perTool(options.unwrapText, true);
    this.#dropNulls = perTool(options.dropNulls, true);
    this.#coerce = perTool(options.coerce, false);
  }

  /** What the tool's check says of a copy of the arguments, which it may change: the copy itself, where they are right as they are. */
  run(call: ToolCall, copy: JsonValue): unknown {
    return this.#checks.run(call.tool as Tool, copy);
  }

  /** What comes of arguments, put right where that is all they need, when the check has said this of them. */
  examined(call: ToolCall, input: JsonValue, found: unknown): MaybePromise<Examined> {
    return after(inTime(call, found, this.#limitMs), (answer) =>
      answer instanceof Faults ? this.#repaired(call, input, answer) : { input, answer, done: [] },
    );
  }

  #repaired(call: ToolCall, input: JsonValue, answer: Faults): MaybePromise<Examined> {
    const { toolName: name, tool } = call;
    const repairs = {
      unwrapText: this.#unwrapText(name),
      dropNulls: this.#dropNulls(name),
      coerce: this.#coerce(name),
    };
    const repair = repairBySchema(input, (tool as Tool).schema.inputSchema, repairs);
    if (repair === undefined) return { input, answer, done: [] };
    const { value, done } = repair;
    const found = inTime(call, this.run(call, copyJson(value)), this.#limitMs);
    return after(found, (second) => ({ input: value, answer: second, done }));
  }

  /** Compiles now what else the first call of each tool would. @throws TypeError naming each tool whose schema cannot be used. */
  precompile(tools: Iterable<Tool>): void {
    const faults = [...tools].flatMap((tool) => {
      const check = this.#checks.of(tool);
      return check instanceof Unusable ? `"${tool.name}": ${describeError(check.cause).message}` : [];
    });
    if (faults.length > 0) throw new TypeError(`The input schema of these tools cannot be used:\n${faults.join('\n')}`);
  }
}
