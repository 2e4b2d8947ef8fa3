import {
  type Channel,
  type ContentPart,
  HoldBack,
  type JsonValue,
  type Progress,
  type ToolCall,
} from '../../src/index.ts';
import { MaybeJson } from './maybe-json.ts';

/** Ends what may be open: the text of an element is known for one only by that. The end may have begun. */
function ended(text: string): string {
  return `${text.endsWith('<') ? text.slice(0, -1) : text}</x>`;
}

/** Gives a value without its secrets. */
export type Redact = (value: unknown) => JsonValue;

/** A part without its secrets; the same where it has none. Bytes stay. */
export function cleanPart(part: ContentPart, redact: Redact): ContentPart {
  const { data, ...fields } = part as ContentPart & { readonly data?: unknown };
  const clean = redact(fields) as object;
  if (JSON.stringify(clean) === JSON.stringify(fields)) return part;
  return (data === undefined ? clean : { ...clean, data }) as ContentPart;
}

/**
 * Lets out the lines of a text that have no secret in them any more, whatever follows. A secret is known by what stands before and
 * behind it, so a line leaves when enough stands behind it, and when it makes no difference whether what is held back is cleaned with it
 * or without. What may turn out to be JSON, which is cleaned as a whole, is held back to its end.
 */
export class RedactedParts extends HoldBack {
  readonly #redact: Redact;
  readonly #heldBack: number;
  #held = '';
  /** How much has to be held for the next look: to look at each piece would cost the square of them. */
  #lookAt: number;
  #json = new MaybeJson();
  /** Whether all text so far may be base64, which is judged as a whole. */
  #isBase64 = true;

  constructor(outer: Channel, redact: Redact, heldBack: number) {
    super(outer);
    this.#redact = redact;
    this.#heldBack = heldBack;
    this.#lookAt = heldBack;
  }

  override part(part: ContentPart, call: ToolCall): PromiseLike<unknown> | undefined {
    if (part.type === 'text') return this.#takeText(part.text, call);
    const taken = this.#letOutText(this.#held, call);
    this.#beginText();
    return this.afterTaken(taken, () => this.letOut(cleanPart(part, this.#redact), call));
  }

  override progress(progress: Progress, call: ToolCall): void {
    const { message } = progress;
    super.progress(message === undefined ? progress : { ...progress, message: this.#clean(message) }, call);
  }

  /** What is held is known to the layer now; what may come is another attempt's. */
  override done(): void {
    this.#beginText();
  }

  #beginText(): void {
    this.#held = '';
    this.#lookAt = this.#heldBack;
    this.#json = new MaybeJson();
    this.#isBase64 = true;
  }

  #takeText(text: string, call: ToolCall): PromiseLike<unknown> | undefined {
    this.#held += text;
    this.#isBase64 &&= /^[A-Za-z0-9+/=\s]*$/.test(text);
    if (this.#json.mayBe(text) || this.#isBase64 || this.#held.length < this.#lookAt) return undefined;
    const end = this.#held.lastIndexOf('\n', this.#held.length - this.#heldBack - 1) + 1;
    const [lines, rest] = [this.#held.slice(0, end), this.#held.slice(end)];
    if (end === 0 || this.#clean(lines) + this.#clean(ended(rest)) !== this.#clean(ended(this.#held))) {
      this.#lookAt = this.#held.length * 2;
      return undefined;
    }
    this.#held = rest;
    this.#lookAt = rest.length + this.#heldBack / 2;
    return this.#letOutText(lines, call);
  }

  #letOutText(text: string, call: ToolCall): PromiseLike<unknown> | undefined {
    return text === '' ? undefined : this.letOut({ type: 'text', text: this.#clean(text) }, call);
  }

  #clean(text: string): string {
    return String(this.#redact(text));
  }
}
