import { describeError } from './error.ts';
import { kindOf } from './json.ts';
import type { ToolSchema } from './schema.ts';
import { isTool, type Tool } from './tool.ts';

/** Tools by name, to read. What `snapshot()` gives never changes. */
export class ReadonlyToolRegistry implements Iterable<Tool> {
  /** Tools by name, in registration order. */
  protected byName: Map<string, Tool>;

  protected constructor(byName: Map<string, Tool>) {
    this.byName = byName;
  }

  get(name: string): Tool | undefined {
    return this.byName.get(name);
  }

  has(name: string): boolean {
    return this.byName.has(name);
  }

  get size(): number {
    return this.byName.size;
  }

  /** All names, sorted. */
  get names(): readonly string[] {
    return [...this.byName.keys()].sort();
  }

  /** All tools, in registration order. */
  get tools(): readonly Tool[] {
    return [...this.byName.values()];
  }

  /** What is sent to a model, in registration order. */
  get schemas(): readonly ToolSchema[] {
    return this.tools.map((tool) => tool.schema);
  }

  /** The tools that are concurrency-safe whatever their arguments, in registration order. */
  get concurrencySafe(): readonly Tool[] {
    return this.tools.filter((tool) => tool.concurrencySafe === true);
  }

  /** The system prompts of the tools that have one, in registration order. */
  get systemPrompts(): readonly string[] {
    return this.tools.flatMap((tool) => tool.systemPrompt ?? []);
  }

  [Symbol.iterator](): IterableIterator<Tool> {
    return this.tools[Symbol.iterator]();
  }

  /** @internal */
  static of(byName: Map<string, Tool>): ReadonlyToolRegistry {
    return new ReadonlyToolRegistry(byName);
  }
}

/** Tools by name. A dispatcher reads it through a snapshot for each call, so a change never meets a call half-way. */
export class ToolRegistry extends ReadonlyToolRegistry {
  #snapshot: ReadonlyToolRegistry | undefined;
  readonly #listeners = new Set<() => void>();
  #isTelling = false;

  constructor(tools: Iterable<Tool> = []) {
    super(new Map());
    for (const tool of tools) this.register(tool);
  }

  /**
   * Adds a tool, at the end or, replacing, in the place of the old one.
   *
   * @throws TypeError where the name is taken and `replace` is not true, or for what `defineTool` has not made.
   */
  register(tool: Tool, options: { readonly replace?: boolean } = {}): this {
    if (!isTool(tool)) throw new TypeError(`A registry takes tools made by defineTool, not ${kindOf(tool)}.`);
    if (this.byName.has(tool.name) && options.replace !== true) {
      throw new TypeError(
        `A tool named "${tool.name}" is already registered. Rename one, as namespaced() does, or pass { replace: true }.`,
      );
    }
    this.#writable().set(tool.name, tool);
    this.#tell();
    return this;
  }

  /** Removes a tool; calls under way still end with it. Tells whether there was one. */
  unregister(name: string): boolean {
    if (!this.byName.has(name)) return false;
    this.#writable().delete(name);
    this.#tell();
    return true;
  }

  /**
   * Calls back after changes, once for all that are made in one go.
   *
   * @returns what ends that.
   */
  onChange(listener: () => void): () => void {
    const own = () => listener();
    this.#listeners.add(own);
    return () => {
      this.#listeners.delete(own);
    };
  }

  #tell(): void {
    if (this.#isTelling || this.#listeners.size === 0) return;
    this.#isTelling = true;
    queueMicrotask(() => {
      this.#isTelling = false;
      for (const listener of [...this.#listeners]) tell(listener);
    });
  }

  /** The tools as they are now. The same object until the next change. */
  snapshot(): ReadonlyToolRegistry {
    this.#snapshot ??= ReadonlyToolRegistry.of(this.byName);
    return this.#snapshot;
  }

  /** The map to change: a copy, where a snapshot holds the present one. */
  #writable(): Map<string, Tool> {
    if (this.#snapshot !== undefined) {
      this.byName = new Map(this.byName);
      this.#snapshot = undefined;
    }
    return this.byName;
  }
}

/** A listener's failure is nobody else's. */
function tell(listener: () => void): void {
  try {
    listener();
  } catch (thrown) {
    process.emitWarning(`A listener to the changes of a ToolRegistry threw: ${describeError(thrown).message}`);
  }
}
