import { nanoid } from 'nanoid';
import { isErrorLike } from './json.ts';

/** Why a call failed. The set is closed, so a switch over it can be complete. Explained in docs/reference/errors.md. */
export type ToolErrorCode =
  | 'not_found'
  | 'disabled'
  | 'invalid_call'
  | 'invalid_arguments'
  | 'truncated_arguments'
  | 'denied'
  | 'approval_expired'
  | 'timeout'
  | 'cancelled'
  | 'rate_limited'
  | 'circuit_open'
  | 'budget_exceeded'
  | 'loop_detected'
  | 'execution_failed'
  | 'file_not_found'
  | 'io'
  | 'json'
  | 'output_invalid'
  | 'internal';

/**
 * What is known of the tool's effect: it never started, was stopped on the way, ran to its end, or may still be running.
 */
export type Executed = 'no' | 'stopped' | 'yes' | 'unknown';

/** A hard failure, in two views: all but `cause` is safe for the model; `cause` is for the log. */
export interface ToolError {
  readonly code: ToolErrorCode;
  /** For the model: names the tool and the remedy, and holds nothing the tool did not mean to show. */
  readonly message: string;
  /** Whether the same call, made again, could succeed. */
  readonly retryable: boolean;
  readonly executed: Executed;
  /** Joins what the model saw with what the log holds. */
  readonly errorId: string;
  /** What was thrown. Not enumerable: serialising or spreading an error never shows it. */
  readonly cause?: unknown;
}

/** What `toolError` takes beside code and message. */
export interface ToolErrorOptions {
  /** Default: true for `timeout`, `rate_limited`, `circuit_open` and `execution_failed`. */
  readonly retryable?: boolean;
  /** Default: `no`. */
  readonly executed?: Executed;
  readonly cause?: unknown;
}

const RETRYABLE: ReadonlySet<ToolErrorCode> = new Set(['timeout', 'rate_limited', 'circuit_open', 'execution_failed']);

/** Makes a ToolError with an id of its own. */
export function toolError(code: ToolErrorCode, message: string, options: ToolErrorOptions = {}): ToolError {
  const error: ToolError = {
    code,
    message,
    retryable: options.retryable ?? RETRYABLE.has(code),
    executed: options.executed ?? 'no',
    errorId: nanoid(12),
  };
  if ('cause' in options) Object.defineProperty(error, 'cause', { value: options.cause });
  return error;
}

/**
 * Why a layer aborts what is inside. The tool sees an Error as `signal.reason`; a call that ends by it fails with this ToolError,
 * told with what became of the tool.
 */
export class AbortReason extends Error {
  override readonly name: string;
  readonly toolError: ToolError;

  constructor(toolError: ToolError) {
    super(toolError.message);
    this.name = toolError.code === 'timeout' ? 'TimeoutError' : 'AbortError';
    this.toolError = toolError;
  }
}

/** Names a not-found message lists before it only counts the rest. */
const LISTED_NAMES = 10;

/** The error for a name no tool has: tells what was asked for and which tools there are. */
export function notFound(name: string, available: readonly string[]): ToolError {
  const listed = available.slice(0, LISTED_NAMES).map(printable).join(', ');
  const rest = available.length - LISTED_NAMES;
  const list = available.length === 0 ? 'none registered' : rest > 0 ? `${listed}, and ${rest} more` : listed;
  return toolError('not_found', `There is no tool named "${printable(name)}". Available tools: ${list}.`);
}

const TOOL_FAILURE = Symbol.for('toolonion.ToolFailure');

/** Options of a `ToolFailure`. */
export interface ToolFailureOptions {
  /** Default: `execution_failed`. */
  readonly code?: ToolErrorCode;
  /** Default: as for `toolError`. */
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

/**
 * Thrown by a tool whose message the model may read. The message of any other error stays in the log.
 *
 * @example throw new ToolFailure('There is no city called "Olso". Did you mean "Oslo"?');
 */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure';
  readonly code: ToolErrorCode;
  readonly retryable: boolean;

  constructor(message: string, options: ToolFailureOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    Object.defineProperty(this, TOOL_FAILURE, { value: true });
    this.code = options.code ?? 'execution_failed';
    this.retryable = options.retryable ?? RETRYABLE.has(this.code);
  }
}

