import { isPlainObject } from '../../json.ts';
import type { Dialect } from './dialect.ts';

// As the providers' pages and refusals had it in November 2026.

/** What objects, lists and unions are made of, everywhere. */
const STRUCTURE = [
  'type',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'enum',
  'anyOf',
  '$ref',
  'title',
  'description',
];

const FORMATS: ReadonlySet<unknown> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'uuid',
]);

const OPENAI_KEYWORDS: ReadonlySet<string> = new Set([
  ...STRUCTURE,
  'const',
  'pattern',
  'format',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minItems',
  'maxItems',
]);

/** Patterns that look around, or back at what they found. */
const UNUSUAL_PATTERN = /\(\?(?:[=!]|<[=!])|\\[1-9]|\\k</;

function isUsualPattern(pattern: unknown): boolean {
  try {
    return typeof pattern === 'string' && !UNUSUAL_PATTERN.test(pattern) && new RegExp(pattern, 'u') !== undefined;
  } catch {
    return false;
  }
}

/** Values of one list above which the characters of its texts count, and how many of these there may be. */
const MANY_VALUES = 250;
const MOST_CHARACTERS = 15_000;

function isShortList(values: unknown): boolean {
  if (!Array.isArray(values) || values.length <= MANY_VALUES) return true;
  return values.reduce((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0) <= MOST_CHARACTERS;
}

/** OpenAI's, where a tool is `strict`. Of the lengths of texts some say that they are refused. */
export const OPENAI: Dialect = {
  takes: (keyword, value) =>
    OPENAI_KEYWORDS.has(keyword) &&
    (keyword !== 'format' || FORMATS.has(value)) &&
    (keyword !== 'pattern' || isUsualPattern(value)) &&
    (keyword !== 'enum' || isShortList(value)) &&
    isOfScalars(keyword, value),
  isClosed: true,
  isComplete: true,
  isTyped: true,
  recursion: 'anywhere',
  most: { properties: 5_000, levels: 10, enumValues: 1_000, characters: 120_000 },
};

const ANTHROPIC_KEYWORDS: ReadonlySet<string> = new Set([...STRUCTURE, 'const', 'format', 'minItems']);

/** Anthropic's, where a tool is `strict`. */
export const ANTHROPIC: Dialect = {
  takes: (keyword, value) =>
    ANTHROPIC_KEYWORDS.has(keyword) &&
    (keyword !== 'format' || FORMATS.has(value) || value === 'uri') &&
    (keyword !== 'minItems' || value === 0 || value === 1) &&
    isOfScalars(keyword, value),
  isClosed: true,
  isComplete: false,
  isTyped: true,
  recursion: 'nowhere',
  mostOfAll: { tools: 20, optionalProperties: 24, unions: 16 },
};

/** Whether the values that are listed are no lists and no objects. */
function isOfScalars(keyword: string, value: unknown): boolean {
  return (
    (keyword !== 'const' || isScalar(value)) && (keyword !== 'enum' || (Array.isArray(value) && value.every(isScalar)))
  );
}

function isScalar(value: unknown): boolean {
  return !Array.isArray(value) && !isPlainObject(value);
}

const GEMINI_KEYWORDS: ReadonlySet<string> = new Set([
  ...STRUCTURE,
  '$id',
  '$anchor',
  'format',
  'prefixItems',
  'minItems',
  'maxItems',
  'minimum',
  'maximum',
  'propertyOrdering',
]);

/** Gemini's: what else a schema says is not enforced. */
export const GEMINI: Dialect = {
  takes: (keyword, value) =>
    GEMINI_KEYWORDS.has(keyword) &&
    (keyword !== 'enum' || (Array.isArray(value) && value.every((each) => /^(?:string|number)$/.test(typeof each)))),
  isClosed: false,
  isComplete: false,
  isTyped: false,
  recursion: 'where not required',
};
