import {
  type ByTool,
  copyJson,
  deepFreeze,
  isPlainObject,
  type JsonSchema,
  PermissionCheck,
  perTool,
  printable,
  type Tool,
  wildcard,
} from '../src/index.ts';
import { type PermissionRule, question } from './permission-rules.ts';
import { POLICY_SCHEMA } from './policy-schema.ts';
import { compileSchema, Faults, pathOf, type SchemaCheck } from './schema-check.ts';

/** The content of a policy file. */
export interface PolicyDocument {
  /** Where editors find the schema. */
  readonly $schema?: string;
  /** For what no entry of `tools` says otherwise. */
  readonly default?: ToolPolicy;
  /** By the name of a tool; `*` stands for any characters. */
  readonly tools?: Readonly<Record<string, ToolPolicy>>;
}

/** What holds for one tool, or for some. */
export interface ToolPolicy {
  /** One word, or rules. Default: the policy's `default`, and without one `deny`. */
  readonly permission?: PolicyVerdict | readonly PolicyRule[];
  /** Milliseconds a tool may take. Default: that of `timeout`. */
  readonly limitMs?: number | 'none';
  /** Characters of text an answer may have. Default: that of `outputLimit`. */
  readonly outputLimit?: number | 'none';
  /** Whether arguments and answers are logged, redacted. Default: false. */
  readonly logValues?: boolean;
}

/** What becomes of a call. */
export type PolicyVerdict = 'allow' | 'ask' | 'deny';

/** A verdict on some calls. */
export interface PolicyRule {
  readonly verdict: PolicyVerdict;
  /** A JSON Schema for each of some arguments. The rule speaks of calls that have them all, each as it should be. Default: all calls. */
  readonly when?: Readonly<Record<string, JsonSchema>>;
  /** Told to the model with a denial, or asked of whoever approves. */
  readonly reason?: string;
}

/** What a policy says of one call. */
export interface PolicyExplanation {
  readonly verdict: PolicyVerdict;
  readonly reason?: string;
  /** The place in the file of the rule that decided, as in `tools.read_file.permission[0]`; undefined where none speaks of the call. */
  readonly decidedBy?: string;
  /** The other rules that speak of the call. */
  readonly overruled: readonly { readonly verdict: PolicyVerdict; readonly place: string }[];
  readonly limitMs: PolicySource<number | 'none'>;
  readonly outputLimit: PolicySource<number | 'none'>;
  readonly logValues: PolicySource<boolean>;
}

/** A value and the place in the file it comes from; without them, the layer's own default holds. */
export interface PolicySource<Value> {
  readonly value?: Value;
  readonly place?: string;
}

/** A policy as `standard` takes it, and what can be asked of it. */
export interface Policy {
  /** For `standard(policy(document).options)`. */
  readonly options: PolicyOptions;
  /** What would become of a call with these arguments, the schema's defaults filled in. */
  explain(toolName: string, input: unknown): PolicyExplanation;
  /** What is probably a mistake: entries no tool fits, rules on arguments no tool has. */
  warnings(tools: Iterable<Tool>): readonly string[];
}

/** Options of the layers a policy speaks of. */
export interface PolicyOptions {
  readonly permission: { readonly check: PermissionRule };
  readonly timeout: { readonly limitMs?: ByTool<number> };
  readonly outputLimit: { readonly limit?: ByTool<number> };
  readonly logging: { readonly values?: ByTool<boolean> };
}

/**
 * Reads a policy: what tools may do, in JSON, for people who would rather not write code. The same document always decides the same
 * way, and `explain` tells how; it asks the very functions that decide.
 *
 * @throws TypeError naming each place that is wrong and what is allowed there.
 * @example standard(policy(JSON.parse(readFileSync('policy.json', 'utf8'))).options)
 */
export function policy(document: PolicyDocument): Policy {
  const { default: rest = {}, tools = {} } = checked(document);
  const entries = Object.entries(tools).map(([name, entry]) => ({ name, fits: wildcard(name), entry }));
  const rules = entries.flatMap(({ name, fits, entry }) => rulesOf(entry, placeOf(name), fits));
  const defaults = rulesOf(rest, 'default', () => true);
  const byTool = new WeakMap<Tool, readonly Rule[]>();

  /** The rules that speak of a call, the one that decides first. */
  function judge(fitting: readonly Rule[], input: unknown): readonly Rule[] {
    const speaking = fitting.filter((rule) => rule.speaksOf(input));
    const found = speaking.length > 0 ? speaking : defaults.filter((rule) => rule.speaksOf(input));
    return found.sort((a, b) => STRICTNESS[b.verdict] - STRICTNESS[a.verdict]);
  }

  function rulesFor(tool: Tool): readonly Rule[] {
    const known = byTool.get(tool) ?? rules.filter(({ fits }) => fits(tool.name));
    byTool.set(tool, known);
    return known;
  }

  const check: PermissionRule = (call) => {
    const [rule] = judge(rulesFor(call.tool as Tool), call.parsed);
    if (rule?.verdict === 'allow') return PermissionCheck.allow();
    if (rule?.verdict !== 'ask') return PermissionCheck.deny(rule === undefined ? NO_RULE : (rule.reason ?? FORBIDDEN));
    return rule.reason === undefined ? question(call) : PermissionCheck.ask(rule.reason);
  };

  /** A field of the whole document, as the option of a layer takes it. */
  function option<Key extends Field, Value>(key: Key, read: Read<Key, Value>): ByTool<Value> {
    const byName = entries.flatMap(({ name, entry }) => {
      const value = entry[key];
      return value === undefined ? [] : [[name, read(value, `${placeOf(name)}.${key}`)] as const];
    });
    const general = rest[key];
    return {
      ...(general !== undefined && { default: read(general, `default.${key}`) }),
      byTool: Object.fromEntries(byName),
    };
  }

  /** The same for `explain`, with the place it comes from: found by the very function the layers use. */
  function source<Key extends Field>(key: Key): (toolName: string) => PolicySource<Given<Key>> {
    return perTool(
      option(key, (value, place): PolicySource<Given<Key>> => ({ value, place })),
      {},
    );
  }

  const limitMs = source('limitMs');
  const outputLimit = source('outputLimit');
  const logValues = source('logValues');

  return {
    options: {
      permission: { check },
      timeout: { limitMs: option('limitMs', numberOf) },
      outputLimit: { limit: option('outputLimit', numberOf) },
      logging: { values: option('logValues', (value) => value) },
    },
    explain(toolName, input) {
      const fitting = rules.filter(({ fits }) => fits(toolName));
      const [rule, ...others] = judge(fitting, input);
      return {
        verdict: rule?.verdict ?? 'deny',
        ...(rule === undefined ? { reason: NO_RULE } : { decidedBy: rule.place }),
        ...(rule?.reason !== undefined && { reason: rule.reason }),
        overruled: others.map(({ verdict, place }) => ({ verdict, place })),
        limitMs: limitMs(toolName),
        outputLimit: outputLimit(toolName),
        logValues: logValues(toolName),
      };
    },
    warnings(registered) {
      const all = [...registered];
      const unused = entries.flatMap(({ name, fits }) =>
        all.some((tool) => fits(tool.name)) ? [] : [`${placeOf(name)} fits no tool.`],
      );
      return [...unused, ...rules.flatMap((rule) => unknownArguments(rule, all))];
    },
  };
}

