import { isPlainObject } from '../../json.ts';
import { listed, type Schema } from './parts.ts';

/** A schema that others refer to. */
export interface Definition {
  readonly name: string;
  /** As `#/$defs/node`. */
  readonly pointer: string;
  readonly schema: unknown;
}

/** What the references of a schema lead to. */
export class References {
  readonly #root: Schema;
  readonly #definitions: ReadonlyMap<string, Definition>;
  readonly #recursive = new Map<string, boolean>();

  constructor(root: Schema) {
    this.#root = root;
    const definitions = ['$defs', 'definitions'].flatMap((keyword) => {
      const held = root[keyword];
      if (!isPlainObject(held)) return [];
      return Object.entries(held).map(([name, schema]) => ({ name, pointer: `#/${keyword}/${escaped(name)}`, schema }));
    });
    this.#definitions = new Map(definitions.map((definition) => [definition.pointer, definition]));
  }

  schemas(): readonly Definition[] {
    return [...this.#definitions.values()];
  }

  /** What a reference leads to: the root, or a schema of `$defs`. */
  targetOf($ref: unknown): string | undefined {
    return $ref === '#' || this.#definitions.has($ref as string) ? ($ref as string) : undefined;
  }

  /** What a reference leads to; undefined where that is none of these. */
  schemaAt($ref: unknown): unknown {
    return $ref === '#' ? this.#root : this.#definitions.get($ref as string)?.schema;
  }

  /** What a schema leads to, where it is a reference and nothing else, and not to itself. */
  resolved(schema: unknown): unknown {
    if (!isPlainObject(schema) || Object.keys(schema).length !== 1) return schema;
    const target = this.targetOf(schema['$ref']);
    return target === undefined || this.isRecursive(target) ? schema : this.schemaAt(target);
  }

  /** Whether references lead from within a schema to another one. */
  isReached(
    target: string,
    schema: unknown,
    within: (value: unknown) => readonly unknown[] = referencesIn,
    seen: Set<string> = new Set(),
  ): boolean {
    for (const $ref of within(schema)) {
      const next = this.targetOf($ref);
      if (next === target) return true;
      if (next === undefined || seen.has(next)) continue;
      seen.add(next);
      if (this.isReached(target, this.schemaAt(next), within, seen)) return true;
    }
    return false;
  }

  /** Whether a schema holds itself. */
  isRecursive(target: string): boolean {
    const known = this.#recursive.get(target) ?? this.isReached(target, this.schemaAt(target));
    this.#recursive.set(target, known);
    return known;
  }

  /** Whether a schema says of a value nothing but that it fits this schema. */
  isEndless(target: string): boolean {
    return this.isReached(target, this.schemaAt(target), referencesAtOnce);
  }
}

function referencesIn(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (!isPlainObject(value)) return [];
  const { $ref, $defs: _, definitions: __, ...others } = value;
  return [...($ref === undefined ? [] : [$ref]), ...Object.values(others).flatMap(referencesIn)];
}

/** Those that are about the value itself, not about what is in it. */
function referencesAtOnce(value: unknown): readonly unknown[] {
  if (!isPlainObject(value)) return [];
  const { $ref, anyOf, oneOf, allOf } = value;
  return [...($ref === undefined ? [] : [$ref]), ...[anyOf, oneOf, allOf].flatMap(listed).flatMap(referencesAtOnce)];
}

/** A name within a JSON Pointer. */
export function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
