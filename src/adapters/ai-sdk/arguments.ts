import { isPlainObject } from '../../json.ts';

/** Under which the text of arguments stands that is no JSON: in a history, providers take nothing but objects for arguments. */
const UNREADABLE = 'unreadableArguments';

/** What goes into the history of a call in the place of text that is no JSON. */
export function historyOf(text: string): string {
  return JSON.stringify({ [UNREADABLE]: text });
}

/** The arguments of a call as the model wrote them. */
export function argumentsOf(input: unknown): unknown {
  const text = isPlainObject(input) && Object.keys(input).length === 1 ? input[UNREADABLE] : undefined;
  return typeof text === 'string' ? text : input;
}
