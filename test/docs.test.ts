import { existsSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { fencesOf, isPrinted, printedBelow, readPage, root } from './support/pages.ts';
import { type Finished, runNode } from './support/process.ts';

/** A ```ts block of a page: a program of its own. */
interface Example {
  /** `page:line` of its first line. */
  readonly place: string;
  readonly page: string;
  readonly line: number;
  /** The name of its file, without an ending. */
  readonly file: string;
  readonly code: string;
  /** False for ```ts no-run: it is only compiled. */
  readonly runs: boolean;
  /** What it prints: the ```text block right below, where `…` stands for anything within a line. */
  readonly prints: string | undefined;
}

const pages = ['README.md', 'CONTRIBUTING.md', ...markdownUnder('docs')];
const examples = pages.flatMap(examplesOf);
const running = examples.filter((example) => example.runs);

let directory: string;
let built: string;
let compilerErrors: readonly string[];
let runs: ReadonlyMap<Example, Finished>;

beforeAll(async () => {
  await mkdir(join(root, 'node_modules', '.cache'), { recursive: true });
  directory = await mkdtemp(join(root, 'node_modules', '.cache', 'docs-'));
  built = join(directory, 'node_modules', 'toolonion');
  compilerErrors = await compile();
  runs = await runAll();
}, 120_000);

afterAll(() => rm(directory, { recursive: true, force: true }));

test('every example in the docs compiles with the flags of the project', () => {
  expect(compilerErrors).toEqual([]);
});

test.each(running)('the example at $place runs and prints what the page says', (example) => {
  const { code, stdout, stderr } = runs.get(example) as Finished;
  const { prints = stdout } = example;
  expect({ code, stderr }).toEqual({ code: 0, stderr: code === 0 ? stderr : '' });
  expect(isPrinted(prints, stdout) ? prints : stdout).toBe(prints);
});

test('the README begins with the first program of the examples, which takes less than 25 lines', () => {
  const [first] = examples.filter(({ place }) => place.startsWith('README.md'));
  expect(first?.code).toBe(readPage('docs/examples/first-program.ts'));
  expect(first?.code.split('\n').length).toBeLessThanOrEqual(25);
});

test('every link to a file of the project leads somewhere', () => {
  const broken = pages.flatMap((page) =>
    [...readPage(page).matchAll(/\]\((?!https?:)([^)#\s]+)[^)]*\)/g)]
      .map(([, target = '']) => join(dirname(page), target))
      .filter((target) => !existsSync(join(root, target)))
      .map((target) => `${page}: ${target}`),
  );
  expect(broken).toEqual([]);
});

function markdownUnder(path: string): readonly string[] {
  const names = readdirSync(join(root, path), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(path, name))
    .sort();
}

function examplesOf(page: string): readonly Example[] {
  const fences = fencesOf(page);
  return fences.flatMap(({ info, line, code }, index) => {
    if (!/^ts\b/.test(info)) return [];
    const place = `${page}:${line}`;
    const file = place.replaceAll(/[^A-Za-z0-9]+/g, '-');
    return [{ place, page, line, file, code, runs: info === 'ts', prints: printedBelow(page, fences, index) }];
  });
}

/** Type-checks all examples at once and makes programs of them, which find the package as a stranger's would: by its exports. */
async function compile(): Promise<readonly string[]> {
  const compilerOptions = {
    noEmit: false,
    allowImportingTsExtensions: false,
    rewriteRelativeImportExtensions: true,
    rootDir: root,
    outDir: built,
  };
  const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['*.mts'], exclude: [] };
  const exports = {
    '.': './src/index.js',
    './middleware': './middleware/index.js',
    './middleware/*': './middleware/*.js',
    './testing': './src/testing/index.js',
  };
  await mkdir(built, { recursive: true });
  await Promise.all([
    writeFile(join(directory, 'tsconfig.json'), JSON.stringify(config)),
    writeFile(join(built, 'package.json'), JSON.stringify({ name: 'toolonion', type: 'module', exports })),
    ...examples.map((example) => writeFile(join(directory, `${example.file}.mts`), example.code)),
  ]);
  const { stdout } = await runNode(['node_modules/typescript/bin/tsc', '--pretty', 'false', '-p', directory], {
    cwd: root,
  });
  // Faults of the sources are told by the type check of the project.
  return stdout
    .split('\n')
    .filter((line) => line !== '' && !/^(src|middleware)\//.test(line))
    .map(atPage);
}

/** A compiler's message, with the page and line in the place of the file. */
function atPage(message: string): string {
  const [, file, line, rest] = /^.*\/([^/]+)\.mts\((\d+),\d+\)(.*)$/.exec(message) ?? [];
  const example = examples.find((each) => each.file === file);
  return example === undefined ? message : `${example.page}:${example.line + Number(line) - 1}${rest}`;
}

/** Runs all examples, two at a time. */
async function runAll(): Promise<ReadonlyMap<Example, Finished>> {
  const done = new Map<Example, Finished>();
  const waiting = [...running];
  async function work(): Promise<void> {
    for (let example = waiting.shift(); example !== undefined; example = waiting.shift()) {
      done.set(example, await runNode([join(built, relative(root, directory), `${example.file}.mjs`)], { cwd: root }));
    }
  }
  await Promise.all([work(), work()]);
  return done;
}
