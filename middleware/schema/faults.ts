import type { ErrorObject } from 'ajv';
import { kindOf, listed, nearestNames, REDACTED, redactor, type StandardIssue } from '../../src/index.ts';

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
  /** How many there are; infinitely many, where nobody has counted them. */
  readonly count: number;

  constructor(list: readonly Fault[], count: number) {
    this.list = list;
    this.count = count;
  }

  /** As a list for the model: so many different faults, and no more than so many characters of each. */
  describe(most: number, characters: number): string {
    if (this.list.length === 0) return '- the schema does not say why';
    const lines = new Set<string>();
    let told = 0;
    for (const { path, message } of this.list) {
      if (lines.size === most) break;
      lines.add(clipped(`- ${path === '' ? '' : `${path}: `}${message}`, characters));
      told++;
    }
    const more = this.count === Number.POSITIVE_INFINITY ? 'more' : `${this.count - told} more`;
    return [...lines, ...(this.count > told ? [`- and ${more}`] : [])].join('\n');
  }
}

/** What is wrong with a value, as ajv tells it. @param count How many faults there are, where these are not all. */
export function ajvFaults(errors: readonly ErrorObject[], count?: number): Faults {
  // That an "if" or a name failed says nothing: what its branch, or the name's schema, wants is in the list as well.
  const told = errors.filter(({ keyword }) => keyword !== 'if' && keyword !== 'propertyNames');
  return new Faults(told.slice(0, MAX_FAULTS).map(faultOf), count ?? told.length);
}

/** The same as a Standard Schema tells it. */
export function standardFaults(issues: readonly StandardIssue[]): Faults {
  return new Faults(issues.slice(0, MAX_FAULTS).map(issueOf), issues.length);
}

function issueOf({ message, path = [] }: StandardIssue): Fault {
  return { path: pathOf(path.map((step) => String(typeof step === 'object' ? step.key : step))), message };
}

function faultOf(error: ErrorObject): Fault {
  // Cut before anything else: a key may be a text of megabytes.
  const steps = error.instancePath
    .slice(0, 4 * MAX_PATH)
    .split('/')
    .slice(1);
  const path = steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  return {
    path: pathOf(path),
    message: `${error.propertyName === undefined ? '' : `key ${quoted(error.propertyName)}: `}${messageOf(isSecret(path.at(-1)) ? { ...error, data: REDACTED } : error)}`,
  };
}

const redact = redactor();

/** Whether what stands under a name is not to be quoted: messages of faults come into logs. */
function isSecret(name: string | undefined): boolean {
  return name !== undefined && JSON.stringify(redact({ [name]: 'x' })) !== JSON.stringify({ [name]: 'x' });
}

/** Characters of a place. */
const MAX_PATH = 120;

/** A place in a value, as a person would write it: `items[0].name`. */
export function pathOf(steps: readonly string[]): string {
  return clipped(steps.map(stepOf).join('').replace(/^\./, ''), MAX_PATH);
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
      return unknownKey(params['additionalProperty'], Object.keys(parentSchema?.['properties'] ?? {}));
    case 'unevaluatedProperties':
      return `unknown key ${quoted(params['unevaluatedProperty'])}`;
    case 'enum':
      return `expected one of ${names(params['allowedValues'])}; got ${shown(data)}`;
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

function unknownKey(key: string, known: readonly string[]): string {
  const [nearest] = nearestNames(key, known, { most: 1 });
  const hint = nearest === undefined ? '' : `; did you mean ${quoted(nearest)}?`;
  return `unknown key ${quoted(key)}; known keys: ${names(known)}${hint}`;
}

/** Names one message lists. */
const MAX_LISTED = 20;

function names(values: readonly unknown[]): string {
  return listed(values, quoted, { most: MAX_LISTED }) || 'none';
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
