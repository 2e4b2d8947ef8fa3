import {
  checkOptions,
  isOneOf,
  isPlainObject,
  type JsonObject,
  type OptionCheck,
  PermissionCheck,
  printable,
  type Tool,
  type ToolCall,
} from '../src/index.ts';

/** Lets nothing run. */
export function denyAll(): PermissionCheck {
  return PermissionCheck.deny('no rule allows it');
}

/** Lets everything run. */
export function allowAll(): PermissionCheck {
  return PermissionCheck.allow();
}

/** Lets tools run that say they are read-only, and asks about all others. */
export function readOnlyAllowed(call: ToolCall): PermissionCheck {
  if (call.tool?.readOnly === true) return PermissionCheck.allow();
  return question(call);
}

/** A rule for some tools: `*` in the name stands for any characters; `when` looks at the validated arguments. */
export interface ToolRule {
  readonly tool: string;
  readonly when?: (input: JsonObject, call: ToolCall) => boolean;
  /** Told to the model, or asked of the approver. */
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
 * @throws TypeError naming the rule and what is allowed.
 */
export function rules(set: RuleSet): (call: ToolCall) => PermissionCheck {
  const isList: OptionCheck = (value) =>
    (Array.isArray(value) && value.every(isRule)) || 'an array of names or { tool, when, reason }';
  checkOptions('rules', set, {
    deny: isList,
    ask: isList,
    allow: isList,
    otherwise: isOneOf('deny', 'ask', 'allow'),
  });
  const matchers = { deny: matchersOf(set.deny), ask: matchersOf(set.ask), allow: matchersOf(set.allow) };
  const otherwise = OTHERWISE[set.otherwise ?? 'deny'];
  const byTool = new WeakMap<Tool, (call: ToolCall) => PermissionCheck>();
  return (call) => {
    const tool = call.tool as Tool;
    let decide = byTool.get(tool);
    if (decide === undefined) {
      decide = decider(tool, matchers, otherwise);
      byTool.set(tool, decide);
    }
    return decide(call);
  };
}

const OTHERWISE: Readonly<Record<'deny' | 'ask' | 'allow', (call: ToolCall) => PermissionCheck>> = {
  deny: () => PermissionCheck.deny('no rule allows it'),
  ask: question,
  allow: allowAll,
};

/** The rules that speak of one tool, its name matched once and for all. */
function decider(
  tool: Tool,
  matchers: Readonly<Record<'deny' | 'ask' | 'allow', readonly Matcher[]>>,
  otherwise: (call: ToolCall) => PermissionCheck,
): (call: ToolCall) => PermissionCheck {
  const applying = (list: readonly Matcher[]) => list.filter(({ pattern }) => pattern.test(tool.name));
  const [deny, ask, allow] = [applying(matchers.deny), applying(matchers.ask), applying(matchers.allow)];
  return (call) => {
    const denying = first(deny, call);
    if (denying !== undefined) return PermissionCheck.deny(denying.reason ?? 'a rule forbids it');
    const asking = first(ask, call);
    if (asking !== undefined) return asking.reason === undefined ? question(call) : PermissionCheck.ask(asking.reason);
    return first(allow, call) === undefined ? otherwise(call) : PermissionCheck.allow();
  };
}

function first(rules: readonly Matcher[], call: ToolCall): Matcher | undefined {
  for (const rule of rules) if (rule.when === undefined || rule.when(call.input as JsonObject, call)) return rule;
  return undefined;
}

function isRule(value: unknown): boolean {
  if (typeof value === 'string') return value !== '';
  if (!isPlainObject(value)) return false;
  const { tool, when, reason, ...others } = value;
  if (Object.keys(others).length > 0 || typeof tool !== 'string' || tool === '') return false;
  return (when === undefined || typeof when === 'function') && (reason === undefined || typeof reason === 'string');
}

interface Matcher extends Omit<ToolRule, 'tool'> {
  readonly pattern: RegExp;
}

function matchersOf(list: readonly (string | ToolRule)[] = []): readonly Matcher[] {
  return list.map((rule) => {
    const { tool, ...rest } = typeof rule === 'string' ? { tool: rule } : rule;
    const escaped = tool.split('*').map((text) => text.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'));
    return { ...rest, pattern: new RegExp(`^${escaped.join('.*')}$`, 's') };
  });
}

function question(call: ToolCall): PermissionCheck {
  return PermissionCheck.ask(`Run "${printable(call.tool?.name ?? call.name)}"?`);
}
