import { isPlainObject } from '../../json.ts';
import { listed, type Schema } from './parts.ts';

export function typesOf({ type }: Schema): readonly unknown[] {
  return Array.isArray(type) ? type : type === undefined ? [] : [type];
}

export function isObject(schema: Schema): boolean {
  return typesOf(schema).includes('object');
}

/** With the type that its other keywords imply. */
export function withType(schema: Schema): Schema {
  if (schema['type'] !== undefined) return schema;
  const types = impliedTypes(schema);
  if (types.length === 0) return schema;
  return { type: types.length === 1 ? types[0] : types, ...schema };
}

function impliedTypes(schema: Schema): readonly string[] {
  if (schema['$ref'] !== undefined || schema['anyOf'] !== undefined || schema['oneOf'] !== undefined) return [];
  if (schema['properties'] !== undefined) return ['object'];
  if (schema['items'] !== undefined) return ['array'];
  return [...new Set(valuesOf(schema).map(typeOf))];
}

/** Whether the values are listed. */
export function isListed(schema: Schema): boolean {
  return 'enum' in schema || 'const' in schema;
}

export function valuesOf(schema: Schema): readonly unknown[] {
  return 'const' in schema ? [schema['const']] : listed(schema['enum']);
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value;
}

function isOfType(value: unknown, type: unknown): boolean {
  return typeOf(value) === type || (type === 'number' && typeof value === 'number');
}

/** Without what OpenAPI has for null. */
export function withoutNullable({ nullable: isNullable, ...schema }: Schema): Schema {
  return isNullable === true ? orNull(schema) : schema;
}

/** A schema, or null. */
export function orNull(schema: Schema): Schema {
  const types = typesOf(schema);
  if (types.includes('null')) return schema;
  if (Array.isArray(schema['anyOf'])) {
    const isNull = (branch: unknown) => isPlainObject(branch) && branch['type'] === 'null';
    return schema['anyOf'].some(isNull) ? schema : { ...schema, anyOf: [...schema['anyOf'], NULL] };
  }
  if (types.length > 0 && hasPlainTypes(schema)) return { ...schema, type: [...types, 'null'] };
  const { description, ...own } = schema;
  return { ...(description !== undefined && { description }), anyOf: [own, NULL] };
}

const NULL: Schema = { type: 'null' };

const OF_NUMBERS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'format'];

/** Rules for values of one type: they say nothing of others. */
const KEYWORDS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['object', ['properties', 'required', 'additionalProperties', 'propertyOrdering', 'minProperties', 'maxProperties']],
  ['array', ['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems']],
  ['string', ['format', 'pattern', 'minLength', 'maxLength']],
  ['number', OF_NUMBERS],
  ['integer', OF_NUMBERS],
]);

export const OF_A_TYPE: ReadonlySet<string> = new Set([...KEYWORDS.values()].flat());

/** Whether a rule can say anything of values of some types. */
function isAbout(keyword: string, types: readonly unknown[]): boolean {
  return !OF_A_TYPE.has(keyword) || types.some((type) => KEYWORDS.get(type)?.includes(keyword));
}

/** Without the rules for values of types that are excluded, and without such values. */
export function withoutForeign(schema: Schema): Schema {
  const types = typesOf(schema);
  if (types.length === 0) return schema;
  const own = Object.fromEntries(Object.entries(schema).filter(([keyword]) => isAbout(keyword, types)));
  const { enum: values } = schema;
  if (!Array.isArray(values)) return own;
  return { ...own, enum: values.filter((value) => types.some((type) => isOfType(value, type))) };
}

/** Whether there is no value that is listed, or none of a type that may stand. */
export function isImpossible(schema: Schema): boolean {
  if (!isListed(schema)) return false;
  const types = typesOf(schema);
  const values = valuesOf(schema);
  return types.length === 0
    ? values.length === 0
    : !values.some((value) => types.some((type) => isOfType(value, type)));
}

/** Whether a list of types may stand in one schema: not everybody takes one beside what an object, a list or an enum has. */
function hasPlainTypes(schema: Schema): boolean {
  return !isListed(schema) && typesOf(schema).every((type) => type !== 'object' && type !== 'array');
}

/** With a branch for each type, where one schema cannot have them all. */
export function withBranches(schema: Schema): Schema {
  const types = typesOf(schema);
  if (types.length < 2 || hasPlainTypes(schema) || 'anyOf' in schema) return schema;
  const { type: _, enum: __, const: ___, ...others } = schema;
  const outer = Object.entries(others).filter(([keyword]) => !OF_A_TYPE.has(keyword));
  const branches = types.flatMap((type) => {
    const own = Object.entries(others).filter(([keyword]) => OF_A_TYPE.has(keyword) && isAbout(keyword, [type]));
    const branch: Schema = { type, ...Object.fromEntries(own) };
    if (!isListed(schema)) return [branch];
    const its = valuesOf(schema).filter((value) => isOfType(value, type));
    return its.length === 0 ? [] : [type === 'null' ? branch : { ...branch, enum: its }];
  });
  return { ...Object.fromEntries(outer), anyOf: branches };
}
