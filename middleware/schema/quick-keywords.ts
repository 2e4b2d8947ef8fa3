import { _, type Ajv } from 'ajv';
import type { Ajv2020 } from 'ajv/dist/2020.js';
import { canonicalJson, type JsonValue } from '../../src/index.ts';
import type { Bounds } from './bounds.ts';

/**
 * ajv's own keywords compare each item with each other one, or with each value that is allowed: a hundred thousand items would take
 * minutes.
 */
export function withQuickKeywords<Draft extends Ajv | Ajv2020>(ajv: Draft, bounds: Bounds): Draft {
  // A list or an object as a text, which a NUL tells from the texts there are; one that begins so itself has a quote after it.
  const identityOf = (value: JsonValue): JsonValue => {
    if (typeof value === 'string') return value.startsWith('\0') ? `\0"${value}` : value;
    if (typeof value !== 'object' || value === null) return value;
    const text = canonicalJson(value);
    bounds.spend(2 * text.length);
    return `\0${text}`;
  };
  ajv.removeKeyword('uniqueItems').removeKeyword('enum');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    errors: false,
    error: { message: 'must NOT have duplicate items' },
    validate: (unique: boolean, items: readonly JsonValue[]) =>
      !unique || new Set(items.map(identityOf)).size === items.length,
  });
  return ajv.addKeyword({
    keyword: 'enum',
    schemaType: 'array',
    error: {
      message: 'must be equal to one of the allowed values',
      params: ({ schemaCode }) => _`{ allowedValues: ${schemaCode} }`,
    },
    code: (place) => {
      const { gen, data, schema } = place;
      if (schema.length === 0) throw new Error('enum must have non-empty array');
      const allowed = new Set(schema.map(identityOf));
      const isAllowed = (value: JsonValue) => allowed.has(identityOf(value));
      place.pass(_`${gen.scopeValue('func', { ref: isAllowed })}(${data})`);
    },
  }) as Draft;
}
