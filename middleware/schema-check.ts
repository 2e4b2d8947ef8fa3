import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  isPromise,
  isStandardSchema,
  type JsonSchema,
  type JsonValue,
  kindOf,
  type StandardResult,
  type StandardSchema,
} from '../src/index.ts';

/** One thing that is wrong with a value. */
export interface Fault {
  /** Where, as a model would write it: `items[0].name`; empty for the whole value. */
  readonly path: string;
  /** What was expected, and what was there instead. */
  readonly message: string;
}

/** What is wrong with a value. */
export class Faults {
  readonly list: readonly Fault[];
  constructor(list: readonly Fault[]) {
    this.list = list;
  }

  /** As a list for the model: so many faults, and no more than so many characters of each. */
  describe(most: number, characters: number): string {
    const lines = [...new Set(this.list.map(({ path, message }) => `- ${path === '' ? '' : `${path}: `}${message}`))];
    const listed = lines.slice(0, most).map((line) => clipped(line, characters));
    return [...listed, ...(lines.length > most ? [`- and ${lines.length - most} more`] : [])].join('\n');
  }
}

/**
 * Checks a value, which it may change in place: give it a copy. The answer is the value after defaults and transforms, or Faults.
 */
export type SchemaCheck = (value: JsonValue) => unknown;

/**
 * Compiles a schema. A JSON Schema is read by the draft its `$schema` names; one that names none by 2020-12, or by draft-07 where
 * that fails.
 *
 * @throws Error where it cannot be compiled.
 */
export function compileSchema(schema: JsonSchema | StandardSchema): SchemaCheck {
  return isStandardSchema(schema) ? standardCheck(schema) : ajvCheck(compileJsonSchema(schema));
}

/** ajv as strangers' schemas need it: not strict, silent, keeping nothing, and not fooled by what objects inherit. */
const AJV_OPTIONS: Options = {
  allErrors: true,
  verbose: true,
  strict: false,
  logger: false,
  useDefaults: true,
  ownProperties: true,
  addUsedSchema: false,
  validateSchema: false,
};

// Made when the first schema is compiled: a program that imports this may never need one.
let draft7: Ajv | undefined;
let draft2020: Ajv | undefined;

function compileJsonSchema(schema: JsonSchema): ValidateFunction {
  const { $schema: dialect, ...rest } = schema;
  draft7 ??= new Ajv(AJV_OPTIONS);
  draft2020 ??= new Ajv2020(AJV_OPTIONS);
  if (dialect !== undefined) return compileWith(/draft-0\d/.test(dialect) ? draft7 : draft2020, rest);
  try {
    return compileWith(draft2020, rest);
  } catch {
    return compileWith(draft7, rest);
  }
}

function compileWith(ajv: Ajv, schema: JsonSchema): ValidateFunction {
  try {
    return ajv.compile(schema);
  } finally {
    // ajv remembers each object it has compiled: for ever, where tools come and go.
    ajv.removeSchema(schema);
  }
}

function ajvCheck(validate: ValidateFunction): SchemaCheck {
  return (value) => {
    if (validate(value)) return value;
    const faults = new Faults((validate.errors ?? []).map(faultOf));
    validate.errors = null;
    return faults;
  };
}

function standardCheck(schema: StandardSchema): SchemaCheck {
  return (value) => {
    const result = schema['~standard'].validate(value);
    return isPromise(result) ? result.then(standardResult) : standardResult(result);
  };
}

function standardResult(result: StandardResult<unknown>): unknown {
  if (result.issues === undefined) return result.value;
  return new Faults(
    result.issues.map(({ message, path = [] }) => ({
      path: pathOf(path.map((step) => String(typeof step === 'object' ? step.key : step))),
      message,
    })),
  );
}

function faultOf(error: ErrorObject): Fault {
  const steps = error.instancePath.split('/').slice(1);
  return {
    path: pathOf(steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))),
    message: messageOf(error),
  };
}

function pathOf(steps: readonly string[]): string {
  const path = steps.map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`)).join('');
  return clipped(path.replace(/^\./, ''), 120);
}

function messageOf({ keyword, params, data, parentSchema, message }: ErrorObject): string {
  switch (keyword) {
    case 'required':
      return `"${params['missingProperty']}" is required, but missing`;
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const key = String(params['additionalProperty'] ?? params['unevaluatedProperty']);
      return `unknown key "${clipped(key, 60)}"; known keys: ${listed(Object.keys(parentSchema?.['properties'] ?? {}))}`;
    }
    case 'enum':
      return `expected one of ${listed(params['allowedValues'])}; got ${shown(data)}`;
    case 'const':
      return `expected ${shown(params['allowedValue'])}; got ${shown(data)}`;
    case 'type':
      return `expected ${[params['type']].flat().join(' or ')}; got ${shown(data)}`;
    default:
      return `${message ?? 'is wrong'}; got ${shown(data)}`;
  }
}

/** Names one message lists. */
const MAX_LISTED = 20;

function listed(values: readonly unknown[]): string {
  if (values.length === 0) return 'none';
  const names = values.slice(0, MAX_LISTED).map((value) => clipped(JSON.stringify(value) ?? '', 60));
  return names.join(', ') + (values.length > MAX_LISTED ? `, and ${values.length - MAX_LISTED} more` : '');
}

function shown(value: unknown): string {
  if (typeof value === 'string') return `the text ${clipped(JSON.stringify(value.toWellFormed()), 60)}`;
  return typeof value === 'number' ? `the number ${value}` : kindOf(value);
}

function clipped(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters).toWellFormed()}…`;
}
