import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path/posix';
import { describe, expect, test } from '@jest/globals';

const root = join(import.meta.dirname, '..');
const STATEMENT = /^(?:import|export)\s+(?:(type\s)?([^;'"]*?)\s*from\s+)?'([^']+)';/gm;

interface Import {
  /** A file of this project, from its root, or the name of a package. */
  readonly to: string;
  /** Nothing of it is left when the types are gone. */
  readonly typeOnly: boolean;
}

function importsOf(file: string): readonly Import[] {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(STATEMENT)].map(([, type, names = '', from = '']) => ({
    to: from.startsWith('.') ? relative(root, join(root, file, '..', from)) : from,
    typeOnly: type !== undefined || /^\{(?:\s*type\s[^,}]+,?)+\s*\}$/.test(names),
  }));
}

function filesIn(folder: string): readonly string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts')).map((name) => `${folder}/${name.replaceAll('\\', '/')}`);
}

const command = filesIn('src/cli');
const core = filesIn('src').filter((file) => !command.includes(file));
const layers = filesIn('middleware');
const imports = new Map([...core, ...layers, ...command].map((file) => [file, importsOf(file)]));
const namesOf = (file: string) => (imports.get(file) ?? []).map(({ to }) => to);
const runtimeOf = (file: string) => (imports.get(file) ?? []).filter(({ typeOnly }) => !typeOnly).map(({ to }) => to);

/** All files that are loaded when one is, itself only where it is in a cycle. */
function loadedBy(file: string, seen: Set<string> = new Set()): ReadonlySet<string> {
  for (const to of runtimeOf(file)) if (!seen.has(to)) loadedBy(to, seen.add(to));
  return seen;
}

describe('imports', () => {
  test('are all found', () => {
    for (const [file, found] of imports) {
      const text = readFileSync(join(root, file), 'utf8');
      expect([file, found.length]).toEqual([file, text.match(/^(?:import '|.* from ')/gm)?.length ?? 0]);
      for (const { to } of found.filter((each) => each.to.endsWith('.ts'))) expect([...imports.keys()]).toContain(to);
    }
  });

  test('lead from the core to no middleware, and to no package but nanoid and p-timeout', () => {
    const outside = core.flatMap(namesOf).filter((name) => !name.startsWith('src/') && !name.startsWith('node:'));
    expect(new Set(outside)).toEqual(new Set(['nanoid', 'p-timeout']));
  });

  test.each(layers)('lead from %s only to the public names, packages, and files without a layer', (file) => {
    const free = ['middleware/index.ts', 'middleware/standard.ts'].includes(file);
    const withoutLayer = ['permission-rules', 'policy-schema', 'tool-health'].map((name) => `middleware/${name}.ts`);
    const isAllowed = (name: string) =>
      ['src/index.ts', ...withoutLayer].includes(name) || /^middleware\/(schema|parts|results)\//.test(name);
    const files = namesOf(file).filter((name) => name.endsWith('.ts') && !isAllowed(name));
    expect(files.filter((name) => !(free && name.startsWith('middleware/')))).toEqual([]);
  });

  test.each(command)(
    'lead from %s only to the public names, the kit for testing, the adapters, the shapes of providers, pino, and its own kind',
    (file) => {
      const open = ['src', 'src/testing', 'middleware', 'src/adapters/mcp', 'src/wire'].map(
        (name) => `${name}/index.ts`,
      );
      const others = namesOf(file).filter((name) => !/^(node:|pino$|src\/cli\/)/.test(name) && !open.includes(name));
      expect(others).toEqual([]);
    },
  );

  test('lead from the core to the kit for testing, the adapters, the shapes of providers and the command never', () => {
    const inner = core.filter((file) => !/^src\/(testing|adapters|wire)\//.test(file));
    const isOuter = (name: string) => /^src\/(cli|testing|adapters|wire)\//.test(name);
    expect(inner.flatMap(namesOf).filter(isOuter)).toEqual([]);
    expect(layers.flatMap(namesOf).filter(isOuter)).toEqual([]);
  });

  test('lead from an adapter to no other, and not to the whole core', () => {
    const adapters = core.filter((file) => file.startsWith('src/adapters/'));
    for (const file of adapters) {
      const own = file.split('/').slice(0, 3).join('/');
      const others = namesOf(file).filter((name) => name.startsWith('src/adapters/') && !name.startsWith(`${own}/`));
      expect([file, others, namesOf(file).includes('src/index.ts')]).toEqual([file, [], false]);
    }
  });

  test('lead from a provider to no other, and not to the whole core', () => {
    const shared = ['definitions', 'mcp-protocol', 'media', 'names', 'rules', 'wire'].map(
      (name) => `src/wire/${name}.ts`,
    );
    const isShared = (name: string) => shared.includes(name) || name.startsWith('src/wire/schema/');
    for (const file of core.filter((each) => each.startsWith('src/wire/') && !each.endsWith('/index.ts'))) {
      const others = namesOf(file).filter((name) => name.startsWith('src/wire/') && !isShared(name));
      expect([file, others, namesOf(file).includes('src/index.ts')]).toEqual([file, [], false]);
    }
  });

  test('lead from the middlewares to no package but the dependencies', () => {
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const packages = layers.flatMap(namesOf).filter((name) => !name.endsWith('.ts') && !name.startsWith('node:'));
    const names = packages.map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/'));
    expect(Object.keys(dependencies)).toEqual(expect.arrayContaining(names));
  });

  test.each([...imports.keys()])('lead at run time from %s never back to it', (file) => {
    expect(loadedBy(file)).not.toContain(file);
  });

  test('lead one way: vocabulary, onion, innermost layer, dispatcher, public names', () => {
    const vocabulary = ['call', 'context', 'content', 'output', 'outcome', 'error', 'permission', 'schema', 'tool'];
    const pure = ['json', 'arguments', 'settings', 'options', 'truncate', 'redact', 'registry', 'for-model'];
    const order = ['middleware', 'invoke', 'dispatcher', 'index'].map((name) => `src/${name}.ts`);
    for (const name of [...vocabulary, ...pure])
      expect([name, order.filter((file) => loadedBy(`src/${name}.ts`).has(file))]).toEqual([name, []]);
    for (const [level, file] of order.entries())
      expect([file, order.slice(level).filter((later) => loadedBy(file).has(later))]).toEqual([file, []]);
  });
});
