import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isAbsolute, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type Dispatcher,
  defineTool,
  describeError,
  isPlainObject,
  isStandardSchema,
  isTool,
  listed,
  printable,
  type ReadonlyToolRegistry,
  type Tool,
  type ToolRegistry,
} from '../index.ts';
import { leave, onStall } from './ending.ts';
import { complain } from './terminal.ts';
import { UsageError } from './usage-error.ts';

type Module = Readonly<Record<string, unknown>>;

/** The tools that modules export, each name once. @throws UsageError */
export async function loadTools(specifiers: readonly string[]): Promise<readonly Tool[]> {
  const tools = new Map<string, Tool>();
  for (const specifier of specifiers) {
    for (const tool of await toolsOf(specifier)) {
      if (tools.has(tool.name)) {
        throw new UsageError(
          `--tools: "${specifier}" exports a second tool named "${printable(tool.name)}". Rename one.`,
        );
      }
      tools.set(tool.name, tool);
    }
  }
  return [...tools.values()];
}

/** The tools a module exports: each export that is a tool, or a list, registry or object of tools. */
async function toolsOf(specifier: string): Promise<readonly Tool[]> {
  const exported = await loadModule(specifier, '--tools');
  const found = new Map<unknown, Tool>();
  for (const [name, value] of Object.entries(exported)) {
    for (const each of soundly(name, () => itemsOf(value))) {
      const isTool = soundly(name, () => isToolLike(each));
      if (isTool && !found.has(each)) found.set(each, ownTool(each as Tool, name));
    }
  }
  if (found.size > 0) return [...found.values()];
  throw new UsageError(
    `--tools: "${specifier}" exports no tool. ${exportsOf(exported)} A tool is made by defineTool: export const add = defineTool({ … }).`,
  );
}

/** Reads of what a stranger exports, which may do anything when it is looked at. @throws UsageError */
function soundly<Value>(name: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw new UsageError(`The export "${name}" cannot be read: ${describeError(error).message}.`);
  }
}

/** The dispatcher a module exports: its default export, one named `dispatcher`, or the only one. @throws UsageError */
export async function loadDispatcher(specifier: string): Promise<Dispatcher> {
  const exported = await loadModule(specifier, '--dispatcher');
  const found = Object.entries(exported).filter(([name, value]) => soundly(name, () => isDispatcher(value)));
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
  const before = onStall(() => {
    complain(`${option}: "${specifier}" never finishes loading: it waits for what will never come.`);
    leave(2);
  });
  try {
    return (await import(pathToFileURL(file).href)) as Module;
  } catch (error) {
    throw new UsageError(`${option}: "${specifier}" cannot be loaded. ${reasonOf(error, file)}`);
  } finally {
    onStall(before);
  }
}

/** A path, or else the name of a package that can be found from here. */
function fileOf(specifier: string, option: string): string {
  const path = resolve(specifier);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(`${option}: "${specifier}" is a directory. Give the file of a module in it.`);
  }
  if (existsSync(path)) return path;
  try {
    const found = createRequire(join(process.cwd(), 'index.js')).resolve(specifier);
    // What is built in has no file, and no tools.
    if (isAbsolute(found)) return found;
    throw new Error('built in');
  } catch (error) {
    const isHidden = (error as NodeJS.ErrnoException).code === 'ERR_PACKAGE_PATH_NOT_EXPORTED';
    const what = isHidden
      ? `the package "${specifier}" can only be imported; give the path of its file`
      : `there is no file or package "${specifier}" (looked in ${process.cwd()})`;
    throw new UsageError(`${option}: ${what}.`);
  }
}

function reasonOf(error: unknown, file: string): string {
  const { name, message, code, stack = '' } = describeError(error);
  const isTypeScript = /\.[cm]?tsx?$/.test(file);
  if (isTypeScript && (code === 'ERR_UNKNOWN_FILE_EXTENSION' || code === 'ERR_INVALID_TYPESCRIPT_SYNTAX')) {
    return (
      `Node.js ${process.versions.node} does not load this TypeScript; 22.18 and later do. ` +
      'Otherwise compile it first, or install tsx and put NODE_OPTIONS="--import tsx" in front of the command.'
    );
  }
  if (/import statement outside a module|Unexpected token 'export'/.test(message)) {
    return `${message}: Node.js takes it for CommonJS. Name it .mjs, or put "type": "module" into the package.json beside it.`;
  }
  const frame = stack.split('\n').find((line) => /^\s+at .*file:\/\//.test(line));
  const place = name === 'SyntaxError' ? placeOfSlip(file) : frame?.trim();
  return place === undefined || message.includes(place) ? message : `${message} (${place})`;
}

/** The line of a syntax error, which only Node.js itself tells; undefined where it is in another file. */
function placeOfSlip(file: string): string | undefined {
  const { stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8' });
  return stderr.split('\n').find((line) => line.includes(file));
}

function itemsOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (isRegistryLike(value)) return value.tools;
  return isPlainObject(value) && !isToolLike(value) ? Object.values(value) : [value];
}

/** Also one of another copy of the package. */
function isRegistryLike(value: unknown): value is ReadonlyToolRegistry {
  return (
    typeof value === 'object' && value !== null && 'schemas' in value && Array.isArray((value as ToolRegistry).tools)
  );
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
  // Kept from narrowing: what is no tool of this copy has the shape of one all the same.
  const isOwn: boolean = isTool(tool);
  if (isOwn) return tool;
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
  if (typeof value !== 'object' || value === null) return false;
  const { dispatch, with: change, middleware, middlewareNames, tools } = value as Partial<Dispatcher>;
  const hasLists = [middleware, middlewareNames, tools?.tools].every(Array.isArray);
  return typeof dispatch === 'function' && typeof change === 'function' && hasLists;
}

function exportsOf(exported: Module): string {
  return `It exports ${listed(Object.keys(exported), (name) => `"${name}"`) || 'nothing'}.`;
}
