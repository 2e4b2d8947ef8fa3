import { readJson } from '../../src/index.ts';

/** Characters up to which a text is looked at; one that could be JSON so far most likely is. */
const LOOKED_AT = 65_536;

/** Whether a text that comes piece by piece may be JSON. Looks again each time it has doubled, so that it stays linear. */
export class MaybeJson {
  #text = '';
  #lookAgainAt = 1;
  #mayBe = true;

  /** Adds a piece. */
  mayBe(piece: string): boolean {
    if (!this.#mayBe || this.#text.length > LOOKED_AT) return this.#mayBe;
    this.#text += piece;
    if (this.#text.length >= this.#lookAgainAt) {
      this.#lookAgainAt = this.#text.length * 2;
      this.#mayBe = canBecomeJson(this.#text);
    }
    return this.#mayBe;
  }
}

function canBecomeJson(text: string): boolean {
  if (!/^\s*(?:["[{]|$)/.test(text)) return false;
  const { ending, slips } = readJson(text);
  return ending !== 'fault' && slips.length === 0;
}
