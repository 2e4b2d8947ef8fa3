import { MalformedArguments, NOTHING, type ReadArguments, RepairedArguments, readArguments } from './arguments.ts';
import { type Progress, ToolCall } from './call.ts';
import { ToolContext } from './context.ts';
import { isPlainObject, type JsonObject } from './json.ts';
import type { RequestedCall } from './outcome.ts';
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
  /** Hears the signs of life a tool gives through `call.report`. */
  readonly onProgress?: (progress: Progress, call: ToolCall) => void;
}

/** Thrown for what is not a request, or for options that cannot be used; the message says what is allowed. */
export class UnusableCall extends TypeError {
  readonly #own = true;

  static is(thrown: unknown): thrown is UnusableCall {
    return typeof thrown === 'object' && thrown !== null && #own in thrown;
  }
}

const OPTIONS = ['signal', 'context', 'settings', 'parent', 'onProgress'];

/** A copy of the options, for the caller's may change. @throws UnusableCall naming the option and what is allowed. */
export function checkedOptions(options: DispatchOptions): DispatchOptions {
  if (!isPlainObject(options)) throw new UnusableCall('Options of dispatch must be a plain object.');
  const own: DispatchOptions = { ...options };
  const unknown = Object.keys(own).find((option) => !OPTIONS.includes(option));
  if (unknown !== undefined)
    throw new UnusableCall(`dispatch has no option "${unknown}". Its options: ${OPTIONS.join(', ')}.`);
  const { signal, context, settings, parent, onProgress } = own;
  if (signal !== undefined && !isSignal(signal)) refuse('signal', 'an AbortSignal');
  if (context !== undefined && !(context instanceof ToolContext)) refuse('context', 'a ToolContext');
  if (settings !== undefined && !isSettings(settings))
    refuse('settings', 'an array of settings, such as timeoutMs(500)');
  if (parent !== undefined && !ToolCall.is(parent)) refuse('parent', 'the ToolCall that execute received');
  if (onProgress !== undefined && typeof onProgress !== 'function') refuse('onProgress', 'a function');
  return settings === undefined ? own : { ...own, settings: [...settings] };
}

function isSignal(value: AbortSignal | null): boolean {
  const { aborted, addEventListener, removeEventListener } = value ?? ({} as Partial<AbortSignal>);
  return (
    typeof aborted === 'boolean' && typeof addEventListener === 'function' && typeof removeEventListener === 'function'
  );
}

function isSettings(value: unknown): boolean {
  return Array.isArray(value) && value.every(isSetting);
}

function refuse(option: string, allowed: string): never {
  throw new UnusableCall(`Option "${option}" of dispatch must be ${allowed}.`);
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
