import { MalformedArguments, NOTHING, type ReadArguments, RepairedArguments, readArguments } from './arguments.ts';
import { type Progress, ToolCall } from './call.ts';
import type { ContentPart } from './content.ts';
import { ToolContext } from './context.ts';
import { describeError } from './error.ts';
import { isPlainObject, type JsonObject } from './json.ts';
import { checkOptions, isBoolean, isFunction, isLimit, isListOf, isOneOf, type OptionChecks } from './options.ts';
import type { RequestedCall, ToolDispatchResult } from './outcome.ts';
import { isSetting, type Setting } from './settings.ts';

/** A call as a model makes it. */
export interface ToolCallRequest {
  /** The model's id. Where it is missing, empty, or that of a call in flight, another is generated. */
  readonly id?: string;
  readonly name: string;
  /** An object, or the JSON text of one. Nothing at all is `{}`. */
  readonly arguments?: unknown;
  /** The model was cut off while it wrote the arguments: they are refused, however complete they look. Default: false. */
  readonly truncated?: boolean;
}

/** What may be said of one dispatch. */
export interface DispatchOptions {
  /** Aborts the call. Its result comes all the same, a few turns of the event loop later at the latest. */
  readonly signal?: AbortSignal;
  /** Default: the parent's, or the dispatcher's. */
  readonly context?: ToolContext;
  /** Values for middlewares, such as `timeoutMs(500)`. Default: none. */
  readonly settings?: readonly Setting[];
  /** The call whose tool makes this one: it lends its context, and its abort reaches this one. */
  readonly parent?: ToolCall;
  /**
   * Takes the parts of the answer as they come; together they are the content of the result. A tool that yields them waits for what it
   * returns.
   */
  readonly onPart?: (part: ContentPart, call: ToolCall) => unknown;
  /** Hears the signs of life a tool gives through `call.report`. */
  readonly onProgress?: (progress: Progress, call: ToolCall) => void;
}

/** What may be said of a call whose parts are streamed, or that is only judged: without observers: a stream yields what they would take. */
export type StreamOptions = Omit<DispatchOptions, 'onPart' | 'onProgress'>;

/** What may be said of calls that come together. */
export interface BatchOptions extends DispatchOptions {
  /**
   * `parallel`: those that may run together do, by what their tools say of themselves; see docs/guide/many-calls.md. `sequential`: one
   * after the other. Default: `parallel`.
   */
  readonly mode?: 'parallel' | 'sequential';
  /** How many may run at once. Default: Infinity. */
  readonly concurrency?: number;
  /** The first call that fails, softly or hard, aborts all others. Default: false. */
  readonly failFast?: boolean;
  /** Hears each result as it comes, and the place of its call. What it throws, or how long it takes, is no concern of any call. */
  readonly onResult?: (result: ToolDispatchResult, place: number) => void;
  /**
   * What an earlier run of the same calls came to, by their places. Those that ended stand, and are not told again; those that were
   * suspended, or have nothing here, run. Default: all run.
   */
  readonly earlier?: readonly (ToolDispatchResult | undefined)[];
}

/** Thrown for what is not a request, or for options that cannot be used; the message says what is allowed. */
export class UnusableCall extends TypeError {
  readonly #own = true;

  static is(thrown: unknown): thrown is UnusableCall {
    return typeof thrown === 'object' && thrown !== null && #own in thrown;
  }
}

/** A list that claims to have more is taken for none: reading it would fill the memory. */
export const MOST_CALLS = 1_000_000;

const OPTIONS: OptionChecks = {
  signal: (value) => isSignal(value) || 'an AbortSignal',
  context: (value) => value instanceof ToolContext || 'a ToolContext',
  settings: isListOf(isSetting, 'an array of settings, such as timeoutMs(500)'),
  parent: (value) => ToolCall.is(value) || 'the ToolCall that execute received',
  onPart: isFunction,
  onProgress: isFunction,
};
const { onPart: _, onProgress: __, ...STREAM_OPTIONS } = OPTIONS;
const BATCH_OPTIONS: OptionChecks = {
  ...OPTIONS,
  mode: isOneOf('parallel', 'sequential'),
  concurrency: isLimit(1),
  failFast: isBoolean,
  onResult: isFunction,
  earlier: (value) => (Array.isArray(value) && value.length <= MOST_CALLS) || 'an array of results',
};

