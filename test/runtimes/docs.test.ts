// The examples of the adapters' pages, with the runtimes they are for.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Example, exampleFile, examplesOf, Programs } from '../support/examples.ts';
import { isPrinted, root } from '../support/pages.ts';
import type { Finished } from '../support/process.ts';

const namesIn = (folder: string) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`);
const files = namesIn('docs/examples/adapters').map(exampleFile);
const examples = [...namesIn('docs/adapters').flatMap(examplesOf), ...files];
let programs: Programs;
let runs: ReadonlyMap<Example, Finished>;

beforeAll(async () => {
  programs = await Programs.compile(examples, join(root, 'test/runtimes'));
  runs = await programs.run();
}, 120_000);

afterAll(() => programs.remove());

test('every example compiles', () => {
  expect(programs.errors).toEqual([]);
});

test.each(examples.filter(({ runs }) => runs))(
  'the example at $place runs and prints what the page says',
  (example) => {
    const { code, stdout, stderr } = runs.get(example) as Finished;
    const { prints = stdout } = example;
    expect({ code, stderr }).toEqual({ code: 0, stderr: code === 0 ? stderr : '' });
    expect(isPrinted(prints, stdout) ? prints : stdout).toBe(prints);
  },
);
