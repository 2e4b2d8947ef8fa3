import { isPlainObject } from '../../json.ts';
import { type Extent, extentOf, tooMuch } from './extent.ts';
import {
  IN_DESCRIPTION,
  isObject,
  isRemark,
  mergedWith,
  notHeldTo,
  ruleText,
  type Schema,
  type SchemaLoss,
  typesOf,
  UNFIT,
  withRules,
} from './parts.ts';
import { type Definition, escaped, References } from './references.ts';
import {
  isImpossible,
  isListed,
  OF_A_TYPE,
  orNull,
  withBranches,
  withoutForeign,
  withoutNullable,
  withType,
} from './types.ts';

/** A part of JSON Schema: what a provider holds its model to. */
export interface Dialect {
  /** Whether a keyword is taken, with this value. */
  takes(keyword: string, value: unknown): boolean;
  /** Whether an object has the properties it names and no others. */
  readonly isClosed: boolean;
  /** Whether an object has all properties it names: null stands for one that is missing. */
  readonly isComplete: boolean;
  /** Whether each value has to have a type. */
  readonly isTyped: boolean;
  /** Where a schema may hold itself. */
  readonly recursion: 'anywhere' | 'where not required' | 'nowhere';
  /** What may be in one schema. */
  readonly most?: Partial<Extent>;
  /** What may be in all schemas of a request together, and how many of them. */
  readonly mostOfAll?: Partial<Extent>;
}

/** A schema in a dialect. */
export interface Fitted {
  /** Undefined where it cannot be said in the dialect; then the losses tell why. */
  readonly schema: Schema | undefined;
  readonly losses: readonly SchemaLoss[];
}

/** A schema as a dialect can say it. The schema itself stays as it is. */
export function fitted(schema: Schema, dialect: Dialect): Fitted {
  const fitting = new Fitting(schema, dialect);
  const told = fitting.root();
  const { obstacles, losses } = fitting;
  const fault = tooMuch(extentOf(told), dialect.most);
  if (fault !== undefined) obstacles.push(notHeldTo('', 'strict', fault));
  return obstacles.length > 0 ? { schema: undefined, losses: obstacles } : { schema: told, losses };
}

const DEFINITIONS: ReadonlySet<string> = new Set(['$defs', 'definitions']);

class Fitting {
  readonly losses: SchemaLoss[] = [];
  readonly obstacles: SchemaLoss[] = [];
  readonly #root: Schema;
  readonly #dialect: Dialect;
  readonly #references: References;
  #inlined = 0;
  /** The schema of `$defs`, or the root, that is being told. */
  #owner = '#';

  constructor(root: Schema, dialect: Dialect) {
    this.#root = root;
    this.#dialect = dialect;
    this.#references = new References(root);
  }

  root(): Schema {
    const told = this.#node(this.#root, '');
    const defs = this.#references.schemas();
    if (defs.length > 0) told['$defs'] = Object.fromEntries(defs.map((def) => [def.name, this.#def(def)]));
    return told;
  }

  #def({ pointer, schema }: Definition): Schema {
    this.#owner = pointer;
    return this.#node(schema, pointer.slice(1));
  }

  #lose(place: string, keyword: string, message: string): void {
    this.losses.push({ place, keyword, message });
  }

  #refuse(place: string, keyword: string, why: string): void {
    this.obstacles.push(notHeldTo(place, keyword, why));
  }

  #node(given: unknown, place: string): Schema {
    const one = this.#withoutAllOf(isPlainObject(given) ? given : {}, place);
    const plain = withBranches(withoutForeign(withoutNullable(withType(one))));
    const schema = this.#withLoneAnyOf(this.#withAnyOf(plain, place), place);
    if (given === false || isImpossible(schema)) this.#refuse(place, 'false', 'no value may stand here.');
    const told: Schema = {};
    const rules: string[] = [];
    for (const [keyword, value] of Object.entries(schema)) this.#tell(keyword, value, { schema, told, rules, place });
    if (rules.length > 0) told['description'] = withRules(told['description'], rules);
    if (told['$ref'] !== undefined) return this.#reference(told, place);
    if (isObject(told) && !isListed(told)) this.#closeObject(told, schema, place);
    if (this.#dialect.isTyped) this.#checkType(told, place);
    return told;
  }

