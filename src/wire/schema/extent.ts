import { isPlainObject } from '../../json.ts';
import type { Fitted } from './dialect.ts';
import { listed, named, notHeldTo, type Schema } from './parts.ts';
import { isObject, typesOf } from './types.ts';

/** How much is in schemas. */
export type Extent = { readonly [What in keyof typeof WORDS]: number };

const WORDS = {
  tools: 'tools',
  properties: 'properties',
  levels: 'levels of objects and lists',
  enumValues: 'values of enums',
  characters: 'characters of names and values',
  optionalProperties: 'optional properties',
  unions: 'values of several types',
} as const;

const NOTHING: Extent = {
  tools: 0,
  properties: 0,
  levels: 0,
  enumValues: 0,
  characters: 0,
  optionalProperties: 0,
  unions: 0,
};

/** How much is in the schema of a tool. */
export function extentOf(schema: Schema): Extent {
  const extent = { ...NOTHING, tools: 1 };
  const look = (value: unknown, outer: number): void => {
    if (!isPlainObject(value)) return;
    const { anyOf, items, enum: values, const: constant } = value;
    const [properties, $defs] = [named(value['properties']), named(value['$defs'])];
    const level = isObject(value) || typesOf(value).includes('array') ? outer + 1 : outer;
    const names = Object.keys(properties);
    const required = new Set(listed(value['required']));
    extent.levels = Math.max(extent.levels, level);
    extent.properties += names.length;
    extent.optionalProperties += names.filter((name) => !required.has(name)).length;
    extent.enumValues += listed(values).length;
    if (anyOf !== undefined || typesOf(value).length > 1) extent.unions++;
    extent.characters += charactersOf([...names, ...Object.keys($defs), ...listed(values), constant]);
    for (const each of [...Object.values(properties), ...listed(anyOf), items]) look(each, level);
    for (const each of Object.values($defs)) look(each, 0);
  };
  look(schema, 0);
  return extent;
}

function charactersOf(texts: readonly unknown[]): number {
  return texts.reduce<number>((sum, text) => sum + (typeof text === 'string' ? text.length : 0), 0);
}

/** What is too much, in a sentence; undefined where nothing is. */
export function tooMuch(extent: Extent, most: Partial<Extent> = {}): string | undefined {
  const what = (Object.keys(most) as (keyof Extent)[]).find((each) => extent[each] > (most[each] ?? 0));
  return what && `there are ${extent[what]} ${WORDS[what]}, more than ${most[what]}.`;
}

/** What the schemas of a request may have together. */
export class Budget {
  readonly #most: Partial<Extent> | undefined;
  #spent = NOTHING;

  constructor(most: Partial<Extent> | undefined) {
    this.#most = most;
  }

  /** A schema, if it can be held to beside those before it. */
  within(fitted: Fitted): Fitted {
    if (fitted.schema === undefined || this.#most === undefined) return fitted;
    const extent = extentOf(fitted.schema);
    const keys = Object.keys(NOTHING) as (keyof Extent)[];
    const spent = Object.fromEntries(keys.map((key) => [key, this.#spent[key] + extent[key]])) as Extent;
    const fault = tooMuch(spent, this.#most);
    if (fault !== undefined)
      return { schema: undefined, losses: [notHeldTo('', 'strict', `with the tools before it ${fault}`)] };
    this.#spent = spent;
    return fitted;
  }
}
