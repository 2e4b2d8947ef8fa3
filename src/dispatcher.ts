import { nanoid } from 'nanoid';
import { MalformedArguments, NOTHING, RepairedArguments } from './arguments.ts';
import { Batch, copyOf, listOf } from './batch.ts';
import { ToolCall } from './call.ts';
import type { Clock } from './clock.ts';
import { textOf } from './content.ts';
import { ToolContext } from './context.ts';
import { Delivery, observersOf } from './delivery.ts';
import { Dispatch, type Host } from './dispatch.ts';
import type { AbortReason } from './error.ts';
import { ANSWERED } from './guard.ts';
import { hostOf } from './host.ts';
import { InFlight } from './in-flight.ts';
import { invoke } from './invoke.ts';
import type { JsonObject } from './json.ts';
import { isAsking, type Judgement, judgementIn } from './judgement.ts';
import { isPromise, type MaybePromise } from './maybe-promise.ts';
import { compose, type Middleware, type Next } from './middleware.ts';
import {
  checkOptions,
  isBoolean,
  isFunction,
  type OptionChecks,
  type PerTool,
  perTool,
  perToolCheck,
} from './options.ts';
import type { ToolDispatchResult, ToolOutcome } from './outcome.ts';
import { type ReadonlyToolRegistry, ToolRegistry } from './registry.ts';
import {
  type BatchOptions,
  checkedBatchOptions,
  checkedOptions,
  checkedStreamOptions,
  type DispatchOptions,
  readableCall,
  requestedArguments,
  requestedCall,
  type StreamOptions,
  type ToolCallRequest,
  UnusableCall,
} from './request.ts';
import { isReplaced, preparationOf, resultOf, unusableResult } from './result.ts';
import { isScheduling } from './schedule.ts';
import { CLOSED, type DrainOptions, type DrainReport, shutDown } from './shut-down.ts';
import { CallStream, type StreamedCall, type ToolStream } from './stream.ts';
import type { Tool } from './tool.ts';
import { type Begun, inOrder, inWaves } from './waves.ts';

/** What a dispatcher is made of. */
export interface DispatcherOptions {
  /** A registry is read afresh for each call. Default: no tools. */
  readonly tools?: ToolRegistry | readonly Tool[];
  /** The onion, outermost first. Default: none. */
  readonly middleware?: readonly Middleware[];
  /** The session of calls that bring none. Default: a new one. */
  readonly context?: ToolContext;
  /** Default: the process's clock. */
  readonly clock?: Clock;
  /** Makes ids for calls without one. Default: nanoid. */
  readonly generateId?: () => string;
  /** Recognises a runtime's own interrupts: thrown inside, they come out as `result.control`. Default: none. */
  readonly isControlSignal?: (thrown: unknown) => boolean;
  /** Hears what a tool answered after its call had been answered, as after a timeout. Default: nobody. */
  readonly onLate?: (outcome: ToolOutcome, call: ToolCall) => void;
  /**
   * Whether arguments whose text is no JSON, but leaves no doubt what was meant, are read all the same, with a note. Without it such
   * calls are refused. Default: true.
   */
  readonly repairArguments?: PerTool<boolean>;
  /** Hears of a hook of the host's that threw. Default: `process.emitWarning`. */
  readonly onWarning?: (message: string, cause?: unknown) => void;
}

/** Takes tool calls through the onion. Immutable: `with` makes another. */
export interface Dispatcher {
  /** Exactly one result, whatever the model, a tool or a middleware did. The promise never rejects. */
  dispatch(request: ToolCallRequest, options?: DispatchOptions): Promise<ToolDispatchResult>;
  /**
   * What would become of a call now, without running it: it passes through the layers as far as the gate, or to the tool. For runtimes that
   * ask their user before they have a call dispatched. It promises nothing: the call is judged again when it is dispatched.
   */
  judge(request: ToolCallRequest, options?: StreamOptions): Promise<Judgement>;
  /**
   * A call as a generator: it yields the parts of the answer and the tool's signs of life as they come, and returns the result, which is
   * its `result` as well. It begins with the first `next`, and never throws. Whoever leaves early aborts the call.
   */
  stream(request: ToolCallRequest, options?: StreamOptions): ToolStream;
  /** As many results as calls, in their order. Those run together whose tools say that they may. The promise never rejects. */
  dispatchAll(requests: readonly ToolCallRequest[], options?: BatchOptions): Promise<readonly ToolDispatchResult[]>;
  /**
   * Shuts down, itself and all dispatchers made of it by `with`: calls from now on are answered as cancelled, save those that a call
   * under way makes. Resolves when all have been answered.
   */
  drain(options?: DrainOptions): Promise<DrainReport>;
  /** A dispatcher with these options changed and all others kept. */
  with(changes: DispatcherOptions): Dispatcher;
  /** The tools as they are now. */
  readonly tools: ReadonlyToolRegistry;
  /** Calls back after the tools have changed. @returns what ends that. */
  onToolsChange(listener: () => void): () => void;
  /** The layers, outermost first: `dispatcher.with({ middleware: [mine, ...dispatcher.middleware] })` puts one around them. */
  readonly middleware: readonly Middleware[];
  /** Whether one of them may want somebody to be asked. Without, `judge` has no question. */
  readonly mayAsk: boolean;
  /** Their names. */
  readonly middlewareNames: readonly string[];
}