/** Errno codes of faults that pass by themselves. */
const TRANSIENT =
  /^E(AGAIN|AI_AGAIN|BUSY|CONNABORTED|CONNREFUSED|CONNRESET|MFILE|NETUNREACH|HOSTUNREACH|PIPE|TIMEDOUT)$/;

/** The ToolError for anything a tool threw. Total: reading a hostile value never throws. */
export function toToolError(thrown: unknown, toolName: string): ToolError {
  const tool = printable(toolName);
  const options = { executed: 'yes', cause: thrown } as const;
  const { name, message, code, failure } = read(thrown);
  if (failure) {
    return toolError(failure.code, message, { ...options, retryable: failure.retryable });
  }
  if (name === 'AbortError' || code === 'ABORT_ERR') {
    return toolError('cancelled', `Tool "${tool}" stopped because its work was aborted.`, {
      ...options,
      executed: 'stopped',
    });
  }
  if (name === 'TimeoutError') {
    return toolError('timeout', `Tool "${tool}" gave up waiting for something it needs. Try again later.`, options);
  }
  if (code === 'ENOENT') {
    return toolError(
      'file_not_found',
      `Tool "${tool}" did not find a file or directory it was asked for. Check the path.`,
      options,
    );
  }
  if (/^E[A-Z0-9_]+$/.test(code) && typeof safely(() => (thrown as { errno?: unknown }).errno) === 'number') {
    const retryable = TRANSIENT.test(code);
    return toolError('io', `Tool "${tool}" could not read or write (${code}).`, { ...options, retryable });
  }
  if ((name === 'SyntaxError' || name === 'TypeError') && /\bJSON\b/.test(message)) {
    return toolError('json', `Tool "${tool}" met JSON it could not read or write.`, options);
  }
  return toolError('execution_failed', `Tool "${tool}" failed. The cause is in the log of whoever runs it.`, options);
}

interface ReadError {
  readonly name: string;
  readonly message: string;
  readonly code: string;
  readonly failure: ToolFailure | undefined;
}

function read(thrown: unknown): ReadError {
  if (typeof thrown !== 'object' || thrown === null) {
    return { name: '', message: String(thrown), code: '', failure: undefined };
  }
  const text = (key: string) => {
    const value = safely(() => Reflect.get(thrown, key));
    return typeof value === 'string' ? value : '';
  };
  const branded = isErrorLike(thrown) && safely(() => Reflect.get(thrown, TOOL_FAILURE)) === true;
  return {
    name: text('name'),
    message: text('message'),
    code: text('code'),
    failure: branded ? (thrown as ToolFailure) : undefined,
  };
}

/** A thrown value as a log can hold it: always readable, whatever was thrown, with a bounded chain of causes. */
export interface ErrorDescription {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: ErrorDescription;
  /** The errors of an AggregateError, ten at most. */
  readonly errors?: readonly ErrorDescription[];
}

/** Causes and members described below one error. */
const DESCRIBED_LEVELS = 5;
const DESCRIBED_ERRORS = 10;

/** Describes anything thrown for a log. Never throws. */
export function describeError(thrown: unknown, levels: number = DESCRIBED_LEVELS): ErrorDescription {
  if (typeof thrown !== 'object' || thrown === null) return { name: typeof thrown, message: String(thrown) };
  const { name, message, code } = read(thrown);
  const stack = safely(() => Reflect.get(thrown, 'stack'));
  const cause = levels > 0 ? safely(() => Reflect.get(thrown, 'cause')) : undefined;
  const errors = levels > 0 ? safely(() => Reflect.get(thrown, 'errors')) : undefined;
  return {
    name: name || safely(() => Object.prototype.toString.call(thrown).slice(8, -1)) || 'object',
    message: message || safely(() => JSON.stringify(thrown)?.slice(0, 500)) || '(no message)',
    ...(code && { code }),
    ...(typeof stack === 'string' && { stack }),
    ...(cause !== undefined && { cause: describeError(cause, levels - 1) }),
    ...(Array.isArray(errors) && {
      errors: errors.slice(0, DESCRIBED_ERRORS).map((error) => describeError(error, levels - 1)),
    }),
  };
}

function safely<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Longest name that is echoed in messages and logs, in characters. */
const NAME_LIMIT = 64;

/** A name as it may be echoed: control and bidirectional characters escaped, 64 characters at most. */
export function printable(name: string): string {
  const text = name.length > NAME_LIMIT ? `${name.slice(0, NAME_LIMIT)}…` : name;
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`);
}
