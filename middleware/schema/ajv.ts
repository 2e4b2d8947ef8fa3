import { isIPv4, isIPv6 } from 'node:net';
import { Ajv, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { copyJson, type JsonSchema, type JsonValue, mapSubschemas } from '../../src/index.ts';
import { Bounds, TOO_MANY_FAULTS } from './bounds.ts';
import { ajvFaults, Faults } from './faults.ts';
import { readable, withPrefixItems } from './foreign.ts';
import { type PatternOptions, type RegExpEngine, regExpOf, takes } from './patterns.ts';
import { withQuickKeywords } from './quick-keywords.ts';
import { withoutPatterns } from './without-patterns.ts';

/** Checks a value, which it may change in place: the answer is the value after defaults and transforms, or Faults. */
export type SchemaCheck = (value: JsonValue) => unknown;

/** How a JSON Schema is read. */
export interface AjvOptions extends PatternOptions {
  /** Whether defaults are filled in; without them the value is left alone. Default: true. */
  readonly defaults?: boolean;
  /**
   * Whether a schema is refused that may not mean what its author thinks: a keyword or format nobody knows, or one that says nothing of
   * values of other types where no `type` excludes them. Default: false, for schemas of strangers are as they are.
   */
  readonly strict?: boolean;
}

/**
 * A check of a JSON Schema, by the draft its `$schema` names, or by 2020-12 where that names none we know, or by draft-07 where that
 * fails. Its answer is the value itself, with defaults filled in, or Faults.
 *
 * @throws Error where the schema cannot be compiled.
 */
export function ajvCheck(schema: JsonSchema, options: AjvOptions = {}): SchemaCheck {
  const bounds = new Bounds(options.untrusted === true);
  const gathering = compile(schema, options, bounds);
  let stopping: ValidateFunction | undefined;
  return (value) => {
    bounds.restart();
    try {
      return answerOf(gathering, value);
    } catch (thrown) {
      if (thrown !== TOO_MANY_FAULTS) throw thrown;
      stopping ??= compile(schema, { ...options, warn: ignore }, bounds, false);
      return answerOf(stopping, value, Number.POSITIVE_INFINITY);
    }
  };
}

/** @param count The faults there are, where not all are gathered. */
function answerOf(validate: ValidateFunction, value: JsonValue, count?: number): unknown {
  if (validate(value)) return value;
  const faults = ajvFaults(validate.errors ?? [], count);
  validate.errors = null;
  return faults;
}

/** ajv as strangers' schemas need it: not strict, silent, and not fooled by what objects inherit. */
const AJV_OPTIONS: Options = {
  verbose: true,
  ownProperties: true,
  validateSchema: false,
  // Else 19.99 is no multiple of 0.01.
  multipleOfPrecision: 9,
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

function isDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

/**
 * Each schema has an engine of its own: one engine would keep all it ever compiled, and confuse schemas that share an `$id`. Two
 * keywords at the top are kept from it: it refuses a `$schema` it does not know, and `$async` would make it answer with a promise,
 * which looks like a yes. An `$id` it cannot read, such as `urn:args`, is left out, and so are
 * those within where two are the same.
 */
function compile(schema: JsonSchema, options: AjvOptions, bounds: Bounds, allErrors = true): ValidateFunction {
  const { strict = false, untrusted = false, defaults = true, warn = ignore } = options;
  const regExp = regExpOf(options);
  const { $schema: dialect = '', $async: _async, ...named } = bounds.within(read(schema, options, regExp));
  const { $id, ...nameless } = named;
  const ajvOptions: Options = {
    ...AJV_OPTIONS,
    allErrors,
    // A schema that is small, but referred to often, would be as large as all its references together.
    inlineRefs: !untrusted,
    useDefaults: defaults,
    strict,
    strictTypes: strict,
    logger: { log: ignore, warn, error: ignore },
    code: { regExp: Object.assign(regExp, { code: 'new RegExp' }) },
  };
  const refusals: unknown[] = [];
  const drafts = draftsOf(dialect);
  // The references of an untrusted schema need no `$id`, and none is within: trying in vain takes its time, too.
  const wholes = untrusted ? [nameless] : [...($id === undefined ? [] : [named]), nameless, withoutIds(nameless)];
  for (const Draft of drafts) {
    for (const whole of wholes) {
      // Where the draft is not known, lists of items may be those of either.
      const body = !strict && drafts.length > 1 && Draft === Ajv2020 ? withPrefixItems(whole) : whole;
      try {
        return bounds.keeping(withQuickKeywords(new Draft(ajvOptions), bounds)).compile(body);
      } catch (fault) {
        refusals.push(fault);
      }
    }
  }
  throw explained(refusals[0] as Error);
}

function read(schema: JsonSchema, options: AjvOptions, regExp: RegExpEngine): JsonSchema {
  const { strict, untrusted = false, defaults = true, warn = ignore } = options;
  if (strict === true) return schema;
  const lax = untrusted ? withoutPatterns(schema, (pattern) => takes(regExp, pattern), warn) : schema;
  let left = MAX_PARTS;
  const fits = (preset: unknown, part: JsonSchema) => {
    // Where none is filled in, as within the check of another, none has to fit.
    if (!defaults) return true;
    left--;
    if (left < 0 || JSON.stringify(part).length > MAX_PART_CHARACTERS) return !untrusted;
    return fitsPart(preset, part, schema, { ...options, warn: ignore });
  };
  return readable(lax, { fits, warn });
}

/** Parts of one schema that are compiled to see whether their default fits, and characters of one as JSON: each takes a millisecond. */
const MAX_PARTS = 100;
const MAX_PART_CHARACTERS = 2000;

/** Whether a value fits a part of a schema, whose references lead into the definitions of the whole. */
function fitsPart(value: unknown, part: JsonSchema, whole: JsonSchema, options: AjvOptions): boolean {
  const { $schema, $defs, definitions } = whole;
  const places = Object.entries({ $schema, $defs, definitions }).filter(([, place]) => place !== undefined);
  try {
    const check = ajvCheck({ ...Object.fromEntries(places), ...part }, { ...options, defaults: false });
    return !(check(copyJson(value)) instanceof Faults);
  } catch {
    // What it refers to is elsewhere: it stays as it is.
    return true;
  }
}

function withoutIds(schema: JsonSchema): JsonSchema {
  const { $id: _, ...rest } = mapSubschemas(schema, withoutIds);
  return rest;
}

function ignore(): void {}

function explained(refusal: Error): Error {
  if (refusal.name !== 'EvalError') return refusal;
  const message =
    'This process may not make code from text, as ajv does for a JSON Schema. Give the layer another validator as "compile".';
  return new Error(message, { cause: refusal });
}

function draftsOf(dialect: unknown): readonly (typeof Ajv | typeof Ajv2020)[] {
  if (/draft-0\d/.test(String(dialect))) return [Ajv];
  return /2020-12/.test(String(dialect)) ? [Ajv2020] : [Ajv2020, Ajv];
}
