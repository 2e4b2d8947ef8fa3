import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { isPlainObject } from '../../json.ts';

/** What a request brings back of the round before it. */
export interface Recalled {
  /** The name of the question that has been answered with yes. */
  readonly approved: string | undefined;
  /** What the server sent to have it back. */
  readonly theirs: unknown;
}

const PREFIX = 'toolonion.';

/**
 * What a user has approved, from round to round of one call: in the revision of July 2026 nothing is remembered but what the client brings back, and
 * it brings the answers to the last questions only. Signed, so that no client makes one up.
 */
export class RequestState {
  readonly #secret = randomBytes(32);

  /** What the client is to bring back. */
  remember(approved: string, theirs: unknown): string {
    const text = Buffer.from(JSON.stringify({ approved, theirs })).toString('base64url');
    return `${PREFIX}${this.#signatureOf(text)}.${text}`;
  }

  recall(state: unknown): Recalled {
    if (typeof state !== 'string' || !state.startsWith(PREFIX)) return { approved: undefined, theirs: state };
    const [signature = '', text = ''] = state.slice(PREFIX.length).split('.');
    if (!isSame(signature, this.#signatureOf(text))) return { approved: undefined, theirs: undefined };
    const held: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    const { approved, theirs } = isPlainObject(held) ? held : {};
    return { approved: typeof approved === 'string' ? approved : undefined, theirs };
  }

  #signatureOf(text: string): string {
    return createHmac('sha256', this.#secret).update(text).digest('base64url');
  }
}

function isSame(given: string, right: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}
