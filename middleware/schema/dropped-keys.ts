import { isPlainObject, type JsonSchema } from '../../src/index.ts';

/**
 * Keys of the input that a schema took away, as zod does with those it does not know: a misspelt option must not vanish unseen. A key
 * the schema shows was not dropped but used, as a transform does.
 */
export function droppedKeys(input: unknown, parsed: unknown, schema: JsonSchema | undefined): readonly string[] {
  const dropped = new Set<string>();
  collect(input, parsed, schema, '', dropped);
  return [...dropped];
}

function collect(input: unknown, parsed: unknown, schema: unknown, prefix: string, dropped: Set<string>): void {
  if (Array.isArray(input) && Array.isArray(parsed)) {
    const items = at(schema, 'items');
    for (let index = 0; index < input.length; index++) collect(input[index], parsed[index], items, prefix, dropped);
  } else if (isPlainObject(input) && isPlainObject(parsed)) {
    const properties = at(schema, 'properties');
    for (const key of Object.keys(input)) {
      if (Object.hasOwn(parsed, key)) {
        if (typeof input[key] === 'object')
          collect(input[key], parsed[key], at(properties, key), `${prefix}${key}.`, dropped);
      } else if (at(properties, key) === undefined) dropped.add(prefix + key);
    }
  }
}

function at(value: unknown, key: string): unknown {
  return isPlainObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}
