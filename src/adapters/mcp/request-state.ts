import { randomUUID } from 'node:crypto';

/** What a request brings back of the round before it. */
export interface Recalled {
  /** The name of the question that has been answered with yes. */
  readonly approved: string | undefined;
  /** What the server sent to have it back. */
  readonly theirs: unknown;
}

/** Rounds that may be waited for; of more, the oldest are forgotten, and asked about again. */
const MAX_ROUNDS = 1_000;

const PREFIX = 'toolonion.';

/**
 * What a user has approved, from round to round of one call: in the revision of July 2026 a client brings back the answers to the last questions
 * only. Good for one round each, and known here alone, so that no client makes one up.
 */
export class RequestState {
  readonly #rounds = new Map<string, Recalled>();

  /** What the client is to bring back. */
  remember(round: Recalled): string {
    const name = `${PREFIX}${randomUUID()}`;
    this.#rounds.set(name, round);
    const [oldest] = this.#rounds.keys();
    if (this.#rounds.size > MAX_ROUNDS && oldest !== undefined) this.#rounds.delete(oldest);
    return name;
  }

  recall(state: unknown): Recalled {
    if (typeof state !== 'string' || !state.startsWith(PREFIX)) return { approved: undefined, theirs: state };
    const round = this.#rounds.get(state) ?? { approved: undefined, theirs: undefined };
    this.#rounds.delete(state);
    return round;
  }
}
