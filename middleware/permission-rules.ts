import { isDeepStrictEqual } from 'node:util';
import {
  type ControlSignal,
  checkOptions,
  controlOf,
  copyJson,
  isOneOf,
  isPlainObject,
  isPromise,
  type JsonObject,
  type JsonValue,
  kindOf,
  type MaybePromise,
  type OptionCheck,
  PermissionCheck,
  printable,
  type Tool,
  type ToolCall,
  type ToolError,
  wildcard,
} from '../src/index.ts';

/** Decides about one call, once it is validated, for the tool that will run. */
export type PermissionRule = (call: ToolCall) => MaybePromise<PermissionCheck>;

/** Lets nothing run. */
export function denyAll(): PermissionCheck {
  return PermissionCheck.deny('no rule allows it');
}

/** Lets everything run. */
export function allowAll(): PermissionCheck {
  return PermissionCheck.allow();
}

/** Rules that never ask. Of functions nobody else has made, nothing is known. */
const silent = new WeakSet<PermissionRule>([denyAll, allowAll]);

/** @internal Whether one of these may want somebody to be asked. */
export function mayAsk(list: readonly PermissionRule[]): boolean {
  return !list.every((rule) => silent.has(rule));
}

/** Lets tools run that say they are read-only, and asks about all others. */
export function readOnlyAllowed(call: ToolCall): PermissionCheck {
  return call.tool?.readOnly === true ? PermissionCheck.allow() : question(call);
}

/** A rule for some tools. */
export interface ToolRule {
  /** Name of the tool that will run; `*` stands for any characters. */
  readonly tool: string;
  /**
   * Whether the rule speaks of these arguments: validated, with the schema's defaults and transforms, as the tool will receive
   * them; a copy, where they are JSON. Anything but true or false denies the call. Default: any arguments.
   */
  when?(input: Readonly<Record<string, unknown>>, call: ToolCall): boolean;
  /** Told to the model with a denial, or asked of the approver. */
  readonly reason?: string;
}

/** Rules by verdict. */
export interface RuleSet {
  readonly deny?: readonly (string | ToolRule)[];
  readonly ask?: readonly (string | ToolRule)[];
  readonly allow?: readonly (string | ToolRule)[];
  /** For calls no rule speaks of. Default: deny. */
  readonly otherwise?: 'deny' | 'ask' | 'allow';
}

/**
 * Rules on tools' names and arguments: deny beats ask beats allow, in whatever order and however particular they are. A `when`
 * that throws denies. Texts such as shell commands are no place for patterns; see docs/middleware/permission.md.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example rules({ allow: ['read_*'], ask: [{ tool: 'write_file', when: ({ path }) => isInProject(path) }] })
 */
export function rules(set: RuleSet): (call: ToolCall) => PermissionCheck {
  const isList: OptionCheck = (value) =>
    (Array.isArray(value) && [...value].every(isToolRule)) || 'an array of names or { tool, when, reason }';
  checkOptions('rules', set, {
    deny: isList,
    ask: isList,
    allow: isList,
    otherwise: isOneOf('deny', 'ask', 'allow'),
  });
  // The strictest come first, so the first that matches decides.
  const all = [
    ...matchersOf(set.deny, ({ reason = 'a rule forbids it' }) => PermissionCheck.deny(reason)),
    ...matchersOf(set.ask, ({ reason }, call) => (reason === undefined ? question(call) : PermissionCheck.ask(reason))),
    ...matchersOf(set.allow, allowAll),
  ];
  const otherwise = { deny: denyAll, ask: question, allow: allowAll }[set.otherwise ?? 'deny'];
  const byTool = new WeakMap<Tool, readonly Matcher[]>();

  function matchersFor(tool: Tool): readonly Matcher[] {
    const known = byTool.get(tool);
    if (known !== undefined) return known;
    const found = all.filter(({ fits }) => fits(tool.name));
    byTool.set(tool, found);
    return found;
  }

  const rule = (call: ToolCall): PermissionCheck => {
    for (const matcher of matchersFor(call.tool as Tool))
      if (matches(matcher, call)) return matcher.check(matcher, call);
    return otherwise(call);
  };
  if ((set.ask ?? []).length === 0 && set.otherwise !== 'ask') silent.add(rule);
  return rule;
}

type CheckOf = (rule: Omit<ToolRule, 'tool'>, call: ToolCall) => PermissionCheck;

interface Matcher extends Omit<ToolRule, 'tool'> {
  readonly fits: (toolName: string) => boolean;
  readonly check: CheckOf;
}

function matchersOf(list: readonly (string | ToolRule)[] = [], check: CheckOf): readonly Matcher[] {
  return list.map((rule) => {
    const { tool, ...rest } = typeof rule === 'string' ? { tool: rule } : rule;
    return { ...rest, fits: wildcard(tool), check };
  });
}

function matches({ when }: Matcher, call: ToolCall): boolean {
  if (when === undefined) return true;
  // A copy, for a predicate may sort or shift what it looks at. What is no JSON cannot be copied.
  const input = jsonIn(call.parsed) ?? call.parsed;
  const answer: unknown = when(input as Readonly<Record<string, unknown>>, call);
  if (typeof answer === 'boolean') return answer;
  // A promise is truthy whatever it holds, and must not be left to reject unheard.
  if (isPromise(answer)) Promise.resolve(answer).catch(() => {});
  throw new TypeError(`A "when" must answer true or false, at once; one answered ${kindOf(answer)}.`);
}

