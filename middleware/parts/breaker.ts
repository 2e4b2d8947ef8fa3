/** When a breaker opens and closes. Times are in milliseconds. */
export interface BreakerLimits {
  /** Failures in a row that open it. */
  readonly failures: number;
  readonly cooldownMs: number;
  /** Calls at once that may show whether it can close. */
  readonly probes: number;
  /** Successes of these that close it. */
  readonly successes: number;
  /** How long one of these may take. */
  readonly leaseMs: number;
}

/** `closed`: calls pass; `open`: none does; `half-open`: a few do, to see. */
export type BreakerState = 'closed' | 'open' | 'half-open';

/** A call that was let through. It counts only for the state in which it was: what comes late says nothing of what is now. */
export interface Ticket {
  readonly generation: number;
  readonly until: number;
}

/** Keeps calls from what has failed several times in a row, for a while, and lets a few through then. */
export class Breaker {
  readonly #limits: BreakerLimits;
  #state: BreakerState = 'closed';
  /** Counts the states it has had. */
  #generation = 0;
  #failures = 0;
  #successes = 0;
  #openUntil = 0;
  /** Calls under way that are to show whether it can close. */
  readonly #probes = new Set<Ticket>();

  constructor(limits: BreakerLimits) {
    this.#limits = limits;
  }

  state(now: number): BreakerState {
    this.#passTime(now);
    return this.#state;
  }

  /** Milliseconds until a call may be let through, as far as time alone tells; 0 where it may. */
  waitMs(now: number): number {
    if (this.hasRoom(now)) return 0;
    return (this.#state === 'open' ? this.#openUntil : this.#leaseEnd()) - now;
  }

  #leaseEnd(): number {
    return Math.min(...Array.from(this.#probes, ({ until }) => until));
  }

  /** Whether a call would be let through. */
  hasRoom(now: number): boolean {
    const state = this.state(now);
    return state === 'closed' || (state === 'half-open' && this.#probes.size < this.#limits.probes);
  }

  admit(now: number): Ticket | undefined {
    if (!this.hasRoom(now)) return undefined;
    const ticket = { generation: this.#generation, until: now + this.#limits.leaseMs };
    if (this.#state === 'half-open') this.#probes.add(ticket);
    return ticket;
  }

  settle(ticket: Ticket, verdict: 'success' | 'failure' | 'neither', now: number): void {
    this.#passTime(now);
    if (ticket.generation !== this.#generation) return;
    this.#probes.delete(ticket);
    if (verdict === 'failure') this.#fail(now);
    else if (verdict === 'success') this.#succeed();
  }

  #fail(now: number): void {
    this.#failures++;
    if (this.#state === 'half-open' || this.#failures >= this.#limits.failures) this.open(now, this.#limits.cooldownMs);
  }

  #succeed(): void {
    this.#failures = 0;
    if (this.#state === 'half-open' && ++this.#successes >= this.#limits.successes) this.#become('closed');
  }

  open(now: number, cooldownMs: number): void {
    this.#become('open');
    this.#openUntil = now + cooldownMs;
  }

  #become(state: BreakerState): void {
    this.#state = state;
    this.#generation++;
    this.#failures = 0;
    this.#successes = 0;
    this.#probes.clear();
  }

  /** What time alone changes: a call that takes too long is a failure at the end of its lease, and what is open becomes half open. */
  #passTime(now: number): void {
    if (this.#state === 'half-open') {
      const ended = this.#leaseEnd();
      if (ended <= now) this.open(ended, this.#limits.cooldownMs);
    }
    if (this.#state === 'open' && now >= this.#openUntil) this.#become('half-open');
  }
}
