import {
  type Content,
  type ContentPart,
  type CutOptions,
  checkOptions,
  cutTexts,
  isCount,
  isFunction,
  isJsonLonger,
  isOneOf,
  isPromise,
  type JsonValue,
  type Keep,
  type Marker,
  type Middleware,
  named,
  type PerTool,
  perTool,
  perToolCheck,
  type SizeUnit,
  shrinkJson,
  sizeOf,
  type ToolCall,
  type ToolOutcome,
  withNote,
} from '../src/index.ts';

/** Options of `outputLimit`. */
export interface OutputLimitOptions {
  /** The most text an answer may hold, over all its parts, in `unit`. Default: 50,000. */
  readonly limit?: PerTool<number>;
  /** Default: `characters`, as `length` counts them. */
  readonly unit?: SizeUnit;
  /** What is kept of a text that is too long. Default: `both`, for an error is often at the end. */
  readonly keep?: PerTool<Keep>;
  /** Bytes one picture, sound, film or file may have; a larger one is replaced whole. Default: 5,000,000. */
  readonly mediaLimit?: PerTool<number>;
  /**
   * Characters of JSON `structured` may have; a larger one is left out whole, unless the tool declares an output schema.
   * Default: 200,000.
   */
  readonly structuredLimit?: PerTool<number>;
  /** The text that stands where something was left out. */
  readonly marker?: Marker;
}

const leftOutMarker: Marker = (leftOut, total, unit) =>
  `\n[… ${leftOut} of ${total} ${unit} left out. To see them, ask for less at a time: narrower arguments, a page, a range.]\n`;

/**
 * Keeps an answer within a size: text is cut, JSON is shrunk and stays JSON, media and structured data are whole or replaced. An
 * answer within the limits passes untouched.
 *
 * Inside the middlewares that call `next` again, outside redaction: a cut must never save half a secret.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example outputLimit({ limit: { default: 20_000, byTool: { read_file: 100_000 } }, keep: 'head' })
 */
export function outputLimit(options: OutputLimitOptions = {}): Middleware {
  checkOptions('outputLimit', options, {
    limit: perToolCheck(isCount(1)),
    unit: isOneOf('characters', 'bytes'),
    keep: perToolCheck(isOneOf('head', 'tail', 'both')),
    mediaLimit: perToolCheck(isCount(0)),
    structuredLimit: perToolCheck(isCount(0)),
    marker: isFunction,
  });
  const { unit = 'characters', marker = leftOutMarker } = options;
  const limitOf = perTool(options.limit, 50_000);
  const keepOf = perTool<Keep>(options.keep, 'both');
  const mediaLimitOf = perTool(options.mediaLimit, 5_000_000);
  const structuredLimitOf = perTool(options.structuredLimit, 200_000);

  return named('outputLimit', function outputLimit(call, next) {
    const outcome = next(call);
    return isPromise(outcome) ? outcome.then((settled) => limit(call, settled)) : limit(call, outcome);
  });

  function limit(call: ToolCall, outcome: ToolOutcome): ToolOutcome {
    const { resolvedToolName: name, content, structured } = outcome;
    if (structured === undefined && fits(content, limitOf(name), unit)) return outcome;
    const cut = { limit: limitOf(name), unit, keep: keepOf(name), marker };
    const small = limitContent(outcome, cut, mediaLimitOf(name));
    return small.structured === undefined ? small : limitStructured(small, structuredLimitOf(name), call);
  }
}

/** The usual answer, told apart without counting bytes: no character has more than three of them. */
function fits(content: Content, limit: number, unit: SizeUnit): boolean {
  if (typeof content !== 'string' || !content.isWellFormed()) return false;
  return content.length * (unit === 'bytes' ? 3 : 1) <= limit;
}

function limitContent(outcome: ToolOutcome, cut: CutOptions, mediaLimit: number): ToolOutcome {
  const { content } = outcome;
  if (typeof content !== 'string') return limitParts(outcome, content, cut, mediaLimit);
  const size = sizeOf(content, cut.unit);
  if (size <= cut.limit && content.isWellFormed()) return outcome;
  if (size <= cut.limit) return { ...outcome, content: content.toWellFormed() };
  const value = jsonOf(content);
  const text = value === undefined ? cutTexts([content], cut).join('') : shrinkJson(value, cut.limit, cut.unit);
  return withNote({ ...outcome, content: text }, truncated(size, cut, value !== undefined));
}

function limitParts(
  outcome: ToolOutcome,
  parts: readonly ContentPart[],
  cut: CutOptions,
  mediaLimit: number,
): ToolOutcome {
  const whole = parts.map((part) => (bytesOf(part) > mediaLimit ? descriptorOf(part) : part));
  const texts = whole.map((part) => (part.type === 'text' ? part.text : ''));
  const kept = cutTexts(texts, cut);
  const content = whole.flatMap((part, index) => {
    if (part.type !== 'text' || kept[index] === part.text) return [part];
    return kept[index] === '' ? [] : [{ ...part, text: kept[index] as string }];
  });
  if (content.length === parts.length && content.every((part, index) => part === parts[index])) return outcome;
  const size = texts.reduce((sum, text) => sum + sizeOf(text, cut.unit), 0);
  return withNote({ ...outcome, content }, truncated(size, cut, false));
}

function limitStructured(outcome: ToolOutcome, limit: number, call: ToolCall): ToolOutcome {
  const { structured, ...rest } = outcome;
  if (call.tool?.outputSchema !== undefined || !isJsonLonger(structured as JsonValue, limit)) return outcome;
  const message = `The structured answer was left out: it is longer than ${limit} characters of JSON.`;
  return withNote(rest, { type: 'truncated', by: 'outputLimit', message });
}

function truncated(size: number, cut: CutOptions, shrunk: boolean) {
  const message = shrunk
    ? `This is a shortened view of ${size} ${cut.unit} of JSON. To see more, ask for less at a time: narrower arguments, a page, a range.`
    : `The answer had ${size} ${cut.unit}; the limit is ${cut.limit}.`;
  return { type: 'truncated', by: 'outputLimit', message, forModel: shrunk };
}

/** The value of JSON text of an object or array. */
function jsonOf(text: string): JsonValue | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function bytesOf(part: ContentPart): number {
  if (part.type === 'text' || part.type === 'resource_link' || part.data === undefined) return 0;
  return typeof part.data === 'string' ? Math.floor((part.data.length * 3) / 4) : part.data.byteLength;
}

function descriptorOf(part: ContentPart): ContentPart {
  const { type, mimeType = 'unknown type' } = part as { readonly type: string; readonly mimeType?: string };
  return {
    type: 'text',
    text: `[${type} of ${bytesOf(part)} bytes (${mimeType}) left out: too large. Ask for a smaller one.]`,
  };
}
