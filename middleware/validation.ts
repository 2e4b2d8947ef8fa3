import pTimeout from 'p-timeout';
import {
  after,
  checkOptions,
  copyJson,
  type DispatchNote,
  describeError,
  failure,
  isCount,
  isLimitMs,
  isPlainObject,
  isPromise,
  type JsonValue,
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
  timersOf,
  toolError,
  unrunnable,
  type Validation,
  withNote,
} from '../src/index.ts';
import { compileSchema, ToolChecks, Unusable } from './schema/check.ts';
import { Faults } from './schema/faults.ts';

/** Options of `validation`. */
export interface ValidationOptions {
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
 * with the schema's defaults and transforms. A message to the model names each fault: where, what was expected, what was there.
 * Calls nobody can run (unknown tool, unreadable arguments) are answered here as well.
 *
 * Outside the gate, so that nobody is asked about a call that cannot run; the gate has edited arguments checked here again.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example createDispatcher({ tools, middleware: [validation(), permission({ check: readOnlyAllowed }), timeout()] })
 */
export function validation(options: ValidationOptions = {}): ValidationMiddleware {
  checkOptions('validation', options, { maxFaults: isCount(1), maxFaultCharacters: isCount(20), limitMs: isLimitMs });
  const { maxFaults = 8, maxFaultCharacters = 300, limitMs = 30_000 } = options;
  const checks = new ToolChecks((tool) => compileSchema(tool.inputSchema));

  function layer(call: ToolCall, next: Next): MaybePromise<ToolOutcome> {
    const refusal = unrunnable(call);
    if (refusal !== undefined) return refusal;
    const copy = call.copyInput();
    const found = checks.run(call.tool as Tool, copy);
    // What a JSON Schema accepts comes back as it was given, which needs no second look.
    if (found === copy) return next(call.with({ parsed: copy, validator: validate }));
    return isPromise(found)
      ? inTime(call, found).then((settled) => goOn(call, next, settled))
      : goOn(call, next, found);
  }

  /** Waits no longer than the limit, and no longer than the call lives. */
  async function inTime(call: ToolCall, found: Promise<unknown>): Promise<unknown> {
    const fallback = () => new Unusable(new Error(`The schema gave no answer within ${limitMs} ms.`));
    try {
      return await pTimeout(found, {
        milliseconds: limitMs,
        fallback,
        customTimers: timersOf(call.clock),
        signal: call.signal,
      });
    } catch (cause) {
      return new Unusable(cause);
    }
  }

  function goOn(call: ToolCall, next: Next, found: unknown): MaybePromise<ToolOutcome> {
    if (call.aborted) return stopped(call);
    if (found instanceof Faults || found instanceof Unusable) return failure(call, errorOf(call, found));
    // Before the tool runs: it may change what it receives.
    const dropped = droppedKeys(call, found);
    const outcome = next(call.with({ parsed: found, validator: validate }));
    return dropped.length === 0 ? outcome : noted(outcome, droppedNote(dropped));
  }

  /** For whoever edits the arguments further inside, and for each further attempt. */
  function validate(call: ToolCall, input: JsonValue): MaybePromise<Validation> {
    const found = checks.run(call.tool as Tool, copyJson(input));
    return isPromise(found)
      ? inTime(call, found).then((settled) => verdict(call, input, settled))
      : verdict(call, input, found);
  }

  function verdict(call: ToolCall, input: JsonValue, found: unknown): Validation {
    if (found instanceof Faults || found instanceof Unusable) return { valid: false, error: errorOf(call, found) };
    return { valid: true, input, parsed: found };
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

/** A function of its own, so that a call without a note pays for no closure. */
function noted(outcome: MaybePromise<ToolOutcome>, note: DispatchNote): MaybePromise<ToolOutcome> {
  return after(outcome, (settled) => withNote(settled, note));
}

/** Keys one note names. */
const MAX_NAMED = 10;

/** Keys a Standard Schema took away, as zod does with those it does not know: a misspelt option must not vanish unseen. */
function droppedKeys(call: ToolCall, parsed: unknown): readonly string[] {
  const dropped: string[] = [];
  collectDropped(call.input, parsed, call.tool?.schema.inputSchema, '', dropped);
  return dropped;
}

function collectDropped(input: unknown, parsed: unknown, schema: unknown, prefix: string, dropped: string[]): void {
  if (Array.isArray(input) && Array.isArray(parsed)) {
    const items = at(schema, 'items');
    for (let index = 0; index < input.length; index++)
      collectDropped(input[index], parsed[index], items, prefix, dropped);
  } else if (isPlainObject(input) && isPlainObject(parsed)) {
    const properties = at(schema, 'properties');
    for (const key of Object.keys(input)) {
      // A key the schema shows was not dropped but used, as a transform does.
      if (Object.hasOwn(parsed, key)) {
        if (typeof input[key] === 'object')
          collectDropped(input[key], parsed[key], at(properties, key), `${prefix}${key}.`, dropped);
      } else if (at(properties, key) === undefined) dropped.push(prefix + key);
    }
  }
}

function at(value: unknown, key: string): unknown {
  return isPlainObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function droppedNote(dropped: readonly string[]): DispatchNote {
  const keys = [...new Set(dropped)];
  const names = keys.slice(0, MAX_NAMED).map(printable).join(', ');
  const rest = keys.length > MAX_NAMED ? `, and ${keys.length - MAX_NAMED} more` : '';
  const message = `The tool's schema knows no arguments of these names, so they were left out: ${names}${rest}.`;
  return { type: 'dropped_keys', by: 'validation', message, forModel: true };
}
