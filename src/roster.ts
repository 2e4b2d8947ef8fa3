/** `Seated.seat` of one that is in no roster. */
export const NO_SEAT = -1;

/** Who can be in a roster: in one at a time. */
export interface Seated {
  seat: number;
}

/**
 * Members that come and go, in any order and in constant time.
 *
 * For members that live a short time in a roster that lives long. A Set or a Map makes itself a new table now and then, and the old one
 * keeps pointing to the new one and to what it held: once one of them is in the old space, all that follow, and all they held, outlive
 * every scavenge. That was a third of what a call cost that ran beside others (bench/README.md, Batches).
 */
export class Roster<Member extends Seated> {
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  at(index: number): Member {
    return this.#members[index] as Member;
  }

  /** A copy, for whoever tells them something that may have them leave. */
  get members(): readonly Member[] {
    return [...this.#members];
  }

  add(member: Member): void {
    member.seat = this.#members.push(member) - 1;
  }

  /** The last member takes its seat. One that has none has left already. */
  delete(member: Member): void {
    if (member.seat === NO_SEAT) return;
    const last = this.#members.pop() as Member;
    if (last !== member) {
      this.#members[member.seat] = last;
      last.seat = member.seat;
    }
    member.seat = NO_SEAT;
  }
}
