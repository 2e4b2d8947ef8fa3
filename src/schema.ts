import { copyJson, isPlainObject, type JsonObject } from './json.ts';
import { isStandardSchema, type StandardJsonSchemaConverter, type StandardSchema } from './standard-schema.ts';

/** A JSON Schema. Keywords this type does not know are welcome. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
  readonly $schema?: string;
  readonly type?: string | readonly string[];
  readonly properties?: { readonly [name: string]: JsonSchema | boolean };
  readonly required?: readonly string[];
}

/** What is sent to a model for one tool. */
export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema?: JsonSchema;
}

/** The type `execute` receives for an input schema. */
export type InferInput<Schema> =
  Schema extends StandardSchema<infer _Input, infer Output>
    ? Output
    : JsonSchema extends Schema
      ? JsonObject
      : FromJsonSchema<Schema>;

/** The type a literal JSON Schema describes; `unknown` for what it does not say, such as a `$ref`. */
export type FromJsonSchema<Schema> = Schema extends { const: infer Value }
  ? Value
  : Schema extends { enum: readonly (infer Value)[] }
    ? Value
    : Schema extends { anyOf: readonly (infer Branch)[] } | { oneOf: readonly (infer Branch)[] }
      ? FromBranch<Branch>
      : Schema extends { type: readonly (infer Type)[] } | { type: infer Type }
        ? FromType<Type, Schema>
        : Schema extends { properties: object }
          ? FromObject<Schema>
          : unknown;

type FromBranch<Branch> = Branch extends unknown ? FromJsonSchema<Branch> : never;

interface Scalars {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  null: null;
}

type FromType<Type, Schema> = Type extends keyof Scalars
  ? Scalars[Type]
  : Type extends 'array'
    ? FromArray<Schema>
    : Type extends 'object'
      ? FromObject<Schema>
      : unknown;

type FromArray<Schema> = Schema extends { prefixItems: infer Items extends readonly unknown[] }
  ? { -readonly [Index in keyof Items]: FromJsonSchema<Items[Index]> }
  : Schema extends { items: infer Item }
    ? FromJsonSchema<Item>[]
    : unknown[];

type FromObject<Schema> = Schema extends { properties: infer Properties }
  ? Flat<
      { -readonly [Key in PresentKeys<Properties, Schema>]: FromJsonSchema<Properties[Key]> } & {
        -readonly [Key in Exclude<keyof Properties, PresentKeys<Properties, Schema>>]?: FromJsonSchema<Properties[Key]>;
      } & (Schema extends { additionalProperties: true | object } ? { [key: string]: unknown } : unknown)
    >
  : Schema extends { additionalProperties: infer Value extends object }
    ? { [key: string]: FromJsonSchema<Value> }
    : { [key: string]: unknown };

/** Required properties, and those a default fills in. */
type PresentKeys<Properties, Schema> =
  | (Schema extends { required: readonly (infer Key)[] } ? Extract<keyof Properties, Key> : never)
  | { [Key in keyof Properties]: Properties[Key] extends { default: unknown } ? Key : never }[keyof Properties];

type Flat<Type> = { [Key in keyof Type]: Type[Key] } & unknown;

/** The JSON Schema of an input or output schema, as an independent frozen copy. */
export function toJsonSchema(
  schema: JsonSchema | StandardSchema,
  side: keyof StandardJsonSchemaConverter,
  owner: string,
): JsonSchema {
  if (!isStandardSchema(schema)) return frozenCopy(schema, owner);
  const converter = schema['~standard'].jsonSchema;
  if (converter === undefined) {
    throw new TypeError(
      `${owner} is a Standard Schema (${schema['~standard'].vendor}) that cannot say its JSON Schema. ` +
        'Give the JSON Schema beside it as `jsonSchema`, or wrap it with a converter such as toStandardJsonSchema of @valibot/to-json-schema.',
    );
  }
  return frozenCopy(converter[side]({ target: 'draft-2020-12' }), owner);
}

function frozenCopy(schema: unknown, owner: string): JsonSchema {
  if (!isPlainObject(schema)) throw new TypeError(`${owner} must be a JSON Schema object or a Standard Schema.`);
  try {
    return deepFreeze(copyJson(schema) as JsonSchema);
  } catch (error) {
    throw new TypeError(`${owner} must be a JSON Schema: ${(error as Error).message}.`);
  }
}

/** Freezes a JSON value all the way down. */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const item of Object.values(value)) deepFreeze(item);
  return value;
}
