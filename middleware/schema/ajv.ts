import { isIPv4, isIPv6 } from 'node:net';
import { _, Ajv, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { canonicalJson, copyJson, type JsonSchema, type JsonValue, mapSubschemas } from '../../src/index.ts';
import { Bounds, TOO_MANY_FAULTS } from './bounds.ts';
import { ajvFaults, Faults } from './faults.ts';
import { readable, withPrefixItems } from './foreign.ts';
import { inJavaScript, unquoted } from './patterns.ts';
import { withoutPatterns } from './without-patterns.ts';

/** Checks a value, which it may change in place: the answer is the value after defaults and transforms, or Faults. */
export type SchemaCheck = (value: JsonValue) => unknown;

/** Makes a regular expression of a `pattern`. @throws where it cannot; flags: `u`. */
export type RegExpEngine = (pattern: string, flags: string) => { test(text: string): boolean };

/** How a JSON Schema is read. */
export interface AjvOptions {
  /** Whether defaults are filled in; without them the value is left alone. Default: true. */
  readonly defaults?: boolean;
  /**
   * Whether a schema is refused that may not mean what its author thinks: a keyword or format nobody knows, or one that says nothing of
   * values of other types where no `type` excludes them. Default: false, for schemas of strangers are as they are.
   */
  readonly strict?: boolean;
  /** Whether nothing in the schema may hold up the process: patterns need an engine, and a check may take so many steps. Default: false. */
  readonly untrusted?: boolean;
  /** What runs patterns. Default: the regular expressions of JavaScript, and nothing where the schema is untrusted. */
  readonly regExp?: RegExpEngine;
  /** Hears what is read in another way than it was written. Default: nobody. */
  readonly warn?: (message: string) => void;
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
  const { strict, untrusted = false, warn = ignore } = options;
  if (strict === true) return schema;
  const lax = untrusted ? withoutPatterns(schema, (pattern) => takes(regExp, pattern), warn) : schema;
  let left = MAX_PARTS;
  const fits = (preset: unknown, part: JsonSchema) => {
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

/**
 * ajv's own keywords compare each item with each other one, or with each value that is allowed: a hundred thousand items would take
 * minutes.
 */
function withQuickKeywords<Draft extends Ajv | Ajv2020>(ajv: Draft, bounds: Bounds): Draft {
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

function regExpOf({ untrusted = false, regExp, warn = ignore }: AjvOptions): RegExpEngine {
  if (regExp === undefined) return untrusted ? refused : native(warn);
  return (pattern, flags) => {
    try {
      const engine = regExp(pattern, flags);
      // ajv takes patterns for the same that are the same as text.
      return { test: (text) => engine.test(text), toString: () => pattern };
    } catch (fault) {
      if (untrusted) throw fault;
      warn(`the engine given as regExp cannot read the pattern ${brief(pattern)}, so JavaScript's runs it`);
      return native(warn)(pattern, flags);
    }
  };
}

function refused(): never {
  throw new Error('The patterns of an untrusted schema are run by an engine given as regExp only.');
}

/**
 * Patterns as they are meant: one with a needless escape is not valid with the `u` flag, one of another language perhaps not at all,
 * or does not mean the same.
 */
function native(warn: (message: string) => void): RegExpEngine {
  return (pattern, flags) => {
    const [quoted, ownFlags] = unquoted(pattern) ?? [pattern, ''];
    const plain = expression(quoted, flags + ownFlags);
    const [source, theirFlags] = inJavaScript(quoted);
    const allFlags = ownFlags + theirFlags;
    const found = plain ?? expression(source, flags + allFlags) ?? expression(source, allFlags) ?? new RegExp(pattern);
    if (found.source !== pattern) warn(`the pattern ${brief(pattern)} is read as ${brief(String(found))}`);
    return found;
  };
}

function brief(pattern: string): string {
  return JSON.stringify(pattern.slice(0, 100));
}

function expression(source: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(source, flags);
  } catch {
    return undefined;
  }
}

function takes(regExp: RegExpEngine, pattern: string): boolean {
  try {
    regExp(pattern, 'u');
    return true;
  } catch {
    return false;
  }
}
