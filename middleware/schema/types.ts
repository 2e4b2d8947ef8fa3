import { isPlainObject, type JsonSchema, type JsonValue } from '../../src/index.ts';
import { typeName } from './misfits.ts';

/** Types of JSON values, as bits: what may stand at a place is a sum of them. */
export const NULL = 1;
export const BOOLEAN = 2;
export const INTEGER = 4;
export const FRACTION = 8;
export const STRING = 16;
export const ARRAY = 32;
export const OBJECT = 64;
const ANY = 127;

const BY_NAME: ReadonlyMap<unknown, number> = new Map([
  ['null', NULL],
  ['boolean', BOOLEAN],
  ['integer', INTEGER],
  ['number', INTEGER | FRACTION],
  ['string', STRING],
  ['array', ARRAY],
  ['object', OBJECT],
]);

/** The type of a value. */
export function typeOf(value: JsonValue): number {
  if (value === null) return NULL;
  if (typeof value === 'object') return Array.isArray(value) ? ARRAY : OBJECT;
  if (typeof value === 'number') return Number.isInteger(value) ? INTEGER : FRACTION;
  return typeof value === 'boolean' ? BOOLEAN : STRING;
}

/** Looks a schema may take at one value: one that leads back into itself can go on for ever. */
const MAX_LOOKS = 200_000;

/**
 * What a JSON Schema lets stand at the places of a value. Where it leaves it open, more rather than less: alternatives add up, and what
 * cannot be followed may be anything.
 */
export class AllowedTypes {
  readonly #root: JsonSchema;
  #looks = MAX_LOOKS;

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  /** The types a schema accepts. @throws where the schema takes too many looks, as do the others. */
  of(schema: unknown): number {
    if (!isPlainObject(schema)) return schema === false ? 0 : ANY;
    this.#look();
    const names = [schema['type'] ?? []].flat().map(typeName);
    const own = names.reduce((sum: number, name) => sum | (BY_NAME.get(name) ?? ANY), 0) || ANY;
    const listed = 'const' in schema ? [schema['const']] : schema['enum'];
    const values = Array.isArray(listed) && listed.length > 0 ? this.#listed(listed) : ANY;
    const together = this.#together(schema).reduce((sum: number, each) => sum & this.of(each), ANY);
    const choices = choicesOf(schema).reduce((sum, each) => sum & this.#oneOf(each), ANY);
    return (own & values & together & choices) | (schema['nullable'] === true ? NULL : 0);
  }

  #listed(values: readonly JsonValue[]): number {
    this.#look(values.length);
    return values.reduce((sum: number, each) => sum | typeOf(each), 0);
  }

