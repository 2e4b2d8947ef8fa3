import { isIPv4, isIPv6 } from 'node:net';
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  isPromise,
  isStandardSchema,
  type JsonSchema,
  type JsonValue,
  kindOf,
  type StandardIssue,
  type StandardResult,
  type StandardSchema,
  type Tool,
} from '../src/index.ts';

/** Checks a value, which it may change in place: the answer is the value after defaults and transforms, or Faults. */
export type SchemaCheck = (value: JsonValue) => unknown;

/** What `compileSchema` may be told. */
export interface CompileOptions {
  /** Whether a JSON Schema's defaults are filled in; without them the value is left alone. Default: true. */
  readonly defaults?: boolean;
  /**
   * Whether a JSON Schema is refused that may not mean what its author thinks: a keyword or format nobody knows, or one that says
   * nothing of values of other types where no `type` excludes them. Default: false, for schemas of strangers are as they are.
   */
  readonly strict?: boolean;
}

/**
 * Compiles a schema. A JSON Schema is read by the draft its `$schema` names; one that names none we know by 2020-12, or by
 * draft-07 where that fails.
 *
 * @throws Error where it cannot be compiled.
 */
export function compileSchema(schema: JsonSchema | StandardSchema, options: CompileOptions = {}): SchemaCheck {
  return isStandardSchema(schema) ? standardCheck(schema) : ajvCheck(compileJsonSchema(schema, options));
}

/** The checks of one schema of each tool: compiled at its first use, kept no longer than the tool. */
export class ToolChecks {
  readonly #compile: (tool: Tool) => SchemaCheck;
  readonly #checks = new WeakMap<Tool, SchemaCheck | Unusable>();

  constructor(compile: (tool: Tool) => SchemaCheck) {
    this.#compile = compile;
  }

  /** The answer of the tool's check, or Unusable where it has none or the check itself fails. Never throws nor rejects. */
  run(tool: Tool, value: JsonValue): unknown {
    const check = this.of(tool);
    if (typeof check !== 'function') return check;
    try {
      const found = check(value);
      if (found === value) return value;
      return isPromise(found) ? found.then(undefined, unusable) : found;
    } catch (cause) {
      return unusable(cause);
    }
  }

  of(tool: Tool): SchemaCheck | Unusable {
    return this.#checks.get(tool) ?? this.#make(tool);
  }

  #make(tool: Tool): SchemaCheck | Unusable {
    let check: SchemaCheck | Unusable;
    try {
      check = this.#compile(tool);
    } catch (cause) {
      check = unusable(cause);
    }
    this.#checks.set(tool, check);
    return check;
  }
}

/** Stands for a check that cannot be made, and tells why: nothing is known of the value. */
export class Unusable {
  readonly cause: unknown;

  constructor(cause: unknown) {
    this.cause = cause;
  }
}

function unusable(cause: unknown): Unusable {
  return new Unusable(cause);
}

/** One thing that is wrong with a value. */
export interface Fault {
  /** Where, as a model would write it: `items[0].name`; empty for the whole value. */
  readonly path: string;
  /** What was expected, and what was there instead. */
  readonly message: string;
}

/** Faults that are read; a list of a hundred thousand wrong items is as wrong as one of a hundred. */
const MAX_FAULTS = 100;

/** What is wrong with a value. */
export class Faults {
  /** The first ones. */
  readonly list: readonly Fault[];
  /** How many there are. */
  readonly count: number;

  constructor(list: readonly Fault[], count: number) {
    this.list = list;
    this.count = count;
  }

  /** As a list for the model: so many different faults, and no more than so many characters of each. */
  describe(most: number, characters: number): string {
    const lines = new Set<string>();
    let told = 0;
    for (const { path, message } of this.list) {
      if (lines.size === most) break;
      lines.add(clipped(`- ${path === '' ? '' : `${path}: `}${message}`, characters));
      told++;
    }
    return [...lines, ...(this.count > told ? [`- and ${this.count - told} more`] : [])].join('\n');
  }
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
function compileJsonSchema(schema: JsonSchema, { defaults = true, strict = false }: CompileOptions): ValidateFunction {
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

function ajvCheck(validate: ValidateFunction): SchemaCheck {
  return (value) => {
    if (validate(value)) return value;
    // That an "if" failed says nothing: what its branch wants is in the list as well.
    const errors = (validate.errors ?? []).filter(({ keyword }) => keyword !== 'if');
    validate.errors = null;
    return new Faults(errors.slice(0, MAX_FAULTS).map(faultOf), errors.length);
  };
}

function standardCheck(schema: StandardSchema): SchemaCheck {
  return (value) => {
    const result = schema['~standard'].validate(value);
    return isPromise(result) ? result.then(standardResult) : standardResult(result);
  };
}

function standardResult(result: StandardResult<unknown>): unknown {
  const { issues } = result;
  return issues === undefined ? result.value : new Faults(issues.slice(0, MAX_FAULTS).map(issueOf), issues.length);
}

function issueOf({ message, path = [] }: StandardIssue): Fault {
  return { path: pathOf(path.map((step) => String(typeof step === 'object' ? step.key : step))), message };
}

function faultOf(error: ErrorObject): Fault {
  const steps = error.instancePath.split('/').slice(1);
  return {
    path: pathOf(steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))),
    message: messageOf(error),
  };
}

/** A place in a value, as a person would write it: `items[0].name`. */
export function pathOf(steps: readonly string[]): string {
  return clipped(steps.map(stepOf).join('').replace(/^\./, ''), 120);
}

function stepOf(step: string): string {
  if (/^\d+$/.test(step)) return `[${step}]`;
  return /^[\p{L}\p{N}_$-]+$/u.test(step) ? `.${step}` : `[${quoted(step)}]`;
}

function messageOf({ keyword, params, data, parentSchema, message }: ErrorObject): string {
  switch (keyword) {
    case 'required':
      return `${quoted(params['missingProperty'])} is required, but missing`;
    case 'additionalProperties':
      return `unknown key ${quoted(params['additionalProperty'])}; known keys: ${listed(Object.keys(parentSchema?.['properties'] ?? {}))}`;
    case 'unevaluatedProperties':
      return `unknown key ${quoted(params['unevaluatedProperty'])}`;
    case 'enum':
      return `expected one of ${listed(params['allowedValues'])}; got ${shown(data)}`;
    case 'const':
      return `expected ${quoted(params['allowedValue'])}; got ${shown(data)}`;
    case 'type':
      return `expected ${[params['type']].flat().join(' or ')}; got ${shown(data)}`;
    case 'false schema':
      return `nothing is allowed here; got ${shown(data)}`;
    default:
      return `${message ?? 'is wrong'}; got ${shown(data)}`;
  }
}

/** Names one message lists. */
const MAX_LISTED = 20;

function listed(values: readonly unknown[]): string {
  if (values.length === 0) return 'none';
  const rest = values.length - MAX_LISTED;
  return values.slice(0, MAX_LISTED).map(quoted).join(', ') + (rest > 0 ? `, and ${rest} more` : '');
}

function shown(value: unknown): string {
  if (typeof value === 'string') return `the text ${quoted(value)}`;
  return typeof value === 'number' ? `the number ${value}` : kindOf(value);
}

/** Characters of one value that are quoted. */
const MAX_QUOTED = 60;

function quoted(value: unknown): string {
  // A text is cut first: it may be a file's whole content.
  if (typeof value === 'string') return JSON.stringify(clipped(value, MAX_QUOTED));
  return clipped(JSON.stringify(value) ?? '', MAX_QUOTED);
}

function clipped(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters)}…`.toWellFormed();
}
