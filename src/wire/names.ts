import { createHash } from 'node:crypto';

/** What a provider takes for the name of a tool. */
export interface NameRule {
  /** What a character may be. */
  readonly allowed: RegExp;
  /** Characters at most. */
  readonly most: number;
}

/** Letters of a digest that keep two names apart which are the same to a provider. */
const DIGEST = 8;

/** The names of tools as a provider is told them, and the way back. */
export class ToolNames {
  readonly #told = new Map<string, string>();
  readonly #tools = new Map<string, string>();
  readonly #rule: NameRule;

  constructor(names: Iterable<string>, rule: NameRule) {
    this.#rule = rule;
    const all = [...new Set(names)];
    // Those that fit keep their names, whatever becomes of the others.
    for (const name of all.filter((each) => this.#fits(each))) this.#add(name, name);
    for (const name of all.filter((each) => !this.#fits(each))) this.#add(name, this.#made(name));
  }

  /** What a tool is called at the provider. One that is not among them keeps its name. */
  told(name: string): string {
    return this.#told.get(name) ?? name;
  }

  /** What tool the provider's model means. A name that none has is given back as it is. */
  meant(told: string): string {
    return this.#tools.get(told) ?? told;
  }

  #fits(name: string): boolean {
    return name !== '' && name.length <= this.#rule.most && [...name].every((each) => this.#rule.allowed.test(each));
  }

  #add(name: string, told: string): void {
    this.#told.set(name, told);
    this.#tools.set(told, name);
  }

  /** The same for the same name, whatever other tools there are, unless one of them has it. */
  #made(name: string): string {
    const fitting = [...name].map((each) => (this.#rule.allowed.test(each) ? each : '_')).join('');
    for (let attempt = 0; ; attempt++) {
      const digest = createHash('sha256').update(`${name}\n${attempt}`).digest('hex').slice(0, DIGEST);
      const told = `${fitting.slice(0, this.#rule.most - DIGEST - 1)}_${digest}`;
      if (!this.#tools.has(told)) return told;
    }
  }
}