  #oneOf(branches: readonly unknown[]): number {
    return branches.reduce((sum: number, branch) => sum | this.of(branch), 0);
  }

  /** The schema of what stands at a key or index of a value. */
  at(schema: unknown, step: string | number, value: JsonValue): unknown {
    if (!isPlainObject(schema)) return true;
    this.#look();
    const own = typeof step === 'number' ? itemOf(schema, step) : propertyOf(schema, step);
    const together = this.#together(schema).map((each) => this.at(each, step, value));
    const choices = choicesOf(schema).map((each) => ({
      anyOf: this.#fitting(each, value).map((branch) => this.at(branch, step, value)),
    }));
    const all = [own, ...together, ...choices].filter((each) => each !== undefined && each !== true);
    return all.length > 1 ? { allOf: all } : (all[0] ?? true);
  }

  /** Whether a key may not be missing. */
  requires(schema: unknown, key: string, value: JsonValue): boolean {
    if (!isPlainObject(schema)) return false;
    this.#look();
    const { required } = schema;
    if (Array.isArray(required)) this.#look(required.length);
    const branches = [...this.#together(schema), ...choicesOf(schema).flatMap((each) => this.#fitting(each, value))];
    return (
      (Array.isArray(required) && required.includes(key)) ||
      branches.some((branch) => this.requires(branch, key, value))
    );
  }

  /** Whether a schema names a key. */
  declares(schema: unknown, key: string): boolean {
    if (!isPlainObject(schema)) return false;
    this.#look();
    return (
      propertyNamed(schema, key) !== undefined ||
      [...this.#together(schema), ...choicesOf(schema).flat()].some((branch) => this.declares(branch, key))
    );
  }

  /** Whether a schema names a key of this value, whichever of the branches it can be meant for it is. */
  shows(schema: unknown, key: string, value: JsonValue): boolean {
    if (!isPlainObject(schema)) return false;
    this.#look();
    return (
      propertyNamed(schema, key) !== undefined ||
      this.#together(schema).some((each) => this.shows(each, key, value)) ||
      choicesOf(schema).some((each) => this.#fitting(each, value).every((branch) => this.shows(branch, key, value)))
    );
  }

  /** The branches a value can be meant for: not those that want another type, or another value of a key that tells them apart. */
  #fitting(branches: readonly unknown[], value: JsonValue): readonly unknown[] {
    const fitting = branches.filter(
      (branch) => (this.of(branch) & typeOf(value)) !== 0 && !this.#isOther(branch, value),
    );
    return fitting.length === 0 ? branches : fitting;
  }

  #isOther(branch: unknown, value: JsonValue): boolean {
    if (!isPlainObject(branch) || !isPlainObject(value)) return false;
    if (this.#together(branch).some((each) => this.#isOther(each, value))) return true;
    const { properties } = branch;
    if (!isPlainObject(properties)) return false;
    this.#look(Object.keys(properties).length);
    return Object.entries(properties).some(([key, property]) => {
      if (!isPlainObject(property) || !Object.hasOwn(value, key)) return false;
      const listed = 'const' in property ? [property['const']] : property['enum'];
      // Two objects can be equal without being the same.
      if (!Array.isArray(listed) || typeof value[key] === 'object') return false;
      this.#look(listed.length);
      return !listed.includes(value[key]);
    });
  }

  /** What holds beside the schema's own words. */
  #together(schema: Record<string, unknown>): readonly unknown[] {
    const { $ref, allOf } = schema;
    return [...(typeof $ref === 'string' ? [this.#referred($ref)] : []), ...(Array.isArray(allOf) ? allOf : [])];
  }

  #referred($ref: string): unknown {
    this.#look();
    if (!/^#(?:\/|$)/.test($ref)) return true;
    let schema: unknown = this.#root;
    for (const step of $ref.split('/').slice(1)) {
      const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
      if (typeof schema !== 'object' || schema === null || !Object.hasOwn(schema, key)) return true;
      schema = Reflect.get(schema, key);
    }
    return schema;
  }

  /** @param values How many values it goes through, which is quicker than a look of its own. */
  #look(values = 0): void {
    this.#looks -= 1 + values / 16;
    if (this.#looks < 0) throw new Error('The schema takes too many looks.');
  }
}

function choicesOf({ anyOf, oneOf }: Record<string, unknown>): readonly (readonly unknown[])[] {
  return [anyOf, oneOf].filter((branches) => Array.isArray(branches)).filter(({ length }) => length > 0);
}

function propertyNamed({ properties }: Record<string, unknown>, key: string): unknown {
  return isPlainObject(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined;
}

function propertyOf(schema: Record<string, unknown>, key: string): unknown {
  const { patternProperties, additionalProperties } = schema;
  return propertyNamed(schema, key) ?? (patternProperties === undefined ? additionalProperties : undefined);
}

function itemOf({ prefixItems, items, additionalItems }: Record<string, unknown>, index: number): unknown {
  // Draft-07 has the list under `items`, and what comes after it under `additionalItems`.
  const [first, rest] = Array.isArray(items) ? [items, additionalItems] : [prefixItems, items];
  return (Array.isArray(first) ? first[index] : undefined) ?? rest;
}
