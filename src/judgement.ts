import { ToolCall } from './call.ts';
import { type ControlSignal, controlSignal } from './control.ts';
import type { JsonValue } from './json.ts';
import type { Middleware } from './middleware.ts';
import type { ToolDispatchResult } from './outcome.ts';

/** What a gate says of a call. */
export type GateJudgement =
  /** Nothing is known that keeps it from running. */
  { readonly type: 'run' } | GateQuestion;

/** Somebody has to be asked whether a call may run. */
export interface GateQuestion {
  readonly type: 'ask';
  readonly prompt: string;
  /** The tool that would run. */
  readonly toolName: string;
  /** The arguments it would run with. */
  readonly input: JsonValue;
  /** Whether the gate has edited them: they are not those the model sent. */
  readonly isEdited: boolean;
  /** Whether the gate has somebody to ask by itself. */
  readonly hasApprover: boolean;
  /** Milliseconds it waits for an answer; Infinity waits. */
  readonly limitMs: number;
}

/** What would become of a call. `answer`: it would be answered without being run, as where it is refused or its arguments are invalid. */
export type Judgement = GateJudgement | { readonly type: 'answer'; readonly result: ToolDispatchResult };

const judgements = new WeakMap<ControlSignal, GateJudgement>();
const REASON = 'The call was only judged.';
/** Most calls that are judged would run, and need no signal of their own. */
const WOULD_RUN = signalOf('', Object.freeze({ type: 'run' }));

function signalOf(toolCallId: string, judgement: GateJudgement): ControlSignal {
  const control = controlSignal({ type: 'suspend', toolCallId, request: { reason: REASON, payload: judgement } });
  judgements.set(control, judgement);
  return control;
}

const asking = new WeakSet<Middleware>();

/** Marks a layer that may want somebody to be asked: where there is none, a runtime need not have calls judged. */
export function asks(layer: Middleware): Middleware {
  asking.add(layer);
  return layer;
}

/** Whether a layer may want somebody to be asked. */
export function isAsking(layer: Middleware): boolean {
  return asking.has(layer);
}

/** Whether a call is only judged, or belongs to one that is, and must not run. A gate then answers with what `judged` makes. */
export function isJudged(call: ToolCall): boolean {
  return ToolCall.scope(call).dispatch.isJudged;
}

/** What stops a call that is only judged, with what a gate says of it: to be given to `suspended`. */
export function judged(call: ToolCall, judgement: GateJudgement): ControlSignal {
  return judgement.type === 'run' ? WOULD_RUN : signalOf(call.id, judgement);
}

/** What came of a dispatch that only judged its call. */
export function judgementIn(result: ToolDispatchResult): Judgement {
  const judgement = result.control && judgements.get(result.control);
  return judgement ?? { type: 'answer', result };
}
