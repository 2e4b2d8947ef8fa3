import type { Content, ContentPart } from './content.ts';
import type { ToolOutcome } from './outcome.ts';

/**
 * What to send back to the model: the content, with the notes it has to know. `content` itself stays as it was. Blank text parts
 * are left out, and where nothing is left it says so, for providers refuse blank text; they refuse half a surrogate pair as well,
 * which is replaced.
 */
export function forModel(result: ToolOutcome): Content {
  const notes = result.notes.filter((note) => note.forModel === true).map((note) => `[${note.message}]`);
  const { content } = result;
  if (typeof content === 'string')
    return [isBlank(content) ? NO_OUTPUT : content, ...notes].join('\n\n').toWellFormed();
  const told = content.every(isFit) ? content : content.filter((part) => !isBlankPart(part)).map(wellFormed);
  const parts = told.length === 0 ? [{ type: 'text', text: NO_OUTPUT } as const] : told;
  return notes.length === 0 ? parts : [...parts, { type: 'text', text: notes.join('\n\n').toWellFormed() }];
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
