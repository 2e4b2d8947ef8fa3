import { readdir, readFile, realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineTool, type ToolCall, ToolFailure } from 'toolonion';

/** Lists one directory. Nothing is caught: a missing directory (ENOENT) becomes `file_not_found` by itself. */
export const listDirectory = defineTool({
  name: 'list_directory',
  description: 'Lists the files and directories in one directory of the project.',
  inputSchema: {
    type: 'object',
    properties: { path: { type: 'string', description: 'Relative to the project.', default: '.' } },
    additionalProperties: false,
  },
  readOnly: true,
  concurrencySafe: true,
  async execute({ path }, call) {
    const entries = await readdir(await insideRoot(path, call), { withFileTypes: true });
    const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
    return names.length === 0 ? '(empty)' : names.sort().join('\n');
  },
});

/** Reads some lines. The schema's defaults are there when `execute` runs, so their types are not optional. */
export const readLines = defineTool({
  name: 'read_file',
  description: 'Reads lines of a text file of the project.',
  inputSchema: {
    type: 'object',
    properties: {
      path: { type: 'string' },
      from: { type: 'integer', minimum: 1, default: 1, description: 'The first line to read; lines count from 1.' },
      lines: { type: 'integer', minimum: 1, maximum: 1000, default: 200 },
    },
    required: ['path'],
    additionalProperties: false,
  },
  readOnly: true,
  concurrencySafe: true,
  async execute({ path, from, lines }, call) {
    const all = (await readText(path, call)).split('\n');
    if (from > all.length) throw new ToolFailure(`"${path}" has ${all.length} lines.`, { code: 'invalid_arguments' });
    return all.slice(from - 1, from - 1 + lines).join('\n');
  },
});

/** Searches files. A generator: what it yields is its answer, and it can be stopped between any two files. */
export const searchText = defineTool({
  name: 'search_text',
  description: 'Finds the lines of the project that contain a text.',
  inputSchema: {
    type: 'object',
    properties: { text: { type: 'string', minLength: 1 }, under: { type: 'string', default: '.' } },
    required: ['text'],
    additionalProperties: false,
  },
  readOnly: true,
  concurrencySafe: true,
  async *execute({ text, under }, call) {
    let searched = 0;
    let found = 0;
    for await (const path of filesUnder(under, call)) {
      const lines = (await readText(path, call)).split('\n');
      for (const [index, line] of lines.entries()) {
        if (!line.includes(text)) continue;
        found++;
        yield `${path}:${index + 1}: ${line.trim()}\n`;
      }
      call.report({ message: `searched ${path}`, progress: ++searched });
    }
    if (found === 0) yield `No line of ${searched} files contains "${text}".`;
  },
});

/** Answers with data for programs, which `outputSchema` describes; the model reads its JSON. */
export const countLines = defineTool({
  name: 'count_lines',
  description: 'Counts the lines and characters of a text file of the project.',
  inputSchema: {
    type: 'object',
    properties: { path: { type: 'string' } },
    required: ['path'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { lines: { type: 'integer' }, characters: { type: 'integer' } },
    required: ['lines', 'characters'],
  },
  readOnly: true,
  concurrencySafe: true,
  async execute({ path }, call) {
    const text = await readText(path, call);
    return { lines: text.split('\n').length, characters: text.length };
  },
});

/** Says of itself that it can lose something. The demo's rules never let it run. */
export const deleteFile = defineTool({
  name: 'delete_file',
  description: 'Deletes a file of the project.',
  inputSchema: {
    type: 'object',
    properties: { path: { type: 'string' } },
    required: ['path'],
    additionalProperties: false,
  },
  destructive: true,
  execute: () => {
    throw new ToolFailure('Nothing is ever deleted here.', { executed: 'no' });
  },
});

/** How not to write a tool: it does not pass `call.signal` on, so nothing can stop it. */
export const waitForBuild = defineTool({
  name: 'wait_for_build',
  description: 'Waits for the build to end.',
  readOnly: true,
  async execute() {
    await sleep(500);
    return 'The build has ended.';
  },
});

/** A tool that has changed, and its declaration has not. */
export const buildStatus = defineTool({
  name: 'build_status',
  description: 'Tells whether the last build succeeded.',
  outputSchema: { type: 'object', properties: { succeeded: { type: 'boolean' } }, required: ['succeeded'] },
  readOnly: true,
  execute: () => ({ status: 'green' }),
});

/**
 * The real path of what the model asks for, which must lie under the session's directory: as written, before anything is looked
 * up, and once more after symbolic links are followed.
 */
async function insideRoot(path: string, call: ToolCall): Promise<string> {
  const root = await realpath(call.context.cwd);
  const asked = resolve(root, path);
  refuseOutside(root, asked, path);
  const real = await realpath(asked);
  refuseOutside(root, real, path);
  return real;
}

function refuseOutside(root: string, place: string, path: string): void {
  const way = relative(root, place);
  if (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)) return;
  throw new ToolFailure(`"${path}" is outside the project. Use a path inside it.`, { code: 'invalid_arguments' });
}

async function readText(path: string, call: ToolCall): Promise<string> {
  return readFile(await insideRoot(path, call), { encoding: 'utf8', signal: call.signal });
}

const SKIPPED: ReadonlySet<string> = new Set(['node_modules', '.git', 'dist', 'coverage']);

async function* filesUnder(path: string, call: ToolCall): AsyncGenerator<string> {
  const entries = await readdir(await insideRoot(path, call), { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    call.signal.throwIfAborted();
    const inner = join(path, entry.name);
    if (entry.isDirectory() && !SKIPPED.has(entry.name)) yield* filesUnder(inner, call);
    else if (entry.isFile()) yield inner;
  }
}
