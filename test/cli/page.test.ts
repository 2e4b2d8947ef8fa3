// The page on the command, as somebody would follow it: its files are written, its lines are run by a shell.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Command } from '../support/command.ts';
import { fencesOf, isPrinted, printedBelow } from '../support/pages.ts';

const PAGE = 'docs/guide/command.md';
const fences = fencesOf(PAGE);
const scripts = fences.flatMap((fence, index) =>
  fence.info === 'sh' ? [{ line: fence.line, code: fence.code, prints: printedBelow(PAGE, fences, index) ?? '' }] : [],
);

let command: Command;

beforeAll(async () => {
  command = await Command.build();
  for (const { info, code } of fences) {
    const [, file] = /^\w+ ([\w.-]+)$/.exec(info) ?? [];
    if (file !== undefined) await writeFile(join(command.directory, file), code);
  }
  await writeFile(join(command.directory, 'package.json'), '{ "type": "module" }');
}, 60_000);

afterAll(() => command.remove());

test.each(scripts)(`the lines of ${PAGE}:$line print what the page says`, async ({ code, prints }) => {
  const { stdout, stderr } = await command.shell(code);
  expect(stderr).toBe('');
  expect(isPrinted(prints, stdout) ? prints : stdout).toBe(prints);
});

test('every block of the page is a file, lines of a shell, or what they print', () => {
  expect(fences.filter(({ info }) => !/^(sh|text|bash no-run|\w+ [\w.-]+)$/.test(info))).toEqual([]);
  expect(scripts.length).toBeGreaterThan(4);
});
