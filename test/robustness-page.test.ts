import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { readPage, root } from './support/pages.ts';

const sources = ['src', 'middleware', 'middleware/schema', 'middleware/parts', 'middleware/results']
  .flatMap((folder) => readdirSync(join(root, folder)).map((name) => join(root, folder, name)))
  .filter((file) => file.endsWith('.ts'))
  .map((file) => readFileSync(file, 'utf8'))
  .join('\n');

const quoted = (text: string) => [...text.matchAll(/'([a-z_]+)'/g)].map(([, word = '']) => word);
const unionOf = (name: string) => quoted(new RegExp(`type ${name} =([^;]*);`).exec(sources)?.[1] ?? '');
const notes = [...sources.matchAll(/type: '([a-z_]+)'/g)].map(([, word]) => word);
const known = new Set([...unionOf('ToolErrorCode'), ...unionOf('Executed'), ...notes, 'soft_error', 'control']);

/** The rows of each table, by the names of its columns. */
const rows = readPage('docs/guide/robustness.md')
  .split('\n## ')
  .slice(1)
  .flatMap((section) => {
    const [title = '', ...lines] = section.split('\n');
    const [head = [], , ...body] = lines
      .filter((line) => line.startsWith('|'))
      .map((line) =>
        line
          .slice(1, -1)
          .split(/(?<!\\)\|/)
          .map((cell) => cell.trim()),
      );
    return body.map((cells) => ({
      title,
      cells,
      of: (name: RegExp) => cells[head.findIndex((each) => name.test(each))] ?? '',
    }));
  });

describe('the page of bad input', () => {
  test('has tables whose rows all say what happens', () => {
    expect(rows.length).toBeGreaterThan(80);
    for (const { cells } of rows) expect([cells[0], cells[1]]).not.toContain('');
    expect(new Set(rows.map(({ title, cells }) => `${title}: ${cells[0]}`)).size).toBe(rows.length);
  });

  test('names only codes and notes there are', () => {
    const words = rows.flatMap(({ of }) => [...of(/^Code/).matchAll(/`([a-z_]+)`/g)].map(([, word]) => word));
    expect(words.length).toBeGreaterThan(50);
    expect(words.filter((word) => !known.has(word ?? ''))).toEqual([]);
  });

  test('names only options there are', () => {
    const names = rows.flatMap(({ of }) => [...of(/^Option/).matchAll(/`\W*(\w+)/g)].map(([, name = '']) => name));
    expect(names.length).toBeGreaterThan(30);
    expect(names.filter((name) => !new RegExp(`\\b${name}\\b`).test(sources))).toEqual([]);
  });
});
