// What `execute` receives for an input schema. The compiler is the test: a type that differs is an error.

import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import type { FromJsonSchema, InferInput, JsonObject, JsonSchema, StandardSchema } from 'toolonion';
import * as v from 'valibot';
import { z } from 'zod';
import type { Equal, Expect } from './equal.ts';

export type Scalars = [
  Expect<Equal<FromJsonSchema<{ type: 'string' }>, string>>,
  Expect<Equal<FromJsonSchema<{ type: 'string'; format: 'date'; minLength: 1 }>, string>>,
  Expect<Equal<FromJsonSchema<{ type: 'number' }>, number>>,
  Expect<Equal<FromJsonSchema<{ type: 'integer' }>, number>>,
  Expect<Equal<FromJsonSchema<{ type: 'boolean' }>, boolean>>,
  Expect<Equal<FromJsonSchema<{ type: 'null' }>, null>>,
  Expect<Equal<FromJsonSchema<{ type: ['string', 'null'] }>, string | null>>,
  Expect<Equal<FromJsonSchema<{ type: 'number'; nullable: true }>, number | null>>,
];

export type Values = [
  Expect<Equal<FromJsonSchema<{ const: 'v1' }>, 'v1'>>,
  Expect<Equal<FromJsonSchema<{ const: null }>, null>>,
  Expect<Equal<FromJsonSchema<{ enum: ['low', 3, null, true] }>, 'low' | 3 | null | true>>,
  Expect<Equal<FromJsonSchema<{ type: 'string'; enum: ['low', 'high'] }>, 'low' | 'high'>>,
  // The validator reads `nullable` as a part of `type`: a null that `enum` does not list is refused.
  Expect<Equal<FromJsonSchema<{ type: 'string'; nullable: true; enum: ['low'] }>, 'low'>>,
];

export type Arrays = [
  Expect<Equal<FromJsonSchema<{ type: 'array' }>, unknown[]>>,
  Expect<Equal<FromJsonSchema<{ type: 'array'; items: { type: 'string' } }>, string[]>>,
  Expect<
    Equal<FromJsonSchema<{ type: ['array', 'null']; items: { type: ['number', 'null'] } }>, (number | null)[] | null>
  >,
  Expect<Equal<FromJsonSchema<{ type: 'array'; items: Pair }>, [string, number][]>>,
];

type Two = { type: 'array'; prefixItems: [{ type: 'string' }, { type: 'number' }] };
type Pair = Two & { minItems: 2 };

export type Tuples = [
  Expect<Equal<FromJsonSchema<Pair>, [string, number]>>,
  Expect<Equal<FromJsonSchema<Pair & { items: false }>, [string, number]>>,
  Expect<Equal<FromJsonSchema<Pair & { items: { type: 'boolean' } }>, [string, number, ...boolean[]]>>,
  // Nothing says that both are there: the model may send one of them, or none.
  Expect<Equal<FromJsonSchema<Two>, [string?, number?]>>,
];

export type Objects = [
  Expect<Equal<FromJsonSchema<{ type: 'object' }>, { [key: string]: unknown }>>,
  // biome-ignore lint/complexity/noBannedTypes: the type of an object without properties
  Expect<Equal<FromJsonSchema<{ type: 'object'; properties: {} }>, {}>>,
  Expect<
    Equal<
      FromJsonSchema<{
        type: 'object';
        properties: { a: { type: 'string' }; b: { type: 'number' }; c: { type: 'boolean'; default: false } };
        required: ['a'];
      }>,
      { a: string; b?: number; c: boolean }
    >
  >,
  Expect<
    Equal<
      FromJsonSchema<{
        type: 'object';
        properties: {
          where: { type: 'object'; properties: { field: { type: 'string' } }; required: ['field'] };
          order: { type: 'array'; items: { type: 'object'; properties: { by: { enum: ['date', 'size'] } } } };
        };
      }>,
      { where?: { field: string }; order?: { by?: 'date' | 'size' }[] }
    >
  >,
  // Without `type`, and with a key that is required but not described.
  Expect<Equal<FromJsonSchema<{ properties: { a: { type: 'string' } } }>, { a?: string }>>,
  Expect<Equal<FromJsonSchema<{ properties: { a: { type: 'string' } }; required: ['b'] }>, { a?: string; b: unknown }>>,
  // Keys that are no literals say nothing about which properties are there.
  Expect<Equal<FromJsonSchema<{ properties: { a: { type: 'string' } }; required: string[] }>, { a?: string }>>,
];

type A = { properties: { a: { type: 'string' } }; required: ['a'] };

export type AdditionalProperties = [
  Expect<Equal<FromJsonSchema<A & { additionalProperties: false }>, { a: string }>>,
  Expect<Equal<FromJsonSchema<A & { additionalProperties: true }>, { a: string; [key: string]: unknown }>>,
  // A key that is not known may be that of a named property, too.
  Expect<
    Equal<
      FromJsonSchema<A & { additionalProperties: { type: 'number' } }>,
      { a: string; [key: string]: number | string }
    >
  >,
  Expect<
    Equal<
      FromJsonSchema<{ type: 'object'; additionalProperties: { type: 'array'; items: { type: 'string' } } }>,
      { [key: string]: string[] }
    >
  >,
  Expect<Equal<FromJsonSchema<A & { patternProperties: { '^x-': true } }>, { a: string; [key: string]: unknown }>>,
  // biome-ignore lint/complexity/noBannedTypes: the type of an object without properties
  Expect<Equal<FromJsonSchema<{ type: 'object'; additionalProperties: false }>, {}>>,
];

type B = { type: 'object'; properties: { b: { type: 'number' } }; required: ['b'] };

