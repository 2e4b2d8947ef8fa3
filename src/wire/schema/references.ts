import { isPlainObject } from '../../json.ts';
import { mapSubschemas } from '../../schema-walk.ts';
import { mergedWith } from './merge.ts';
import { isRemark, type Schema } from './parts.ts';

/** A schema that others refer to. */
export interface Definition {
  /** Where it stands, as `#/$defs/node`. */
  readonly pointer: string;
  /** Its name among `$defs`, unlike any other; empty for the root. */
  readonly name: string;
  readonly schema: unknown;
}

/** Schemas that a schema may refer to: to follow more, each to all others, would take long. */
const MOST_DEFINITIONS = 500;

/** What the references within a schema lead to. */
export class References {
  readonly #root: Schema;
  readonly #definitions = new Map<string, Definition>();
  readonly #names = new Set<string>();
  readonly #targets = new Map<string, readonly string[]>();
  readonly #reached = new Map<string, ReadonlySet<string>>();

  constructor(root: Schema) {
    this.#root = root;
    this.#definitions.set('#', { pointer: '#', name: '', schema: root });
  }

  /** What a reference leads to; undefined where that is nothing within the schema. @throws where there are too many. */
  target($ref: unknown): Definition | undefined {
    if (typeof $ref !== 'string' || !$ref.startsWith('#')) return undefined;
    const pointer = $ref.length > 1 ? decoded($ref) : '#';
    const known = this.#definitions.get(pointer);
    if (known !== undefined) return known;
    const path = pointer.slice(2).split('/').map(unescaped);
    const schema = path.reduce<unknown>(held, this.#root);
    if (!pointer.startsWith('#/') || (!isPlainObject(schema) && typeof schema !== 'boolean')) return undefined;
    if (this.#definitions.size > MOST_DEFINITIONS)
      throw new RangeError(`it refers to more than ${MOST_DEFINITIONS} schemas.`);
    const definition = { pointer, name: this.#nameFor(path), schema };
    this.#definitions.set(pointer, definition);
    return definition;
  }

  #nameFor(path: readonly string[]): string {
    const isDefined = path.length === 2 && (path[0] === '$defs' || path[0] === 'definitions');
    const own = isDefined ? (path[1] as string) : path.join('_').replaceAll(/[^\w.-]/g, '_');
    let name = own;
    for (let count = 2; this.#names.has(name); count++) name = `${own}_${count}`;
    this.#names.add(name);
    return name;
  }

  /** A schema, with what it refers to in the place of the reference, where nothing but remarks stands beside that and it does not hold itself. */
  resolved(schema: unknown): unknown {
    let told = schema;
    for (const seen = new Set<Definition>(); isPlainObject(told) && '$ref' in told; ) {
      const { $ref, ...own } = told;
      const target = this.target($ref);
      if (target === undefined || seen.has(target) || this.isRecursive(target)) return told;
      if (!Object.keys(own).every(isRemark)) return told;
      seen.add(target);
      told = isPlainObject(target.schema) ? mergedWith(own, target.schema) : target.schema;
    }
    return told;
  }

  /** Whether a schema holds itself. */
  isRecursive({ pointer }: Definition): boolean {
    return this.#reachedFrom(pointer).has(pointer);
  }

  /** Whether references lead from within a schema to another one. */
  isReached({ pointer }: Definition, from: unknown): boolean {
    return this.#targetsIn(from).some((each) => each === pointer || this.#reachedFrom(each).has(pointer));
  }

  /** Whether a schema says of a value nothing but that it fits this schema. */
  isEndless({ pointer }: Definition): boolean {
    const seen = new Set<string>();
    const next = (schema: unknown): boolean =>
      referencesAtOnce(schema).some(($ref) => {
        const target = this.target($ref);
        if (target === undefined || seen.has(target.pointer)) return target?.pointer === pointer;
        seen.add(target.pointer);
        return target.pointer === pointer || next(target.schema);
      });
    return next(this.#definitions.get(pointer)?.schema);
  }

  #reachedFrom(pointer: string): ReadonlySet<string> {
    const known = this.#reached.get(pointer);
    if (known !== undefined) return known;
    const reached = new Set<string>();
    const waiting = [pointer];
    for (let each = waiting.pop(); each !== undefined; each = waiting.pop()) {
      for (const target of this.#targetsOf(each)) {
        if (reached.has(target)) continue;
        reached.add(target);
        waiting.push(target);
      }
    }
    this.#reached.set(pointer, reached);
    return reached;
  }

  #targetsOf(pointer: string): readonly string[] {
    const targets = this.#targets.get(pointer) ?? this.#targetsIn(this.#definitions.get(pointer)?.schema);
    this.#targets.set(pointer, targets);
    return targets;
  }

  #targetsIn(schema: unknown): readonly string[] {
    return [...new Set(referencesIn(schema).flatMap(($ref) => this.target($ref)?.pointer ?? []))];
  }
}

/** All references within a schema, but for those in schemas that it only has for others to refer to. */
function referencesIn(schema: unknown): readonly unknown[] {
  if (!isPlainObject(schema)) return [];
  const found: unknown[] = '$ref' in schema ? [schema['$ref']] : [];
  mapSubschemas(schema, (each, [keyword]) => {
    if (keyword !== '$defs' && keyword !== 'definitions') found.push(...referencesIn(each));
    return each;
  });
  return found;
}

/** Those that are about the value itself, not about what is in it. */
function referencesAtOnce(schema: unknown): readonly unknown[] {
  if (!isPlainObject(schema)) return [];
  const { $ref, anyOf, oneOf, allOf } = schema;
  const branches = [anyOf, oneOf, allOf].flatMap((each) => (Array.isArray(each) ? each : []));
  return [...($ref === undefined ? [] : [$ref]), ...branches.flatMap(referencesAtOnce)];
}

function decoded($ref: string): string {
  try {
    return decodeURIComponent($ref);
  } catch {
    return $ref;
  }
}

function unescaped(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

function held(value: unknown, step: string): unknown {
  if (!isPlainObject(value) && !Array.isArray(value)) return undefined;
  return Object.hasOwn(value, step) ? (value as Schema)[step] : undefined;
}
