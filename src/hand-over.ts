/**
 * What a tool waits for until its part is taken. One for all parts of a stream, with a callback as the quick way in: a promise for each
 * part would cost a fifth of what a part costs.
 */
export class HandOver implements PromiseLike<undefined> {
  #goOn: (() => void) | undefined = undefined;
  readonly #isTaken: () => boolean;

  /** @param isTaken Whether somebody waits for the next part already. */
  constructor(isTaken: () => boolean) {
    this.#isTaken = isTaken;
  }

  onTaken(goOn: () => void): void {
    const others = this.#goOn;
    this.#goOn =
      others === undefined
        ? goOn
        : () => {
            others();
            goOn();
          };
    // Somebody may have asked between the part and the waiting.
    if (this.#isTaken()) this.taken();
  }

  // biome-ignore lint/suspicious/noThenProperty: layers may await it like a promise.
  then<Fulfilled = undefined, Rejected = never>(
    fulfilled?: ((value: undefined) => Fulfilled | PromiseLike<Fulfilled>) | null,
    rejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    return new Promise<undefined>((resolve) => this.onTaken(() => resolve(undefined))).then(fulfilled, rejected);
  }

  taken(): void {
    const goOn = this.#goOn;
    this.#goOn = undefined;
    goOn?.();
  }
}
