import { isPlainObject } from './json.ts';
import type { JsonSchema } from './schema.ts';
import { mapSubschemas } from './schema-walk.ts';

/** Schemas one may hold, itself included: a thousand take ajv about a tenth of a second to compile. */
const MAX_SCHEMAS = 1000;
/** Levels schemas may nest. */
const MAX_LEVELS = 32;
/** Characters of the whole, as JSON. */
const MAX_CHARACTERS = 200_000;

/**
 * Checks that a stranger's schema costs no more to compile than a process can spare, and leads nowhere but into itself.
 *
 * @throws TypeError naming the place and the bound.
 */
export function checkSchemaBudget(schema: JsonSchema, owner: string): void {
  const characters = JSON.stringify(schema).length;
  if (characters > MAX_CHARACTERS) throw beyond(owner, `has ${characters} characters; ${MAX_CHARACTERS} are allowed`);
  new Budget(owner).spend(schema);
}

class Budget {
  readonly #owner: string;
  /** The places of all schemas, as pointers. */
  readonly #places = new Set<string>();
  /** Schemas, and what takes as long to compile as one. */
  #parts = 0;
  /** What refers to a place, by the place it refers to. */
  readonly #references = new Map<string, string>();

  constructor(owner: string) {
    this.#owner = owner;
  }

  spend(schema: JsonSchema): void {
    this.#visit(schema, []);
    for (const [to, from] of this.#references)
      if (!this.#places.has(to)) throw beyond(this.#owner, `refers at ${from} to ${to}, where no schema is`);
  }

  #visit(schema: JsonSchema, place: readonly string[], level = 0): void {
    const at = pointerOf(place);
    this.#places.add(at);
    this.#parts += 1 + dependentsIn(schema);
    if (this.#parts > MAX_SCHEMAS) throw beyond(this.#owner, `holds more than ${MAX_SCHEMAS} schemas`);
    if (level > MAX_LEVELS) throw beyond(this.#owner, `nests deeper than ${MAX_LEVELS} levels, at ${at}`);
    const to = this.#referenceOf(schema, at);
    if (to !== undefined) this.#references.set(to, at);
    mapSubschemas(schema, (subschema, within) => this.#visit(subschema, [...place, ...within], level + 1));
  }

  /** The place a schema refers to. */
  #referenceOf(schema: JsonSchema, at: string): string | undefined {
    const unusual = ['$dynamicRef', '$recursiveRef', ...(at === '#' ? [] : ['$id'])].find((key) => key in schema);
    if (unusual !== undefined) throw beyond(this.#owner, `uses ${unusual} at ${at}, which is not allowed`);
    const { $ref: reference } = schema;
    if (typeof reference !== 'string') return undefined;
    try {
      // An encoded slash is one within a name to some, and one between names to others.
      if (!/%2f/i.test(reference)) return decodeURIComponent(reference);
    } catch {
      // Told below.
    }
    throw beyond(this.#owner, `has a $ref at ${at} that cannot be read`);
  }
}

/** Keys that want others beside them: code of its own for each. */
function dependentsIn({ dependentRequired, dependencies }: JsonSchema): number {
  return [dependentRequired, dependencies]
    .filter(isPlainObject)
    .reduce((sum, names) => sum + Object.values(names).filter(Array.isArray).length, 0);
}

function pointerOf(place: readonly string[]): string {
  return ['#', ...place.map((step) => step.replaceAll('~', '~0').replaceAll('/', '~1'))].join('/');
}

function beyond(owner: string, fault: string): TypeError {
  return new TypeError(
    `${owner}, which is untrusted, ${fault.slice(0, 200)}. Leave the tool out, or trust its source.`,
  );
}
