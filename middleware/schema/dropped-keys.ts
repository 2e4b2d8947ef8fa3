import { isPlainObject, type JsonSchema, type JsonValue } from '../../src/index.ts';
import { AllowedTypes } from './types.ts';

/**
 * Keys of the input that a schema took away, as zod does with those it does not know: a misspelt option must not vanish unseen. A key
 * the schema shows was not dropped but used, as a transform does.
 */
export function droppedKeys(input: JsonValue, parsed: unknown, schema: JsonSchema | undefined): readonly string[] {
  const comparison = new Comparison(schema ?? {});
  comparison.compare(input, parsed, undefined);
  return [...comparison.dropped];
}

/** Where a value stands. */
interface Place {
  readonly step: string | number;
  /** The object or list that holds it. */
  readonly holder: JsonValue;
  /** Where that stands; undefined for the whole input. */
  readonly within: Place | undefined;
}

class Comparison {
  readonly dropped = new Set<string>();
  readonly #root: JsonSchema;
  #isReadable = true;

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  compare(input: unknown, parsed: unknown, place: Place | undefined): void {
    if (Array.isArray(input) && Array.isArray(parsed)) {
      for (let step = 0; step < input.length; step++)
        if (typeof input[step] === 'object')
          this.compare(input[step], parsed[step], { step, holder: input, within: place });
    } else if (isPlainObject(input) && isPlainObject(parsed)) {
      for (const step of Object.keys(input)) {
        const isKept = Object.hasOwn(parsed, step);
        if (isKept && typeof input[step] !== 'object') continue;
        const at: Place = { step, holder: input as JsonValue, within: place };
        if (isKept) this.compare(input[step], parsed[step], at);
        else this.#missing(at, step);
      }
    }
  }

  #missing(place: Place, key: string): void {
    const name = nameOf(place);
    if (!this.dropped.has(name) && !this.#isShown(place, key)) this.dropped.add(name);
  }

  /** What a schema that cannot be followed shows is not known. */
  #isShown({ holder, within }: Place, key: string): boolean {
    if (!this.#isReadable) return false;
    try {
      // Each has looks of its own: there may be a hundred thousand items.
      const types = new AllowedTypes(this.#root);
      return types.shows(schemaAt(types, this.#root, within), key, holder);
    } catch {
      this.#isReadable = false;
      return false;
    }
  }
}

function schemaAt(types: AllowedTypes, root: JsonSchema, place: Place | undefined): unknown {
  return place === undefined ? root : types.at(schemaAt(types, root, place.within), place.step, place.holder);
}

/** The keys on the way, without the indexes. */
function nameOf({ step, within }: Place): string {
  const keys = typeof step === 'string' ? [step] : [];
  for (let place = within; place !== undefined; place = place.within)
    if (typeof place.step === 'string') keys.push(place.step);
  return keys.reverse().join('.');
}
