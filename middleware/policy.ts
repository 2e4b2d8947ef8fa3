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
import { jsonIn, type PermissionRule, question } from './permission-rules.ts';
import { POLICY_SCHEMA } from './policy-schema.ts';
import { ajvCheck, type SchemaCheck } from './schema/ajv.ts';
import { Faults, pathOf } from './schema/faults.ts';

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
  /** What becomes of a call with these arguments: as the tool would receive them, the schema's defaults filled in. */
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
  const faults: string[] = [];
  const rules = inOrder(entries.flatMap(({ name, fits, entry }) => rulesOf(entry, placeOf(name), fits, faults)));
  const defaults = inOrder(rulesOf(rest, 'default', () => true, faults));
  if (faults.length > 0) throw unusable(faults.join('\n'));
  const byTool = new WeakMap<Tool, readonly Rule[]>();

  /** The rules for one tool: remembered, for they are asked at each call. */
  function rulesFor(tool: Tool): readonly Rule[] {
    const known = byTool.get(tool);
    if (known !== undefined) return known;
    const found = rulesNamed(tool.name);
    byTool.set(tool, found);
    return found;
  }

  function rulesNamed(toolName: string): readonly Rule[] {
    return rules.filter(({ fits }) => fits(toolName));
  }

  /** The rules that speak of a call, the one that decides first. */
  function judge(fitting: readonly Rule[], input: unknown): readonly Rule[] {
    const speaking = fitting.filter((rule) => rule.speaksOf(input));
    return speaking.length > 0 ? speaking : defaults.filter((rule) => rule.speaksOf(input));
  }

  /** What the rule that decides says; without one, the call is denied. */
  function decide(
    rule: Rule | undefined,
    input: unknown,
  ): { readonly verdict: PolicyVerdict; readonly reason?: string } {
    if (rule === undefined) return { verdict: 'deny', reason: 'no rule of the policy speaks of it' };
    if (!rule.canJudge(input)) return { verdict: 'deny', reason: 'a rule of the policy cannot judge its arguments' };
    const { verdict, reason = verdict === 'deny' ? 'a rule of the policy forbids it' : undefined } = rule;
    return reason === undefined ? { verdict } : { verdict, reason };
  }

  const check: PermissionRule = (call) => {
    const { parsed } = call;
    const { verdict, reason } = decide(judge(rulesFor(call.tool as Tool), parsed)[0], parsed);
    if (verdict === 'allow') return PermissionCheck.allow();
    if (verdict === 'deny') return PermissionCheck.deny(reason);
    return reason === undefined ? question(call) : PermissionCheck.ask(reason);
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
      const [rule, ...others] = judge(rulesNamed(toolName), input);
      return {
        ...decide(rule, input),
        ...(rule !== undefined && { decidedBy: rule.place }),
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
      return [...unused, ...[...rules, ...defaults].flatMap((rule) => unknownArguments(rule, all))];
    },
  };
}

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
  /** Also of arguments it cannot judge: a rule that cannot be asked must not be passed over. */
  readonly speaksOf: (input: unknown) => boolean;
  readonly canJudge: (input: unknown) => boolean;
}

const STRICTNESS: Readonly<Record<PolicyVerdict, number>> = { deny: 0, ask: 1, allow: 2 };

/** The strictest first, so the first that speaks of a call decides; of equals the first in the file. */
function inOrder(rules: readonly Rule[]): readonly Rule[] {
  return [...rules].sort((a, b) => STRICTNESS[a.verdict] - STRICTNESS[b.verdict]);
}

/** A copy that nobody changes later. */
function checked(document: PolicyDocument): PolicyDocument {
  if (!isPlainObject(document)) {
    throw new TypeError('A policy is an object, as in { "default": { "permission": "deny" } }.');
  }
  const copy = deepFreeze(copyJson(document));
  // Compiled at the first use: whoever imports the layers need not pay for it.
  checkDocument ??= ajvCheck(POLICY_SCHEMA, { defaults: false });
  const found = checkDocument(copy);
  if (found instanceof Faults) throw unusable(found.describe(20, 300));
  return copy as PolicyDocument;
}

let checkDocument: SchemaCheck | undefined;

function unusable(faults: string): TypeError {
  return new TypeError(`The policy cannot be used:\n${faults}`);
}

function rulesOf({ permission }: ToolPolicy, owner: string, fits: Rule['fits'], faults: string[]): readonly Rule[] {
  if (permission === undefined) return [];
  const place = `${owner}.permission`;
  if (typeof permission === 'string') return [ruleOf({ verdict: permission }, place, fits, faults)];
  return permission.map((rule, index) => ruleOf(rule, `${place}[${index}]`, fits, faults));
}

/** @param faults Takes what is wrong with the schemas. */
function ruleOf({ verdict, reason, when }: PolicyRule, place: string, fits: Rule['fits'], faults: string[]): Rule {
  const shared = { place, verdict, reason, argumentNames: Object.keys(when ?? {}), fits };
  if (when === undefined) return { ...shared, speaksOf: () => true, canJudge: () => true };
  const checks = Object.entries(when).flatMap(([name, schema]) => {
    try {
      return [[name, ajvCheck(schema, { defaults: false, strict: true })] as const];
    } catch (error) {
      faults.push(`- ${place}.when.${name}: ${plainly((error as Error).message)}`);
      return [];
    }
  });
  const canJudge = (input: unknown): input is object =>
    isPlainObject(input) && checks.every(([name]) => !Object.hasOwn(input, name) || isJson(input[name]));
  // An argument that is missing is not as it should be.
  const fitsAll = (input: object) =>
    checks.every(([name, check]) => {
      const value = Object.hasOwn(input, name) ? Reflect.get(input, name) : undefined;
      return value !== undefined && !(check(value) instanceof Faults);
    });
  return { ...shared, speaksOf: (input) => !canJudge(input) || fitsAll(input), canJudge };
}

/** Whether a schema can tell anything of a value: a Date or a URL, as transforms make them, is neither as it should be nor not. */
function isJson(value: unknown): boolean {
  return value === undefined || jsonIn(value) !== undefined;
}

/** ajv's words without what only its authors need. */
function plainly(message: string): string {
  if (/call stack/.test(message)) return 'its "$ref" leads back to itself';
  if (message.includes('allowUnionTypes')) return 'give one "type", or a schema for each of them in "anyOf"';
  return message
    .replace(/^strict mode: /, '')
    .replace(/ at "#"| \(strict\w+\)| ignored in schema at path "#.*"| in schema at path "#"/g, '');
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
