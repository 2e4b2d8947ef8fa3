import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type Dispatcher,
  defineTool,
  isPlainObject,
  isStandardSchema,
  isTool,
  printable,
  type Tool,
  ToolRegistry,
} from '../index.ts';
import { UsageError } from './usage-error.ts';

type Module = Readonly<Record<string, unknown>>;

/** The tools a module exports: each export that is a tool, an array of tools, or a registry. @throws UsageError */
export async function loadTools(specifier: string): Promise<readonly Tool[]> {
  const exported = await loadModule(specifier, '--tools');
  const tools = new Map<string, Tool>();
  const seen = new Set<unknown>();
  for (const [name, value] of Object.entries(exported)) {
    for (const each of listed(value)) {
      if (!isToolLike(each) || seen.has(each)) continue;
      seen.add(each);
      const tool = ownTool(each, name);
      if (tools.has(tool.name)) {
        throw new UsageError(`--tools: "${specifier}" exports two tools named "${printable(tool.name)}". Rename one.`);
      }
      tools.set(tool.name, tool);
    }
  }
  if (tools.size > 0) return [...tools.values()];
  throw new UsageError(
    `--tools: "${specifier}" exports no tool. ${exportsOf(exported)} A tool is made by defineTool: export const add = defineTool({ … }).`,
  );
}

/** The dispatcher a module exports: its default export, one named `dispatcher`, or the only one. @throws UsageError */
export async function loadDispatcher(specifier: string): Promise<Dispatcher> {
  const exported = await loadModule(specifier, '--dispatcher');
  const found = Object.entries(exported).filter(([, value]) => isDispatcher(value));
  const chosen =
    found.find(([name]) => name === 'default') ?? found.find(([name]) => name === 'dispatcher') ?? found[0];
  const distinct = new Set(found.map(([, value]) => value));
  if (chosen !== undefined && (distinct.size === 1 || ['default', 'dispatcher'].includes(chosen[0])))
    return chosen[1] as Dispatcher;
  if (distinct.size > 1) {
    const names = found.map(([name]) => `"${name}"`).join(', ');
    throw new UsageError(
      `--dispatcher: "${specifier}" exports several dispatchers: ${names}. Export the one to use as default.`,
    );
  }
  throw new UsageError(
    `--dispatcher: "${specifier}" exports no dispatcher. ${exportsOf(exported)} Export one: export default createDispatcher({ … }).`,
  );
}

/** Whether all tools come from this copy of the package: what wraps a call's tool has to be of the copy that made the dispatcher. */
export function isOwn(dispatcher: Dispatcher): boolean {
  return dispatcher.tools.tools.every(isTool);
}

async function loadModule(specifier: string, option: string): Promise<Module> {
  const file = fileOf(specifier, option);
  try {
    return (await import(pathToFileURL(file).href)) as Module;
  } catch (error) {
    throw new UsageError(`${option}: "${specifier}" cannot be loaded. ${reasonOf(error, file)}`);
  }
}

/** A path, or else the name of a package that can be found from here. */
function fileOf(specifier: string, option: string): string {
  const path = resolve(specifier);
  if (existsSync(path)) return path;
  try {
    return createRequire(join(process.cwd(), 'index.js')).resolve(specifier);
  } catch {
    throw new UsageError(`${option}: there is no file or package "${specifier}" (looked in ${process.cwd()}).`);
  }
}

function reasonOf(error: unknown, file: string): string {
  const { code, name, message, stack } = (error ?? {}) as Readonly<Record<string, unknown>>;
  const isTypeScript = /\.[cm]?tsx?$/.test(file);
  if (isTypeScript && (code === 'ERR_UNKNOWN_FILE_EXTENSION' || code === 'ERR_INVALID_TYPESCRIPT_SYNTAX')) {
    return (
      `Node.js ${process.versions.node} does not load this TypeScript; 22.18 and later do. ` +
      'Otherwise compile it first, or install tsx and put NODE_OPTIONS="--import tsx" in front of the command.'
    );
  }
  const why = typeof message === 'string' ? message : String(error);
  const frames = typeof stack === 'string' ? stack.split('\n') : [];
  const place =
    name === 'SyntaxError' ? placeOfSlip(file) : frames.find((frame) => /^\s+at .*file:\/\//.test(frame))?.trim();
  return place === undefined || why.includes(place) ? why : `${why} (${place})`;
}

/** The line of a syntax error, which only Node.js itself tells; undefined where it is in another file. */
function placeOfSlip(file: string): string | undefined {
  const { stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8' });
  return stderr.split('\n').find((line) => line.includes(file));
}

function listed(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value instanceof ToolRegistry || isRegistryLike(value) ? [...(value as Iterable<unknown>)] : [value];
}

function isRegistryLike(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'schemas' in value && Symbol.iterator in value;
}

function isToolLike(value: unknown): value is Tool {
  if (isTool(value)) return true;
  return (
    isPlainObject(value) &&
    typeof value['name'] === 'string' &&
    typeof value['description'] === 'string' &&
    'execute' in value
  );
}

/** A tool of another copy of the package, or its mere definition, is defined anew here. */
function ownTool(tool: Tool, exportName: string): Tool {
  const own: boolean = isTool(tool);
  if (own) return tool;
  const { schema, ...definition } = tool as Tool & { readonly schema?: Tool['schema'] };
  const shown = (given: unknown, key: 'jsonSchema' | 'outputJsonSchema', json: unknown) =>
    isStandardSchema(given) && json !== undefined ? { [key]: json } : {};
  try {
    return defineTool({
      ...definition,
      ...shown(tool.inputSchema, 'jsonSchema', schema?.inputSchema),
      ...shown(tool.outputSchema, 'outputJsonSchema', schema?.outputSchema),
    } as Parameters<typeof defineTool>[0]) as Tool;
  } catch (error) {
    throw new UsageError(`--tools: the export "${exportName}" is no tool. ${(error as Error).message}`);
  }
}

function isDispatcher(value: unknown): value is Dispatcher {
  const { dispatch, with: change, middlewareNames } = (value ?? {}) as Partial<Dispatcher>;
  return typeof dispatch === 'function' && typeof change === 'function' && Array.isArray(middlewareNames);
}

function exportsOf(exported: Module): string {
  const names = Object.keys(exported).map((name) => `"${name}"`);
  return names.length === 0 ? 'It exports nothing.' : `It exports ${names.join(', ')}.`;
}
