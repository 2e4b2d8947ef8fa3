import { type JsonValue, setOwn, toJson } from './json.ts';

/** What stands in the place of a value that was taken out. */
export const REDACTED = '[REDACTED]';

/** What to take out. */
export interface RedactOptions {
  /** More names of keys whose values are secret: matched in any case, with or without `-`, `_` and spaces. Default: none. */
  readonly keys?: readonly string[];
  /** More patterns; each match inside any text is taken out. Default: none. */
  readonly patterns?: readonly RegExp[];
}

const SECRET_KEYS = [
  'password',
  'passwd',
  'pwd',
  'passphrase',
  'secret',
  'clientsecret',
  'token',
  'accesstoken',
  'refreshtoken',
  'idtoken',
  'apikey',
  'authorization',
  'proxyauthorization',
  'auth',
  'cookie',
  'setcookie',
  'credential',
  'credentials',
  'privatekey',
  'secretkey',
  'accesskey',
  'sessionkey',
  'connectionstring',
];

/** Shapes of secrets that give themselves away. Each is linear in the length of the text. */
const SECRET_SHAPES: readonly RegExp[] = [
  /\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi,
  /\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}/g,
  /\bgh[pousr]_[A-Za-z0-9]{36,}/g,
  /\bgithub_pat_[A-Za-z0-9_]{22,}/g,
  /\bglpat-[A-Za-z0-9_-]{20,}/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  /\b(?:AKIA|ASIA|AGPA)[A-Z0-9]{16}\b/g,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@]{1,200}:[^\s/@]{1,200}@/gi,
];

/** Deepest JSON-in-text that is looked into. */
const MAX_NESTED_TEXT = 3;

/** Makes a redactor: a plain JSON copy of any value, without the secrets in it. Total: it never throws. */
export function redactor(options: RedactOptions = {}): (value: unknown) => JsonValue {
  const keys = new Set([...SECRET_KEYS, ...(options.keys ?? [])].map(normalKey));
  const shapes = [...SECRET_SHAPES, ...(options.patterns ?? [])].map(
    (pattern) => new RegExp(pattern.source, [...new Set(`${pattern.flags}g`)].join('')),
  );

  function clean(value: JsonValue, nested: number): JsonValue {
    if (typeof value === 'string') return cleanText(value, nested);
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((item: JsonValue) => clean(item, nested));
    const copy: Record<string, JsonValue> = {};
    for (const [key, item] of Object.entries(value as Record<string, JsonValue>)) {
      setOwn(copy, key, keys.has(normalKey(key)) ? REDACTED : clean(item, nested));
    }
    return copy;
  }

  function cleanText(text: string, nested: number): string {
    const held = nested < MAX_NESTED_TEXT && /^\s*[[{]/.test(text) ? parsed(text) : undefined;
    if (held !== undefined) return JSON.stringify(clean(held, nested + 1));
    return shapes.reduce((cleaned, shape) => cleaned.replace(shape, REDACTED), text);
  }

  return (value) => clean(toJson(value), 0);
}

function normalKey(key: string): string {
  return key.toLowerCase().replace(/[-_\s.]/g, '');
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
