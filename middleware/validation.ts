import {
  after,
  checkOptions,
  copyJson,
  type DispatchNote,
  failure,
  isCount,
  type JsonValue,
  listed,
  type MaybePromise,
  type Middleware,
  type Next,
  named,
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
import { ARGUMENT_OPTIONS, ArgumentCheck, type ArgumentOptions, type Examined } from './schema/argument-check.ts';
import { Unusable } from './schema/check.ts';
import { droppedKeys } from './schema/dropped-keys.ts';
import { Faults } from './schema/faults.ts';

/** Options of `validation`. */
export interface ValidationOptions extends ArgumentOptions {
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
  checkOptions('validation', options, { ...ARGUMENT_OPTIONS, maxFaults: isCount(1), maxFaultCharacters: isCount(20) });
  const { maxFaults = 8, maxFaultCharacters = 300 } = options;
  const check = new ArgumentCheck(options);

  function layer(call: ToolCall, next: Next): MaybePromise<ToolOutcome> {
    const refusal = unrunnable(call);
    if (refusal !== undefined) return refusal;
    const copy = call.copyInput();
    const found = check.run(call, copy);
    // What a JSON Schema accepts comes back as it was given, which needs no second look.
    if (found === copy) return next(call.with({ parsed: copy, validator: validate }));
    return after(check.examined(call, call.input, found), (examined) => goOn(call, next, examined));
  }

  function goOn(call: ToolCall, next: Next, examined: Examined): MaybePromise<ToolOutcome> {
    if (call.aborted) return stopped(call);
    // Before the tool runs: it may change what it receives.
    const found = verdict(call, examined);
    if (!found.valid) return failure(call, found.error);
    const { input, parsed, notes = [] } = found;
    const outcome = next(call.with({ input, parsed, validator: validate }));
    return notes.length === 0 ? outcome : after(outcome, (ended) => notes.reduce(withNote, ended));
  }

  /** For whoever edits the arguments further inside, and for each further attempt. */
  function validate(call: ToolCall, input: JsonValue): MaybePromise<Validation> {
    return after(check.examined(call, input, check.run(call, copyJson(input))), (examined) => verdict(call, examined));
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

  const precompile = (tools: Iterable<Tool>): void => check.precompile(tools);
  return Object.assign(named('validation', layer), { precompile });
}

function notesOf({ tool }: ToolCall, { input, answer, done }: Examined): readonly DispatchNote[] {
  const dropped = droppedKeys(input, answer, tool?.schema.inputSchema);
  return [...(done.length > 0 ? [repairedNote(done)] : []), ...(dropped.length > 0 ? [droppedNote(dropped)] : [])];
}

function repairedNote(done: readonly string[]): DispatchNote {
  const message = `The arguments did not fit the tool's schema, and were put right: ${listed(done, String, { separator: '; ' })}.`;
  return { type: 'repaired', by: 'validation', message };
}

function droppedNote(dropped: readonly string[]): DispatchNote {
  const names = listed(dropped, printable);
  const message = `The tool's schema knows no arguments of these names, so they were left out: ${names}.`;
  return { type: 'dropped_keys', by: 'validation', message, forModel: true };
}
