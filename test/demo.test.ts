import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { root } from './support/pages.ts';
import { type Finished, runNode } from './support/process.ts';

/** Runs a TypeScript file in a process of its own. */
function run(...args: readonly string[]): Promise<Finished> {
  return runNode(['--import', 'tsx', ...args], { cwd: root });
}

describe('the demo', () => {
  let demo: Finished;

  beforeAll(async () => {
    const { scripts } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));
    // Calls fail in it, as they should, which is no failure of the demo.
    const [, args = ''] = /^tsx (.*) \|\| exit 0$/.exec(scripts.demo) ?? [];
    demo = await run(...args.split(' '));
  }, 30_000);

  /** The lines of one call: its head, its way, and what came out. */
  function callOf(id: string): string {
    return demo.stdout.split(/\n(?=\S)/).find((block) => block.split('\n')[0]?.endsWith(` ${id}`)) ?? '';
  }

  test('ends by itself, and tells with its exit code that calls failed', () => {
    expect(demo.code).toBe(1);
  });

  test('prints plain text that fits 100 columns, but for the last line', () => {
    expect(demo.stdout).not.toContain('\u001b');
    const lines = demo.stdout.trimEnd().split('\n');
    expect(lines.slice(0, -1).filter((line) => line.length > 100)).toEqual([]);
    expect(lines.at(-1)).toMatch(/^13 calls: 5 ok, 2 invalid_arguments, /);
  });

  test.each([
    ['call_01', 'ok', 'alias.ts budget.ts'],
    ['call_02', 'ok', '{ "name": "toolonion"'],
    ['call_03', 'ok', '{"lines":'],
    ['call_04', 'invalid_arguments, ran: no', 'The arguments of tool "read_file" are invalid'],
    ['call_05', 'ok', '{"name":"toolonion"'],
    ['call_06', 'truncated_arguments, ran: no', 'The arguments of tool "search_text" are incomplete'],
    ['call_07', 'not_found, ran: no', 'There is no tool named "grep"'],
    ['call_08', 'denied, ran: no', 'The call of tool "delete_file" was denied: nothing may be deleted in a demo'],
    ['call_09', 'file_not_found, ran: yes', 'Tool "read_file" did not find'],
    ['call_10', 'invalid_arguments, ran: yes', '"../../etc/passwd" is outside the project'],
    ['call_11', 'ok', 'src/'],
    ['call_12', 'output_invalid, ran: yes', 'Tool "build_status" ran, but its answer does not match'],
    ['call_13', 'timeout, ran: unknown', 'Tool "wait_for_build" did not finish'],
  ])('shows what comes of %s', (id, outcome, answer) => {
    expect(callOf(id).split('\n')[0]).toContain(` ${outcome} `);
    expect(callOf(id)).toContain(`\n  out  ${answer}`);
  });

  test('shows that arguments were understood, though they were no JSON', () => {
    expect(callOf('call_05')).toContain('note repaired by dispatcher: The arguments were not plain JSON');
  });

  test('shows which layer refused, cut and stopped waiting', () => {
    const way = (id: string) => /\n {2}way {2}(.*?)\n {2}\w/s.exec(callOf(id))?.[1]?.replaceAll(/\s+/g, ' ');
    const outside = 'logging › validation › permission';
    expect(way('call_03')).toBe(`${outside} › outputLimit › outputValidation › timeout › tool: answered`);
    expect(way('call_07')).toBe('logging › validation: refused');
    expect(way('call_08')).toBe(`${outside}: refused`);
    expect(way('call_11')).toContain('outputLimit: truncated');
    expect(way('call_12')).toContain('outputValidation: refused › timeout › tool: answered');
    expect(way('call_13')).toContain('timeout: stopped waiting › tool: may still run');
    expect(callOf('call_11')).toContain('\n  note truncated by outputLimit: ');
  });

  test('hears the answer that came too late', () => {
    expect(demo.stderr).toContain('wait_for_build ended after its call had been answered');
  });
});

test('the agent loop answers each call under its id, and the model corrects itself', async () => {
  const { code, stdout } = await run('docs/examples/agent-loop.ts');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^tool {7}a1: .*agent-loop\.ts/m);
  expect(stdout).toMatch(/^tool {7}a2: .*are invalid/m);
  expect(stdout).toMatch(/^tool {7}b1: .*lines/m);
  expect(stdout.trimEnd().split('\n').at(-1)).toBe('assistant  The licence has 22 lines.');
}, 30_000);
