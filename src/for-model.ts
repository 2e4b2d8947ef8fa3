import type { Content } from './content.ts';
import type { ToolOutcome } from './outcome.ts';

/**
 * What to send back to the model: the content, with the notes it has to know. `content` itself stays as it was. Where there is
 * nothing at all it says so, for providers refuse an empty answer.
 */
export function forModel(result: ToolOutcome): Content {
  const notes = result.notes.filter((note) => note.forModel === true).map((note) => `[${note.message}]`);
  const { content } = result;
  if (typeof content === 'string') return [content === '' ? '(no output)' : content, ...notes].join('\n\n');
  const parts = content.length === 0 ? [{ type: 'text', text: '(no output)' } as const] : content;
  return notes.length === 0 ? parts : [...parts, { type: 'text', text: notes.join('\n\n') }];
}
