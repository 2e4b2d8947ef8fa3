import type { ToolCall } from '../../call.ts';
import { copyJson, isPlainObject, type JsonObject } from '../../json.ts';
import type { ToolRegistry } from '../../registry.ts';
import type { JsonSchema } from '../../schema.ts';
import { defineTool, type Tool } from '../../tool.ts';

/** A tool as a server lists it. */
export interface ListedTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly inputSchema: object;
  readonly outputSchema?: object | undefined;
  readonly annotations?:
    | {
        readonly readOnlyHint?: boolean | undefined;
        readonly destructiveHint?: boolean | undefined;
        readonly idempotentHint?: boolean | undefined;
      }
    | undefined;
}

/** What whoever uses a server may know of its tools. */
export type KnownTraits = Partial<
  Pick<
    Tool<JsonObject>,
    'name' | 'description' | 'readOnly' | 'destructive' | 'idempotent' | 'concurrencySafe' | 'resourceKey' | 'untrusted'
  >
>;

/** Pages of tools a server may have: one that always has a next one would be listed for ever. */
const MAX_PAGES = 1_000;

/** What a server answers to `tools/list`, read as far as it is of use. */
interface Page {
  readonly tools?: unknown;
  readonly nextCursor?: unknown;
}

/** All tools a server lists. */
export async function listAll(
  listPage: (cursor: string | undefined) => Promise<unknown>,
): Promise<readonly ListedTool[]> {
  const all: ListedTool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const listed = await listPage(cursor);
    const { tools, nextCursor } = (isPlainObject(listed) ? listed : {}) as Page;
    if (Array.isArray(tools)) for (const tool of tools) all.push(tool);
    if (typeof nextCursor !== 'string' || nextCursor === cursor) return all;
    cursor = nextCursor;
  }
  return all;
}

/** What a server's annotations say, which is only its word. */
export function annotated({ annotations }: ListedTool): KnownTraits {
  const { readOnlyHint: readOnly, destructiveHint: destructive, idempotentHint: idempotent } = annotations ?? {};
  return {
    ...(typeof readOnly === 'boolean' && { readOnly }),
    ...(typeof destructive === 'boolean' && { destructive }),
    ...(typeof idempotent === 'boolean' && { idempotent }),
  };
}

/** A tool of a server's. @throws TypeError where it cannot be used. */
export function foreignTool(
  { name, description, inputSchema, outputSchema }: ListedTool,
  known: KnownTraits,
  execute: (input: JsonObject, call: ToolCall) => unknown,
): Tool {
  return defineTool({
    name,
    description: typeof description === 'string' ? description : '',
    // Copies, for a server in the same process may hand out what does more than JSON.
    inputSchema: copyJson(inputSchema) as JsonSchema,
    ...(outputSchema && { outputSchema: copyJson(outputSchema) as JsonSchema }),
    untrusted: true,
    ...known,
    execute: (input, call) => execute(input as JsonObject, call),
  }) as Tool;
}

/** A result as tools give it: a single text is just that. */
export function plainResult({ resultType: _, ...result }: Record<string, unknown>): unknown {
  const { content } = result;
  const only: unknown = Array.isArray(content) && content.length === 1 ? content[0] : undefined;
  if (!isPlainObject(only) || only['type'] !== 'text' || Object.keys(only).length !== 2) return result;
  return { ...result, content: only['text'] };
}

/** The tools of one server in a registry that may have others. */
export class ServerTools {
  readonly #registry: ToolRegistry;
  #own: ReadonlySet<string> = new Set();

  constructor(registry: ToolRegistry) {
    this.#registry = registry;
  }

  /**
   * Has these in the place of those there were; of two with one name the first. One whose name is taken by a tool that is not the server's is left
   * out.
   *
   * @param onTaken Hears of that, before anything is changed.
   */
  replace(tools: readonly Tool[], onTaken: (error: Error) => void): void {
    const byName = new Map([...tools].reverse().map((tool) => [tool.name, tool]));
    for (const name of byName.keys()) {
      if (this.#own.has(name) || !this.#registry.has(name)) continue;
      onTaken(
        new TypeError(`A tool named "${name}" is already registered. Give the server's another name, by "define".`),
      );
      byName.delete(name);
    }
    for (const name of this.#own) if (!byName.has(name)) this.#registry.unregister(name);
    for (const tool of tools) if (byName.get(tool.name) === tool) this.#registry.register(tool, { replace: true });
    this.#own = new Set(byName.keys());
  }
}
