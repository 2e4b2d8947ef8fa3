import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { readPage, root } from './support/pages.ts';

const page = readPage('docs/reference/dispatcher.md');

function fieldsOf(file: string, name: string): readonly string[] {
  const source = readFileSync(join(root, file), 'utf8');
  const [, body = ''] = new RegExp(`interface ${name}(?: extends \\w+)? {([\\s\\S]*?)\\n}`).exec(source) ?? [];
  return [...body.matchAll(/readonly (\w+)\??:/g)].map(([, field = '']) => field);
}

function rowsUnder(title: string): readonly string[] {
  const section = page.split('\n## ').find((each) => each.startsWith(`${title}\n`)) ?? '';
  return [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, field = '']) => field);
}

test.each([
  ['createDispatcher', 'src/dispatcher.ts', 'DispatcherOptions'],
  ['A call', 'src/request.ts', 'ToolCallRequest'],
  ['dispatch', 'src/request.ts', 'DispatchOptions'],
  ['dispatchAll', 'src/request.ts', 'BatchOptions'],
  ['drain', 'src/shut-down.ts', 'DrainOptions'],
])('the table under "%s" has all there is, in the order of the type', (title, file, name) => {
  const rows = rowsUnder(title);
  expect(rows.length).toBeGreaterThan(0);
  expect(rows).toEqual(fieldsOf(file, name));
});

test('the table under "stream" has those of dispatch but the observers, as the type has', () => {
  const source = readFileSync(join(root, 'src/request.ts'), 'utf8');
  const [, of = '', left = ''] = /type StreamOptions = Omit<(\w+), ([^>]*)>;/.exec(source) ?? [];
  const observers = [...left.matchAll(/'(\w+)'/g)].map(([, field]) => field);
  expect(observers.length).toBeGreaterThan(0);
  expect(rowsUnder('stream')).toEqual(fieldsOf('src/request.ts', of).filter((field) => !observers.includes(field)));
});
