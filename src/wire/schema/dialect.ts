import { isPlainObject } from '../../json.ts';
import { type Extent, extentOf, tooMuch } from './extent.ts';
import { mergedWith } from './merge.ts';
import type { OneRoot } from './one-root.ts';
import {
  escaped,
  IN_DESCRIPTION,
  isEqual,
  isRemark,
  listed,
  NOWHERE,
  named,
  notHeldTo,
  ruleText,
  type Schema,
  type SchemaLoss,
  UNFIT,
  withRules,
} from './parts.ts';
import { type Definition, References } from './references.ts';
import {
  isImpossible,
  isListed,
  isObject,
  OF_A_TYPE,
  orNull,
  typesOf,
  valuesOf,
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
  /** Whether each value has to have a type, and what a provider cannot read is refused. */
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

/** A schema of arguments as a dialect can say it. The schema itself stays as it is. */
export function fitted({ schema, wasUnion, isPartial }: OneRoot, dialect: Dialect): Fitted {
  const fitting = new Fitting(schema, dialect);
  const { obstacles, losses } = fitting;
  if (isPartial && dialect.isClosed) obstacles.push(notHeldTo('', 'strict', 'arguments may have more than is told.'));
  if (wasUnion && dialect.isComplete)
    obstacles.push(notHeldTo('', 'strict', 'which arguments may be missing is not the same for all.'));
  try {
    const told = fitting.root();
    const fault = tooMuch(extentOf(told), dialect.most);
    if (fault !== undefined) obstacles.push(notHeldTo('', 'strict', fault));
    if (obstacles.length === 0) return { schema: told, losses };
  } catch (error) {
    obstacles.push(notHeldTo('', 'strict', (error as Error).message));
  }
  return { schema: undefined, losses: obstacles };
}

/** Schemas that are told, and put into others: each may put in more, twice as many each time. */
const MOST_NODES = 20_000;

const DEFINITIONS: ReadonlySet<string> = new Set(['$defs', 'definitions']);

class Fitting {
  readonly losses: SchemaLoss[] = [];
  readonly obstacles: SchemaLoss[] = [];
  readonly #root: Schema;
  readonly #dialect: Dialect;
  readonly #references: References;
  /** Schemas that are referred to: those that are told, and those that wait. */
  readonly #told = new Map<Definition, Schema | undefined>();
  /** What each object may lack, where it has to have all. */
  readonly #optional = new WeakMap<object, readonly string[]>();
  /** The definition that is being told; undefined at the root. */
  #owner: Definition | undefined;
  #nodes = 0;

  constructor(root: Schema, dialect: Dialect) {
    this.#root = root;
    this.#dialect = dialect;
    this.#references = new References(root);
    this.#owner = this.#references.target('#');
  }

  root(): Schema {
    const told = this.#node(this.#root, '');
    // A map that grows while it is gone through.
    for (const definition of this.#told.keys()) {
      this.#owner = definition;
      this.#told.set(definition, this.#node(definition.schema, definition.pointer.slice(1)));
    }
    if (this.#told.size > 0)
      told['$defs'] = Object.fromEntries([...this.#told].map(([{ name }, each]) => [name, each]));
    return told;
  }

  #lose(place: string, keyword: string, message: string): void {
    this.losses.push({ place, keyword, message });
  }

  #refuse(place: string, keyword: string, why: string): void {
    this.obstacles.push(notHeldTo(place, keyword, why));
  }

  #count(): void {
    if (++this.#nodes > MOST_NODES) throw new RangeError(`it is more than ${MOST_NODES} schemas within each other.`);
  }

  #node(given: unknown, place: string): Schema {
    this.#count();
    const one = this.#withoutAllOf(isPlainObject(given) ? given : {}, place);
    const plain = withoutForeign(withoutNullable(withType(one)));
    if (given === false || isImpossible(plain)) this.#refuse(place, 'false', 'no value may stand here.');
    const union = this.#withAnyOf(withBranches(plain), place);
    const schema = this.#withLoneAnyOf(union, place);
    const told: Schema = {};
    const rules: string[] = [];
    for (const [keyword, value] of Object.entries(schema)) {
      const at = keyword === 'anyOf' && 'oneOf' in plain ? 'oneOf' : keyword;
      this.#tell(keyword, value, { schema, told, rules, place, at: `${place}/${at}` });
    }
    if (rules.length > 0) told['description'] = withRules(told['description'], rules);
    if (told['$ref'] !== undefined) return this.#reference(told, place);
    if (isObject(told) && !isListed(told)) this.#closeObject(told, schema, place);
    if (this.#dialect.isTyped) this.#checkType(told, place);
    if (this.#dialect.isComplete) this.#checkBranches(told, place);
    return told;
  }

  #tell(keyword: string, value: unknown, { schema, told, rules, place, at }: Telling): void {
    if (keyword === '$schema' || (place === '' && DEFINITIONS.has(keyword))) return;
    const { takes, isTyped, isClosed } = this.#dialect;
    // Where an object is closed, it is seen then.
    if (keyword === 'additionalProperties' && isClosed) return;
    const isTaken = takes(keyword, value) && isSound(keyword, value);
    const [own, its] = isTaken ? [keyword, value] : inOtherWords(keyword, value, schema);
    const isFree = own === keyword || !Object.hasOwn(schema, own);
    // Beside values that are listed, a provider's own package has no other rule.
    const isIdle = isTyped && isListed(schema) && OF_A_TYPE.has(keyword);
    if (isFree && !isIdle && isSound(own, its) && takes(own, its)) {
      told[own] = this.#within(own, its, at);
      return;
    }
    if (isTyped && STRUCTURE.has(keyword)) this.#refuse(place, keyword, 'it cannot be read.');
    const rule = ruleText(keyword, value);
    if (rule !== undefined) rules.push(rule);
    this.#lose(place, keyword, rule === undefined ? 'It is not told.' : IN_DESCRIPTION);
  }

  /** What a keyword holds, with the schemas in it. */
  #within(keyword: string, value: unknown, place: string): unknown {
    if (keyword === 'properties')
      return Object.fromEntries(
        Object.entries(named(value)).map(([name, each]) => [name, this.#node(each, `${place}/${escaped(name)}`)]),
      );
    if (keyword === 'anyOf' || keyword === 'prefixItems')
      return listed(value).map((each, index) => this.#node(each, `${place}/${index}`));
    if (keyword === 'items' || (keyword === 'additionalProperties' && isPlainObject(value)))
      return this.#node(value, place);
    return value;
  }

  /** A reference stands alone; what is said beside it, around it. */
  #reference(told: Schema, place: string): Schema {
    const { $ref, description, ...others } = told;
    const { isTyped, recursion } = this.#dialect;
    const remarks = description === undefined ? {} : { description };
    const target = this.#references.target($ref);
    if (target === undefined) {
      if (isTyped) this.#refuse(place, '$ref', `${JSON.stringify($ref)} leads nowhere within the schema.`);
      this.#lose(place, '$ref', NOWHERE);
      return { ...others, ...remarks };
    }
    if (recursion === 'nowhere' && this.#references.isRecursive(target))
      this.#refuse(place, '$ref', 'the schema holds itself.');
    if (isTyped && this.#references.isEndless(target)) this.#refuse(place, '$ref', 'the schema is nothing but itself.');
    for (const keyword of Object.keys(others)) this.#lose(place, keyword, 'It is not told: it stands beside a $ref.');
    const alone = { $ref: target.name === '' ? '#' : `#/$defs/${escaped(target.name)}` };
    if (target.name !== '' && !this.#told.has(target)) this.#told.set(target, undefined);
    return description === undefined ? alone : { description, anyOf: [alone] };
  }

  #closeObject(told: Schema, schema: Schema, place: string): void {
    const { required, additionalProperties: others, patternProperties } = schema;
    const { isClosed, isComplete } = this.#dialect;
    const children = named(told['properties']) as Record<string, Schema>;
    const names = Object.keys(children);
    const wanted = new Set(listed(required).filter((name) => typeof name === 'string'));
    const unknown = [...wanted].filter((name) => !Object.hasOwn(children, name));
    if (isClosed) {
      const isOpen = others === true || isPlainObject(others);
      const isMap = names.length === 0 && (isOpen || (others === undefined && place !== ''));
      if (isMap || patternProperties !== undefined)
        this.#refuse(place, 'additionalProperties', 'an object may have any properties here.');
      else if (isOpen) this.#lose(place, 'additionalProperties', 'It is told that there are no others.');
      for (const name of unknown)
        this.#refuse(place, 'required', `${JSON.stringify(name)} is required, but no property.`);
      told['properties'] = children;
      told['additionalProperties'] = false;
    }
    if (isComplete) {
      const optional = names.filter((name) => !wanted.has(name));
      for (const name of optional) children[name] = orNull(children[name] as Schema);
      this.#optional.set(told, optional);
      told['required'] = names;
    } else if (required !== undefined) {
      for (const name of unknown)
        this.#lose(
          place,
          'required',
          `It is not told that ${JSON.stringify(name)} is required, for it is no property.`,
        );
      const known = [...wanted].filter((name) => Object.hasOwn(children, name));
      told['required'] = known.filter((name) => this.#mayBeRequired(name, named(schema['properties'])[name], place));
    }
  }

  #mayBeRequired(name: string, schema: unknown, place: string): boolean {
    if (this.#dialect.recursion !== 'where not required' || this.#owner === undefined) return true;
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

  /** A null can only be told from a value that is missing where no branch that it may be meant for requires one. */
  #checkBranches({ anyOf }: Schema, place: string): void {
    const branches = listed(anyOf).map(named).filter(isObject);
    const isUnclear = branches.some((branch) =>
      (this.#optional.get(branch) ?? []).some((name) =>
        branches.some((other) => {
          const isRequired =
            Object.hasOwn(named(other['properties']), name) && !this.#optional.get(other)?.includes(name);
          return isRequired && !areToldApart(branch, other);
        }),
      ),
    );
    if (isUnclear) this.#refuse(place, 'anyOf', 'which properties may be missing is not the same in all branches.');
  }

  /** With `anyOf` in the place of `oneOf`. */
  #withAnyOf(schema: Schema, place: string): Schema {
    const { oneOf, ...others } = schema;
    if (oneOf === undefined || 'anyOf' in others) return schema;
    this.#lose(place, 'oneOf', 'It is told as anyOf, not that only one may fit.');
    return { ...others, anyOf: oneOf };
  }

  /** With what is said beside a union in each of its branches: two objects that are both closed exclude each other. */
  #withLoneAnyOf(schema: Schema, place: string): Schema {
    const { anyOf, ...others } = schema;
    const rules = Object.entries(others).filter(([keyword]) => !isRemark(keyword));
    if (!this.#dialect.isClosed || !Array.isArray(anyOf) || rules.length === 0) return schema;
    const base = Object.fromEntries(rules);
    const branches = anyOf.map((branch) => {
      this.#count();
      return mergedWith(base, this.#references.resolved(branch));
    });
    if (branches.includes(undefined))
      this.#refuse(place, 'anyOf', 'what stands beside it does not go with all of its branches.');
    return { ...Object.fromEntries(Object.entries(others).filter(([keyword]) => isRemark(keyword))), anyOf: branches };
  }

  /** With what all of several schemas say, where it can be said at once. */
  #withoutAllOf(schema: Schema, place: string): Schema {
    const { allOf, ...own } = schema;
    return listed(allOf).reduce<Schema>((all, branch, index) => {
      this.#count();
      const at = `${place}/allOf/${index}`;
      const resolved = this.#references.resolved(branch);
      const merged = mergedWith(all, isPlainObject(resolved) ? this.#withoutAllOf(resolved, at) : resolved);
      if (merged === undefined && this.#dialect.isClosed) this.#refuse(at, 'allOf', 'it does not go with the rest.');
      if (merged === undefined) this.#lose(at, 'allOf', UNFIT);
      return merged ?? all;
    }, own);
  }
}

interface Telling {
  readonly schema: Schema;
  readonly told: Schema;
  readonly rules: string[];
  readonly place: string;
  /** The place of what the keyword holds. */
  readonly at: string;
}

/** Whether an object tells by the value of a property which of two branches it is meant for. */
function areToldApart(one: Schema, other: Schema): boolean {
  const others = named(other['properties']);
  return Object.entries(named(one['properties'])).some(([name, own]) => {
    const [ours, theirs] = [named(own), Object.hasOwn(others, name) ? named(others[name]) : {}];
    if (!isListed(ours) || !isListed(theirs)) return false;
    return !valuesOf(ours).some((value) => valuesOf(theirs).some((each) => isEqual(value, each)));
  });
}

/** The same in the words of others, where a dialect lacks its own. */
function inOtherWords(keyword: string, value: unknown, { type }: Schema): readonly [string, unknown] {
  if (keyword === 'const') return ['enum', [value]];
  if (keyword === 'items' && Array.isArray(value)) return ['prefixItems', value];
  if (keyword === 'exclusiveMinimum' && isWhole(type, value)) return ['minimum', value + 1];
  if (keyword === 'exclusiveMaximum' && isWhole(type, value)) return ['maximum', value - 1];
  return [keyword, value];
}

function isWhole(type: unknown, value: unknown): value is number {
  return type === 'integer' && Number.isInteger(value);
}

/** What a schema is made of: to leave it out would make another schema of it. */
const STRUCTURE: ReadonlySet<string> = new Set(['type', 'properties', 'items', 'anyOf', '$ref']);

const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);

/** Whether a keyword has a value of the kind that it is to have. */
function isSound(keyword: string, value: unknown): boolean {
  if (keyword === 'type')
    return TYPES.has(value) || (Array.isArray(value) && value.length > 0 && value.every((each) => TYPES.has(each)));
  if (keyword === 'properties') return isPlainObject(value);
  if (keyword === 'items') return isPlainObject(value) || value === true;
  if (keyword === 'anyOf' || keyword === 'enum' || keyword === 'prefixItems')
    return Array.isArray(value) && value.length > 0;
  if (keyword === 'required') return Array.isArray(value);
  if (/^(?:\$ref|title|description|format|pattern)$/.test(keyword)) return typeof value === 'string';
  if (/^(?:m(?:in|ax)Items|(?:exclusiveM|m)(?:in|ax)imum|multipleOf)$/.test(keyword)) return Number.isFinite(value);
  return true;
}
