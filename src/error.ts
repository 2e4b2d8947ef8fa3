import { constants } from 'node:os';
import { nanoid } from 'nanoid';
import { isErrorLike, type JsonValue, kindOf, toJson } from './json.ts';
import { listed } from './listed.ts';
import { nearestNames } from './similarity.ts';
import { shrinkJson } from './truncate.ts';

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
  /** Milliseconds after which the same call could succeed, where somebody knows. */
  readonly retryAfterMs?: number;
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
  /** What is no number of milliseconds is left out. Default: nobody knows. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

const RETRYABLE: ReadonlySet<ToolErrorCode> = new Set(['timeout', 'rate_limited', 'circuit_open', 'execution_failed']);

/** Makes a ToolError with an id of its own. */
export function toolError(code: ToolErrorCode, message: string, options: ToolErrorOptions = {}): ToolError {
  const error: ToolError = {
    code,
    message: message.toWellFormed(),
    retryable: options.retryable ?? RETRYABLE.has(code),
    executed: options.executed ?? 'no',
    ...(isDelay(options.retryAfterMs) && { retryAfterMs: options.retryAfterMs }),
    errorId: nanoid(12),
  };
  if ('cause' in options) Object.defineProperty(error, 'cause', { value: options.cause });
  return error;
}

function isDelay(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

/** Whether a value can stand as a ToolError. */
export function isToolError(value: unknown): value is ToolError {
  if (typeof value !== 'object' || value === null) return false;
  const { code, message, executed } = value as Partial<ToolError>;
  return typeof code === 'string' && typeof message === 'string' && typeof executed === 'string';
}

/** The same error with changes. Its cause stays, and stays hidden from whoever serialises it. */
export function changedError(error: ToolError, changes: Partial<Pick<ToolError, 'message' | 'executed'>>): ToolError {
  const copy = { ...error, ...changes };
  return 'cause' in error ? Object.defineProperty(copy, 'cause', { value: error.cause }) : copy;
}

const toldByTools = new WeakSet<ToolError>();

/** Whether `executed` is the tool's own word, by a ToolFailure. */
export function isToldByTool(error: ToolError): boolean {
  return toldByTools.has(error);
}

/**
 * Why a layer aborts what is inside. The tool sees an Error as `signal.reason`; a call that ends by it fails with this ToolError,
 * told with what became of the tool.
 */
export class AbortReason extends Error {
  override readonly name: string;
  readonly #toolError: ToolError;

  constructor(toolError: ToolError) {
    super(toolError.message);
    this.name = toolError.code === 'timeout' ? 'TimeoutError' : 'AbortError';
    this.#toolError = toolError;
  }

  get toolError(): ToolError {
    return this.#toolError;
  }

  /** Whether a reason is one: asked by the private field, for a caller's own reason may be anything. */
  static is(reason: unknown): reason is AbortReason {
    return typeof reason === 'object' && reason !== null && #toolError in reason;
  }
}

/** The error for a name no tool has: tells what was asked for, which tools have a name like it, and which there are. */
export function notFound(name: string, available: readonly string[]): ToolError {
  const list = listed(available, printable) || 'none registered';
  const near = nearestNames(name, available).map((each) => `"${printable(each)}"`);
  const hint = near.length === 0 ? '' : ` Did you mean ${alternatives(near)}?`;
  return toolError('not_found', `There is no tool named "${printable(name)}".${hint} Available tools: ${list}.`);
}

function alternatives(words: readonly string[]): string {
  const last = words.at(-1) ?? '';
  return words.length > 1 ? `${words.slice(0, -1).join(', ')} or ${last}` : last;
}

const TOOL_FAILURE = Symbol.for('toolonion.ToolFailure');

/** Options of a `ToolFailure`. */
export interface ToolFailureOptions {
  /** Default: `execution_failed`. */
  readonly code?: ToolErrorCode;
  /** Default: as for `toolError`, but false for `execution_failed`: a tool that can tell what is wrong will be right again. */
  readonly retryable?: boolean;
  /** What the tool has done by then; `no` for one that refuses before it begins. Default: `yes`. */
  readonly executed?: Executed;
  /** Milliseconds after which the same call could succeed. Default: nobody knows. */
  readonly retryAfterMs?: number | undefined;
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
  readonly executed: Executed;
  readonly retryAfterMs?: number;

  constructor(message: string, options: ToolFailureOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    Object.defineProperty(this, TOOL_FAILURE, { value: true });
    this.code = options.code ?? 'execution_failed';
    this.retryable = options.retryable ?? (this.code !== 'execution_failed' && RETRYABLE.has(this.code));
    this.executed = options.executed ?? 'yes';
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }
}

/** The closed sets, for a tool that is no TypeScript may say anything. */
const CODES: Readonly<Record<ToolErrorCode, true>> = {
  not_found: true,
  disabled: true,
  invalid_call: true,
  invalid_arguments: true,
  truncated_arguments: true,
  denied: true,
  approval_expired: true,
  timeout: true,
  cancelled: true,
  rate_limited: true,
  circuit_open: true,
  budget_exceeded: true,
  loop_detected: true,
  execution_failed: true,
  file_not_found: true,
  io: true,
  json: true,
  output_invalid: true,
  internal: true,
};
const EXECUTED: Readonly<Record<Executed, true>> = { no: true, stopped: true, yes: true, unknown: true };

/** Errno codes of faults that pass by themselves. */
const TRANSIENT =
  /^E(AGAIN|AI_AGAIN|BUSY|CONNABORTED|CONNREFUSED|CONNRESET|MFILE|NETUNREACH|HOSTUNREACH|PIPE|TIMEDOUT)$/;

/** The ToolError for anything a tool threw. Total: reading a hostile value never throws. */
export function toToolError(thrown: unknown, toolName: string): ToolError {
  const tool = printable(toolName);
  const retryAfterMs = valueAt(thrown, 'retryAfterMs') as number | undefined;
  const options = { executed: 'yes', retryAfterMs, cause: thrown } as const;
  const { name, message, code, failure } = read(thrown);
  if (failure) {
    const told = isBlank(message) ? `Tool "${tool}" failed and did not say why.` : message;
    const error = toolError(failure.code, told, { ...failure, retryAfterMs, cause: thrown });
    toldByTools.add(error);
    return error;
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
  if (isErrno(code, thrown) && textAt(thrown, 'syscall').startsWith('spawn')) {
    // No path the model gave: the program is missing, may not run, or the machine is full.
    const retryable = TRANSIENT.test(code);
    return toolError('io', `Tool "${tool}" could not start a program it needs (${code}).`, { ...options, retryable });
  }
  if (code === 'ENOENT') {
    return toolError(
      'file_not_found',
      `Tool "${tool}" did not find a file or directory it was asked for. Check the path.`,
      options,
    );
  }
  if (isErrno(code, thrown)) {
    const retryable = TRANSIENT.test(code);
    return toolError('io', `Tool "${tool}" could not read or write (${code}).`, { ...options, retryable });
  }
  if ((name === 'SyntaxError' || name === 'TypeError') && /\bJSON\b|serialize a BigInt/.test(message)) {
    return toolError('json', `Tool "${tool}" met JSON it could not read or write.`, options);
  }
  return toolError('execution_failed', `Tool "${tool}" failed. The cause is in the log of whoever runs it.`, options);
}

/** A system error's code. Some have no `errno` beside it, as that of a socket that hung up; some are not in the list, as DNS's. */
function isErrno(code: string, thrown: unknown): boolean {
  if (Object.hasOwn(constants.errno, code)) return true;
  return /^E[A-Z0-9_]{1,30}$/.test(code) && typeof valueAt(thrown, 'errno') === 'number';
}

interface ReadError {
  readonly name: string;
  readonly message: string;
  readonly code: string;
  readonly failure:
    | { readonly code: ToolErrorCode; readonly retryable: boolean; readonly executed: Executed }
    | undefined;
}

function read(thrown: unknown): ReadError {
  return {
    name: textAt(thrown, 'name'),
    message: textAt(thrown, 'message'),
    code: textAt(thrown, 'code'),
    failure: isErrorLike(thrown) && valueAt(thrown, TOOL_FAILURE) === true ? readFailure(thrown) : undefined,
  };
}

/** Reads what may be another copy's or another realm's ToolFailure. */
function readFailure(thrown: Error): ReadError['failure'] {
  return {
    code: oneOf(CODES, textAt(thrown, 'code'), 'execution_failed'),
    retryable: valueAt(thrown, 'retryable') === true,
    executed: oneOf(EXECUTED, textAt(thrown, 'executed'), 'yes'),
  };
}

function oneOf<Word extends string>(words: Readonly<Record<Word, true>>, word: string, otherwise: Word): Word {
  return Object.hasOwn(words, word) ? (word as Word) : otherwise;
}

/** A thrown value as a log can hold it: always readable, whatever was thrown, and bounded in every direction. */
export interface ErrorDescription {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: ErrorDescription;
  /** The errors of an AggregateError, ten at most. */
  readonly errors?: readonly ErrorDescription[];
}

/** Causes and members described below one error, members of one error, and errors in all. */
const DESCRIBED_LEVELS = 5;
const DESCRIBED_ERRORS = 10;
const DESCRIBED_IN_ALL = 50;

/** Characters of a message or stack, of a name or code, and of the JSON of what has no message. */
const TEXT_LIMIT = 10_000;
const WORD_LIMIT = 100;
const JSON_LIMIT = 2_000;

/** Describes anything thrown for a log. Never throws. */
export function describeError(thrown: unknown, levels: number = DESCRIBED_LEVELS): ErrorDescription {
  return describe(thrown, levels, { left: DESCRIBED_IN_ALL });
}

function describe(thrown: unknown, levels: number, budget: { left: number }): ErrorDescription {
  if (typeof thrown === 'function') return { name: 'function', message: nameOf(thrown) };
  if (typeof thrown !== 'object' || thrown === null)
    return { name: typeof thrown, message: messageOr(String(thrown), NO_MESSAGE) };
  budget.left--;
  const code = valueAt(thrown, 'code');
  const stack = textAt(thrown, 'stack');
  const cause = levels > 0 && budget.left > 0 ? valueAt(thrown, 'cause') : undefined;
  const errors = levels > 0 ? membersOf(thrown) : undefined;
  return {
    name: clipped(textAt(thrown, 'name') || kindOf(thrown), WORD_LIMIT),
    message: messageOr(textAt(thrown, 'message'), () => jsonOf(thrown)),
    ...((typeof code === 'string' || typeof code === 'number') && { code: clipped(String(code), WORD_LIMIT) }),
    ...(stack !== '' && { stack: clipped(stack) }),
    ...(cause !== undefined && { cause: describe(cause, levels - 1, budget) }),
    ...(errors && {
      errors: errors.flatMap((error) => (budget.left > 0 ? [describe(error, levels - 1, budget)] : [])),
    }),
  };
}

const NO_MESSAGE = () => '(no message)';

function messageOr(message: string, otherwise: () => string): string {
  return isBlank(message) ? otherwise() : clipped(message);
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** A class that was thrown without being made is found by its name. */
function nameOf(thrown: object): string {
  const name: unknown = safely(() => Reflect.get(thrown, 'name'));
  return typeof name === 'string' && !isBlank(name) ? `a function named "${printable(name)}"` : kindOf(thrown);
}

function membersOf(thrown: object): readonly unknown[] | undefined {
  return safely(() => {
    const errors: unknown = Reflect.get(thrown, 'errors');
    return Array.isArray(errors) ? Array.prototype.slice.call(errors, 0, DESCRIBED_ERRORS) : undefined;
  });
}

/** What tells something of a thrown object that has no message. It stays JSON, so that a redactor can read it. */
function jsonOf(thrown: object): string {
  if (isErrorLike(thrown)) return NO_MESSAGE();
  const json = toJson(thrown);
  // Texts are cut between words only, and in the end left out: what shrinks JSON would cut a secret in half.
  for (const limit of TEXT_LIMITS) {
    const text = withTexts(json, limit);
    if (text.length <= JSON_LIMIT) return text;
  }
  return shrinkJson(JSON.parse(withTexts(json, 0)), JSON_LIMIT, 'characters');
}

/** Characters each text of such an object may have, tried in turn. */
const TEXT_LIMITS = [TEXT_LIMIT, 200, 20];

function withTexts(json: JsonValue, limit: number): string {
  return JSON.stringify(json, (_, value) => (typeof value === 'string' ? clipped(value, limit) : value));
}

/** Characters of a word that is longer than any secret, and may be cut. */
const LONGEST_SECRET = 4000;

/** Cut between two words: half a secret would get past a redactor. */
function clipped(text: string, limit: number = TEXT_LIMIT): string {
  if (text.length <= limit) return text;
  let end = limit;
  while (end > 0 && limit - end <= LONGEST_SECRET && /\S/.test(text.charAt(end - 1))) end--;
  return `${text.slice(0, end).toWellFormed()}… (${text.length - end} more characters)`;
}

function textAt(thrown: unknown, key: PropertyKey): string {
  const value = valueAt(thrown, key);
  return typeof value === 'string' ? value : '';
}

function valueAt(thrown: unknown, key: PropertyKey): unknown {
  return typeof thrown === 'object' && thrown !== null ? safely(() => Reflect.get(thrown, key)) : undefined;
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