/**
 * Makes a dispatcher.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example createDispatcher({ tools: [add], middleware: standard({ permission: { check: readOnlyAllowed } }) })
 */
export function createDispatcher(options: DispatcherOptions = {}): Dispatcher {
  checkOptions('createDispatcher', options, DISPATCHER_OPTIONS);
  return new OnionDispatcher(options, new InFlight());
}

const DISPATCHER_OPTIONS: OptionChecks = {
  tools: (value) => value instanceof ToolRegistry || Array.isArray(value) || 'a ToolRegistry or an array of tools',
  middleware: (value) => isFunctions(value) || 'an array of middleware functions',
  context: (value) => value instanceof ToolContext || 'a ToolContext',
  clock: (value) => isClock(value) || 'an object with the functions now, setTimeout and clearTimeout',
  generateId: isFunction,
  isControlSignal: isFunction,
  repairArguments: perToolCheck(isBoolean),
  onLate: isFunction,
  onWarning: isFunction,
};

function isFunctions(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'function');
}

function isClock(value: unknown): boolean {
  const { now, setTimeout, clearTimeout } = (value ?? {}) as Partial<Clock>;
  return isFunctions([now, setTimeout, clearTimeout]);
}

const NO_OPTIONS: DispatchOptions = Object.freeze({});
/** Times `generateId` may give an id that is taken before nanoid is used. */
const ID_ATTEMPTS = 10;

function alone(result: ToolDispatchResult): readonly ToolDispatchResult[] {
  return [result];
}

class OnionDispatcher implements Dispatcher {
  readonly middleware: readonly Middleware[];
  readonly middlewareNames: readonly string[];
  readonly mayAsk: boolean;
  readonly #options: DispatcherOptions;
  readonly #registry: ToolRegistry;
  readonly #onion: Next;
  readonly #isScheduled: boolean;
  readonly #context: ToolContext;
  readonly #host: Host;
  readonly #mayRepair: (toolName: string) => boolean;
  readonly #inFlight: InFlight;

  constructor(options: DispatcherOptions, inFlight: InFlight) {
    const { tools = [], middleware = [], context = new ToolContext() } = options;
    this.#registry = tools instanceof ToolRegistry ? tools : new ToolRegistry(tools);
    this.#options = { ...options, tools: this.#registry, context };
    this.middleware = Object.freeze([...middleware]);
    this.#onion = compose(this.middleware, invoke);
    this.#context = context;
    this.#host = hostOf(options);
    this.#mayRepair = perTool(options.repairArguments, true);
    this.#inFlight = inFlight;
    this.middlewareNames = middleware.map((layer) => layer.name);
    this.mayAsk = middleware.some(isAsking);
    this.#isScheduled = middleware.some(isScheduling);
  }

  get tools(): ReadonlyToolRegistry {
    return this.#registry.snapshot();
  }

  onToolsChange(listener: () => void): () => void {
    return this.#registry.onChange(listener);
  }

