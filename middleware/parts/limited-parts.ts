import {
  type Channel,
  type ContentPart,
  type CutOptions,
  HoldBack,
  sizeOf,
  type TextPart,
  type ToolCall,
} from '../../src/index.ts';
import { Rooms } from './limit-content.ts';
import { MaybeJson } from './maybe-json.ts';

/**
 * Lets out as much of an answer as is sure to be kept, however long it will be: the beginning, up to what a cut leaves of it. From the
 * first part on that may be cut, and while a text may turn out to be JSON, which is shrunk in another way, all is held back to the end.
 */
export class LimitedParts extends HoldBack {
  readonly #cut: CutOptions;
  readonly #mediaLimit: number;
  readonly #longestMarker: number;
  #rooms: Rooms;
  /** How much more text may leave. */
  #room: number;
  /** The text since the last part of another kind, as long as it may be JSON. */
  #suspect: string[] | undefined = [];
  #json = new MaybeJson();
  #first: TextPart | undefined = undefined;
  #texts = 0;
  #isOver = false;

  constructor(outer: Channel, cut: CutOptions, mediaLimit: number, longestMarker: number) {
    super(outer);
    this.#cut = cut;
    this.#mediaLimit = mediaLimit;
    this.#longestMarker = longestMarker;
    this.#rooms = new Rooms(cut, mediaLimit);
    this.#room = this.#surelyKept;
  }

  get #surelyKept(): number {
    const { limit, keep } = this.#cut;
    const room = limit - this.#longestMarker;
    return keep === 'head' ? room : keep === 'both' ? room / 2 : 0;
  }

  /** What was held is known to the layer now; where nothing has left, what comes may be another attempt's. */
  override done(): void {
    if (this.hasLetOut) return;
    this.#rooms = new Rooms(this.#cut, this.#mediaLimit);
    this.#room = this.#surelyKept;
    this.#beginText();
    this.#isOver = false;
  }

  #beginText(): void {
    this.#suspect = [];
    this.#json = new MaybeJson();
    this.#texts = 0;
  }

  override part(part: ContentPart, call: ToolCall): PromiseLike<unknown> | undefined {
    if (this.#isOver) return undefined;
    if (part.type === 'text') return this.#takeText(part, call);
    const taken = this.#endText(call);
    if (this.#isOver) return taken;
    // Texts that are joined lose all but their text; one that stands alone keeps the rest, which takes room as well.
    if (this.#texts === 1 && this.#first !== undefined) this.#rooms.fit(this.#first);
    this.#beginText();
    const fit = this.#rooms.fit(part);
    return this.afterTaken(taken, () =>
      fit.type === 'text' ? this.#letOutText(fit.text, call) : this.letOut(fit, call),
    );
  }

  #takeText(part: TextPart, call: ToolCall): PromiseLike<unknown> | undefined {
    if (this.#texts++ === 0) this.#first = part;
    const { text } = part;
    if (this.#suspect === undefined) return this.#letOutText(text, call);
    this.#suspect.push(text);
    return this.#json.mayBe(text) ? undefined : this.#endText(call);
  }

  /** The text so far is no JSON, or is all there is of it: where it is not cut, it is not shrunk either. */
  #endText(call: ToolCall): PromiseLike<unknown> | undefined {
    const texts = this.#suspect ?? [];
    this.#suspect = undefined;
    return this.#letOutText(texts.join(''), call);
  }

  #letOutText(text: string, call: ToolCall): PromiseLike<unknown> | undefined {
    this.#room -= sizeOf(text, this.#cut.unit);
    // Half a character, whose other half may come.
    this.#isOver = this.#room < 0 || !text.isWellFormed();
    return this.#isOver || text === '' ? undefined : this.letOut({ type: 'text', text }, call);
  }
}
