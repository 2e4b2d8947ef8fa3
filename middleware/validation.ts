import {
  after,
  checkOptions,
  copyJson,
  type DispatchNote,
  describeError,
  failure,
  isBoolean,
  isCount,
  isLimitMs,
  isPromise,
  type JsonValue,
  type MaybePromise,
  type Middleware,
  type Next,
  named,
  type PerTool,
  perTool,
  perToolCheck,
  printable,
  stopped,
  type Tool,
  type ToolCall,
  type ToolError,
  type ToolOutcome,
  toolError,
  unrunnable,
  type Validation,
  withNote,
} from '../src/index.ts';
import {
  CHECK_LIMIT_MS,
  compileFor,
  inTime,
  SCHEMA_OPTIONS,
  type SchemaOptions,
  ToolChecks,
  Unusable,
} from './schema/check.ts';
import { droppedKeys } from './schema/dropped-keys.ts';
import { Faults } from './schema/faults.ts';
import { repairBySchema } from './schema/repair.ts';

/** Options of `validation`. */
export interface ValidationOptions extends SchemaOptions {
  /** Whether JSON in a text is read where the schema wants a list or an object and takes no text. Default: true. */
  readonly unwrapText?: PerTool<boolean>;
  /** Whether a null counts as missing where the schema takes none and lets the key be missing. Default: true. */
  readonly dropNulls?: PerTool<boolean>;
  /** Whether a text becomes a number or a truth value where it is one and the schema takes no text. Default: false. */
  readonly coerce?: PerTool<boolean>;
  /** The most faults one message names. Default: 8. */
  readonly maxFaults?: number;
  /** The most characters of one fault. Default: 300. */
  readonly maxFaultCharacters?: number;
  /** Milliseconds an asynchronous schema may take; Infinity waits. Default: 30,000. */
  readonly limitMs?: number;
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
 * with the schema's defaults and transforms. Arguments that are refused, but only for how they were written, are put right, with a
 * note. A message to the model names each fault: where, what was expected, what was there. Calls nobody can run (unknown tool,
 * unreadable arguments) are answered here as well.
 *
 * Outside the gate, so that nobody is asked about a call that cannot run; the gate has edited arguments checked here again.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example createDispatcher({ tools, middleware: [validation(), permission({ check: readOnlyAllowed }), timeout()] })
 */
export function validation(options: ValidationOptions = {}): ValidationMiddleware {
  checkOptions('validation', options, OPTIONS);
  const { maxFaults = 8, maxFaultCharacters = 300, limitMs = CHECK_LIMIT_MS } = options;
  const unwrapText = perTool(options.unwrapText, true);
  const dropNulls = perTool(options.dropNulls, true);
  const coerce = perTool(options.coerce, false);
  const checks = new ToolChecks((tool) => compileFor(tool, tool.inputSchema, options));

  function layer(call: ToolCall, next: Next): MaybePromise<ToolOutcome> {
    const refusal = unrunnable(call);
    if (refusal !== undefined) return refusal;
    const copy = call.copyInput();
    const found = checks.run(call.tool as Tool, copy);
    // What a JSON Schema accepts comes back as it was given, which needs no second look.
    if (found === copy) return next(call.with({ parsed: copy, validator: validate }));
    const examined = then(inTime(call, found, limitMs), (answer) => repaired(call, call.input, answer));
    return isPromise(examined) ? examined.then((each) => goOn(call, next, each)) : goOn(call, next, examined);
  }

  /** What the tool's check says of arguments, put right where they were refused. */
  function repaired(call: ToolCall, input: JsonValue, answer: unknown): MaybePromise<Examined> {
    if (!(answer instanceof Faults)) return { input, answer, done: [] };
    const { toolName: name, tool } = call;
    const repairs = { unwrapText: unwrapText(name), dropNulls: dropNulls(name), coerce: coerce(name) };
    const repair = repairBySchema(input, (tool as Tool).schema.inputSchema, repairs);
    if (repair === undefined) return { input, answer, done: [] };
    const found = inTime(call, checks.run(tool as Tool, copyJson(repair.value)), limitMs);
    return then(found, (second) => ({ input: repair.value, answer: second, done: repair.done }));
  }

  function goOn(call: ToolCall, next: Next, { input, answer, done }: Examined): MaybePromise<ToolOutcome> {
    if (call.aborted) return stopped(call);
    if (answer instanceof Faults || answer instanceof Unusable) return failure(call, errorOf(call, answer));
    // Before the tool runs: it may change what it receives.
    const notes = notesOf(call, { input, answer, done });
    const changes = { parsed: answer, validator: validate };
    const outcome = next(call.with(done.length === 0 ? changes : { ...changes, input }));
    return notes.length === 0 ? outcome : after(outcome, (ended) => notes.reduce(withNote, ended));
  }

  /** For whoever edits the arguments further inside, and for each further attempt. */
  function validate(call: ToolCall, input: JsonValue): MaybePromise<Validation> {
    const found = inTime(call, checks.run(call.tool as Tool, copyJson(input)), limitMs);
    const examined = then(found, (answer) => repaired(call, input, answer));
    return then(examined, (each) => verdict(call, each));
  }

  function verdict(call: ToolCall, examined: Examined): Validation {
    const { input, answer } = examined;
    if (answer instanceof Faults || answer instanceof Unusable) return { valid: false, error: errorOf(call, answer) };
    return { valid: true, input, parsed: answer, notes: notesOf(call, examined) };
  }

  function errorOf(call: ToolCall, found: Faults | Unusable): ToolError {
    const subject = `The arguments of tool "${printable(call.toolName)}"`;
    if (found instanceof Unusable) {
      const message = `${subject} could not be checked: its input schema failed, which is no fault of the call. Use another tool.`;
      return toolError('internal', message, { cause: found.cause });
    }
    const list = found.describe(maxFaults, maxFaultCharacters);
    return toolError(
      'invalid_arguments',
      `${subject} are invalid:\n${list}\nSend the call again with these put right.`,
    );
  }

  function precompile(tools: Iterable<Tool>): void {
    const faults = [...tools].flatMap((tool) => {
      const check = checks.of(tool);
      return check instanceof Unusable ? `"${tool.name}": ${describeError(check.cause).message}` : [];
    });
    if (faults.length > 0) throw new TypeError(`The input schema of these tools cannot be used:\n${faults.join('\n')}`);
  }

  return Object.assign(named('validation', layer), { precompile });
}

const OPTIONS = {
  ...SCHEMA_OPTIONS,
  unwrapText: perToolCheck(isBoolean),
  dropNulls: perToolCheck(isBoolean),
  coerce: perToolCheck(isBoolean),
  maxFaults: isCount(1),
  maxFaultCharacters: isCount(20),
  limitMs: isLimitMs,
};

/** Arguments as they are in the end, what the tool's check made of them, and what was put right before. */
interface Examined {
  readonly input: JsonValue;
  readonly answer: unknown;
  readonly done: readonly string[];
}

function then<Value, Result>(
  value: MaybePromise<Value>,
  go: (value: Value) => MaybePromise<Result>,
): MaybePromise<Result> {
  return isPromise(value) ? value.then(go) : go(value);
}

/** Keys or repairs one note names. */
const MAX_NAMED = 10;

function notesOf({ tool }: ToolCall, { input, answer, done }: Examined): readonly DispatchNote[] {
  const dropped = droppedKeys(input, answer, tool?.schema.inputSchema);
  return [...(done.length > 0 ? [repairedNote(done)] : []), ...(dropped.length > 0 ? [droppedNote(dropped)] : [])];
}

function repairedNote(done: readonly string[]): DispatchNote {
  const message = `The arguments did not fit the tool's schema, and were put right: ${listed(done, '; ')}.`;
  return { type: 'repaired', by: 'validation', message };
}

function droppedNote(dropped: readonly string[]): DispatchNote {
  const names = listed(dropped.map(printable), ', ');
  const message = `The tool's schema knows no arguments of these names, so they were left out: ${names}.`;
  return { type: 'dropped_keys', by: 'validation', message, forModel: true };
}

function listed(all: readonly string[], separator: string): string {
  const rest = all.length > MAX_NAMED ? `${separator}and ${all.length - MAX_NAMED} more` : '';
  return all.slice(0, MAX_NAMED).join(separator) + rest;
}
