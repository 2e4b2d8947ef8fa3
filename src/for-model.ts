import type { Content, ContentPart, MediaPart, ResourceLinkPart } from './content.ts';
import { bareMimeType, describePart, mimeTypeOf } from './media.ts';
import { checkOptions, isListOf, type OptionChecks } from './options.ts';
import type { ToolOutcome } from './outcome.ts';
import { wildcard } from './wildcard.ts';

/** Options of `forModel`. */
export interface ForModelOptions {
  /**
   * What the model can be shown: kinds of parts (`image`, `resource_link`) and mime types of media (`image/png`), where `*` stands for any
   * characters. Text always passes; what is not among these is described in its place. Default: everything.
   */
  readonly accepts?: readonly string[];
}

/**
 * What to send back to the model: the content, with the notes it has to know. `content` itself stays as it was. Blank text parts
 * are left out, and where nothing is left it says so, for providers refuse blank text; they refuse half a surrogate pair as well,
 * which is replaced.
 *
 * @throws TypeError naming the option and what is allowed.
 */
export function forModel(result: ToolOutcome, options: ForModelOptions = {}): Content {
  // `results.map(forModel)` hands in a place.
  if (typeof options !== 'number') checkOptions('forModel', options, FOR_MODEL_OPTIONS);
  return toldContent(result, options.accepts);
}

/** The same, for who has no options to be checked. */
export function toldContent(result: ToolOutcome, accepts?: readonly string[]): Content {
  const notes = notesOf(result);
  const content = accepted(result.content, accepts);
  if (typeof content === 'string') {
    const text = isBlank(content) ? NO_OUTPUT : content;
    return (notes === '' ? text : `${text}\n\n${notes}`).toWellFormed();
  }
  const told = content.every(isFit) ? content : content.filter((part) => !isBlankPart(part)).map(wellFormed);
  const parts = told.length === 0 ? [{ type: 'text', text: NO_OUTPUT } as const] : told;
  return notes === '' ? parts : [...parts, { type: 'text', text: notes.toWellFormed() }];
}

function notesOf({ notes }: ToolOutcome): string {
  // Most have none.
  if (notes.length === 0) return '';
  const told = notes.filter((note) => note.forModel === true);
  return told.map((note) => `[${note.message}]`).join('\n\n');
}

const KINDS: readonly ContentPart['type'][] = ['text', 'image', 'audio', 'video', 'file', 'resource_link'];
const FOR_MODEL_OPTIONS: OptionChecks = {
  accepts: isListOf(
    isKindOrMimeType,
    `an array of kinds (${KINDS.join(', ')}) and mime types, such as image/png or audio/*`,
  ),
};

/** A misspelt kind would fit nothing, and all parts of that kind would be left out. */
function isKindOrMimeType(entry: unknown): boolean {
  return typeof entry === 'string' && (entry.includes('/') || KINDS.some(wildcard(entry)));
}

function accepted(content: Content, accepts: readonly string[] | undefined): Content {
  if (accepts === undefined || typeof content === 'string') return content;
  const patterns = accepts.map((entry) => wildcard(bareMimeType(entry)));
  const told = content.map((part) =>
    part.type === 'text' || isAccepted(part, patterns) ? part : ({ type: 'text', text: leftOut(part) } as const),
  );
  return told.every((part, index) => part === content[index]) ? content : told;
}

function isAccepted(part: MediaPart | ResourceLinkPart, patterns: readonly ((word: string) => boolean)[]): boolean {
  // A picture of an unknown type is some `image/…`, but nobody knows which. A link is not what it leads to.
  const mimeType = part.type === 'resource_link' ? '' : (mimeTypeOf(part) ?? `${part.type}/`);
  return patterns.some((fits) => fits(part.type) || fits(mimeType));
}

/** What is told in place of a part that cannot be shown. */
export function leftOut(part: MediaPart | ResourceLinkPart): string {
  return `[${describePart(part)} left out: it cannot be shown here.]`;
}

const NO_OUTPUT = '(no output)';

function isBlank(text: string): boolean {
  return text.trim() === '';
}

function isFit(part: ContentPart): boolean {
  return !isBlankPart(part) && Object.values(part).every((value) => typeof value !== 'string' || value.isWellFormed());
}

function wellFormed(part: ContentPart): ContentPart {
  if (isFit(part)) return part;
  const entries = Object.entries(part).map(([key, value]) => [
    key,
    typeof value === 'string' ? value.toWellFormed() : value,
  ]);
  return Object.fromEntries(entries) as ContentPart;
}

function isBlankPart(part: ContentPart): boolean {
  return part.type === 'text' && isBlank(part.text);
}
