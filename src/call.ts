import { nanoid } from 'nanoid';
import type { MalformedArguments } from './arguments.ts';
import { A_CHANNEL, type Channel } from './channel.ts';
import type { Clock } from './clock.ts';
import type { ToolContext } from './context.ts';
import { type ControlSignal, controlSignal, type SuspendRequest } from './control.ts';
import type { Dispatch } from './dispatch.ts';
import type { Executed, ToolError } from './error.ts';
import { ABANDONED, ANSWERED } from './guard.ts';
import { cloneJson, copyJson, isPlainObject, type JsonValue, kindOf } from './json.ts';
import type { SettleListener } from './keeper.ts';
import type { MaybePromise } from './maybe-promise.ts';
import { type DispatchNote, NO_NOTES, type ToolOutcome } from './outcome.ts';
import type { ReadonlyToolRegistry } from './registry.ts';
import { deepFreeze } from './schema.ts';
import { Scope } from './scope.ts';
import { readSetting, type SettingKey } from './settings.ts';
import { isTool, type Tool } from './tool.ts';

/** A sign of life from a running tool. Never part of its answer. */
export interface Progress {
  readonly message?: string;
  /** How far the tool is, in the units of `total`. */
  readonly progress?: number;
  readonly total?: number;
}

/** What a check of arguments against the tool's schema found. */
export type Validation =
  | {
      readonly valid: true;
      /** As it was given, or put right. */
      readonly input: JsonValue;
      readonly parsed: unknown;
      /** What was done to it, for the outcome of the call. Default: nothing. */
      readonly notes?: readonly DispatchNote[];
    }
  | { readonly valid: false; readonly error: ToolError };

/** Checks arguments for a call; supplied by the layer that validates. */
export type Validator = (call: ToolCall, input: JsonValue) => MaybePromise<Validation>;

/** What a layer may change about a call on its way inward. */
export interface ToolCallChanges {
  /** Other arguments. Validate them first (`call.validate`), and pass `parsed` along; else `parsed` is a copy of these. */
  readonly input?: JsonValue;
  /** What `execute` receives. */
  readonly parsed?: unknown;
  /** Another tool to run. */
  readonly tool?: Tool;
  readonly context?: ToolContext;
  readonly validator?: Validator;
  /** Who takes the parts of the answer and the signs of life. */
  readonly channel?: Channel;
}

/** A part of a dispatch that its owner can abort on its own. */
export interface AbortScope {
  /** The call to pass to `next`. */
  readonly call: ToolCall;
  /**
   * Aborts what is inside. The tool has `graceMs` milliseconds (default 0: one turn of the event loop) to settle; then it is
   * answered for as cancelled and its outcome goes to `onLate`. The owner may answer at once, or call `next` again.
   */
  abort(reason: unknown, graceMs?: number): void;
  /**
   * The outcome of what was passed on; with it the scope ends. After an abort it comes within the grace at the latest: the tool's
   * own, or `cancelled`, or the error that was the reason. The listener hears of an outcome that took its time.
   */
  follow(outcome: MaybePromise<ToolOutcome>, listener?: SettleListener): MaybePromise<ToolOutcome>;
  /** Lets go of a scope that follows nothing. */
  end(): void;
  /** When what is inside began, on the call's clock. */
  readonly startedAt: number;
}

/** Arguments for one run, or why there are none. */
export type Taken = { readonly valid: true; readonly parsed: unknown } | Extract<Validation, { readonly valid: false }>;

/** Validated arguments, and whether a run has had them: a tool may change its arguments, so each run gets its own. */
class Checked {
  readonly parsed: unknown;
  readonly validator: Validator | undefined;
  used = false;

  constructor(parsed: unknown, validator: Validator | undefined) {
    this.parsed = parsed;
    this.validator = validator;
  }

  /** For whoever looks at it on the way: a frozen copy, where it is JSON. */
  get shown(): unknown {
    const shown = shownCopies.get(this) ?? frozenCopy(this.parsed);
    shownCopies.set(this, shown);
    return shown;
  }

  get valid(): true {
    return true;
  }
}

/** Beside them, as few calls are looked at. */
const shownCopies = new WeakMap<Checked, unknown>();

function frozenCopy(parsed: unknown): unknown {
  try {
    return deepFreeze(copyJson(parsed));
  } catch {
    return parsed;
  }
}

/** What `with` knows. */
const CHANGES: ReadonlySet<string> = new Set(['input', 'parsed', 'tool', 'context', 'validator', 'channel']);