/** @internal A copy of a value that is JSON, and undefined for any other. */
export function jsonIn(value: unknown): JsonValue | undefined {
  try {
    return copyJson(value);
  } catch {
    return undefined;
  }
}

/** @internal What an approver is asked where no rule has words of its own. */
export function question(call: ToolCall): PermissionCheck {
  return PermissionCheck.ask(`Run "${printable(call.toolName)}"?`);
}

function isToolRule(value: unknown): boolean {
  if (typeof value === 'string') return isPattern(value);
  if (!isPlainObject(value)) return false;
  const { tool, when, reason, ...others } = value;
  if (Object.keys(others).length > 0 || !isPattern(tool)) return false;
  return (when === undefined || typeof when === 'function') && (reason === undefined || typeof reason === 'string');
}

/** No tool's name has white space around it, so a pattern that has would forbid nothing. */
function isPattern(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value.trim() === value;
}

/** @internal A check as the gate goes by it. */
export type Verdict = Exclude<PermissionCheck, { readonly type: 'deny' }> | Denial | Suspension;

/** @internal */
export interface Denial {
  readonly type: 'deny';
  readonly reason?: string;
  /** What was at fault, for the log. */
  readonly cause?: unknown;
  /** The whole error, where it is another than `denied`. */
  readonly error?: ToolError;
}

/** @internal Neither a yes nor a no: the call is to be answered later. */
export interface Suspension {
  readonly type: 'suspend';
  readonly control: ControlSignal;
}

/** @internal A denial nobody decided. */
export function fault(reason: string, cause?: unknown): Denial {
  return { type: 'deny', reason, cause };
}

/** @internal What was thrown, or answered in place of a check: what suspends the call, and else a fault. */
export function faultOrControl(reason: string, cause: unknown, call: ToolCall): Denial | Suspension {
  const control = controlOf(cause, call);
  return control === undefined ? fault(reason, cause) : { type: 'suspend', control };
}

/** @internal Rules as one that never throws nor rejects: the strictest check counts, and a fault is a denial. */
export function strictest(list: readonly PermissionRule[]): Judge {
  return list.map(soundly).reduce(both);
}

type Judge = (call: ToolCall) => MaybePromise<Verdict>;

/** @internal The usual answer, known by identity: it needs no second look. */
export const ALLOWED = PermissionCheck.allow() as Extract<PermissionCheck, { readonly type: 'allow' }>;

function soundly(rule: PermissionRule): Judge {
  return (call) => {
    try {
      const answer: unknown = rule(call);
      if (answer === ALLOWED) return ALLOWED;
      if (!isPromise(answer)) return verdictIn(answer, call);
      return Promise.resolve(answer)
        .then((settled) => verdictIn(settled, call))
        .catch((thrown) => failed(thrown, call));
    } catch (thrown) {
      return failed(thrown, call);
    }
  };
}

function failed(thrown: unknown, call: ToolCall): Verdict {
  return faultOrControl('its permission check failed', thrown, call);
}

function verdictIn(answer: unknown, call: ToolCall): Verdict {
  const check = checkIn(answer, call);
  if (check !== undefined) return check;
  const reason = 'its permission check gave no valid answer';
  return typeof answer === 'object' && answer !== null ? faultOrControl(reason, answer, call) : fault(reason, answer);
}

/** Both judges are always heard, but where one denies, nobody waits for the other. */
function both(one: Judge, other: Judge): Judge {
  return (call) => {
    const first = one(call);
    const second = other(call);
    if (!isPromise(first) && !isPromise(second)) return stricter(first, second);
    return new Promise((resolve) => {
      const heard = async (judged: MaybePromise<Verdict>) => {
        const verdict = await judged;
        if (verdict.type === 'deny') resolve(verdict);
        return verdict;
      };
      void Promise.all([heard(first), heard(second)]).then(([a, b]) => resolve(stricter(a, b)));
    });
  };
}

/** An edit goes before a question, as the rules judge it again: people are asked about what will run. */
const STRICTNESS = { allow: 0, ask: 1, modify: 2, suspend: 3, deny: 4 };

function stricter(a: Verdict, b: Verdict): Verdict {
  return STRICTNESS[b.type] > STRICTNESS[a.type] ? b : a;
}

/** @internal The check in an answer, if there is one: a copy, read once. An edit that changes nothing allows. */
export function checkIn(answer: unknown, call: ToolCall): PermissionCheck | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined;
  const { type, reason = null, prompt, input = null } = answer as Readonly<Record<string, unknown>>;
  if (type === 'deny') {
    if (reason === null) return PermissionCheck.deny();
    return typeof reason === 'string' ? PermissionCheck.deny(reason) : undefined;
  }
  if (type === 'modify') return isPlainObject(input) ? editIn(input, call) : undefined;
  // Arguments in any other check are an edit its author believes in, and nobody would make.
  if (input !== null) return undefined;
  if (type === 'allow') return PermissionCheck.allow();
  return type === 'ask' && typeof prompt === 'string' ? PermissionCheck.ask(prompt) : undefined;
}

function editIn(input: object, call: ToolCall): PermissionCheck {
  const copy = copyJson(input) as JsonObject;
  // The order of keys is no change, or two rules that each build the arguments anew would edit for ever.
  return isDeepStrictEqual(copy, call.input) ? PermissionCheck.allow() : PermissionCheck.modify(copy);
}
