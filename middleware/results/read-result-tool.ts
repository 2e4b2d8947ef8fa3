import {
  after,
  checkOptions,
  defineTool,
  isCount,
  type MaybePromise,
  printable,
  type Tool,
  type ToolCall,
  ToolFailure,
} from '../../src/index.ts';
import { isResultStore, type ResultStore, type StoredBytes } from './result-store.ts';

/** Options of `readResultTool`. */
export interface ReadResultOptions {
  /** Default: `read_result`. */
  readonly name?: string;
  /** The most bytes of UTF-8 a page has, but for the rest of its last character. Default: 20,000. */
  readonly pageBytes?: number;
}

/** What the tool takes. */
export interface ReadResultInput {
  readonly id: string;
  readonly from?: number;
  readonly bytes?: number;
}

/** The most bytes a character has. */
const CHARACTER_BYTES = 4;

/** By what they run, which a copy under another name has as well. */
const stores = new WeakMap<object, ResultStore>();

/** @internal The store a tool reads from, if it was made by `readResultTool`. */
export function storeOf(tool: Tool): ResultStore | undefined {
  return tool.execute && stores.get(tool.execute);
}

/** @internal What to do to read on, as a message says it. */
export function readingOn(toolName: string, id: string, from: number): string {
  return `call ${printable(toolName)} with ${JSON.stringify({ id, from })}`;
}

/**
 * The tool a model reads on with where `outputLimit` has cut an answer and put it into a store. It answers by pages, with a last line
 * that tells what to call for the next one; `outputLimit` never cuts these. A result can be read by the session of its call only.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example createDispatcher({ tools: [...tools, readResultTool(store)], middleware: [outputLimit({ store })] })
 */
export function readResultTool(store: ResultStore, options: ReadResultOptions = {}): Tool<ReadResultInput> {
  checkOptions('readResultTool', { store: store ?? null }, { store: isResultStore });
  checkOptions('readResultTool', options, { name: () => true, pageBytes: isCount(1) });
  const { name = 'read_result', pageBytes = 20_000 } = options;

  function execute({ id, from = 0, bytes = pageBytes }: ReadResultInput, call: ToolCall): MaybePromise<string> {
    const { sessionId } = call.context;
    const length = Math.max(1, Math.min(bytes, pageBytes));
    const page = (start: number) =>
      after(store.read(id, sessionId, { from: start, length: length + CHARACTER_BYTES - 1 }), (found) =>
        pageOf({ id, start, length }, found, call.toolName),
      );
    if (from >= 0) return page(from);
    // From the end, of which nothing is known yet.
    return after(store.read(id, sessionId, { from: 0, length: 0 }), (found) =>
      page(Math.max(0, (found?.total ?? 0) + from)),
    );
  }
  stores.set(execute, store);

  return defineTool({
    name,
    description: 'Reads on in the answer of a tool that was too long to be shown whole, page by page.',
    readOnly: true,
    idempotent: true,
    concurrencySafe: true,
    inputSchema: {
      type: 'object',
      properties: {
        id: { type: 'string', description: 'The id of the answer, from the remark in it that says what was left out.' },
        from: {
          type: 'integer',
          description: 'The byte to begin at. A negative one is counted from the end. Default: 0.',
        },
        bytes: { type: 'integer', minimum: 1, maximum: pageBytes, description: `Default: ${pageBytes}.` },
      },
      required: ['id'],
    },
    execute,
  });
}

interface PageRequest {
  readonly id: string;
  readonly start: number;
  readonly length: number;
}

/**
 * The characters that begin within so many bytes: read one after the other, pages so have every character once, wherever they begin.
 * The bytes are those, and as many more as the last character may have.
 */
function pageOf({ id, start, length }: PageRequest, found: StoredBytes | undefined, toolName: string): string {
  const left = Math.max(0, (found?.total ?? 0) - start);
  if (found === undefined || found.bytes.length !== Math.min(length + CHARACTER_BYTES - 1, left)) {
    throw new ToolFailure(
      `There is no result "${printable(id)}" to read, or no longer. Call the tool again that gave it.`,
    );
  }
  const { bytes, total } = found;
  const begin = characterAt(bytes, 0);
  const end = characterAt(bytes, Math.min(length, bytes.length));
  // A byte order mark is text like any other here.
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(begin, end));
  const [from, to] = [Math.min(start, total) + begin, Math.min(start, total) + end];
  const next = to >= total ? 'This is the end.' : `To read on, ${readingOn(toolName, id, to)}.`;
  return `${text}\n[Bytes ${from} to ${to} of ${total}. ${next}]`;
}

/** The next place a character begins at, from here on; in UTF-8 only the bytes that go on with one are 10xxxxxx. */
function characterAt(bytes: Uint8Array, index: number): number {
  let at = index;
  while (at < bytes.length && ((bytes[at] as number) & 0xc0) === 0x80) at++;
  return at;
}
