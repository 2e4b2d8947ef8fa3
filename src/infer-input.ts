import type { JsonObject } from './json.ts';
import type { StandardSchema } from './standard-schema.ts';

/**
 * The type `execute` receives: what a Standard Schema makes of the arguments, or what a literal JSON Schema describes. Where that
 * says nothing, as one known only as `JsonSchema`, it is a JSON object, as arguments always are.
 */
export type InferInput<Schema> =
  Schema extends StandardSchema<infer _Input, infer Output> ? Output : ObjectAtLeast<FromJsonSchema<Schema>>;

type ObjectAtLeast<Input> = unknown extends Input ? JsonObject : Input;

/**
 * The type a literal JSON Schema describes, once validation has filled in its defaults; `unknown` where it does not say, as for a
 * `$ref`. Of an object it shows the properties the schema names: others may be there, unless `additionalProperties` is false.
 */
export type FromJsonSchema<Schema> = From<Schema, true>;

// Each keyword gives a type, and they add up. `Filled` is true where defaults are filled in: not inside `anyOf` and `oneOf`, where
// it is not known which schema matches until all have been tried.

type From<Schema, Filled> = Schema extends false
  ? never
  : Schema extends { const: infer Value } | { enum: readonly (infer Value)[] }
    ? Value
    : Flat<FromType<Schema, Filled> & FromAny<Schema, 'anyOf'> & FromAny<Schema, 'oneOf'> & FromAll<Schema, Filled>>;

type FromType<Schema, Filled> = Schema extends { type: infer Type }
  ? FromName<(Type extends readonly unknown[] ? Type[number] : Type) | Nullable<Schema>, Schema, Filled>
  : Schema extends { properties: object } | { required: object }
    ? FromObject<Schema, PropertiesOf<Schema>, Filled>
    : unknown;

/** It widens `type` and nothing else: null is refused where `enum` does not list it. */
type Nullable<Schema> = Schema extends { nullable: true } ? 'null' : never;

type FromName<Name, Schema, Filled> = Name extends keyof Types<Schema, Filled> ? Types<Schema, Filled>[Name] : unknown;

interface Types<Schema, Filled> {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  null: null;
  array: FromArray<Schema, Filled>;
  object: FromObject<Schema, PropertiesOf<Schema>, Filled>;
}

type FromAny<Schema, Keyword extends string> =
  Schema extends Record<Keyword, readonly (infer Branch)[]> ? From<Branch, false> : unknown;

type FromAll<Schema, Filled> = Schema extends { allOf: readonly [infer First, ...infer Rest] }
  ? From<First, Filled> & FromAll<{ allOf: Rest }, Filled>
  : unknown;

type FromArray<Schema, Filled> = Schema extends { prefixItems: infer Items extends readonly unknown[] }
  ? FromTuple<Schema, { -readonly [Index in keyof Items]: From<Items[Index], Filled> }, Filled>
  : Schema extends { items: infer Item }
    ? From<Item, Filled>[]
    : unknown[];

/** Like a property that is not required, an element may be missing unless `minItems` asks for all of them. */
type FromTuple<Schema, Elements extends unknown[], Filled> = [
  ...(Schema extends { minItems: Elements['length'] } ? Elements : Partial<Elements>),
  ...(Schema extends { items: infer Item extends object } ? From<Item, Filled>[] : []),
];

type FromObject<Schema, Properties, Filled> = {
  [Key in PresentKeys<Schema, Properties, Filled>]: Key extends keyof Properties
    ? From<Properties[Key], Filled>
    : unknown;
} & {
  -readonly [Key in Exclude<keyof Properties, PresentKeys<Schema, Properties, Filled>>]?: From<Properties[Key], Filled>;
} & FromOthers<Schema, Properties, Filled>;

type PropertiesOf<Schema> = Schema extends { properties: infer Properties } ? Properties : unknown;

/** Required keys, unless they are no literals and so say nothing; and those a default fills in. */
type PresentKeys<Schema, Properties, Filled> =
  | (Schema extends { required: readonly (infer Key extends string)[] } ? (string extends Key ? never : Key) : never)
  | (Filled extends true ? DefaultKeys<Properties> : never);

type DefaultKeys<Properties> = {
  [Key in keyof Properties]: Properties[Key] extends { default: unknown } ? Key : never;
}[keyof Properties];

/** The keys a schema does not name. One that names none at all is of any object. */
type FromOthers<Schema, Properties, Filled> = Schema extends { additionalProperties: infer Other extends object }
  ? { [key: string]: From<Other | Properties[keyof Properties], Filled> }
  : Schema extends { additionalProperties: true } | { patternProperties: object }
    ? { [key: string]: unknown }
    : Extract<keyof Schema, Naming> extends never
      ? { [key: string]: unknown }
      : unknown;

type Naming = 'properties' | 'required' | 'additionalProperties' | 'anyOf' | 'oneOf' | 'allOf';

/** One object for an intersection of several. What one of them requires is there, so another's `undefined` does not count. */
type Flat<Type> = Type extends readonly unknown[]
  ? Type
  : Type extends object
    ? { [Key in keyof Type]: Exclude<Type[Key], undefined> }
    : Type;
