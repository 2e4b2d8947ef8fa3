import { isIPv4, isIPv6 } from 'node:net';
import { Ajv, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { JsonSchema, JsonValue } from '../../src/index.ts';
import { ajvFaults } from './faults.ts';

/** How a JSON Schema is read. */
export interface AjvOptions {
  /** Whether a JSON Schema's defaults are filled in; without them the value is left alone. Default: true. */
  readonly defaults?: boolean;
  /**
   * Whether a JSON Schema is refused that may not mean what its author thinks: a keyword or format nobody knows, or one that says
   * nothing of values of other types where no `type` excludes them. Default: false, for schemas of strangers are as they are.
   */
  readonly strict?: boolean;
}

/** A check of a JSON Schema: the answer is the value itself, with defaults filled in, or Faults. */
export function ajvCheck(schema: JsonSchema, options: AjvOptions): (value: JsonValue) => unknown {
  const validate = compileJsonSchema(schema, options);
  return (value) => {
    if (validate(value)) return value;
    const faults = ajvFaults(validate.errors ?? []);
    validate.errors = null;
    return faults;
  };
}

/** ajv as strangers' schemas need it: not strict, silent, and not fooled by what objects inherit. */
const AJV_OPTIONS: Options = {
  allErrors: true,
  verbose: true,
  strict: false,
  logger: false,
  ownProperties: true,
  addUsedSchema: false,
  validateSchema: false,
  // Else 19.99 is no multiple of 0.01.
  multipleOfPrecision: 9,
  code: { regExp: Object.assign(patternOf, { code: 'new RegExp' }) },
  formats: {
    date: isDate,
    'date-time': (text) =>
      /^.{10}[Tt ]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]\d\d:?\d\d)$/.test(text) &&
      isDate(text.slice(0, 10)),
    email: /^[^\s@]+@[^\s@]+$/,
    ipv4: isIPv4,
    ipv6: isIPv6,
    uri: (text) => URL.canParse(text),
    uuid: /^(?:urn:uuid:)?[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i,
  },
};

/** A pattern as it is meant: one with a needless escape is only valid without the `u` flag. */
function patternOf(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return new RegExp(pattern);
  }
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

/**
 * Each schema has an engine of its own: one engine would keep all it ever compiled, and confuse schemas that share an `$id`. Two
 * keywords at the top are kept from it: it refuses a `$schema` it does not know, and `$async` would make it answer with a promise,
 * which looks like a yes. An `$id` it cannot read, such as `urn:args`, is left out.
 */
function compileJsonSchema(schema: JsonSchema, { defaults = true, strict = false }: AjvOptions): ValidateFunction {
  const { $schema: dialect = '', $async: _async, ...named } = schema;
  const { $id, ...nameless } = named;
  const options: Options = { ...AJV_OPTIONS, useDefaults: defaults, strict, strictTypes: strict };
  const refusals: unknown[] = [];
  for (const Draft of draftsOf(dialect)) {
    for (const body of $id === undefined ? [nameless] : [named, nameless]) {
      try {
        return new Draft(options).compile(body);
      } catch (fault) {
        refusals.push(fault);
      }
    }
  }
  throw refusals[0];
}

function draftsOf(dialect: string): readonly (typeof Ajv | typeof Ajv2020)[] {
  if (/draft-0\d/.test(dialect)) return [Ajv];
  return /2020-12/.test(dialect) ? [Ajv2020] : [Ajv2020, Ajv];
}
