import { ToolCall } from './call.ts';
import { type ControlSignal, controlSignal, isControlSignal } from './control.ts';
import { AbortReason, toolError } from './error.ts';
import { ABANDONED, ANSWERED, FAULTED } from './guard.ts';
import { fail, failure, isOutcome, NO_NOTES, stopped, suspended, type ToolOutcome } from './outcome.ts';

/** The layer numbered `level` has answered: `owner` is the innermost one now. Returns what the outer layer gets. */
export function leave(call: ToolCall, level: number, owner: number, name: string, answer: ToolOutcome): ToolOutcome {
  const { guard } = ToolCall.scope(call);
  if (guard.depth !== level) return leaveOddly(call, level, name, answer);
  guard.depth = owner;
  guard.pending = undefined;
  if (answer === guard.answer) return answer;
  const outcome = outcomeOf(call, name, answer);
  guard.answer = outcome;
  return outcome;
}

/** The layer answered out of turn: over an unsettled `next`, or where its answer is no longer waited for. */
function leaveOddly(call: ToolCall, level: number, name: string, answer: ToolOutcome): ToolOutcome {
  const { guard } = ToolCall.scope(call);
  if (guard.depth > level) {
    return fault(
      call,
      `Middleware "${name}" answered before next() had settled. It must return or await what next() gives.`,
    );
  }
  return guard.fault ?? outcomeOf(call, name, answer);
}

/** What a layer answered, as an outcome: it may have stopped the call by what `call.suspend` made. */
function outcomeOf(call: ToolCall, name: string, answer: unknown): ToolOutcome {
  if (isOutcome(answer)) return answer;
  return isControlSignal(answer) ? suspended(call, answer) : rubbish(call, name, answer);
}

/** `next` was called by a layer whose turn it was not. */
export function refuse(call: ToolCall, level: number, outer: string): ToolOutcome {
  const { guard } = ToolCall.scope(call);
  switch (guard.depth) {
    case FAULTED:
      return guard.fault as ToolOutcome;
    case ABANDONED:
      return stopped(call);
    case ANSWERED:
      // A layer that was waiting when the caller left has done nothing wrong.
      if (call.aborted) return stopped(call);
      return fail(call, 'internal', `Middleware "${outer}" called next() after the call had been answered.`);
    default: {
      if (level === 0) return fault(call, ENTERED_TWICE);
      const when = guard.depth < level - 1 ? 'after it had answered' : 'again before its first call had settled';
      return fault(call, `Middleware "${outer}" called next() ${when}.`);
    }
  }
}

const ENTERED_TWICE =
  'A call that is in an onion entered one made by compose(). To make one layer of two, let it call the first with a next that calls the second.';

/** The call has come to the innermost of an onion that it did not enter. */
export function astray(call: ToolCall): ToolOutcome {
  return fault(
    call,
    'A middleware called the next() of another dispatcher. It must not keep next() from one call to another, but call the one it gets.',
  );
}

/** Ends the whole dispatch with an internal error: nothing may run any more, and what runs is aborted. */
function fault(call: ToolCall, message: string): ToolOutcome {
  const scope = ToolCall.scope(call);
  const { guard } = scope;
  const error = toolError('internal', message, { executed: call.executed });
  guard.fault = failure(call, error);
  guard.depth = FAULTED;
  scope.dispatch.scope.abort(new AbortReason(error));
  return guard.fault;
}

function rubbish(call: ToolCall, name: string, answer: unknown): ToolOutcome {
  const got =
    answer === undefined ? 'nothing. Did it forget to return next(call)?' : 'something that is not an outcome.';
  return fail(call, 'internal', `Middleware "${name}" answered ${got}`, { executed: call.executed, cause: answer });
}

/** The outcome for what a layer threw. */
export function answerOf(thrown: unknown, call: ToolCall, name: string): ToolOutcome {
  const control = controlOf(thrown, call);
  if (control !== undefined) return suspended(call, control);
  if (call.aborted) return stopped(call, thrown);
  return fail(call, 'internal', `The call could not be handled: middleware "${name}" failed.`, {
    executed: call.executed,
    cause: thrown,
  });
}

/** What was thrown, if it is a control signal of ours or of the host's. */
export function controlOf(thrown: unknown, call: ToolCall): ControlSignal | undefined {
  if (isControlSignal(thrown)) return thrown;
  const { isInterrupt } = ToolCall.scope(call).dispatch.host;
  return isInterrupt(thrown) ? controlSignal({ type: 'interrupt', signal: thrown }) : undefined;
}

/** The outcome where a layer passed on something that is not a call. */
export function misused(name: string): ToolOutcome {
  const error = toolError(
    'internal',
    `Middleware "${name}" gave next() something else than its call or call.with(changes).`,
  );
  return { resolvedToolName: '', content: error.message, isError: true, error, notes: NO_NOTES };
}
