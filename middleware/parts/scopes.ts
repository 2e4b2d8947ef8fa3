import { isPromise, type ToolCall } from '../../src/index.ts';

/** What is remembered for each of many names; of more than there may be, the one used longest ago is forgotten. */
export class Scopes<State> {
  readonly #states = new Map<string, State>();
  readonly #most: number;
  readonly #make: () => State;

  constructor(most: number, make: () => State) {
    this.#most = most;
    this.#make = make;
  }

  /** What is remembered under a name; made, where there is nothing yet. */
  of(name: string): State {
    const state = this.#states.get(name) ?? this.#make();
    this.set(name, state);
    return state;
  }

  /** The same without making it, and without counting as use. */
  peek(name: string): State | undefined {
    return this.#states.get(name);
  }

  set(name: string, state: State): void {
    // A Map keeps the order in which names were set: the one used last is last.
    this.#states.delete(name);
    this.#states.set(name, state);
    if (this.#states.size > this.#most) this.#states.delete(this.#states.keys().next().value as string);
  }

  entries(): Iterable<readonly [name: string, state: State]> {
    return this.#states;
  }
}

export function bySession({ context }: ToolCall): string {
  return context.sessionId;
}

/** The name that a function gives a call. @throws TypeError for what is no text: all calls would share it, or each have its own. */
export function nameBy(name: (call: ToolCall) => string, call: ToolCall, option: string): string {
  const given: unknown = name(call);
  if (typeof given === 'string') return given;
  unheard(given);
  throw new TypeError(`The function "${option}" gives a text, at once.`);
}

/** What nobody waits for must not end the process. */
export function unheard(given: unknown): void {
  if (isPromise(given)) Promise.resolve(given).catch(() => {});
}
