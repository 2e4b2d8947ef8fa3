// The package as its users get it: packed, unpacked beside them, type-checked and run.

import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('..', import.meta.url));
const compiler = join(root, 'node_modules/typescript/bin/tsc');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const PROGRAM = `
import pino from 'pino';
import { createDispatcher, defineTool, extensionKey, forModel, type Middleware, PermissionCheck, ToolContext } from 'toolonion';
import { logging, permission, standard } from 'toolonion/middleware';
import { type TimeoutOptions, timeout, timeoutMs } from 'toolonion/middleware/timeout';
import { toolSet } from 'toolonion/adapters/ai-sdk';
import { type McpClient, connectTools } from 'toolonion/adapters/mcp';

const greeting = extensionKey<string>();
const greet = defineTool({
  name: 'greet',
  description: 'Greets somebody.',
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string' }, times: { type: 'integer', default: 2 } },
    required: ['name'],
  },
  execute: ({ name, times }, call) => Array(times).fill(\`\${call.context.extension(greeting)}, \${name.trim()}!\`).join(' '),
});
defineTool({
  name: 'typed',
  description: 'Shows that the types arrive, too: with all of them any, nothing here would be an error.',
  inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  // @ts-expect-error: text has no toFixed
  execute: ({ name }) => name.toFixed(),
});
const exclaim: Middleware = async (call, next) => {
  const outcome = await next(call);
  return { ...outcome, content: \`\${String(outcome.content)} :)\` };
};
const limits: TimeoutOptions = { limitMs: { byTool: { greet: 1_000 } } };
const dispatcher = createDispatcher({
  tools: [greet],
  middleware: [
    exclaim,
    ...standard({
      logging: logging({ logger: pino({ level: 'silent' }) }),
      permission: permission({ check: () => PermissionCheck.allow() }),
      timeout: timeout(limits),
    }),
  ],
  context: new ToolContext({ extensions: [greeting('Hello')] }),
});
// Without the runtimes: neither is loaded, nor do the types need them.
const client: McpClient = { request: async () => ({ tools: [] }) };
if (toolSet(dispatcher)['greet'] === undefined || (await connectTools(client)).registry.names.length > 0) throw new Error();
const result = await dispatcher.dispatch({ name: 'greet', arguments: '{"name":" Ada "}' }, { settings: [timeoutMs(500)] });
console.log(forModel(result));
`;

/** The strictest a program can be, and one that is bundled for a browser, with the DOM's types. */
const COMPILERS = {
  nodenext: { module: 'nodenext', lib: ['es2023'], exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
  bundler: { module: 'esnext', moduleResolution: 'bundler', lib: ['es2023', 'dom'] },
} as const;

let directory: string;
let files: readonly string[];

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'toolonion-'));
  files = await pack();
  await install();
}, 120_000);

afterAll(() => rmSync(directory, { recursive: true, force: true }));