  with(changes: DispatcherOptions): Dispatcher {
    checkOptions('with', changes, DISPATCHER_OPTIONS);
    return new OnionDispatcher({ ...this.#options, ...changes }, this.#inFlight);
  }

  dispatch(request: ToolCallRequest, options: DispatchOptions = NO_OPTIONS): Promise<ToolDispatchResult> {
    return Promise.resolve(this.#dispatch(request, options));
  }

  #dispatch(request: ToolCallRequest, options: DispatchOptions): MaybePromise<ToolDispatchResult> {
    const startedAt = this.#host.now();
    let call: ToolCall;
    try {
      if (options === NO_OPTIONS) call = this.#begin(startedAt, request, options, undefined);
      else {
        const own = checkedOptions(options);
        call = this.#begin(startedAt, request, own, this.#deliveryTo(own));
      }
    } catch (thrown) {
      return this.#unusable(request, startedAt, thrown);
    }
    return this.#run(call);
  }

  judge(request: ToolCallRequest, options: StreamOptions = NO_OPTIONS): Promise<Judgement> {
    const startedAt = this.#host.now();
    let call: ToolCall;
    try {
      call = this.#begin(startedAt, request, checkedStreamOptions(options, 'judge'), undefined);
      ToolCall.scope(call).dispatch.isJudged = true;
    } catch (thrown) {
      return Promise.resolve(judgementIn(this.#unusable(request, startedAt, thrown)));
    }
    return Promise.resolve(this.#run(call)).then(judgementIn);
  }

  stream(request: ToolCallRequest, options: StreamOptions = NO_OPTIONS): ToolStream {
    return new CallStream((stream, left) => this.#startStream(request, options, stream, left));
  }

  #startStream(
    request: ToolCallRequest,
    options: StreamOptions,
    stream: CallStream,
    left: AbortReason | undefined,
  ): StreamedCall {
    const startedAt = this.#host.now();
    try {
      const own = options === NO_OPTIONS ? options : checkedStreamOptions(options);
      const call = this.#begin(startedAt, request, own, new Delivery(stream));
      const { dispatch } = ToolCall.scope(call);
      dispatch.isAbortable = true;
      if (left !== undefined) dispatch.stop(left);
      return { result: Promise.resolve(this.#run(call)), stop: (reason) => dispatch.stop(reason) };
    } catch (thrown) {
      const result = this.#unusable(request, startedAt, thrown);
      stream.part({ type: 'text', text: textOf(result.content) });
      return { result: Promise.resolve(result), stop: () => {} };
    }
  }

  #deliveryTo(options: DispatchOptions): Delivery | undefined {
    const taker = observersOf(options, this.#host);
    return taker && new Delivery(taker);
  }

  dispatchAll(
    requests: readonly ToolCallRequest[],
    options: BatchOptions = NO_OPTIONS,
  ): Promise<readonly ToolDispatchResult[]> {
    const list = listOf(requests);
    // Most turns have one call, which needs nothing to keep it apart from others.
    if (list.length !== 1 || options !== NO_OPTIONS) return this.#dispatchBatch(list, options);
    const result = this.#dispatch(list[0] as ToolCallRequest, options);
    return isPromise(result) ? result.then(alone) : Promise.resolve([result]);
  }

  async #dispatchBatch(
    list: readonly ToolCallRequest[],
    options: BatchOptions,
  ): Promise<readonly ToolDispatchResult[]> {
    let own: BatchOptions;
    try {
      own = checkedBatchOptions(options, list.length);
    } catch (thrown) {
      const batch = new Batch(list, NO_OPTIONS, this.#host);
      return list.map((request, place) => this.#unusable(request, this.#host.now(), thrown, batch, place));
    }
    const batch = new Batch(list, own, this.#host);
    if (this.#inFlight.isClosed && this.#isClosedTo(own)) batch.stop(CLOSED);
    this.#inFlight.addBatch(batch);
    try {
      return await (own.mode === 'sequential' ? this.#inTurn(list, own, batch) : this.#together(list, own, batch));
    } finally {
      this.#inFlight.deleteBatch(batch);
    }
  }

  /** Each call begins when the one before has ended, as it was handed in. */
  async #inTurn(
    requests: readonly ToolCallRequest[],
    options: BatchOptions,
    batch: Batch,
  ): Promise<readonly ToolDispatchResult[]> {
    const list = requests.map(copyOf);
    const results: ToolDispatchResult[] = [];
    for (const [place, request] of list.entries())
      results.push(await this.#resultOf(this.#beginInBatch(request, options, batch, place)));
    return results;
  }

  /** All calls are read before the first one runs. */
  async #together(
    requests: readonly ToolCallRequest[],
    options: BatchOptions,
    batch: Batch,
  ): Promise<readonly ToolDispatchResult[]> {
    const begun = requests.map((request, place) => this.#beginInBatch(request, options, batch, place));
    // Where a layer gives turns, it knows more than could be known here.
    if (this.#isScheduled) return inOrder(begun.map(this.#resultOf));
    const run = (each: Begun, isLate: boolean) => {
      if (isLate && ToolCall.is(each)) ToolCall.scope(each).dispatch.endWaiting();
      return this.#resultOf(each);
    };
    return inWaves(begun, run, options.concurrency);
  }

  readonly #resultOf = (begun: Begun): MaybePromise<ToolDispatchResult> =>
    ToolCall.is(begun) ? this.#run(begun) : begun;

  #beginInBatch(request: ToolCallRequest, options: BatchOptions, batch: Batch, place: number): Begun {
    const startedAt = this.#host.now();
    try {
      return (
        batch.standing(options.earlier?.[place], request) ??
        this.#begin(startedAt, request, options, this.#deliveryTo(options), batch, place)
      );
    } catch (thrown) {
      return this.#unusable(request, startedAt, thrown, batch, place);
    }
  }

  #run(call: ToolCall): MaybePromise<ToolDispatchResult> {
    const { dispatch } = ToolCall.scope(call);
    const outcome = this.#onion(call);
    if (!isPromise(outcome)) return this.#finish(outcome, call, dispatch);
    dispatch.waited = true;
    return dispatch.race(outcome).then((settled) => this.#finish(settled, call, dispatch));
  }

  #begin(
    startedAt: number,
    request: ToolCallRequest,
    options: DispatchOptions,
    delivery: Delivery | undefined,
    batch?: Batch,
    place = 0,
  ): ToolCall {
    if (typeof request !== 'object' || request === null) throw new UnusableCall('It must be an object with a name.');
    const read = requestedArguments(request, this.#mayRepair);
    const malformed = read instanceof MalformedArguments ? read : undefined;
    const repaired = read instanceof RepairedArguments ? read : undefined;
    const input = repaired?.input ?? (malformed === undefined ? (read as JsonObject) : NOTHING);
    const requested = requestedCall(request, input);
    const tools = this.#registry.snapshot();
    const id = this.#uniqueId(requested.id, batch);
    const dispatch = new Dispatch(startedAt, id, requested, malformed, tools, options, this.#host);
    if (repaired !== undefined || isReplaced(requested.id, id))
      dispatch.preparation = preparationOf(requested, repaired, id, this.#mayRepair);
    const context = options.context ?? options.parent?.context ?? this.#context;
    dispatch.delivery = delivery;
    const call = ToolCall.begin(dispatch, context, tools.get(requested.name));
    this.#inFlight.add(dispatch);
    if (batch !== undefined) batch.add(dispatch, place);
    else if (this.#inFlight.isClosed && this.#isClosedTo(options)) dispatch.stop(CLOSED);
    return call;
  }

  /** What a call under way needs still runs. */
  #isClosedTo({ parent }: DispatchOptions): boolean {
    return parent === undefined || ToolCall.scope(parent).dispatch.depth === ANSWERED;
  }

  drain(options: DrainOptions = {}): Promise<DrainReport> {
    return shutDown(this.#inFlight, this.#host.clock, options);
  }

  /** The model's own id, where it has one that is free; or one that no other call of the batch has, or will ask for. */
  #uniqueId(asked: string | undefined, batch: Batch | undefined): string {
    if (asked !== undefined && asked !== '' && !this.#isTaken(asked, batch)) return asked;
    for (let attempt = 0; ; attempt++) {
      const id = attempt < ID_ATTEMPTS ? this.#host.newId() : nanoid();
      if (!this.#isTaken(id, batch) && batch?.isAsked(id) !== true) return id;
    }
  }

  #isTaken(id: string, batch: Batch | undefined): boolean {
    return this.#inFlight.has(id) || batch?.givenIds.has(id) === true;
  }

  #finish(outcome: ToolOutcome, call: ToolCall, dispatch: Dispatch): ToolDispatchResult {
    dispatch.depth = ANSWERED;
    this.#inFlight.delete(dispatch);
    if (dispatch.executed === 'unknown') dispatch.leftRunning();
    const result = resultOf(outcome, call, dispatch);
    dispatch.delivery?.complete(result.content, call);
    if (dispatch.batch !== undefined) dispatch.batch.answered(dispatch.place, result);
    for (let { turn } = dispatch; turn !== undefined; turn = turn.outer) turn.schedule.end(turn);
    return result;
  }

  /** The result where the host gave something that is no request, or options that cannot be. */
  #unusable(
    request: ToolCallRequest,
    startedAt: number,
    thrown: unknown,
    batch?: Batch,
    place = 0,
  ): ToolDispatchResult {
    const requested = readableCall(request);
    const toolCallId = this.#uniqueId(requested.id, batch);
    const result = unusableResult(requested, toolCallId, this.#host.now() - startedAt, thrown);
    batch?.answered(place, result);
    return result;
  }
}