export type AnyOf = [
  Expect<Equal<FromJsonSchema<{ anyOf: [{ type: 'string' }, { type: 'null' }] }>, string | null>>,
  Expect<Equal<FromJsonSchema<{ oneOf: [A, B] }>, { a: string } | { b: number }>>,
  Expect<Equal<FromJsonSchema<{ type: 'object'; anyOf: [A, B] }>, { a: string } | { b: number }>>,
  // Beside properties, to each branch its own.
  Expect<
    Equal<
      FromJsonSchema<{ type: 'object'; properties: { id: { type: 'integer' } }; required: ['id']; oneOf: [A, B] }>,
      { id: number; a: string } | { id: number; b: number }
    >
  >,
  // "One of the two must be there".
  Expect<
    Equal<
      FromJsonSchema<{
        type: 'object';
        properties: { url: { type: 'string' }; path: { type: 'string' } };
        anyOf: [{ required: ['url'] }, { required: ['path'] }];
      }>,
      { url: string; path?: string } | { url?: string; path: string }
    >
  >,
  // The validator cannot know which branch will match, so it fills in no default of any.
  Expect<
    Equal<
      FromJsonSchema<{ anyOf: [{ properties: { a: { type: 'string'; default: '' } } }, { type: 'null' }] }>,
      { a?: string } | null
    >
  >,
];

export type AllOf = [
  Expect<Equal<FromJsonSchema<{ allOf: [A, B] }>, { a: string; b: number }>>,
  Expect<Equal<FromJsonSchema<{ type: 'object'; allOf: [A, B] }>, { a: string; b: number }>>,
  // Properties of one part, required by another; and a default, which holds here.
  Expect<
    Equal<
      FromJsonSchema<{
        properties: { a: { type: 'string' }; b: { type: 'string' } };
        allOf: [{ required: ['b'] }, { properties: { c: { type: 'number'; default: 1 } } }];
      }>,
      { a?: string; b: string; c: number }
    >
  >,
  Expect<Equal<FromJsonSchema<{ type: 'string'; allOf: [{ minLength: 1 }, { pattern: 'x' }] }>, string>>,
];

export type Unsaid = [
  Expect<Equal<FromJsonSchema<true>, unknown>>,
  Expect<Equal<FromJsonSchema<false>, never>>,
  Expect<Equal<FromJsonSchema<{ $ref: '#/$defs/node' }>, unknown>>,
  Expect<Equal<FromJsonSchema<{ not: { type: 'string' } }>, unknown>>,
  Expect<Equal<FromJsonSchema<{ type: 'date' }>, unknown>>,
  Expect<Equal<FromJsonSchema<{ type: string; properties: { a: { type: string } } }>, unknown>>,
  Expect<Equal<FromJsonSchema<JsonSchema>, unknown>>,
  Expect<Equal<FromJsonSchema<{ anyOf: JsonSchema[] }>, unknown>>,
  Expect<Equal<FromJsonSchema<{ allOf: JsonSchema[] }>, unknown>>,
  Expect<
    Equal<
      FromJsonSchema<{ properties: { any: true; never: false; ref: { $ref: '#' } } }>,
      { any?: unknown; never?: never; ref?: unknown }
    >
  >,
];

// Arguments are always an object, whatever their schema leaves unsaid.
export type ObjectAtLeast = [
  Expect<Equal<InferInput<JsonSchema>, JsonObject>>,
  Expect<Equal<InferInput<{ $ref: '#/$defs/node' }>, JsonObject>>,
  Expect<Equal<InferInput<{ type: string; properties: { a: { type: string } } }>, JsonObject>>,
  Expect<Equal<InferInput<{ type: 'object'; properties: { a: { type: 'string' } } }>, { a?: string }>>,
];

// Real trees are deep; so that the compiler follows them, no level is unfolded before it is looked at.
type Deep<Depth extends 1[], Leaf = { type: 'string' }> = Depth extends [1, ...infer Rest extends 1[]]
  ? Deep<Rest, { type: 'object'; properties: { x: { type: 'array'; items: Leaf } }; required: ['x'] }>
  : Leaf;
type Ten = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
type Fifty = FromJsonSchema<Deep<[...Ten, ...Ten, ...Ten, ...Ten, ...Ten]>>;
export type Nesting = [
  Expect<Equal<FromJsonSchema<Deep<[1, 1]>>, { x: { x: string[] }[] }>>,
  Expect<Equal<Fifty['x'][0]['x'][0]['x'][0] extends { x: { x: unknown[] }[] } ? true : false, true>>,
];

// A Standard Schema: what comes out of it, after its defaults and transforms.

const zod = z.object({
  from: z.string(),
  days: z.number().default(7),
  on: z.string().transform((text) => new Date(text)),
});
const valibot = v.object({ from: v.string(), days: v.optional(v.number(), 7), tags: v.optional(v.array(v.string())) });
const converted = toStandardJsonSchema(valibot);
const arktype = type({ from: 'string', 'days?': 'number', on: 'string.date.parse' });

export type StandardSchemas = [
  Expect<Equal<InferInput<typeof zod>, { from: string; days: number; on: Date }>>,
  Expect<Equal<InferInput<typeof valibot>, v.InferOutput<typeof valibot>>>,
  Expect<Equal<InferInput<typeof converted>, v.InferOutput<typeof valibot>>>,
  Expect<Equal<InferInput<typeof arktype>, { from: string; days?: number; on: Date }>>,
  Expect<Equal<InferInput<StandardSchema<string, { length: number }>>, { length: number }>>,
  Expect<Equal<InferInput<StandardSchema>, unknown>>,
];
