import { canonicalJson } from '../../canonical.ts';
import { isPlainObject, type JsonValue } from '../../json.ts';
import { mergedWith } from './merge.ts';
import {
  IN_DESCRIPTION,
  listed,
  NOWHERE,
  named,
  ruleText,
  type Schema,
  type SchemaLoss,
  UNFIT,
  withRules,
} from './parts.ts';
import { References } from './references.ts';

/** A schema of arguments that is one object. */
export interface OneRoot {
  readonly schema: Schema;
  readonly losses: readonly SchemaLoss[];
  /** Whether it was one of several. */
  readonly wasUnion: boolean;
  /** Whether arguments may have what it does not tell. */
  readonly isPartial: boolean;
}

/**
 * A schema of arguments without what says that it is another one, one of several, or not another: providers refuse that at the root. Its properties are
 * those of all, and required is what each requires.
 */
export function withOneRoot(root: Schema): OneRoot {
  const flattening = new Flattening(root);
  try {
    const { type, nullable: _, ...schema } = flattening.flat(root, '');
    const { losses, wasUnion } = flattening;
    const isNoObject = type !== undefined && type !== 'object' && !listed(type).includes('object');
    if (isNoObject) losses.push({ place: '', keyword: 'type', message: 'It is told as an object: arguments are one.' });
    return { schema: { type: 'object', ...schema }, losses, wasUnion, isPartial: flattening.isPartial || isNoObject };
  } catch (error) {
    const message = `Only that it is an object is told: ${(error as Error).message}`;
    return {
      schema: { type: 'object' },
      losses: [{ place: '', keyword: '$ref', message }],
      wasUnion: false,
      isPartial: true,
    };
  }
}

/** Schemas within each other that are made one: more would take long. */
const DEEPEST = 20;
const MOST_BRANCHES = 1_000;

class Flattening {
  readonly losses: SchemaLoss[] = [];
  wasUnion = false;
  isPartial = false;
  readonly #references: References;
  #branches = 0;

  constructor(root: Schema) {
    this.#references = new References(root);
  }

  flat(given: Schema, place: string, depth = 0): Schema {
    const { anyOf, oneOf, allOf, not, enum: values, const: constant, ...own } = this.#withoutReference(given, place);
    let schema: Schema = own;
    for (const [index, branch] of listed(allOf).entries()) {
      const at = `${place}/allOf/${index}`;
      const merged = mergedWith(schema, this.#branch(branch, at, depth));
      if (merged === undefined) this.#lose(at, 'allOf', UNFIT);
      schema = merged ?? schema;
    }
    for (const [keyword, branches] of Object.entries({ anyOf, oneOf })) {
      if (branches === undefined) continue;
      const flat = listed(branches).map((branch, index) => this.#branch(branch, `${place}/${keyword}/${index}`, depth));
      this.wasUnion = true;
      schema = withAll(schema, flat.map(named));
    }
    return this.#described(schema, { anyOf, oneOf, not, enum: values, const: constant }, place);
  }

  /** With what is no longer said in the description. */
  #described(schema: Schema, rules: Schema, place: string): Schema {
    const told: string[] = [];
    for (const [keyword, value] of Object.entries(rules)) {
      if (value === undefined) continue;
      const rule = ruleText(keyword, value);
      if (rule !== undefined) told.push(rule);
      // Within a branch, the description of the whole has it.
      if (place === '')
        this.losses.push({
          place,
          keyword,
          message: rule === undefined ? 'Only the properties in it are told.' : IN_DESCRIPTION,
        });
    }
    return told.length === 0 || place !== ''
      ? schema
      : { ...schema, description: withRules(schema['description'], told) };
  }

  #branch(branch: unknown, place: string, depth: number): unknown {
    if (!isPlainObject(branch)) return branch;
    if (depth >= DEEPEST || this.#branches++ >= MOST_BRANCHES) {
      this.#lose(place, 'allOf', 'It is not told: it has too many schemas within each other.');
      return {};
    }
    return this.flat(branch, place, depth + 1);
  }

  /** With what it refers to in the place of the reference. */
  #withoutReference(given: Schema, place: string): Schema {
    let schema = given;
    for (const seen = new Set<unknown>(); '$ref' in schema; ) {
      const { $ref, ...own } = schema;
      const target = this.#references.target($ref);
      const merged = target && !seen.has(target) ? mergedWith(own, target.schema) : undefined;
      if (merged === undefined) this.#lose(place, '$ref', target ? UNFIT : NOWHERE);
      seen.add(target);
      schema = merged ?? own;
    }
    return schema;
  }

  #lose(place: string, keyword: string, message: string): void {
    this.isPartial = true;
    this.losses.push({ place, keyword, message });
  }
}

/** With the properties of all branches, each of which may be there. */
function withAll(schema: Schema, branches: readonly Schema[]): Schema {
  const own = named(schema['properties']);
  const found = new Map<string, unknown[]>();
  for (const branch of branches)
    for (const [name, each] of Object.entries(named(branch['properties'])))
      found
        .set(name, found.get(name) ?? [])
        .get(name)
        ?.push(each);
  const properties = [...found].map(([name, all]) => [
    name,
    either(Object.hasOwn(own, name) ? own[name] : undefined, all),
  ]);
  const [first, ...others] = branches.map((branch) => new Set(listed(branch['required'])));
  const inEach = [...(first ?? [])].filter((name) => others.every((required) => required.has(name)));
  const required = [...new Set([...listed(schema['required']), ...inEach])];
  return {
    ...schema,
    properties: { ...own, ...Object.fromEntries(properties) },
    ...(required.length > 0 && { required }),
  };
}

/** What a property is that may be something else in each branch, beside what it is in all of them. */
function either(own: unknown, branches: readonly unknown[]): unknown {
  const all = [...new Map(branches.map((branch) => [canonicalJson(branch as JsonValue), branch])).values()];
  const schema = all.length === 1 ? all[0] : { anyOf: all };
  return isPlainObject(own) ? (mergedWith(own, schema) ?? own) : schema;
}
