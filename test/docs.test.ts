import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Example, examplesOf, Programs } from './support/examples.ts';
import { isPrinted, readPage, root } from './support/pages.ts';
import type { Finished } from './support/process.ts';

const pages = ['README.md', 'CONTRIBUTING.md', ...markdownUnder('docs')];
// Those of the adapters need the agent runtimes: test/runtimes/docs.test.ts.
const examples = pages.filter((page) => !page.startsWith('docs/adapters/')).flatMap(examplesOf);
const running = examples.filter((example) => example.runs);

let programs: Programs;
let runs: ReadonlyMap<Example, Finished>;

beforeAll(async () => {
  programs = await Programs.compile(examples, root);
  runs = await programs.run();
}, 120_000);

afterAll(() => programs.remove());

test('every example in the docs compiles with the flags of the project', () => {
  expect(programs.errors).toEqual([]);
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