const NO_RULE = 'no rule of the policy speaks of it';
const FORBIDDEN = 'a rule of the policy forbids it';
const STRICTNESS: Readonly<Record<PolicyVerdict, number>> = { allow: 0, ask: 1, deny: 2 };

/** The fields of an entry that are an option of a layer. */
type Field = 'limitMs' | 'outputLimit' | 'logValues';
type Given<Key extends Field> = NonNullable<ToolPolicy[Key]>;
type Read<Key extends Field, Value> = (value: Given<Key>, place: string) => Value;

function placeOf(name: string): string {
  return pathOf(['tools', name]);
}

interface Rule {
  readonly place: string;
  readonly verdict: PolicyVerdict;
  readonly reason: string | undefined;
  /** Names of the arguments it asks about. */
  readonly argumentNames: readonly string[];
  readonly fits: (toolName: string) => boolean;
  readonly speaksOf: (input: unknown) => boolean;
}

/** A copy that nobody changes later. */
function checked(document: PolicyDocument): PolicyDocument {
  if (!isPlainObject(document))
    throw new TypeError('A policy is an object, as in { "default": { "permission": "deny" } }.');
  const copy = deepFreeze(copyJson(document));
  const found = checkDocument(copy);
  if (found instanceof Faults) throw new TypeError(`The policy cannot be used:\n${found.describe(20, 300)}`);
  return copy as PolicyDocument;
}

/** Compiled at the first use: whoever imports the layers need not pay for it. */
function checkDocument(copy: Parameters<SchemaCheck>[0]): unknown {
  documentCheck ??= compileSchema(POLICY_SCHEMA, { defaults: false });
  return documentCheck(copy);
}

let documentCheck: SchemaCheck | undefined;

function rulesOf({ permission }: ToolPolicy, owner: string, fits: Rule['fits']): readonly Rule[] {
  if (permission === undefined) return [];
  const place = `${owner}.permission`;
  if (typeof permission === 'string') return [ruleOf({ verdict: permission }, place, fits)];
  return permission.map((rule, index) => ruleOf(rule, `${place}[${index}]`, fits));
}

function ruleOf({ verdict, reason, when }: PolicyRule, place: string, fits: Rule['fits']): Rule {
  const argumentNames = Object.keys(when ?? {});
  return {
    place,
    verdict,
    reason,
    argumentNames,
    fits,
    speaksOf: when === undefined ? () => true : matcher(when, place),
  };
}

/** Whether arguments are as the schemas want them. One that is missing is not. */
function matcher(when: Readonly<Record<string, JsonSchema>>, place: string): (input: unknown) => boolean {
  const checks = Object.entries(when).map(([name, schema]) => {
    try {
      return [name, compileSchema(schema, { defaults: false })] as const;
    } catch (cause) {
      throw new TypeError(`The policy cannot be used:\n- ${place}.when.${name}: ${(cause as Error).message}`, {
        cause,
      });
    }
  });
  return (input) => {
    // A rule that cannot be asked must not be passed over: what throws denies.
    if (typeof input !== 'object' || input === null)
      throw new TypeError(`${place} cannot judge arguments that are no object.`);
    return checks.every(
      ([name, check]) => Object.hasOwn(input, name) && !(check(Reflect.get(input, name)) instanceof Faults),
    );
  };
}

function numberOf(limit: number | 'none'): number {
  return limit === 'none' ? Number.POSITIVE_INFINITY : limit;
}

function unknownArguments({ fits, place, argumentNames }: Rule, tools: readonly Tool[]): readonly string[] {
  const fitting = tools.filter((tool) => fits(tool.name));
  const isKnown = (name: string) => fitting.some(({ schema: { inputSchema } }) => takes(inputSchema, name));
  return argumentNames
    .filter((name) => fitting.length > 0 && !isKnown(name))
    .map((name) => `${place}.when: no tool it speaks of has an argument "${printable(name)}".`);
}

/** Whether a schema knows an argument, or does not tell which ones it knows. */
function takes({ properties }: JsonSchema, name: string): boolean {
  return !isPlainObject(properties) || Object.hasOwn(properties, name);
}