  #tell(keyword: string, value: unknown, { schema, told, rules, place }: Telling): void {
    if (keyword === '$schema' || (place === '' && DEFINITIONS.has(keyword))) return;
    const { takes } = this.#dialect;
    const [own, its] = takes(keyword, value) ? [keyword, value] : inOtherWords(keyword, value, schema);
    const isFree = own === keyword || !Object.hasOwn(schema, own);
    // Beside values that are listed, a provider's own package has no other rule.
    const isIdle = this.#dialect.isTyped && isListed(schema) && OF_A_TYPE.has(keyword);
    if (!isFree || isIdle || !takes(own, its)) {
      this.#drop(keyword, value, rules, place);
      return;
    }
    told[own] = this.#within(own, its, `${place}/${keyword}`);
  }

  #drop(keyword: string, value: unknown, rules: string[], place: string): void {
    const rule = ruleText(keyword, value);
    if (rule !== undefined) rules.push(rule);
    this.#lose(place, keyword, rule === undefined ? 'It is not told.' : IN_DESCRIPTION);
  }

  /** What a keyword holds, with the schemas in it. */
  #within(keyword: string, value: unknown, place: string): unknown {
    if (keyword === 'properties' && isPlainObject(value))
      return Object.fromEntries(
        Object.entries(value).map(([name, each]) => [name, this.#node(each, `${place}/${escaped(name)}`)]),
      );
    if (/^(?:anyOf|oneOf|prefixItems)$/.test(keyword) && Array.isArray(value))
      return value.map((each, index) => this.#node(each, `${place}/${index}`));
    if (keyword === 'items' || (keyword === 'additionalProperties' && typeof value === 'object'))
      return this.#node(value, place);
    return value;
  }

  /** A reference stands alone; what is said beside it, around it. */
  #reference(told: Schema, place: string): Schema {
    const { $ref, description, ...others } = told;
    const target = this.#references.targetOf($ref);
    // Where rules are not enforced, it may lead somewhere all the same.
    if (target === undefined && this.#dialect.isTyped)
      this.#refuse(place, '$ref', `${JSON.stringify($ref)} leads to none of $defs.`);
    if (target !== undefined && this.#dialect.recursion === 'nowhere' && this.#references.isRecursive(target))
      this.#refuse(place, '$ref', 'the schema holds itself.');
    if (target !== undefined && this.#dialect.isTyped && this.#references.isEndless(target))
      this.#refuse(place, '$ref', 'the schema is nothing but itself.');
    for (const keyword of Object.keys(others)) this.#lose(place, keyword, 'It is not told: it stands beside a $ref.');
    const alone = { $ref: String($ref).replace(/^#\/definitions\//, '#/$defs/') };
    return description === undefined ? alone : { description, anyOf: [alone] };
  }

  #closeObject(told: Schema, { properties, required, additionalProperties: others }: Schema, place: string): void {
    const children = (told['properties'] ?? {}) as Record<string, Schema>;
    const names = Object.keys(children);
    if (this.#dialect.isClosed) {
      const isOpen = others === true || isPlainObject(others);
      if (names.length === 0 && place !== '' && others !== false)
        this.#refuse(place, 'additionalProperties', 'an object may have any properties here.');
      else if (isOpen) this.#lose(place, 'additionalProperties', 'It is told that there are no others.');
      told['properties'] = children;
      told['additionalProperties'] = false;
    }
    const wanted = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
    for (const name of wanted.filter((each) => !Object.hasOwn(children, each)))
      this.#lose(place, 'required', `It is not told that ${JSON.stringify(name)} is required, for it is no property.`);
    if (this.#dialect.isComplete) {
      for (const name of names) if (!wanted.includes(name)) children[name] = orNull(children[name] as Schema);
      told['required'] = names;
    } else if (required !== undefined) {
      const known = wanted.filter((name) => Object.hasOwn(children, name));
      told['required'] = known.filter((name) => this.#mayBeRequired(name, (properties as Schema)[name], place));
    }
  }

  #mayBeRequired(name: string, schema: unknown, place: string): boolean {
    if (this.#dialect.recursion !== 'where not required') return true;
    const isWithinItself = this.#references.isReached(this.#owner, schema);
    if (isWithinItself)
      this.#lose(place, 'required', `It is not told that ${JSON.stringify(name)} is required, for it holds itself.`);
    return !isWithinItself;
  }

  #checkType(told: Schema, place: string): void {
    if (told['type'] === undefined && told['anyOf'] === undefined)
      this.#refuse(place, 'type', 'any value may stand here.');
    if (typesOf(told).includes('array') && told['items'] === undefined)
      this.#refuse(place, 'items', 'a list may hold any values here.');
  }

  /** With `anyOf` in the place of `oneOf`. */
  #withAnyOf(schema: Schema, place: string): Schema {
    const { oneOf, ...others } = schema;
    if (oneOf === undefined || 'anyOf' in others || this.#dialect.takes('oneOf', oneOf)) return schema;
    this.#lose(place, 'oneOf', 'It is told as anyOf, not that only one may fit.');
    return { ...others, anyOf: oneOf };
  }

  /** With what is said beside a union in each of its branches: two objects that are both closed exclude each other. */
  #withLoneAnyOf(schema: Schema, place: string): Schema {
    const { anyOf, ...others } = schema;
    const rules = Object.entries(others).filter(([keyword]) => !isRemark(keyword));
    if (!this.#dialect.isClosed || !Array.isArray(anyOf) || rules.length === 0) return schema;
    const base = Object.fromEntries(rules);
    const remarks = Object.fromEntries(Object.entries(others).filter(([keyword]) => isRemark(keyword)));
    const branches = anyOf.map((branch) => mergedWith(base, this.#references.resolved(branch)));
    if (branches.includes(undefined))
      this.#refuse(place, 'anyOf', 'what stands beside it does not go with all of its branches.');
    return { ...remarks, anyOf: branches };
  }

  /** With what all of several schemas say, where it can be said at once. */
  #withoutAllOf(schema: Schema, place: string): Schema {
    const { allOf, ...own } = schema;
    if (!Array.isArray(allOf) || this.#dialect.takes('allOf', allOf)) return schema;
    return allOf.reduce<Schema>((all, branch, index) => {
      const at = `${place}/allOf/${index}`;
      const merged = this.#inlined < MOST_INLINED ? mergedWith(all, this.#inline(branch, at)) : undefined;
      if (merged === undefined) this.#lose(at, 'allOf', UNFIT);
      return merged ?? all;
    }, own);
  }

  #inline(branch: unknown, place: string): unknown {
    this.#inlined++;
    const schema = this.#references.resolved(branch);
    return isPlainObject(schema) ? this.#withoutAllOf(schema, place) : schema;
  }
}

/** Schemas that are put into others: each may put in more, twice as many each time. */
const MOST_INLINED = 1_000;

interface Telling {
  readonly schema: Schema;
  readonly told: Schema;
  readonly rules: string[];
  readonly place: string;
}

/** The same in the words of others, where a dialect lacks its own. */
function inOtherWords(keyword: string, value: unknown, { type }: Schema): readonly [string, unknown] {
  if (keyword === 'const') return ['enum', [value]];
  if (keyword === 'exclusiveMinimum' && isWhole(type, value)) return ['minimum', value + 1];
  if (keyword === 'exclusiveMaximum' && isWhole(type, value)) return ['maximum', value - 1];
  return [keyword, value];
}

function isWhole(type: unknown, value: unknown): value is number {
  return type === 'integer' && Number.isInteger(value);
}
