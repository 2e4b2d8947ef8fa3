import { ToolCall } from './call.ts';
import { BEFORE_FIRST_LAYER, type Pending } from './guard.ts';
import { answerOf, astray, leave, misused, refuse } from './layer.ts';
import { isPromise, type MaybePromise } from './maybe-promise.ts';
import type { ToolOutcome } from './outcome.ts';

/** The rest of the onion. It never throws nor rejects: a failure is an outcome. It may be called again once it has settled. */
export type Next = (call: ToolCall) => MaybePromise<ToolOutcome>;

/** One layer: answers a call by itself, or with what `next` answers. */
export type Middleware = (call: ToolCall, next: Next) => MaybePromise<ToolOutcome>;

/** Goes on with an outcome, or another value, now or when it is there, so that a layer costs no promise where none is needed. */
export function after<Value, Result>(
  value: MaybePromise<Value>,
  goOn: (value: Value) => MaybePromise<Result>,
): MaybePromise<Result> {
  return isPromise(value) ? value.then(goOn) : goOn(value);
}

/** Gives a middleware the name that logs and errors show, which a minifier cannot take away. */
export function named(name: string, middleware: Middleware): Middleware {
  return Object.defineProperty(middleware, 'name', { value: name });
}

/**
 * The onion: the first layer is outermost, `innermost` runs the tool. Built once; each call only walks it, from outside. To make one
 * layer of two, let it call the first with a `next` that calls the second.
 */
export function compose(layers: readonly Middleware[], innermost: Next): Next {
  const onion = {};
  // One without a name is told by its place.
  const names = layers.map(({ name }, level) => name || `#${level + 1}`);
  const inside = guardInnermost(innermost, layers.length, names.at(-1) ?? '', onion);
  const outside = layers.reduceRight<Next>(
    (next, layer, level) => guardLayer(layer, level, names[level] as string, names[level - 1] ?? '', next),
    inside,
  );
  return (call) => {
    if (!ToolCall.is(call)) return misused('');
    const { guard } = ToolCall.scope(call);
    if (guard.depth === BEFORE_FIRST_LAYER) guard.onion = onion;
    return outside(call);
  };
}

/** A layer as its outer neighbour sees it: it keeps the laws, whatever the layer does. */
function guardLayer(layer: Middleware, level: number, name: string, outer: string, next: Next): Next {
  const owner = level - 1;
  return (call) => {
    if (!ToolCall.is(call)) return misused(outer);
    const { guard } = ToolCall.scope(call);
    if (guard.depth !== owner) return refuse(call, level, outer);
    guard.depth = level;
    try {
      const answer = layer(call, next);
      // Most layers pass on what they got: the outcome, or the promise of it.
      if (answer === guard.answer && guard.depth === level) {
        guard.depth = owner;
        return answer;
      }
      const { pending } = guard;
      if (pending !== undefined && pending.promise === answer) {
        pending.owner = owner;
        return answer;
      }
      return isPromise(answer) ? settle(call, level, name, answer) : leave(call, level, owner, name, answer);
    } catch (thrown) {
      return leave(call, level, owner, name, answerOf(thrown, call, name));
    }
  };
}

/** A function of its own, so that a layer which answers at once pays for no closure. */
function settle(call: ToolCall, level: number, name: string, answer: Promise<ToolOutcome>): Promise<ToolOutcome> {
  const pending: Pending = {
    owner: level - 1,
    promise: Promise.resolve(answer).then(
      (outcome) => leave(call, level, pending.owner, name, outcome),
      (thrown: unknown) => leave(call, level, pending.owner, name, answerOf(thrown, call, name)),
    ),
  };
  ToolCall.scope(call).guard.pending = pending;
  return pending.promise;
}

function guardInnermost(innermost: Next, level: number, outer: string, onion: object): Next {
  return (call) => {
    if (!ToolCall.is(call)) return misused(outer);
    const { guard } = ToolCall.scope(call);
    if (guard.depth !== level - 1) return refuse(call, level, outer);
    if (guard.onion !== onion) return astray(call);
    try {
      const answer = innermost(call);
      if (!isPromise(answer)) guard.answer = answer;
      return answer;
    } catch (thrown) {
      return answerOf(thrown, call, 'the innermost');
    }
  };
}
