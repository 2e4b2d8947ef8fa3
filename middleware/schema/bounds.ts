import { _, type Ajv, type Code, type KeywordCxt, Name } from 'ajv';
import type { Ajv2020 } from 'ajv/dist/2020.js';
import { isPlainObject, type JsonSchema, type JsonValue, mapSubschemas } from '../../src/index.ts';

/** Faults a check gathers before it looks for the first one only: ajv takes gigabytes, and minutes, for millions. */
const MAX_GATHERED = 10_000;
/** Characters of a key beyond which the same holds, as ajv writes the key into each fault within. */
const MAX_KEY = 1000;
/** Steps a check of an untrusted schema may take: half a second at most. A schema that refers to itself can ask for any number. */
const MAX_STEPS = 1_000_000;
/** What a check does quickly takes part of a step: to read a character, an item, a key, a value to compare with. */
const PER_STEP = 16;
/** Keys from which on an object is a hash table, which takes so many times as long to go through. */
const MANY_KEYS = 100;
const TABLE_FACTOR = 8;
/** To run a pattern takes so many times as long as to read what it is run on. */
const PATTERN_FACTOR = 4;

/** The keyword that keeps a check within its bounds. */
const KEYWORD = 'toolonion:bounds';
/** ajv's own name for the number of faults found so far. */
const FOUND = new Name('errors');

/** Keywords whose values, names or defaults are gone through at each check. */
const READ: readonly string[] = [
  'const',
  'default',
  'dependencies',
  'dependentRequired',
  'dependentSchemas',
  'patternProperties',
  'properties',
  'required',
];

/** Thrown by a check that gathers too many faults: whether the value is right is then asked of one that stops at the first. */
export const TOO_MANY_FAULTS: Error = new Error('The value has too many faults to gather.');

/** Bounds of the checks of one schema: of faults, and where it is untrusted of steps. */
export class Bounds {
  readonly #countsSteps: boolean;
  #left = MAX_STEPS;

  constructor(countsSteps: boolean) {
    this.#countsSteps = countsSteps;
  }

  /** A check begins. */
  restart(): void {
    this.#left = MAX_STEPS;
  }

  /** What a check does beside its steps, in characters or values it reads. @throws where that is too much. */
  spend(read: number): void {
    if (this.#countsSteps) this.#take(read / PER_STEP);
  }

  /** The schema with the keyword at each place. */
  within(schema: JsonSchema): JsonSchema {
    const bounded = mapSubschemas(schema, (subschema) => this.within(subschema));
    return Object.keys(schema).length === 0 ? schema : { ...bounded, [KEYWORD]: true };
  }

  /** Teaches it the keyword. */
  keeping<Draft extends Ajv | Ajv2020>(ajv: Draft): Draft {
    const code = (place: KeywordCxt) => this.#write(place);
    return ajv.addKeyword({ keyword: KEYWORD, before: '$ref', schemaType: 'boolean', code }) as Draft;
  }

  #write({ gen, data, it, parentSchema }: KeywordCxt): void {
    const key = it.parentDataProperty;
    if (it.allErrors) {
      const isMany = _`${FOUND} > ${MAX_GATHERED}`;
      const isTooMuch = isWritten(key) ? isMany : _`${isMany} || ${key}?.length > ${MAX_KEY}`;
      gen.if(isTooMuch, () => gen.throw(gen.scopeValue('obj', { ref: TOO_MANY_FAULTS })));
    }
    if (!this.#countsSteps) return;
    const { patternProperties } = parentSchema;
    const patterns = isPlainObject(patternProperties) ? Object.keys(patternProperties).length : 0;
    const read = weightOf(parentSchema);
    const step = (value: JsonValue, property?: string | number) => {
      const named = typeof property === 'string' ? property.length : 0;
      this.#take(1 + (read + named + sizeOf(value, patterns)) / PER_STEP);
    };
    gen.code(_`${gen.scopeValue('func', { ref: step })}(${data}, ${key})`);
  }

  #take(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new Error(`The check of an untrusted schema took more than ${MAX_STEPS} steps.`);
  }
}

/** Whether a key is one that the schema names, not one that a loop finds. */
function isWritten(key: Code | number): boolean {
  return typeof key === 'number' || (!(key instanceof Name) && Object.keys(key.names).length === 0);
}

/** Values that a schema has a check read, whatever it is given. */
function weightOf(schema: JsonSchema): number {
  const own = mapSubschemas(schema, () => true);
  return READ.reduce((sum, keyword) => sum + valuesIn(own[keyword]), 0);
}

function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, each) => sum + valuesIn(each), 1);
}

/** What a rule may have to read: characters, items, keys; and with patterns for keys, each key for each of them. */
function sizeOf(value: JsonValue, patterns: number): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  const keys = Object.keys(value);
  const read = keys.length * (keys.length > MANY_KEYS ? TABLE_FACTOR : 1);
  return patterns === 0 ? read : read + PATTERN_FACTOR * patterns * keys.reduce((sum, key) => sum + 2 + key.length, 0);
}
