import { type Logger, pino } from 'pino';
import {
  after,
  type Content,
  checkOptions,
  codeOf,
  describeError,
  isBoolean,
  isJsonLonger,
  isJudged,
  isPlainObject,
  isPromise,
  type JsonValue,
  type Middleware,
  mediaBytes,
  named,
  type OptionCheck,
  type PerTool,
  perTool,
  perToolCheck,
  printable,
  type RedactOptions,
  redactor,
  shrinkJson,
  type ToolCall,
  type ToolOutcome,
} from '../src/index.ts';

/** The part of a pino logger that is used; pino's own type fits. */
export type CallLogger = Pick<Logger, 'info' | 'warn' | 'error' | 'isLevelEnabled'>;

/** Options of `logging`. */
export interface LoggingOptions {
  /** The host's logger. Default: pino's, to standard error. */
  readonly logger?: CallLogger;
  /** Whether arguments and answers are logged too, redacted. Default: false, only sizes and the names of keys. */
  readonly values?: PerTool<boolean>;
  /** What else counts as secret, in values and errors. */
  readonly redact?: RedactOptions;
}

const isLogger: OptionCheck = (value) =>
  ['info', 'warn', 'error', 'isLevelEnabled'].every(
    (key) => typeof (value as CallLogger | null)?.[key as keyof CallLogger] === 'function',
  ) || 'a pino logger';

/** Names of arguments, and of notes, one line holds. */
const MAX_NAMES = 20;

/** Characters below which a name is too short to hold a secret that a shape gives away. */
const SHORTEST_SECRET = 15;

/** Names that are remembered as they are shown. */
const MAX_WORDS = 1000;

/** Characters of JSON one value of a line may have. */
const MAX_VALUE = 10_000;

/**
 * Writes one line for each call: `info` for a success, `warn` for a failure, `error` where the engine itself was at fault. A
 * failure's line holds the cause the model was not shown, under the same `errorId`. A logger that fails never fails a call.
 *
 * Outermost, so that refusals are logged like everything else.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example logging({ logger: pino(), values: { byTool: { search: true } } })
 */
export function logging(options: LoggingOptions = {}): Middleware {
  checkOptions('logging', options, {
    logger: isLogger,
    values: perToolCheck(isBoolean),
    redact: (value) => isPlainObject(value) || 'an object with keys or patterns',
  });
  // Synchronous: otherwise a process that ends while nobody reads its log never ends (sonic-boom flushes on exit until it can).
  const { logger = pino(pino.destination({ dest: 2, sync: true })) } = options;
  const valuesOf = perTool(options.values, false);
  const redact = redactor(options.redact);
  const words = new Map<string, string>();
  // A pattern of the host's may fit a short one.
  const shortest = options.redact?.patterns === undefined ? SHORTEST_SECRET : 0;

  return named('logging', function logging(call, next) {
    // Nothing is more severe: a logger that is off costs this question. A call that is judged is logged when it is made.
    if (!isOn(logger, 'error') || isJudged(call)) return next(call);
    const startedAt = call.clock.now();
    // A scope's outcome comes after an abort, too, whatever hangs inside.
    const scope = call.abortScope();
    return after(scope.follow(next(scope.call)), (outcome) => write(call, outcome, startedAt));
  });

  function write(call: ToolCall, outcome: ToolOutcome, startedAt: number): ToolOutcome {
    try {
      const level = outcome.error?.code === 'internal' ? 'error' : outcome.isError ? 'warn' : 'info';
      if (!isOn(logger, level)) return outcome;
      const written: unknown = logger[level](line(call, outcome, startedAt), 'tool call');
      if (isPromise(written)) written.then(undefined, () => {});
    } catch {
      // The call is worth more than its line.
    }
    return outcome;
  }

  function line(call: ToolCall, outcome: ToolOutcome, startedAt: number): Record<string, unknown> {
    const { error, resolvedToolName } = outcome;
    const notes = [...call.notes, ...outcome.notes];
    return {
      tool: word(call.name),
      ...(resolvedToolName !== call.name && { resolvedTool: word(resolvedToolName) }),
      toolCallId: printable(call.id),
      code: codeOf(outcome),
      durationMs: call.clock.now() - startedAt,
      ...(call.queuedMs > 0 && { queuedMs: call.queuedMs }),
      inputKeys: names(Object.keys(call.input ?? {})),
      inputCharacters: call.malformed?.rawArguments?.length ?? JSON.stringify(call.input).length,
      outputCharacters: sizeOfContent(outcome),
      ...(notes.length > 0 && { notes: names(notes.map(({ type }) => type)) }),
      ...(error && { errorId: error.errorId, executed: error.executed }),
      ...(error && 'cause' in error && { err: described(error.cause) }),
      ...(hasValues(call, outcome) && { input: cleaned(call.input), output: cleaned(withoutBytes(outcome.content)) }),
    };
  }

  function names(all: readonly string[]): readonly string[] {
    return all.slice(0, MAX_NAMES).map(word);
  }

  /** A name as a model may have made it up: with a secret in it. Redacted before it is cut, like values. */
  function word(name: string): string {
    if (name.length < shortest) return printable(name);
    const known = words.get(name);
    if (known !== undefined) return known;
    const clean = printable(String(redact(name)));
    // The same names come again and again, and looking for secrets costs as much as the rest of a line.
    if (words.size >= MAX_WORDS) words.clear();
    words.set(name, clean);
    return clean;
  }

  /** Both tools have to agree, where another one ran than the one that was asked for. */
  function hasValues({ name }: ToolCall, { resolvedToolName }: ToolOutcome): boolean {
    return valuesOf(name) && valuesOf(resolvedToolName);
  }

  /** Without a prototype: pino takes the name of a constructor for the name of the error. */
  function described(cause: unknown): object {
    return Object.assign(Object.create(null), cleaned(describeError(cause)));
  }

  /** Redacted before it is cut: a cut must never save half a secret. */
  function cleaned(value: unknown): JsonValue {
    const clean = redact(value);
    return isJsonLonger(clean, MAX_VALUE) ? JSON.parse(shrinkJson(clean, MAX_VALUE, 'characters')) : clean;
  }
}

function isOn(logger: CallLogger, level: 'info' | 'warn' | 'error'): boolean {
  try {
    return logger.isLevelEnabled(level);
  } catch {
    return false;
  }
}

/** Content with the sizes of media in the place of their bytes, which tell nobody anything and may hold secrets no pattern finds. */
function withoutBytes(content: Content): unknown {
  if (typeof content === 'string') return content;
  return content.map((part) => {
    if (part.type === 'text' || part.type === 'resource_link') return part;
    const bytes = mediaBytes(part);
    return bytes === undefined ? part : { ...part, [part.data === undefined ? 'url' : 'data']: `${bytes} bytes` };
  });
}

function sizeOfContent({ content }: ToolOutcome): number {
  if (typeof content === 'string') return content.length;
  return content.reduce((size, part) => size + (part.type === 'text' ? part.text.length : 0), 0);
}
