import type { Content, ContentPart, TextPart } from './content.ts';
import type { JsonValue } from './json.ts';
import type { ToolOutput } from './output.ts';

/** Texts that are joined at once: so many small ones in the memory of a long stream would cost more than the joining. */
const TEXTS_AT_ONCE = 256;

/** What a generator has yielded, as one answer. */
export class Gathered implements ToolOutput {
  readonly content: Content;
  readonly isError: boolean;
  readonly structured?: JsonValue;
  /** What it yielded, where that was one thing only. */
  readonly only: { readonly value: unknown } | undefined;
  readonly #own = true;

  constructor({ content, isError, structured }: ToolOutput, only: Gathered['only']) {
    this.content = content;
    this.isError = isError;
    this.only = only;
    if (structured !== undefined) this.structured = structured;
  }

  /** Asks by the private field, for what a tool returns may answer anything with a throw. */
  static is(value: unknown): value is Gathered {
    return typeof value === 'object' && value !== null && #own in value;
  }
}

/** An answer that comes piece by piece: text joins the text before it, and data begins a new line after data. */
export class Gathering {
  readonly #parts: ContentPart[] = [];
  /** The text that what comes may join: the first piece of it as it was, and all of it. */
  #first: TextPart | undefined = undefined;
  #joined = '';
  readonly #texts: string[] = [];
  #isAfterData = false;
  #isError = false;

  /** All there is so far, as one answer. */
  get output(): ToolOutput {
    return { content: this.content, isError: this.#isError };
  }

  addText(text: string): void {
    if (text !== '') this.#isAfterData = false;
    this.#append(text);
  }

  /** Gives the parts that came with it, to be added one by one as they are passed on. */
  add({ content, structured, isError }: ToolOutput): readonly ContentPart[] {
    const isData = structured !== undefined;
    const own = typeof content === 'string' ? [{ type: 'text', text: content } as const] : content;
    const parts = [...(isData && this.#isAfterData ? [NEW_LINE] : []), ...own].filter(isSaying);
    if (parts.length > 0) this.#isAfterData = isData;
    this.#isError ||= isError;
    return parts;
  }

  addPart(part: ContentPart): void {
    if (part.type === 'text') {
      this.#first ??= part;
      this.#append(part.text);
      return;
    }
    this.#endText();
    this.#parts.push(part);
  }

  #append(text: string): void {
    if (this.#texts.push(text) >= TEXTS_AT_ONCE) this.#join();
  }

  #join(): void {
    this.#joined += this.#texts.join('');
    this.#texts.length = 0;
  }

  #endText(): void {
    const part = this.#textPart();
    if (part !== undefined) this.#parts.push(part);
    this.#joined = '';
    this.#first = undefined;
  }

  /** The text since the last part of another kind. */
  #textPart(): TextPart | undefined {
    this.#join();
    const text = this.#joined;
    if (text === '') return undefined;
    return this.#first?.text === text ? this.#first : { type: 'text', text };
  }

  get content(): Content {
    const text = this.#textPart();
    const parts = text === undefined ? [...this.#parts] : [...this.#parts, text];
    const [first, ...others] = parts;
    if (first === undefined) return '';
    return first.type === 'text' && others.length === 0 ? first.text : parts;
  }
}

const NEW_LINE: TextPart = { type: 'text', text: '\n' };

function isSaying(part: ContentPart): boolean {
  return part.type !== 'text' || part.text !== '';
}

/** A content with text behind it. */
export function joined(content: Content, text: string): Content {
  if (typeof content === 'string') return content + text;
  const last = content.at(-1);
  return last?.type === 'text'
    ? [...content.slice(0, -1), { type: 'text', text: last.text + text }]
    : [...content, { type: 'text', text }];
}