test('the package holds what was compiled and the pages, and nothing else of the project', () => {
  const expected =
    /^(dist\/(src|middleware)\/([a-z-]+\/)*[a-z-]+\.(js|d\.ts)|docs\/([a-z-]+\/)*[a-z-]+\.(md|ts|jsonl?))$/;
  const others = files.filter((file) => !expected.test(file));
  const pages = ['CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'README.md', 'bench/README.md'];
  expect(others.sort()).toEqual([...pages, 'package.json', 'policy.schema.json']);
  expect(files).toEqual(
    expect.arrayContaining(['dist/src/index.js', 'dist/src/index.d.ts', 'dist/middleware/timeout.js']),
  );
});

test('the package depends on ajv, nanoid, p-timeout and pino alone; agent runtimes are for those who have them', () => {
  expect(Object.keys(manifest.dependencies)).toEqual(['ajv', 'nanoid', 'p-timeout', 'pino']);
  const optional = Object.keys(manifest.peerDependencies).map((name) => [name, { optional: true }]);
  expect(manifest.peerDependenciesMeta).toEqual(Object.fromEntries(optional));
});

describe.each(Object.entries(COMPILERS))('with module resolution as in %s', (name, options) => {
  test('a strict program type-checks, the declarations of all libraries included', async () => {
    expect(await compile(name, options)).toBe('');
  }, 60_000);
});

test('the same program runs under plain node', async () => {
  expect(await compile('nodenext', COMPILERS.nodenext)).toBe('');
  const { stdout, stderr } = await run(process.execPath, [join(directory, 'user/nodenext/program.js')]);
  expect({ stdout, stderr }).toEqual({ stdout: 'Hello, Ada! Hello, Ada! :)\n', stderr: '' });
}, 60_000);

test('the command runs from the package, with tools that import the package', async () => {
  const user = join(directory, 'user');
  const tools = `import { defineTool } from 'toolonion';
export const hi = defineTool({ name: 'hi', description: 'Greets.', readOnly: true, execute: () => 'Hello.' });`;
  writeFileSync(join(user, 'tools.js'), tools);
  writeFileSync(join(user, 'calls.jsonl'), '{"name":"hi"}');
  const main = join(user, 'node_modules/toolonion', manifest.bin.toolonion);
  expect(readFileSync(main, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
  const args = [main, 'dispatch', '--tools', 'tools.js', '--quiet', 'calls.jsonl'];
  const { stdout, stderr } = await run(process.execPath, args, user);
  expect({ content: JSON.parse(stdout).content, stderr }).toEqual({ content: 'Hello.', stderr: '' });
});

test('editors find the schema of policies in the package', () => {
  const home = join(directory, 'user/node_modules/toolonion');
  expect(JSON.parse(readFileSync(join(home, manifest.exports['./policy.schema.json']), 'utf8')).title).toBe(
    'A toolonion policy',
  );
});

/** Builds beside the project, so that whoever uses its own build is not disturbed. */
async function pack(): Promise<readonly string[]> {
  const source = join(directory, 'package');
  mkdirSync(source);
  await run(process.execPath, [compiler, '-p', join(root, 'src'), '--outDir', join(source, 'dist')]);
  const { files: packed } = manifest as { readonly files: readonly string[] };
  for (const file of ['package.json', 'README.md', 'LICENSE', ...packed.filter((each) => each.includes('.'))]) {
    cpSync(join(root, file), join(source, file));
  }
  cpSync(join(root, 'docs'), join(source, 'docs'), { recursive: true });
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', directory], source);
  const { stdout } = await run('tar', ['-tzf', tarball()]);
  return stdout
    .trim()
    .split('\n')
    .map((entry) => entry.replace('package/', ''));
}

function tarball(): string {
  return join(directory, `toolonion-${manifest.version}.tgz`);
}

/** The project of a user, who has what the package depends on, and a compiler. */
async function install(): Promise<void> {
  const modules = join(directory, 'user/node_modules');
  mkdirSync(join(modules, 'toolonion'), { recursive: true });
  await run('tar', ['-xzf', tarball(), '-C', join(modules, 'toolonion'), '--strip-components=1']);
  for (const name of [...Object.keys(manifest.dependencies), '@types/node']) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), join(modules, name));
  }
  writeFileSync(join(directory, 'user/package.json'), '{ "type": "module" }');
  writeFileSync(join(directory, 'user/program.ts'), PROGRAM);
}

/** What the compiler finds wrong with the program; what it emits goes to a directory of that name. */
async function compile(name: string, options: object): Promise<string> {
  const config = join(directory, 'user', `${name}.json`);
  const compilerOptions = {
    ...options,
    target: 'es2022',
    types: ['node'],
    strict: true,
    skipLibCheck: false,
    outDir: name,
  };
  writeFileSync(config, JSON.stringify({ compilerOptions, files: ['program.ts'] }));
  const { stdout, stderr } = await run(process.execPath, [compiler, '-p', config]).catch((failure: Failure) => failure);
  return stdout + stderr;
}

/** What a command leaves behind that ends with an error. */
interface Failure extends Error {
  readonly stdout: string;
  readonly stderr: string;
}

function run(command: string, parameters: readonly string[], cwd = root): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)(command, parameters, { cwd }).catch((failure: Failure) => {
    // A compiler tells its errors on the standard output, which the message leaves out.
    failure.message += failure.stdout;
    throw failure;
  });
}
