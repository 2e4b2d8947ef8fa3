import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('..', import.meta.url));

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs an example in a process of its own. `isTTY` has it believe that it prints to a terminal. */
function run(example: string, isTTY = false): Promise<Run> {
  const terminal = isTTY ? ['--import', 'data:text/javascript,process.stdout.isTTY = true'] : [];
  const args = ['--import', 'tsx', ...terminal, `docs/examples/${example}`];
  const { NO_COLOR: _, ...env } = process.env;
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, { cwd: root, env, timeout: 30_000 }, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode, stdout, stderr });
    });
  });
}

describe('the demo', () => {
  let demo: Run;

  beforeAll(async () => {
    demo = await run('demo.ts');
  }, 30_000);

  /** The lines of one call: its row, and what went in and came out. */
  function callOf(input: string): string {
    const blocks = demo.stdout.split(/\n(?=\S)/);
    return blocks.find((block) => block.includes(`\n   in   ${input}\n`)) ?? '';
  }

  test('ends by itself, with exit code 0 and nothing on standard error', () => {
    expect({ code: demo.code, stderr: demo.stderr }).toEqual({ code: 0, stderr: '' });
  });

  test('prints plain text that fits 120 columns', () => {
    expect(demo.stdout).not.toContain('\u001b');
    expect(demo.stdout.split('\n').filter((line) => line.length > 120)).toEqual([]);
  });

  test.each([
    ['{"path":"middleware"}', 'ok: index.ts logging.ts', 'yes'],
    ['{"path":"package.json","lines":3}', 'ok: { "name": "toolonion"', 'yes'],
    ['{"path":"LICENSE"}', 'ok: {"lines":', 'yes'],
    ['{"file":"package.json","lines":"three"}', 'invalid_arguments: ', 'no'],
    ["{'path': 'package.json'}", 'invalid_arguments: ', 'no'],
    ['{"text":"export","under":"sr', 'truncated_arguments: ', 'no'],
    ['{"pattern":"export"}', 'not_found: ', 'no'],
    ['{"path":"package.json"}', 'denied: ', 'no'],
    ['{"path":"src/onion.ts"}', 'file_not_found: ', 'yes'],
    ['{"path":"../../etc/passwd"}', 'invalid_arguments: "../../etc/passwd" is outside the project', 'yes'],
    ['{"text":"return","under":"src"}', 'ok: src/', 'yes'],
    ['{}', 'output_invalid: ', 'yes'],
    ['(no arguments)', 'timeout: ', 'unknown'],
  ])('shows what comes of %s', (input, outcome, executed) => {
    const call = callOf(input);
    expect(call).toContain(`\n   out  ${outcome}`);
    expect(call.split('\n')[0]).toMatch(new RegExp(` ${executed} +\\d+\\.\\d$`));
  });

  test('shows which layer refused, cut and stopped waiting', () => {
    const deeds = (input: string) => callOf(input).split('\n')[0]?.split(/ +/).slice(1, 8);
    expect(deeds('{"path":"LICENSE"}')).toEqual(['info', ...Array(5).fill('passed'), 'answered']);
    expect(deeds('{"pattern":"export"}')).toEqual(['warn', 'refused', '-', '-', '-', '-', '-']);
    expect(deeds('{"path":"package.json"}')).toEqual(['warn', 'passed', 'refused', '-', '-', '-', '-']);
    expect(deeds('{"text":"return","under":"src"}')?.slice(1, 4)).toEqual(['passed', 'passed', 'cut']);
    expect(deeds('{}')?.slice(3)).toEqual(['passed', 'refused', 'passed', 'answered']);
    expect(deeds('(no arguments)')?.slice(3)).toEqual(['passed', 'passed', 'expired', 'aborted']);
    expect(callOf('{"text":"return","under":"src"}')).toContain('\n   note truncated by outputLimit: ');
  });

  test('hears the answer that came too late', () => {
    expect(demo.stdout).toContain('Late: wait_for_build answered');
  });

  test('uses colours on a terminal', async () => {
    const { code, stdout } = await run('demo.ts', true);
    expect(code).toBe(0);
    expect(stdout).toContain('\u001b[32mlist_directory');
  }, 30_000);
});

test('the agent loop answers each call under its id, and the model corrects itself', async () => {
  const { code, stdout } = await run('agent-loop.ts');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^tool {7}a1: .*agent-loop\.ts/m);
  expect(stdout).toMatch(/^tool {7}a2: .*are invalid/m);
  expect(stdout).toMatch(/^tool {7}b1: .*lines/m);
  expect(stdout.trimEnd().split('\n').at(-1)).toBe('assistant  The licence has 22 lines.');
}, 30_000);