function isSignal(value: unknown): boolean {
  const { aborted, addEventListener, removeEventListener } = (value ?? {}) as Partial<AbortSignal>;
  return (
    typeof aborted === 'boolean' && typeof addEventListener === 'function' && typeof removeEventListener === 'function'
  );
}

/** A copy of the options, for the caller's may change. @throws UnusableCall naming the option and what is allowed. */
export function checkedOptions(options: DispatchOptions): DispatchOptions {
  return checkedCopy('dispatch', options, OPTIONS);
}

/** A copy of the options of a stream, or of a judgement. @throws UnusableCall naming the option and what is allowed. */
export function checkedStreamOptions(options: StreamOptions, owner: 'stream' | 'judge' = 'stream'): StreamOptions {
  return checkedCopy(owner, options, STREAM_OPTIONS);
}

/** A copy of the options of a batch. @throws UnusableCall naming the option and what is allowed. */
export function checkedBatchOptions(options: BatchOptions, count: number): BatchOptions {
  const own: BatchOptions = checkedCopy('dispatchAll', options, BATCH_OPTIONS);
  if (own.earlier === undefined) return own;
  const earlier = copyOfList(own.earlier);
  // Of other calls, then: to run these as if nothing had been would run some a second time.
  if (earlier.length > count)
    throw new UnusableCall(
      `Option "earlier" of dispatchAll must have a place for each call, not ${earlier.length} for ${count}.`,
    );
  return { ...own, earlier };
}

function checkedCopy<Options extends DispatchOptions>(owner: string, options: Options, checks: OptionChecks): Options {
  let own = options;
  try {
    if (isPlainObject(options)) own = { ...options };
    checkOptions(owner, own, checks);
  } catch (thrown) {
    throw new UnusableCall(describeError(thrown).message);
  }
  return own.settings === undefined ? own : { ...own, settings: copyOfList(own.settings) };
}

/** By index: an iterator of the list's own may never end. */
function copyOfList<Item>(list: readonly Item[]): readonly Item[] {
  const copy: Item[] = [];
  for (let index = 0; index < list.length; index++) copy.push(list[index] as Item);
  return copy;
}

/** The call as it goes into the result: safe to keep and to replay, whatever was sent. */
export function requestedCall(request: ToolCallRequest, input: JsonObject): RequestedCall {
  const { id, name: given, arguments: raw } = request;
  const name = typeof given === 'string' ? given : '';
  if (typeof id !== 'string') return typeof raw === 'string' ? { name, input, rawArguments: raw } : { name, input };
  return typeof raw === 'string' ? { id, name, input, rawArguments: raw } : { id, name, input };
}

/** As much of a call as can be read where something in it cannot. */
export function readableCall(request: ToolCallRequest): RequestedCall {
  const id = readable(() => request.id);
  const name = readable(() => request.name);
  return requestedCall({ id, name } as ToolCallRequest, NOTHING);
}

/** The call as a dispatcher that repairs arguments has it in the result. Total. */
export function requestedIn(request: ToolCallRequest): RequestedCall {
  try {
    const read = requestedArguments(request, () => true);
    if (read instanceof MalformedArguments) return requestedCall(request, NOTHING);
    return requestedCall(request, read instanceof RepairedArguments ? read.input : read);
  } catch {
    return readableCall(request);
  }
}

function readable<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** The arguments of a request. */
export function requestedArguments(request: ToolCallRequest, mayRepair: (toolName: string) => boolean): ReadArguments {
  const { name, arguments: raw } = request;
  if (raw === undefined || raw === null || raw === '') checkOtherKeys(request);
  if (!request.truncated) return readArguments(raw, name, mayRepair);
  return new MalformedArguments(
    'truncated',
    'The model was cut off while writing them.',
    typeof raw === 'string' ? raw : undefined,
  );
}

/** Where other systems have the arguments of a call. */
const OTHER_KEYS = [
  ...['input', 'args', 'kwargs', 'params', 'parameters', 'rawArguments', 'toolInput', 'tool_input', 'tool_args'],
  ...['argument', 'Arguments', 'function'],
];

/** @throws UnusableCall for arguments in another place, without which the tool would run. */
function checkOtherKeys(request: object): void {
  const other = OTHER_KEYS.find((key) => Reflect.get(request, key) !== undefined);
  if (other === 'function') throw new UnusableCall('Take its name and its arguments out of "function".');
  if (other !== undefined)
    throw new UnusableCall(`Its arguments stand under "${other}"; they belong under "arguments".`);
}
