import { copyJson, isPlainObject } from './json.ts';
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
        `Give the JSON Schema beside it as \`${side === 'input' ? 'jsonSchema' : 'outputJsonSchema'}\`, or wrap it with a converter such as toStandardJsonSchema of @valibot/to-json-schema.`,
    );
  }
  let converted: unknown;
  try {
    converted = converter[side]({ target: 'draft-2020-12' });
  } catch (cause) {
    const beside = side === 'input' ? 'jsonSchema' : 'outputJsonSchema';
    const fault = (cause as Error).message;
    throw new TypeError(`${owner} has no JSON Schema: ${fault}. Give one beside it as \`${beside}\`.`, { cause });
  }
  return frozenCopy(converted, owner);
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
