import {
  after,
  type Channel,
  checkOptions,
  copyJson,
  fail,
  HoldBack,
  isCount,
  isLimitMs,
  isOneOf,
  isPromise,
  isStandardSchema,
  type JsonValue,
  type MaybePromise,
  type Middleware,
  type Next,
  named,
  printable,
  returnedValue,
  stopped,
  type Tool,
  type ToolCall,
  type ToolOutcome,
  toJson,
  withNote,
} from '../src/index.ts';
import type { SchemaCheck } from './schema/ajv.ts';
import {
  CHECK_LIMIT_MS,
  compileFor,
  inTime,
  SCHEMA_OPTIONS,
  type SchemaOptions,
  ToolChecks,
  Unusable,
} from './schema/check.ts';
import { Faults } from './schema/faults.ts';

/** Options of `outputValidation`. */
export interface OutputValidationOptions extends SchemaOptions {
  /** What becomes of an answer that does not match: it fails with `output_invalid`, or passes with a note. Default: `fail`. */
  readonly onInvalid?: 'fail' | 'note';
  /** The most faults one message names. Default: 5. */
  readonly maxFaults?: number;
  /** Milliseconds an asynchronous schema may take; Infinity waits. Default: 30,000. */
  readonly limitMs?: number;
}

/** Characters of one fault. */
const MAX_FAULT_CHARACTERS = 300;

const NO_DATA = '- it has no structured part';

/**
 * Checks `structured` against the output schema of a tool that declares one. Errors are never checked, and the answer is never
 * changed, but for one that is only text: where the schema takes it, it is `structured` as well. A tool whose output schema cannot
 * be used does not run, as nothing it answered could be right; under `note` it does.
 *
 * Right outside `timeout`, so that the answer is checked as the tool gave it, before anything is cut or hidden.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example outputValidation({ onInvalid: 'note' })
 */
export function outputValidation(options: OutputValidationOptions = {}): Middleware {
  const checked = { onInvalid: isOneOf('fail', 'note'), maxFaults: isCount(1), limitMs: isLimitMs, ...SCHEMA_OPTIONS };
  checkOptions('outputValidation', options, checked);
  const { onInvalid = 'fail', maxFaults = 5, limitMs = CHECK_LIMIT_MS } = options;
  const checks = new ToolChecks((tool) => outputCheck(tool, options));

  return named('outputValidation', function outputValidation(call, next) {
    const { tool } = call;
    if (tool?.outputSchema === undefined) return next(call);
    const made = checks.of(tool);
    if (made instanceof Unusable && onInvalid === 'fail') return unusable(call, made);
    if (call.channel !== undefined) return checkParts(call, next, call.channel);
    const outcome = next(call);
    return isPromise(outcome) ? outcome.then((settled) => check(call, settled)) : check(call, outcome);
  });

  /** What may have to be withheld must not have left before. */
  function checkParts(call: ToolCall, next: Next, channel: Channel): MaybePromise<ToolOutcome> {
    const held = new HoldBack(channel);
    return after(next(call.with({ channel: held })), (outcome) =>
      after(check(call, outcome), (checked) => held.finish(call, checked)),
    );
  }

  function check(call: ToolCall, outcome: ToolOutcome): MaybePromise<ToolOutcome> {
    if (outcome.isError || outcome.control !== undefined) return outcome;
    const { content, structured } = outcome;
    if (structured !== undefined) return attempt(call, outcome, structured, outcome);
    if (typeof content !== 'string') return attemptReturned(call, outcome, mismatch(call, outcome, NO_DATA));
    return attempt(call, outcome, content, { ...outcome, structured: content });
  }

  /** What comes of an answer whose data are judged: as `right` has it, where they are. */
  function attempt(
    call: ToolCall,
    outcome: ToolOutcome,
    data: JsonValue,
    right: ToolOutcome,
  ): MaybePromise<ToolOutcome> {
    const found = inTime(call, checks.run(call.tool as Tool, data), limitMs);
    return after(found, (settled) => judge(call, outcome, right, settled));
  }

  function judge(call: ToolCall, outcome: ToolOutcome, right: ToolOutcome, found: unknown): MaybePromise<ToolOutcome> {
    if (found instanceof Unusable && call.aborted) return stopped(call);
    if (found instanceof Unusable) return mismatch(call, outcome, '- it could not be checked', found);
    if (!(found instanceof Faults)) return right;
    const faults = found.describe(maxFaults, MAX_FAULT_CHARACTERS);
    if (outcome.structured !== undefined) return mismatch(call, outcome, faults);
    return attemptReturned(call, outcome, mismatch(call, outcome, `${NO_DATA}\n${faults}`));
  }

  /** What looked like an answer, such as `{ content }`, may be the very data that are promised. */
  function attemptReturned(call: ToolCall, outcome: ToolOutcome, otherwise: ToolOutcome): MaybePromise<ToolOutcome> {
    const value = returnedValue(outcome);
    if (typeof value !== 'object' || value === null) return otherwise;
    const data = toJson(value);
    const found = inTime(call, checks.run(call.tool as Tool, data), limitMs);
    const right = { ...outcome, content: JSON.stringify(data), structured: data };
    return after(found, (settled) => (settled instanceof Faults || settled instanceof Unusable ? otherwise : right));
  }

  function mismatch(call: ToolCall, outcome: ToolOutcome, faults: string, unusable?: Unusable): ToolOutcome {
    const { executed } = call;
    // A layer further inside may have answered in the tool's place.
    const [did, effect] =
      executed === 'no'
        ? ['did not run, and the answer given for it', '']
        : ['ran, but its answer', ' What the tool did is done: do not repeat the call for its effect.'];
    const message = `${subjectOf(call)} ${did} does not match the output schema it declares:\n${faults}`;
    if (onInvalid === 'note') return withNote(outcome, { type: 'output_invalid', by: 'outputValidation', message });
    const told = `${message}\nThe answer is withheld.${effect}`;
    const failed = fail(call, 'output_invalid', told, { executed, ...unusable });
    return { ...failed, notes: outcome.notes };
  }
}

/** An ajv check without defaults leaves the value alone; another library's gets a copy. */
function outputCheck(tool: Tool, options: SchemaOptions): SchemaCheck {
  const { outputSchema = {} } = tool;
  const check = compileFor(tool, outputSchema, options, false);
  if (!isStandardSchema(outputSchema) && options.compile === undefined) return check;
  return (structured: JsonValue) => check(copyJson(structured));
}

function unusable(call: ToolCall, { cause }: Unusable): ToolOutcome {
  const message = `${subjectOf(call)} did not run: its output schema cannot be used, which is no fault of the call. Use another tool.`;
  return fail(call, 'internal', message, { cause });
}

function subjectOf(call: ToolCall): string {
  return `Tool "${printable(call.toolName)}"`;
}
