import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { type ToolErrorCode, toolError } from 'toolonion';

const page = readFileSync(new URL('../docs/reference/errors.md', import.meta.url), 'utf8');
const source = readFileSync(new URL('../src/error.ts', import.meta.url), 'utf8');

const rows = [...page.matchAll(/^\| `([a-z_]+)` \|(.*)\|$/gm)].map(([, code = '', cells = '']) => {
  const [when = '', retryable = '', executed = '', remedy = ''] = cells.split(' | ').map((cell) => cell.trim());
  return { code: code as ToolErrorCode, when, retryable, executed, remedy };
});
const union = /type ToolErrorCode =([^;]*);/.exec(source)?.[1] ?? '';
const codes = [...union.matchAll(/'([a-z_]+)'/g)].map(([, code]) => code);

test('the page of error codes lists the codes of the type, in its order', () => {
  expect(codes.length).toBeGreaterThan(0);
  expect(rows.map(({ code }) => code)).toEqual(codes);
});

test.each(rows)('the page says of $code what toolError makes of it, and what to do', (row) => {
  expect(row.retryable).toBe(toolError(row.code, 'A message.').retryable ? 'yes' : 'no');
  expect([row.when, row.executed, row.remedy]).not.toContain('');
});
