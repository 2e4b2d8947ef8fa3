// The commands beside `dispatch`, as processes of their own.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Command, firstOf } from '../support/command.ts';
import { finished } from '../support/process.ts';

let command: Command;

beforeAll(async () => {
  command = await Command.build(fileURLToPath(new URL('modules', import.meta.url)));
}, 60_000);

afterAll(() => command.remove());

/** Runs a command that is to end well, and gives what it prints. */
async function printed(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await command.run(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

async function file(name: string, content: unknown): Promise<string> {
  await writeFile(join(command.directory, name), typeof content === 'string' ? content : JSON.stringify(content));
  return name;
}

describe('toolonion', () => {
  test('tells its commands, and each of them how it is used, with examples, in 100 columns', async () => {
    const overview = await printed('--help');
    const commands = ['dispatch', 'tools', 'inspect', 'policy', 'bench'];
    for (const name of commands) {
      expect(overview).toContain(`\n  ${name}`);
      const help = await printed(name, '--help');
      expect(help).toMatch(new RegExp(`^Usage: toolonion ${name} [^]*\nExamples:\n {2}.*toolonion ${name} `));
      expect(help.split('\n').filter((line) => line.length > 100)).toEqual([]);
    }
  }, 20_000);

  test.each(['dispatch', 'tools', 'inspect', 'policy', 'bench'])(
    'tells every option of %s in its help',
    async (name) => {
      const { stderr } = await command.run([name, '--nonsense']);
      const options = stderr.match(/--[a-z-]+/g)?.filter((option) => !['--nonsense', '--help'].includes(option)) ?? [];
      const help = await printed(name, '--help');
      expect(options.length).toBeGreaterThan(0);
      expect(options.filter((option) => !help.includes(`\n  ${option} `))).toEqual([]);
    },
  );

  test('tells its version', async () => {
    expect(await printed('help', 'policy')).toBe(await printed('policy', '-h'));
    expect(await printed('--version')).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test('says that it cannot write', async () => {
    const { code, stderr } = await command.shell('toolonion --version > /dev/full');
    expect(stderr).toMatch(/^toolonion: Nothing can be written: ENOSPC/);
    expect(code).toBe(2);
  });

  test('ends quietly where nobody reads what it prints', async () => {
    const child = command.start(['tools', '--tools', 'many-tools.mjs', '--json']);
    await firstOf(child.stdout);
    child.stdout.destroy();
    const { code, stderr } = await finished(child);
    expect({ code, stderr }).toEqual({ code: 141, stderr: '' });
  });
});

describe('toolonion tools', () => {
  test('shows names, flags, and arguments with their types, defaults and descriptions', async () => {
    expect(
      await printed('tools', '--tools', 'shown.mjs'),
    ).toBe(`search  read-only, idempotent, concurrency-safe by its arguments
  Finds things.
  query   string           What to look for.
  limit?  integer = 10
  sort?   "name" | "date"
  tags?   string[] | null
  any?    any
  one?    1

wipe  destructive, does not run here
  Deletes everything.
`);
  });

  test('is not taken in by what schemas hold', async () => {
    const shown = await printed('tools', '--tools', 'odd-schemas.mjs');
    expect(shown).toContain('odd\\u{1b}[2J');
    expect(shown).not.toContain('\u001b');
    expect(shown).toMatch(/deep\? +any\[\]\[\]/);
  });

  test('shows whole schemas as JSON', async () => {
    expect(JSON.parse(await printed('tools', '--tools', 'shown.mjs', '--json'))).toMatchObject([
      {
        name: 'search',
        description: 'Finds\nthings.',
        readOnly: true,
        destructive: false,
        idempotent: true,
        concurrencySafe: 'depends on the arguments',
        runsHere: true,
        inputSchema: { properties: { limit: { type: 'integer', default: 10 } }, required: ['query'] },
        outputSchema: { type: 'object' },
      },
      { name: 'wipe', destructive: true, runsHere: false, concurrencySafe: false },
    ]);
  });

  test('keeps what modules print out of the way', async () => {
    const { stdout, stderr } = await command.run(['tools', '--tools', 'talks.mjs', '--json']);
    expect(JSON.parse(stdout)).toMatchObject([{ name: 'hello' }]);
    expect(stderr).toBe('a module that talks\n');
  });
});

describe('toolonion inspect', () => {
  test('draws the onion from outside in', async () => {
    expect(await printed('inspect', '--dispatcher', 'default.mjs')).toContain(`╭─ around ────────╮
│  1 tool: hello  │
╰─────────────────╯
`);
  });

  test('draws each wall around the next, with warnings where an order goes wrong', async () => {
    expect(await printed('inspect', '--dispatcher', 'crooked.mjs')).toBe(`╭─ timeout (1) ───────────────────────╮
│╭─ (no name) (2) ───────────────────╮│
││╭─ a-layer-with-a-very-long-name ─╮││
│││╭─ validation ──────────────────╮│││
││││╭─ permission (1) ────────────╮││││
│││││  no tools                   │││││
││││╰─────────────────────────────╯││││
│││╰───────────────────────────────╯│││
││╰─────────────────────────────────╯││
│╰───────────────────────────────────╯│
╰─────────────────────────────────────╯

(1) "permission" is inside "timeout": the time a person takes to approve counts as the time of the
tool. Put it outside.
(2) A layer has no name for logs and errors to show. Give it one: named("mine", layer).
`);
  });

  test('has nothing to say against the order that tools of a module get', async () => {
    const drawn = await printed('inspect', '--tools', 'tools.mjs');
    expect(drawn).toContain('╭─ logging ─');
    expect(drawn).toContain('\nNo warnings about this order.\n');
  });

  test('tells the same as JSON', async () => {
    expect(JSON.parse(await printed('inspect', '--dispatcher', 'crooked.mjs', '--json'))).toEqual({
      layers: ['timeout', '', 'a-layer-with-a-very-long-name', 'validation', 'permission'],
      warnings: [
        { places: [0, 4], message: expect.stringContaining('"permission" is inside "timeout"') },
        { places: [1], message: expect.stringContaining('a layer has no name') },
      ],
      tools: [],
    });
  });
});

describe('toolonion policy check', () => {
  test('says that a policy can be used', async () => {
    const path = await file('fine.json', { default: { permission: 'deny' }, tools: { echo: { permission: 'allow' } } });
    expect(await printed('policy', 'check', path)).toBe(
      '"fine.json" can be used. Give --tools MODULE to have its names checked, too.\n',
    );
    expect(await printed('policy', 'check', path, '--tools', 'tools.mjs')).toBe(
      '"fine.json" can be used, and its names are those of tools.\n',
    );
  });

  test.each<[string, unknown, readonly string[]]>([
    ['broken.json', '{\n  "tools": {,}\n}', ['"broken.json" is no JSON: it goes wrong in line 2, character 13.']],
    [
      'wrong.json',
      { tools: { a: { permission: 'alow', limitMs: -1 } } },
      ['tools.a.permission: expected one of', 'tools.a.limitMs: must be > 0'],
    ],
    [
      'typo.json',
      { tools: { ecko: {}, echo: { permission: [{ verdict: 'deny', when: { txt: {} } }] } } },
      ['tools.ecko fits no tool.', 'no tool it speaks of has an argument "txt"'],
    ],
  ])('names what is wrong in %s', async (name, content, messages) => {
    const { code, stdout, stderr } = await command.run([
      'policy',
      'check',
      await file(name, content),
      '--tools',
      'tools.mjs',
    ]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    for (const message of messages) expect(stderr).toContain(message);
  });
});

describe('toolonion policy explain', () => {
  const POLICY = {
    default: { limitMs: 5000 },
    tools: {
      'e*': { permission: 'allow', logValues: true },
      echo: {
        permission: [{ verdict: 'deny', when: { text: { const: 'secret' } }, reason: 'it is secret' }],
        outputLimit: 'none',
      },
    },
  };

  test('says what would become of a call, which rule decides, and where its limits come from', async () => {
    const path = await file('explained.json', POLICY);
    expect(await printed('policy', 'explain', path, 'echo', '{"text":"secret"}')).toBe(`echo {"text":"secret"}
  would be    denied
  reason      it is secret
  decided by  tools.echo.permission[0]
  overruled   tools["e*"].permission, which says allow
  time limit  5000 ms, by default.limitMs
  answer      as long as it is, by tools.echo.outputLimit
  log         with values, by tools["e*"].logValues
  but         for arguments just as given: --tools MODULE has them checked, and defaults filled in
`);
    expect(await printed('policy', 'explain', path, 'echo')).toContain(
      '  would be    allowed\n  decided by  tools["e*"].permission\n',
    );
    expect(await printed('policy', 'explain', path, 'other')).toContain(
      '  would be    denied\n  reason      no rule of the policy speaks of it\n  decided by  nothing in the policy',
    );
  });

  test('fills in what the schema of the tool would, and tells of a call that would not get that far', async () => {
    const rule = { verdict: 'allow', when: { limit: { const: 10 } } };
    const path = await file('filled.json', { tools: { search: { permission: [rule] } } });
    const explain = (...args: readonly string[]) => printed('policy', 'explain', path, 'search', ...args);
    expect(await explain('{"query":"x"}')).toContain('would be    denied');
    expect(await explain('{"query":"x"}', '--tools', 'shown.mjs')).toContain(
      'search {"query":"x","limit":10}\n  would be    allowed',
    );
    expect(await explain('{}', '--tools', 'shown.mjs')).toContain(
      'would be    refused before it is judged\n              The arguments of tool "search" are invalid:\n              - "query"',
    );
  });

  test('tells the same as JSON', async () => {
    const path = await file('explained.json', POLICY);
    expect(JSON.parse(await printed('policy', 'explain', path, 'echo', '{"text":"secret"}', '--json'))).toEqual({
      tool: 'echo',
      arguments: { text: 'secret' },
      verdict: 'deny',
      reason: 'it is secret',
      decidedBy: 'tools.echo.permission[0]',
      overruled: [{ verdict: 'allow', place: 'tools["e*"].permission' }],
      limitMs: { value: 5000, place: 'default.limitMs' },
      outputLimit: { value: 'none', place: 'tools.echo.outputLimit' },
      logValues: { value: true, place: 'tools["e*"].logValues' },
    });
  });

  test.each<[readonly string[], string]>([
    [['policy'], 'Give policy check FILE, or policy explain FILE TOOL [ARGUMENTS] [--json].'],
    [['policy', 'explain', 'fine.json'], 'Give policy check FILE, or policy explain FILE TOOL [ARGUMENTS] [--json].'],
    [['policy', 'check', 'nowhere.json'], '"nowhere.json" cannot be read: ENOENT'],
    [['policy', 'check', 'fine.json', '--json'], 'Give policy check FILE'],
    [['policy', 'explain', 'nowhere.json', 'echo'], '"nowhere.json" cannot be read: ENOENT'],
    [['policy', 'explain', 'explained.json', 'echo', '{text'], 'ARGUMENTS is no JSON: it goes wrong at character 2.'],
    [
      ['policy', 'explain', 'explained.json', 'echo', '[]'],
      'ARGUMENTS have to be an object, as in \'{"path":"a.txt"}\', not an array.',
    ],
  ])('%j is refused', async (args, message) => {
    await file('explained.json', POLICY);
    const { code, stdout, stderr } = await command.run(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  });
});

describe('toolonion bench', () => {
  const CALLS = ['{"name":"echo","arguments":{"text":"x"}}', '', '{"name":"write"}', '{"name":"prints"}'].join('\n');
  const QUICK = ['bench', '--tools', 'tools.mjs', '--repeats', '3', '--rounds', '2', '--calls'];

  test('shows percentiles, rates, bytes, what each layer adds, and where the time of a call went', async () => {
    const { code, stdout } = await command.run([...QUICK, await file('bench.jsonl', CALLS), '--show', '1']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^3 calls: 2 ok, 1 denied\. Through logging › validation › permission › outputLimit › /);
    expect(stdout.split('\n').filter((line) => line.length > 100)).toEqual([]);
    expect(stdout).toMatch(/dispatches +p50 +p90 +p99 +most +per second +bytes a call\n/);
    expect(stdout).toMatch(/\nwith the tools +7 +[\d.]+ .s /);
    expect(stdout).toMatch(/\nwith stand-ins +[\d,]+ +[\d.]+ .s /);
    expect(stdout).toMatch(
      /\nlayer +taken away +middle 80 % +own time +bytes\n(\w+ +(~ )?-?[\d.]+ .s +-?[\d.]+ .s to [^\n]*\n){6}/,
    );
    expect(stdout).toContain('taken away: how much longer a call takes with the layer than without it');
    expect(stdout).toMatch(/\nCall 1, echo: ok; the last of 3 times\nlogging +█+ /);
    expect(stdout).toMatch(/\ntool +█+ +[\d.]+ .s, own [\d.]+ .s\n$/);
  });

  test('runs a tool that changes something once, and what a policy denies not at all', async () => {
    const path = await file('writes.jsonl', '{"name":"count"}\n{"name":"drop"}\n');
    const { stderr } = await command.run([
      'bench',
      '--tools',
      'counts.mjs',
      '--allow',
      'count',
      '--calls',
      path,
      '--rounds',
      '3',
    ]);
    expect(stderr).toBe('count ran\n');
  });

  test('gives all figures as JSON, whatever the tools print', async () => {
    const { stdout, stderr } = await command.run([...QUICK, await file('bench.jsonl', CALLS), '--json']);
    const figures = JSON.parse(stdout);
    expect(Object.keys(figures)).toEqual([
      'calls',
      'withTools',
      'dispatching',
      'layers',
      'sampled',
      'rounds',
      'probeUs',
    ]);
    expect(figures.calls).toMatchObject([
      { outcome: 'ok', runs: 3 },
      { outcome: 'denied', runs: 1 },
      { outcome: 'ok', runs: 3 },
    ]);
    expect(stderr).toBe('printed\n'.repeat(3));
  });

  test('measures a dispatcher of one’s own, and takes the calls from standard input', async () => {
    const { stdout } = await command.run(['bench', '--dispatcher', 'default.mjs', '--calls', '-'], {
      input: '{"name":"hello"}',
    });
    expect(stdout).toMatch(/^1 call: 1 ok\. Through around\.\n/);
  });

  test('tells on a terminal how far it is', async () => {
    const node = ['--import', 'data:text/javascript,process.stderr.isTTY = true'];
    const child = command.start([...QUICK, '-'], { node });
    child.stdin.end('{"name":"echo","arguments":{"text":"x"}}\n{"name":"sleeps"}');
    const ran = finished(child);
    child.stderr.on('data', (chunk) => String(chunk).includes('calls dispatched') && child.kill('SIGINT'));
    expect((await ran).stderr).toContain('\r1 of 6 calls dispatched\u001b[K');
  });

  test('does not wait for what will never come', async () => {
    const args = ['bench', '--dispatcher', 'never.mjs', '--calls', '-'];
    const { code, stderr } = await command.run(args, { input: '{"name":"never"}' });
    expect(stderr).toBe(
      'toolonion: A call waits for what will never come. Give its tool a time limit, or leave the call out.\n',
    );
    expect(code).toBe(2);
  });

  test('ends at Ctrl-C', async () => {
    const child = command.start([...QUICK, '-']);
    child.stdin.end('{"name":"sleeps"}');
    await firstOf(child.stderr);
    child.kill('SIGINT');
    const { code, stdout } = await finished(child);
    expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
  });

  test.each<[readonly string[], string]>([
    [['bench', '--tools', 'tools.mjs'], '--calls FILE is missing'],
    [['bench', '--tools', 'tools.mjs', '--calls', 'nowhere.jsonl'], 'The calls cannot be read: ENOENT'],
    [['bench', '--tools', 'tools.mjs', '--calls', '-'], '--calls: "-" holds no calls.'],
    [
      ['bench', '--tools', 'tools.mjs', '--calls', 'no-tools.mjs'],
      '--calls: line 1 of "no-tools.mjs" holds no call: it is no JSON',
    ],
    [['bench', '--tools', 'tools.mjs', '--calls', 'bench.jsonl', '--show', '4'], '--show 4: there are 3 calls.'],
    [['bench', '--dispatcher', 'foreign-dispatcher.mjs', '--calls', 'bench.jsonl'], 'of another copy of toolonion'],
  ])('%j is refused', async (args, message) => {
    await file('bench.jsonl', CALLS);
    const { code, stdout, stderr } = await command.run(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  });
});
