import { nanoid } from 'nanoid';
import { MalformedArguments, NOTHING, RepairedArguments, readArguments } from './arguments.ts';
import { ToolCall } from './call.ts';
import { type Clock, systemClock } from './clock.ts';
import { ToolContext } from './context.ts';
import { Dispatch, type Host, type Preparation } from './dispatch.ts';
import { describeError, printable, toolError } from './error.ts';
import { ANSWERED } from './guard.ts';
import { InFlight } from './in-flight.ts';
import { invoke } from './invoke.ts';
import { copyJson, type JsonObject } from './json.ts';
import { isPromise } from './maybe-promise.ts';
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
import {
  type DispatchNote,
  fail,
  NO_NOTES,
  noteExceeded,
  type RequestedCall,
  type ToolDispatchResult,
  type ToolOutcome,
} from './outcome.ts';
import { type ReadonlyToolRegistry, ToolRegistry } from './registry.ts';
import {
  checkedOptions,
  type DispatchOptions,
  readableCall,
  requestedArguments,
  requestedCall,
  type ToolCallRequest,
  UnusableCall,
} from './request.ts';
import type { Tool } from './tool.ts';

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
  /** As many results as calls, in their order. The calls run one after the other. */
  dispatchAll(requests: readonly ToolCallRequest[], options?: DispatchOptions): Promise<readonly ToolDispatchResult[]>;
  /** A dispatcher with these options changed and all others kept. */
  with(changes: DispatcherOptions): Dispatcher;
  /** The tools as they are now. */
  readonly tools: ReadonlyToolRegistry;
  /** The layers, outermost first: `dispatcher.with({ middleware: [mine, ...dispatcher.middleware] })` puts one around them. */
  readonly middleware: readonly Middleware[];
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

