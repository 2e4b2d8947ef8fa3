import {
  checkOptions,
  copyJson,
  failure,
  isCount,
  isOneOf,
  isPromise,
  type MaybePromise,
  type Middleware,
  named,
  printable,
  type Tool,
  type ToolCall,
  type ToolOutcome,
  toolError,
  withNote,
} from '../src/index.ts';
import { compileSchema, Faults, type SchemaCheck } from './schema-check.ts';

/** Options of `outputValidation`. */
export interface OutputValidationOptions {
  /** What becomes of an answer that does not match: it fails with `output_invalid`, or passes with a note. Default: `fail`. */
  readonly onInvalid?: 'fail' | 'note';
  /** The most faults one message names. Default: 5. */
  readonly maxFaults?: number;
}

/**
 * Checks `structured` against the output schema of a tool that declares one. Errors are never checked, and the answer is never
 * changed. An output schema that cannot be used counts as not matching.
 *
 * Right outside `timeout`, so that the answer is checked as the tool gave it, before anything is cut or hidden.
 *
 * @throws TypeError naming the option and what is allowed.
 */
export function outputValidation(options: OutputValidationOptions = {}): Middleware {
  checkOptions('outputValidation', options, { onInvalid: isOneOf('fail', 'note'), maxFaults: isCount(1) });
  const { onInvalid = 'fail', maxFaults = 5 } = options;
  const checks = new WeakMap<Tool, SchemaCheck>();

  return named('outputValidation', function outputValidation(call, next) {
    const outcome = next(call);
    if (call.tool?.outputSchema === undefined) return outcome;
    return isPromise(outcome) ? outcome.then((settled) => check(call, settled)) : check(call, outcome);
  });

  function check(call: ToolCall, outcome: ToolOutcome): MaybePromise<ToolOutcome> {
    if (outcome.isError || outcome.control !== undefined) return outcome;
    if (outcome.structured === undefined) return mismatch(call, outcome, '- it has no structured part');
    const found = checkOf(call.tool as Tool)(copyJson(outcome.structured));
    return isPromise(found) ? found.then((settled) => judge(call, outcome, settled)) : judge(call, outcome, found);
  }

  function judge(call: ToolCall, outcome: ToolOutcome, found: unknown): ToolOutcome {
    return found instanceof Faults ? mismatch(call, outcome, found.describe(maxFaults, 300)) : outcome;
  }

  function mismatch(call: ToolCall, outcome: ToolOutcome, faults: string): ToolOutcome {
    const name = printable(call.tool?.name ?? call.name);
    const message = `Tool "${name}" ran, but its answer does not match what it declares:\n${faults}`;
    if (onInvalid === 'note') return withNote(outcome, { type: 'output_invalid', by: 'outputValidation', message });
    return failure(call, toolError('output_invalid', `${message}\nDo not rely on it.`, { executed: 'yes' }));
  }

  function checkOf(tool: Tool): SchemaCheck {
    const known = checks.get(tool);
    if (known !== undefined) return known;
    const made = compiled(tool);
    checks.set(tool, made);
    return made;
  }
}

function compiled(tool: Tool): SchemaCheck {
  try {
    return compileSchema(tool.outputSchema ?? {});
  } catch (thrown) {
    const message = `its output schema cannot be used: ${(thrown as Error).message.slice(0, 200)}`;
    return () => new Faults([{ path: '', message }]);
  }
}
