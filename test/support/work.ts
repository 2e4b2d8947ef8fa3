import { defineTool, type Tool, type ToolCallRequest, type ToolDefinition } from 'toolonion';
import { turns } from './manual-clock.ts';

/** Tools whose runs begin and end when a test says so, and a record of when they did. */
export class Work {
  /** `+a` where a run began, `-a` where it ended. */
  readonly events: string[] = [];
  readonly #running = new Map<string, () => void>();
  /** The most runs there were at once. */
  most = 0;

  /** A tool that takes `{ id, key? }`. Its run ends by `end(id)`, or by an abort. */
  tool(name: string, traits: Partial<ToolDefinition<typeof SCHEMA>> = {}): Tool {
    return defineTool({
      name,
      description: 'Works until it is told to end.',
      inputSchema: SCHEMA,
      execute: ({ id }, { signal }) => this.#run(id, signal),
      ...traits,
    });
  }

  #run(id: string, signal: AbortSignal): Promise<string> {
    this.events.push(`+${id}`);
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        this.#running.delete(id);
        this.events.push(`-${id}`);
        settle();
      };
      this.#running.set(id, () => end(() => resolve(id)));
      this.most = Math.max(this.most, this.#running.size);
      signal.addEventListener('abort', () => end(() => reject(signal.reason)), { once: true });
    });
  }

  end(...ids: readonly string[]): void {
    for (const id of ids) {
      const end = this.#running.get(id);
      if (end === undefined)
        throw new Error(`${id} is not running; those that are: ${this.running.join(' ') || 'none'}`);
      end();
    }
  }

  /** Has these runs one after the other, and fails where one is beside another. */
  async runOneByOne(...ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      await turns();
      const running = this.running.join(' ') || 'none';
      if (running !== id) throw new Error(`${id} should be running alone; those that are: ${running}`);
      this.end(id);
    }
  }

  get running(): readonly string[] {
    return [...this.#running.keys()];
  }
}

const SCHEMA = {
  type: 'object',
  properties: { id: { type: 'string' }, key: { type: 'string' }, isSafe: { type: 'boolean' } },
  required: ['id'],
} as const;

/** A call of such a tool: `read a`, `edit b key=f`, `maybe c safe`. */
export function callOf(text: string): ToolCallRequest {
  const [name = '', id = '', more = ''] = text.split(' ');
  const key = more.startsWith('key=') ? { key: more.slice(4) } : {};
  return { id, name, arguments: { id, ...key, ...(more === 'safe' && { isSafe: true }) } };
}

export function calls(...texts: readonly string[]): readonly ToolCallRequest[] {
  return texts.map(callOf);
}