class OnionDispatcher implements Dispatcher {
  readonly middleware: readonly Middleware[];
  readonly middlewareNames: readonly string[];
  readonly #options: DispatcherOptions;
  readonly #registry: ToolRegistry;
  readonly #onion: Next;
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
  }

  get tools(): ReadonlyToolRegistry {
    return this.#registry.snapshot();
  }

  with(changes: DispatcherOptions): Dispatcher {
    checkOptions('with', changes, DISPATCHER_OPTIONS);
    return new OnionDispatcher({ ...this.#options, ...changes }, this.#inFlight);
  }

  dispatch(request: ToolCallRequest, options: DispatchOptions = NO_OPTIONS): Promise<ToolDispatchResult> {
    return this.#dispatch(request, options, undefined);
  }

  async dispatchAll(
    requests: readonly ToolCallRequest[],
    options: DispatchOptions = NO_OPTIONS,
  ): Promise<readonly ToolDispatchResult[]> {
    const results: ToolDispatchResult[] = [];
    const list = listOf(requests);
    const ids = new BatchIds(list);
    for (const request of list) {
      const result = await this.#dispatch(request, options, ids);
      ids.given.add(result.toolCallId);
      results.push(result);
    }
    return results;
  }

  #dispatch(
    request: ToolCallRequest,
    options: DispatchOptions,
    ids: BatchIds | undefined,
  ): Promise<ToolDispatchResult> {
    const startedAt = this.#host.clock.now();
    let call: ToolCall;
    try {
      call = this.#begin(startedAt, request, options, ids);
    } catch (thrown) {
      return Promise.resolve(this.#unusable(request, ids, startedAt, thrown));
    }
    const { dispatch } = ToolCall.scope(call);
    this.#inFlight.add(dispatch.id);
    const outcome = this.#onion(call);
    if (!isPromise(outcome)) return Promise.resolve(this.#finish(outcome, call, dispatch));
    dispatch.waited = true;
    return dispatch.race(outcome, call).then((settled) => this.#finish(settled, call, dispatch));
  }

  #begin(startedAt: number, request: ToolCallRequest, options: DispatchOptions, ids: BatchIds | undefined): ToolCall {
    if (typeof request !== 'object' || request === null) throw new UnusableCall('It must be an object with a name.');
    const own = options === NO_OPTIONS ? options : checkedOptions(options);
    const read = requestedArguments(request, this.#mayRepair);
    const malformed = read instanceof MalformedArguments ? read : undefined;
    const repaired = read instanceof RepairedArguments ? read : undefined;
    const input = repaired?.input ?? (malformed === undefined ? (read as JsonObject) : NOTHING);
    const requested = requestedCall(request, input);
    const tools = this.#registry.snapshot();
    const id = this.#uniqueId(requested.id, ids);
    const dispatch = new Dispatch(startedAt, id, requested, malformed, tools, own, this.#host);
    if (repaired !== undefined || isReplaced(requested.id, id))
      dispatch.preparation = this.#preparation(requested, repaired, id);
    const context = own.context ?? own.parent?.context ?? this.#context;
    return ToolCall.begin(dispatch, context, tools.get(requested.name));
  }

  #preparation(requested: RequestedCall, repaired: RepairedArguments | undefined, id: string): Preparation {
    const replaced = isReplaced(requested.id, id) ? [replacedNote(requested.id, id)] : [];
    if (repaired === undefined) return { notes: replaced, malformed: undefined };
    const malformed = (toolName: string) => this.#unrepaired(requested.rawArguments, toolName);
    return { notes: [repairedNote(repaired), ...replaced], malformed };
  }

  #unrepaired(rawArguments: string | undefined, toolName: string): MalformedArguments | undefined {
    if (this.#mayRepair(toolName)) return undefined;
    const read = readArguments(rawArguments, toolName, this.#mayRepair);
    return read instanceof MalformedArguments ? read : undefined;
  }

  /** The model's own id, where it has one that is free; or one that no other call of the batch has, or will ask for. */
  #uniqueId(asked: string | undefined, ids: BatchIds | undefined): string {
    if (asked !== undefined && asked !== '' && !this.#isTaken(asked, ids)) return asked;
    for (let attempt = 0; ; attempt++) {
      const id = attempt < ID_ATTEMPTS ? this.#host.newId() : nanoid();
      if (!this.#isTaken(id, ids) && ids?.asked.has(id) !== true) return id;
    }
  }

  #isTaken(id: string, ids: BatchIds | undefined): boolean {
    return this.#inFlight.has(id) || ids?.given.has(id) === true;
  }

  #finish(outcome: ToolOutcome, call: ToolCall, dispatch: Dispatch): ToolDispatchResult {
    dispatch.depth = ANSWERED;
    this.#inFlight.delete(dispatch.id);
    try {
      return this.#result(outcome, dispatch);
    } catch (cause) {
      const message = 'The outcome of the call cannot be read.';
      return this.#result(fail(call, 'internal', message, { executed: call.executed, cause }), dispatch);
    }
  }

  #result(given: ToolOutcome, dispatch: Dispatch): ToolDispatchResult {
    const { id: toolCallId, requested } = dispatch;
    const durationMs = this.#host.clock.now() - dispatch.startedAt;
    const outcome = dispatch.waited ? given : noteExceeded(given, durationMs, dispatch.limitMs);
    if (dispatch.preparation !== undefined) {
      const notes = [...notesFor(outcome.resolvedToolName, dispatch.preparation), ...outcome.notes];
      return { ...outcome, notes, toolCallId, durationMs, requested };
    }
    const { resolvedToolName, content, isError, notes } = outcome;
    // A spread costs as much as five layers, so the usual outcome, which has just these keys, is written out.
    return hasFourKeys(outcome)
      ? { resolvedToolName, content, isError, notes, toolCallId, durationMs, requested }
      : { ...outcome, toolCallId, durationMs, requested };
  }

  /** The result where the host gave something that is no request, or options that cannot be. */
  #unusable(
    request: ToolCallRequest,
    ids: BatchIds | undefined,
    startedAt: number,
    thrown: unknown,
  ): ToolDispatchResult {
    const requested = readableCall(request);
    const why = UnusableCall.is(thrown) ? thrown.message : 'Something in it cannot be read.';
    const error = toolError('invalid_call', `The call cannot be dispatched. ${why}`, { cause: thrown });
    const toolCallId = this.#uniqueId(requested.id, ids);
    return {
      resolvedToolName: requested.name,
      content: error.message,
      isError: true,
      error,
      notes: isReplaced(requested.id, toolCallId) ? [replacedNote(requested.id, toolCallId)] : NO_NOTES,
      toolCallId,
      durationMs: this.#host.clock.now() - startedAt,
      requested,
    };
  }
}

/** Arguments that were not to be repaired for this tool have not been read after all. */
function notesFor(toolName: string, { notes, malformed }: Preparation): readonly DispatchNote[] {
  const isRead = malformed?.(toolName) === undefined;
  return isRead ? notes : notes.filter(({ type }) => type !== 'repaired');
}

function repairedNote({ repairs }: RepairedArguments): DispatchNote {
  const message = `The arguments were not plain JSON, but could be read: ${repairs.join(', ')}.`;
  return { type: 'repaired', by: 'dispatcher', message, forModel: true };
}

function isReplaced(asked: string | undefined, id: string): asked is string {
  return asked !== undefined && asked !== '' && asked !== id;
}

function replacedNote(asked: string, id: string): DispatchNote {
  return {
    type: 'id_replaced',
    by: 'dispatcher',
    message: `The id "${printable(asked)}" was taken already, so this call is "${id}".`,
  };
}

/** The ids of a batch. */
class BatchIds {
  /** Those the model has chosen, of calls to come as well. */
  readonly asked: ReadonlySet<string>;
  /** Those of calls that have been answered. */
  readonly given = new Set<string>();

  constructor(requests: readonly ToolCallRequest[]) {
    this.asked = new Set(requests.flatMap((request) => readableCall(request).id ?? []));
  }
}

/**
 * The calls of a turn, each as it is now: those before it may take their time. None where a model made none, one that came without its
 * list, and something for each that cannot be read, to be told of.
 */
function listOf(requests: readonly ToolCallRequest[] | null | undefined): readonly ToolCallRequest[] {
  try {
    if (!Array.isArray(requests)) return [requests ?? []].flat();
    return Array.from({ length: requests.length }, (_, index) => snapshot(() => requests[index] as ToolCallRequest));
  } catch {
    return [UNREADABLE];
  }
}

const UNREADABLE = undefined as unknown as ToolCallRequest;

function snapshot(read: () => ToolCallRequest): ToolCallRequest {
  let request = UNREADABLE;
  try {
    request = read();
    const { id, name, arguments: raw, truncated } = request;
    if (raw === undefined || raw === null || raw === '') return { ...request };
    const own = { name, arguments: typeof raw === 'object' ? copyJson(raw) : raw, truncated: Boolean(truncated) };
    return id === undefined ? own : { ...own, id };
  } catch {
    return request;
  }
}

function hasFourKeys(outcome: ToolOutcome): boolean {
  let keys = 0;
  for (const _ in outcome) keys++;
  return keys === 4;
}

function hostOf({
  clock = systemClock,
  generateId = nanoid,
  onLate,
  onWarning,
  isControlSignal,
}: DispatcherOptions): Host {
  const warn = (message: string, cause: unknown) => {
    try {
      if (onWarning === undefined)
        process.emitWarning(`${message}: ${describeError(cause).message}`, 'ToolonionWarning');
      else onWarning(message, cause);
    } catch {
      // There is nobody left to tell.
    }
  };
  const tell: Host['tell'] = (observer, call) => {
    try {
      const told: unknown = call();
      if (isPromise(told)) told.then(undefined, (thrown: unknown) => warn(`${observer} failed`, thrown));
    } catch (thrown) {
      warn(`${observer} failed`, thrown);
    }
  };
  return {
    clock,
    tell,
    late: (outcome, call) => tell('onLate', () => onLate?.(outcome, call)),
    newId: () => {
      try {
        const id: unknown = generateId();
        if (typeof id === 'string' && id !== '') return id;
        warn('generateId must give text that is not empty', id);
      } catch (thrown) {
        warn('generateId failed', thrown);
      }
      return nanoid();
    },
    isInterrupt: (thrown) => {
      try {
        return isControlSignal?.(thrown) === true;
      } catch (failure) {
        warn('isControlSignal failed', failure);
        return false;
      }
    },
  };
}
