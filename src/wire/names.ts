import { createHash } from 'node:crypto';
import { isPlainObject } from '../json.ts';

/** What a provider takes for the name of a tool. */
export interface NameRule {
  /** A whole name. */
  readonly name: RegExp;
  /** Each character that is none of a name. */
  readonly others: RegExp;
  /** Characters at most. */
  readonly most: number;
}

/**
 * @param characters As in the brackets of a regular expression; `_` is among them.
 * @param first Those a name may begin with, where these are fewer; `_` is among them.
 */
export function nameRule(characters: string, most: number, first: string = characters): NameRule {
  const name = new RegExp(`^[${first}][${characters}]{0,${most - 1}}$`);
  return { name, others: new RegExp(`[^${characters}]`, 'gu'), most };
}

/** A name the provider takes, as much like the given one as can be. */
export function fitting(name: string, rule: NameRule): string {
  if (rule.name.test(name)) return name;
  const made = name.replaceAll(rule.others, '_').slice(0, rule.most) || 'unnamed';
  return rule.name.test(made) ? made : `_${made}`.slice(0, rule.most);
}

/** Letters of a digest that keep two names apart which are the same to a provider. */
const DIGEST = 8;

/** The names of tools, or of arguments, as a provider is told them, and the way back. */
export class ToolNames {
  readonly #told = new Map<string, string>();
  readonly #tools = new Map<string, string>();
  readonly #arguments = new Map<string, ToolNames>();
  readonly #rule: NameRule;

  constructor(names: Iterable<string>, rule: NameRule) {
    this.#rule = rule;
    const all = [...new Set(names)];
    // Those that fit keep their names, whatever becomes of the others.
    for (const name of all.filter((each) => rule.name.test(each))) this.#add(name, name);
    for (const name of all.filter((each) => !rule.name.test(each))) this.#add(name, this.#made(name));
  }

  /** What a tool is called at the provider. One that is not among them keeps its name. */
  told(name: string): string {
    return this.#told.get(name) ?? name;
  }

  /** What tool the provider's model means. A name that none has is given back as it is. */
  meant(told: string): string {
    return this.#tools.get(told) ?? told;
  }

  /** The arguments of a tool, whose names have to fit as well. */
  addArguments(tool: string, names: Iterable<string>, rule: NameRule): ToolNames {
    const told = new ToolNames(names, rule);
    if (told.#hasChanged) this.#arguments.set(tool, told);
    return told;
  }

  /** What arguments the provider's model means, an object or its text. What is neither is given back as it is. */
  meantInput(tool: string, input: unknown): unknown {
    const names = this.#arguments.get(tool);
    if (names === undefined) return input;
    const object = typeof input === 'string' ? objectIn(input) : input;
    return isPlainObject(object) ? renamed(object, (told) => names.meant(told)) : input;
  }

  /** Arguments as the provider's model would have written them. */
  toldInput(tool: string, input: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const names = this.#arguments.get(tool);
    return names === undefined ? input : renamed(input, (name) => names.told(name));
  }

  get #hasChanged(): boolean {
    return [...this.#told].some(([name, told]) => name !== told);
  }

  #add(name: string, told: string): void {
    this.#told.set(name, told);
    this.#tools.set(told, name);
  }

  /** The same for the same name, whatever other tools there are, unless one of them has it. */
  #made(name: string): string {
    const start = fitting(name, this.#rule).slice(0, this.#rule.most - DIGEST - 1);
    for (let attempt = 0; ; attempt++) {
      const digest = createHash('sha256').update(`${name}\n${attempt}`).digest('hex').slice(0, DIGEST);
      const told = `${start}_${digest}`;
      if (!this.#tools.has(told)) return told;
    }
  }
}

function renamed(input: Readonly<Record<string, unknown>>, rename: (name: string) => string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [rename(name), value]));
}

function objectIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
