import {
  after,
  type Content,
  changedError,
  checkOptions,
  type DispatchNote,
  isCount,
  type Middleware,
  named,
  type OptionCheck,
  type RedactOptions,
  redactor,
  type ToolError,
  type ToolOutcome,
  withNote,
} from '../src/index.ts';
import { cleanPart, type Redact, RedactedParts } from './parts/redacted-parts.ts';

/** Options of `redaction`: what counts as secret beside what it knows, and how far a stream is held back. */
export interface RedactionOptions extends RedactOptions {
  /**
   * Characters that have to stand behind a line before it leaves in a stream, at least 600: a secret is told by what follows as well. More
   * than the longest match of your own patterns, if they go over lines. Default: 1,000.
   */
  readonly heldBack?: number;
}

/**
 * Takes secrets out of answers: of their text, of the fields of their parts, of structured data, and of the messages of errors. What it
 * knows by name or by shape is what `logging` takes out as well. Bytes of media stay as they are.
 *
 * Inside outputLimit, for a cut can leave half a secret that nothing recognises; inside the layers that keep or repeat answers.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example redaction({ keys: ['employeeNumber'], patterns: [/EMP-\d{6}/] })
 */
export function redaction(options: RedactionOptions = {}): Middleware {
  checkOptions('redaction', options, { keys: isAny, patterns: isAny, heldBack: isCount(LEAST_HELD_BACK) });
  const { heldBack = 1000, ...what } = options;
  const redact = redactor(what);

  return named('redaction', function redaction(call, next) {
    if (call.channel === undefined) return after(next(call), cleaned);
    const parts = new RedactedParts(call.channel, redact, heldBack);
    return after(next(call.with({ channel: parts })), (outcome) => parts.finish(call, cleaned(outcome)));
  });

  function cleaned(outcome: ToolOutcome): ToolOutcome {
    const { content, structured, error, control } = outcome;
    if (control !== undefined) return outcome;
    const changes = {
      ...changed('content', content, cleanContent(content, redact)),
      ...(structured !== undefined && changed('structured', structured, redact(structured))),
      ...(error !== undefined && changed('error', error, cleanError(error, redact))),
    };
    return Object.keys(changes).length === 0 ? outcome : withNote({ ...outcome, ...changes }, REDACTED_NOTE);
  }
}

/** How far apart the redactor looks for what belongs together. */
const LEAST_HELD_BACK = 600;

/** Checked by the redactor. */
const isAny: OptionCheck = () => true;

const REDACTED_NOTE: DispatchNote = {
  type: 'redacted',
  by: 'redaction',
  message: 'Secrets were taken out of the answer.',
};

function changed(key: keyof ToolOutcome, before: unknown, now: unknown): Partial<ToolOutcome> {
  return isSame(before, now) ? {} : { [key]: now };
}

function isSame(before: unknown, now: unknown): boolean {
  return before === now || (typeof before === 'object' && JSON.stringify(before) === JSON.stringify(now));
}

function cleanContent(content: Content, redact: Redact): Content {
  if (typeof content === 'string') return String(redact(content));
  const parts = content.map((part) => cleanPart(part, redact));
  return parts.every((part, index) => part === content[index]) ? content : parts;
}

function cleanError(error: ToolError, redact: Redact): ToolError {
  const message = String(redact(error.message));
  return message === error.message ? error : changedError(error, { message });
}