/** One call on its way inward. Never mutated and never spread: `call.with(changes)` makes the next one. */
export class ToolCall {
  readonly #scope: Scope;
  readonly #context: ToolContext;
  readonly #tool: Tool | undefined;
  readonly #input: JsonValue;
  readonly #channel: Channel | undefined;
  #checked: Checked | undefined;

  private constructor(
    scope: Scope,
    context: ToolContext,
    tool: Tool | undefined,
    input: JsonValue,
    channel: Channel | undefined,
    checked: Checked | undefined,
  ) {
    this.#scope = scope;
    this.#context = context;
    this.#tool = tool;
    this.#input = input;
    this.#channel = channel;
    this.#checked = checked;
  }

  /** @internal */
  static begin(dispatch: Dispatch, context: ToolContext, tool: Tool | undefined): ToolCall {
    const { scope } = dispatch;
    scope.call = new ToolCall(scope, context, tool, dispatch.requested.input, dispatch.delivery, undefined);
    return scope.call;
  }

  /** @internal */
  static is(value: unknown): value is ToolCall {
    return typeof value === 'object' && value !== null && #scope in value;
  }

  /** @internal */
  static scope(call: ToolCall): Scope {
    return call.#scope;
  }

  /** @internal Arguments no run has had yet: the validated ones at first, validated anew for each further attempt. */
  static take(call: ToolCall): MaybePromise<Taken> {
    const checked = call.#checked;
    if (checked === undefined) return { valid: true, parsed: cloneJson(call.#input) };
    if (checked.used) return call.validate(call.#input);
    checked.used = true;
    return checked;
  }

  /** The model's id, or a generated one; unique among the calls in flight. */
  get id(): string {
    return this.#scope.dispatch.id;
  }

  /**
   * The same for all attempts of this call, and for no other call: what a service takes to do the same thing once only, as in a header
   * `Idempotency-Key`. The id does not do, for models use theirs again.
   */
  get idempotencyKey(): string {
    const { dispatch } = this.#scope;
    dispatch.idempotencyKey ??= nanoid();
    return dispatch.idempotencyKey;
  }

  /** The name that was asked for. It may differ from the name of `tool`. */
  get name(): string {
    return this.#scope.dispatch.requested.name;
  }

  /** The name of the tool that will run; the one that was asked for where there is none. */
  get toolName(): string {
    return this.#tool?.name ?? this.name;
  }

  /** The arguments as sent, or edited: what approvers, logs and keys see. */
  get input(): JsonValue {
    return deepFreeze(this.#input);
  }

  /** A copy of the arguments, to change. */
  copyInput(): JsonValue {
    return cloneJson(this.#input);
  }

  /**
   * What `execute` will receive: `input` after the schema's defaults and transforms. A frozen copy, unless a transform made of it what
   * JSON cannot hold.
   */
  get parsed(): unknown {
    this.#checked ??= new Checked(cloneJson(this.#input), undefined);
    return this.#checked.shown;
  }

  /** Why the arguments could not be read, and their text. */
  get malformed(): MalformedArguments | undefined {
    const { malformed, preparation } = this.#scope.dispatch;
    return preparation?.malformed === undefined ? malformed : preparation.malformed(this.toolName);
  }

  /** What was done to the call before it reached the onion, as where its arguments were repaired. The result begins with these. */
  get notes(): readonly DispatchNote[] {
    return this.#scope.dispatch.preparation?.notes ?? NO_NOTES;
  }

  /** The tool that will run; undefined where there is none of that name. */
  get tool(): Tool | undefined {
    return this.#tool;
  }

  /** The tools there were when this call came in. */
  get tools(): ReadonlyToolRegistry {
    return this.#scope.dispatch.tools;
  }

  /** The session this call belongs to. */
  get context(): ToolContext {
    return this.#context;
  }

  get clock(): Clock {
    return this.#scope.dispatch.host.clock;
  }

  /** The call whose tool made this one, for nested dispatches. */
  get parent(): ToolCall | undefined {
    return this.#scope.dispatch.options.parent;
  }

  /** Aborts with the caller's reason or a layer's. Made on first use; where a look is enough, `aborted` is cheaper. */
  get signal(): AbortSignal {
    return this.#scope.signal;
  }

  /** Whether `signal` has aborted. */
  get aborted(): boolean {
    return this.#scope.aborted;
  }

  /** Why `signal` has aborted. */
  get abortReason(): unknown {
    return this.#scope.reason;
  }

  /** What is known by now of the tool's effect, of all attempts together. */
  get executed(): Executed {
    return this.#scope.dispatch.executed;
  }

  /** Who takes the parts of the answer and the signs of life before the outcome is there; undefined where nobody does. */
  get channel(): Channel | undefined {
    return this.#channel;
  }

  /** Milliseconds it has waited for its turn among other calls. */
  get queuedMs(): number {
    return this.#scope.dispatch.queuedMs;
  }

  /** The value given for this call under a key, as in `dispatch(call, { settings: [timeoutMs(500)] })`. */
  setting<Value>(key: SettingKey<Value>): Value | undefined {
    return readSetting(this.#scope.dispatch.options.settings, key);
  }

  /**
   * This call with changes, to pass to `next`.
   *
   * @throws TypeError for an `input` that is not JSON, a tool that `defineTool` has not made, or a change it does not know.
   */
  with(changes: ToolCallChanges): ToolCall {
    // Whoever has a validator to give knows what else there is, and comes by for every call.
    if (changes.validator === undefined) checkChanges(changes);
    if (changes.tool !== undefined && !isTool(changes.tool))
      throw new TypeError('A call runs tools made by defineTool.');
    const { tool = this.#tool, context = this.#context, channel = this.#channel } = changes;
    const input = this.#own(changes.input);
    return new ToolCall(this.#scope, context, tool, input, channel, this.#recheck(changes, input, tool));
  }

  /** A copy, for whoever made the changes may still hold it; what this call has already is nobody else's. */
  #own(input: JsonValue | undefined): JsonValue {
    if (input === undefined || input === this.#input) return this.#input;
    if (!isPlainObject(input)) throw new TypeError(`The input of a call is an object, not ${kindOf(input)}.`);
    return copyJson(input);
  }

  #recheck(changes: ToolCallChanges, input: JsonValue, tool: Tool | undefined): Checked | undefined {
    const validator = changes.validator ?? this.#checked?.validator;
    if (changes.parsed !== undefined || 'parsed' in changes) {
      const { parsed } = changes;
      // What a layer was shown is frozen, and what a tool gets is its own. Whoever validates has made it.
      const isShown = changes.validator === undefined && Object.isFrozen(parsed);
      return new Checked(isShown ? cloneJson(parsed as JsonValue) : parsed, validator);
    }
    if (input === this.#input && tool === this.#tool && changes.validator === undefined) return this.#checked;
    return validator === undefined ? undefined : new Checked(copyJson(input), validator);
  }

  /**
   * A part of the dispatch that can be aborted on its own: pass its `call` to `next`, and `follow` or `end` it afterwards.
   *
   * @param limitMs How long what is inside may take, for the note on an outcome that comes at once and yet too late: a tool that
   * keeps the event loop busy lets nothing stop it. Default: no limit.
   */
  abortScope(limitMs?: number): AbortScope {
    const { dispatch, guard } = this.#scope;
    const scope = new Scope(dispatch, this.#scope, guard.depth, limitMs);
    scope.call = new ToolCall(scope, this.#context, this.#tool, this.#input, this.#channel, this.#checked);
    return scope;
  }

  /** Checks other arguments for this call's tool. Without a validating layer everything is valid. */
  validate(input: JsonValue): MaybePromise<Validation> {
    const validator = this.#checked?.validator;
    return validator === undefined ? { valid: true, input, parsed: copyJson(input) } : validator(this, input);
  }

  /** Tells the host how far the tool is. Ignored once the call has been answered. May be taken off the call: `{ report }`. */
  get report(): (progress: Progress) => void {
    return (progress) => this.#report(progress);
  }

  #report(progress: Progress): void {
    const channel = this.#channel;
    if (channel === undefined) return;
    const { guard, dispatch } = this.#scope;
    const { depth } = guard;
    if (depth === ANSWERED || depth === ABANDONED) return;
    dispatch.host.tell(A_CHANNEL, () => channel.progress(progress, this));
  }

  /** Stops the call here, to be answered later: a tool or middleware returns or throws what this makes. May be taken off the call. */
  get suspend(): (request: SuspendRequest) => ControlSignal {
    return (request) => this.#suspend(request);
  }

  #suspend(request: SuspendRequest): ControlSignal {
    // Read here and once: what throws is then a failure of whoever suspends.
    const { reason, payload } = request;
    const own = {
      reason: typeof reason === 'string' ? reason.toWellFormed() : '',
      ...(payload !== undefined && { payload }),
    };
    return controlSignal({ type: 'suspend', toolCallId: this.id, request: own });
  }

  /** What a log or a debugger shows: everything of the call but the session. */
  toJSON(): unknown {
    const { id, name, input } = this;
    return { id, name, input, tool: this.#tool?.name ?? null };
  }
}

function checkChanges(changes: ToolCallChanges): void {
  for (const change of Object.keys(changes)) {
    if (!CHANGES.has(change))
      throw new TypeError(`call.with knows no change "${change}"; it takes ${[...CHANGES].join(', ')}.`);
  }
}
