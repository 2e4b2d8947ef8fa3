// The command as a process of its own, with pipes and files.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ToolDispatchResult } from 'toolonion';
import { anthropic } from 'toolonion/wire';
import { Command, firstOf, jsonLines, type RunOptions } from '../support/command.ts';
import { type Finished, finished } from '../support/process.ts';

let command: Command;

beforeAll(async () => {
  command = await Command.build(fileURLToPath(new URL('modules', import.meta.url)));
}, 60_000);

afterAll(() => command.remove());

const TOOLS = ['dispatch', '--tools', 'tools.mjs'];
const QUIET = [...TOOLS, '--quiet'];

function echo(text: string, id?: string): string {
  return JSON.stringify({ ...(id && { id }), name: 'echo', arguments: { text } });
}

/** Dispatches lines, and reads the results. */
async function dispatch(lines: readonly (string | object)[], args = QUIET, options: RunOptions = {}) {
  const input = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');
  const ran = await command.run(args, { input, ...options });
  return { ...ran, results: jsonLines<ToolDispatchResult>(ran.stdout) };
}

function codes({ results }: { readonly results: readonly ToolDispatchResult[] }): readonly string[] {
  return results.map(({ error, isError }) => error?.code ?? (isError ? 'soft_error' : 'ok'));
}

/** What comes on standard error until it holds a text. */
function toldUntil({ stderr }: ReturnType<Command['start']>, text: string): Promise<string> {
  return new Promise((resolve) => {
    let told = '';
    const hear = (chunk: Buffer) => {
      told += chunk;
      if (!told.includes(text)) return;
      stderr.off('data', hear);
      resolve(told);
    };
    stderr.on('data', hear);
  });
}

describe('toolonion dispatch', () => {
  test('gives a result a line for a call a line, in the same order, whole as dispatch gives it', async () => {
    const ran = await dispatch([
      echo('one', 'a'),
      '{"name":"echo","arguments":"{\\"text\\":\\"two\\"}"}',
      echo('three', 'c'),
    ]);
    expect(ran.results.map(({ content }) => content)).toEqual(['one', 'two', 'three']);
    expect(ran.results[0]).toEqual({
      resolvedToolName: 'echo',
      content: 'one',
      isError: false,
      notes: [],
      toolCallId: 'a',
      durationMs: expect.any(Number),
      requested: { id: 'a', name: 'echo', input: { text: 'one' } },
    });
    expect(ran.results[1]?.requested.rawArguments).toBe('{"text":"two"}');
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: '' });
  });

  test('reads a file as well, in the place of standard input', async () => {
    await writeFile(join(command.directory, 'calls.jsonl'), `${echo('from a file')}\n`);
    expect(codes(await dispatch([], [...QUIET, 'calls.jsonl']))).toEqual(['ok']);
    const piped = await command.shell(`echo '${echo('one')}' | toolonion ${QUIET.join(' ')} /dev/stdin`);
    expect(JSON.parse(piped.stdout).content).toBe('one');
    expect((await dispatch([], [...QUIET, '/dev/null'])).code).toBe(0);
    const missing = await dispatch([], [...QUIET, 'missing.jsonl']);
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('The calls cannot be read: ENOENT')]);
    const directory = await dispatch([], [...QUIET, '.']);
    expect([directory.code, directory.stderr]).toEqual([2, expect.stringContaining('it is a directory')]);
  });

  test('says with its exit code whether a call failed', async () => {
    expect((await dispatch([echo('one'), { name: 'nobody' }])).code).toBe(1);
    expect((await dispatch([])).code).toBe(0);
  });

  test('logs to standard error, a line of JSON for each call; values are not in it', async () => {
    const { stderr } = await dispatch([echo('a secret'), { name: 'nobody' }], TOOLS);
    expect(jsonLines(stderr)).toMatchObject([
      { tool: 'echo', code: 'ok', inputKeys: ['text'] },
      { tool: 'nobody', code: 'not_found' },
    ]);
    expect(stderr).not.toContain('a secret');
    const warnings = await dispatch([echo('fine'), { name: 'nobody' }], [...TOOLS, '--log', 'warn']);
    expect(jsonLines(warnings.stderr)).toMatchObject([{ tool: 'nobody' }]);
  });

  test('keeps standard output for results, whatever tools print', async () => {
    const ran = await dispatch([{ name: 'prints' }, echo('one')]);
    expect(codes(ran)).toEqual(['ok', 'ok']);
    expect(ran.stderr).toBe('printed\n');
  });

  test('answers a line as soon as it is there', async () => {
    const child = command.start(QUIET);
    child.stdin.write(`${echo('first')}\n`);
    expect(JSON.parse(await firstOf(child.stdout)).content).toBe('first');
    child.stdin.write(echo('second').slice(0, 10));
    child.stdin.write(`${echo('second').slice(10)}\n`);
    expect(JSON.parse(await firstOf(child.stdout)).content).toBe('second');
    child.stdin.end();
    expect((await finished(child)).code).toBe(0);
  }, 20_000);

  test('answers ten thousand lines in their order', async () => {
    const lines = Array.from({ length: 10_000 }, (_, index) => echo(`${index} é𝄞`, `id-${index}`));
    const { results, code } = await dispatch(lines);
    expect(
      results.every((result, index) => result.toolCallId === `id-${index}` && result.content === `${index} é𝄞`),
    ).toBe(true);
    expect([results.length, code]).toEqual([10_000, 0]);
  }, 30_000);
});

describe('a line', () => {
  test('may be blank, end as on Windows, begin with a byte order mark, and end with the input', async () => {
    const input = `\uFEFF${echo('one')}\r\n\n   \n${echo('two')}`;
    const ran = await command.run(QUIET, { input });
    expect(jsonLines<ToolDispatchResult>(ran.stdout).map(({ content }) => content)).toEqual(['one', 'two']);
    expect(ran.code).toBe(0);
  });

  test.each<[string, string, Partial<ToolDispatchResult>]>([
    ['nonsense', 'it is no JSON: it goes wrong at character 1', { toolCallId: 'line-2' }],
    ['{"name":"echo","arguments":{"text":"tw', 'it is no JSON: it ends too early', { toolCallId: 'line-2' }],
    ['[1]', 'it is an array, no object', { toolCallId: 'line-2' }],
    ['null', 'it is null, no object', { toolCallId: 'line-2' }],
    [
      '{"id":7,"name":"echo"}',
      'its "id" has to be text, not a number',
      { toolCallId: 'line-2', resolvedToolName: 'echo' },
    ],
    ['{"id":"a","name":"echo","truncated":"no"}', 'its "truncated" has to be true or false', { toolCallId: 'a' }],
    ['{"id":"a"}', 'its "name" has to be the text of a tool\'s name', { toolCallId: 'a' }],
    [
      '{"id":"a","name":"echo","args":{"text":"x"}}',
      'a call has no key "args" (here it is called "arguments"); its keys: id, name, arguments, truncated',
      { toolCallId: 'a', resolvedToolName: 'echo' },
    ],
  ])('that holds no call (%s) has a result that says why, and the others are served', async (line, why, result) => {
    const ran = await dispatch([echo('before'), line, echo('after')]);
    expect(codes(ran)).toEqual(['ok', 'invalid_call', 'ok']);
    expect(ran.results[1]).toMatchObject({ content: `Line 2 holds no call: ${why}.`, isError: true, ...result });
    expect(ran.results[1]?.error).toMatchObject({ executed: 'no', retryable: false });
    expect(ran.stderr).toBe(`toolonion: Line 2 holds no call: ${why}.\n`);
    expect(ran.code).toBe(1);
  });

  test('may be a call as a provider tells it, with the names that a provider was told', async () => {
    const input = { text: 'x' };
    const text = JSON.stringify(input);
    const ran = await dispatch([
      { id: 'a', type: 'function', function: { name: 'echo', arguments: text } },
      { index: 0, id: 'b', function: { name: 'echo', arguments: text } },
      { type: 'function_call', id: 'i', call_id: 'c', name: 'echo', arguments: text, status: 'completed' },
      { type: 'tool_use', id: 'd', name: 'echo', input },
      { functionCall: { id: 'e', name: 'echo', args: input }, thoughtSignature: 's' },
      { type: 'function_call', id: 'f', name: 'echo', arguments: input },
      { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'echo', arguments: input } },
    ]);
    expect(ran.results.map(({ toolCallId, content }) => [toolCallId, content])).toEqual(
      ['a', 'b', 'c', 'd', 'e', 'f', '7'].map((id) => [id, 'x']),
    );
    const { names } = anthropic.definitions([{ name: 'my.echo', description: '', inputSchema: {} }]);
    const told = await dispatch([{ type: 'tool_use', id: 'a', name: names.told('my.echo'), input }]);
    expect(told.results[0]).toMatchObject({ resolvedToolName: 'my.echo', content: 'x' });
  });

  test('that a provider tells to be cut is refused, and one without an id gets one', async () => {
    const ran = await dispatch([
      { type: 'function_call', call_id: 'c', name: 'echo', arguments: '{"text":"x"}', status: 'incomplete' },
      { id: null, type: 'function', function: { name: 'echo', arguments: '{"text":"x"}' } },
      { type: 'tool_use', id: 'a', input: {} },
      { functionCall: {} },
    ]);
    expect(codes(ran)).toEqual(['truncated_arguments', 'ok', 'invalid_call', 'invalid_call']);
    expect(ran.results[1]?.toolCallId).toMatch(/./);
    expect(ran.results[2]).toMatchObject({
      toolCallId: 'a',
      content: 'Line 3 holds no call: it has the shape of anthropic, but names no tool.',
    });
  });

  test('that is no UTF-8 is refused, for its arguments would not arrive as they were sent', async () => {
    const broken = Buffer.concat([
      Buffer.from('{"name":"echo","arguments":{"text":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}}'),
    ]);
    const newline = Buffer.from('\n');
    const parts = [Buffer.from(echo('one')), broken, Buffer.from(echo('two')), broken].flatMap((part) => [
      part,
      newline,
    ]);
    const { stdout } = await command.run(QUIET, { input: Buffer.concat(parts.slice(0, -1)) });
    const results = jsonLines<ToolDispatchResult>(stdout);
    expect(codes({ results })).toEqual(['ok', 'invalid_call', 'ok', 'invalid_call']);
    expect(results[3]?.content).toBe('Line 4 holds no call: it is not UTF-8.');
  });

  test('that never ends is not kept in memory, and refused', async () => {
    const huge = Buffer.concat([Buffer.alloc(70_000_000, 'x'), Buffer.from(`\n${echo('after')}\n`)]);
    const ran = await command.run(QUIET, { input: huge, node: ['--max-old-space-size=60'] });
    const results = jsonLines<ToolDispatchResult>(ran.stdout);
    expect(codes({ results })).toEqual(['invalid_call', 'ok']);
    expect(results[0]?.content).toContain('it has more than 67108864 bytes');
  }, 30_000);
});

describe('what a tool does to the process', () => {
  test('a failure nobody waits for is told, and no result is lost', async () => {
    const ran = await dispatch([echo('one'), { name: 'strays' }, echo('two')]);
    expect(ran.results.map(({ content }) => content)).toEqual(['one', 'fine', 'two']);
    expect(ran.stderr).toContain(
      'While line 2 was answered, something failed that nobody waited for: Error: an unheard rejection',
    );
    expect(ran.stderr).toContain('Error: an uncaught exception');
    expect(ran.code).toBe(1);
  });

  test('a call that waits for what will never come is answered, and the lines after it are served', async () => {
    const policy = { default: { permission: 'allow', limitMs: 'none' } };
    await writeFile(join(command.directory, 'no-limit.json'), JSON.stringify(policy));
    const ran = await dispatch([{ name: 'never' }, echo('two')], [...QUIET, '--policy', 'no-limit.json']);
    expect(codes(ran)).toEqual(['cancelled', 'ok']);
    expect(ran.stderr).toContain('Line 1 waits for what will never come, and is answered as cancelled.');
  }, 20_000);

  test('so it is for somebody who waits for the answer before there is more', async () => {
    const policy = { default: { permission: 'allow', limitMs: 'none' } };
    await writeFile(join(command.directory, 'no-limit.json'), JSON.stringify(policy));
    const child = command.start([...QUIET, '--policy', 'no-limit.json']);
    child.stdin.write('{"name":"never"}\n');
    expect(JSON.parse(await firstOf(child.stdout)).error.code).toBe('cancelled');
    child.stdin.end(`${echo('more')}\n`);
    const { stdout } = await finished(child);
    expect(JSON.parse(stdout).content).toBe('more');
  }, 20_000);

  test('so it is where lines come later, on a pipe that is open', async () => {
    const policy = { default: { permission: 'allow', limitMs: 'none' } };
    await writeFile(join(command.directory, 'no-limit.json'), JSON.stringify(policy));
    const child = command.start([...QUIET, '--policy', 'no-limit.json']);
    child.stdin.write(`${JSON.stringify({ name: 'never' })}\n${`${echo('x'.repeat(100))}\n`.repeat(2000)}`);
    await firstOf(child.stderr);
    const ran = finished(child);
    // Longer than an interrupted command would wait for more.
    await new Promise((resolve) => setTimeout(resolve, 500));
    child.stdin.end(`${echo('later')}\n`);
    const { stdout } = await ran;
    expect(jsonLines<ToolDispatchResult>(stdout).at(-1)?.content).toBe('later');
    expect(jsonLines(stdout).length).toBe(2002);
  }, 20_000);

  test('the end of the process loses no result that was there', async () => {
    const ran = await dispatch([echo('one'), { name: 'exits' }, echo('never')]);
    expect(ran.results.map(({ content }) => content)).toEqual(['one']);
    expect(ran.stderr).toContain(
      'The process was ended while line 2 was answered, by a tool perhaps. That line and all later ones have no result.',
    );
    expect(ran.code).toBe(1);
  });

  test('a tool that still runs when all is answered is given time to end', async () => {
    const ran = await dispatch([{ name: 'heedless' }], [...QUIET, '--limit-ms', '50']);
    expect(ran.results[0]?.error).toMatchObject({ code: 'timeout', executed: 'unknown' });
    expect(ran.stderr).toContain('Waiting for 1 of the tools');
    expect(ran.stderr).toContain(
      'heedless ended after its call had been answered; its own answer was "done after all".',
    );
  });

  test('a dispatcher that heeds no signal is told from a tool that ends the process', async () => {
    const ran = await dispatch(
      [{ name: 'hello' }, { name: 'silent' }, { name: 'hello' }],
      ['dispatch', '--dispatcher', 'liar.mjs'],
    );
    expect(codes(ran)).toEqual(['ok']);
    expect(ran.stderr).toContain(
      'Line 2 is never answered: its dispatcher heeds no signal. It and all later lines have no result.',
    );
    expect(ran.stderr).not.toContain('by a tool perhaps');
    expect(ran.code).toBe(1);
  });

  test('nobody waits for late tools of a dispatcher that tells its own host', async () => {
    const ran = await dispatch([{ name: 'late' }], ['dispatch', '--dispatcher', 'late.mjs']);
    expect(ran.results[0]?.error).toMatchObject({ code: 'timeout', executed: 'unknown' });
    expect(ran.stderr).toBe('');
  });

  test('ending the stream of standard output, or putting something on every object, changes nothing', async () => {
    const ran = await dispatch([echo('one'), { name: 'meddles' }, echo('two')]);
    expect(ran.results.map(({ content }) => content)).toEqual(['one', 'meddled', 'two']);
    expect(ran.code).toBe(0);
  });

  test('bytes are written as base64, and what a runtime put into a suspension cannot break the line', async () => {
    const { results, code } = await dispatch([{ name: 'paints' }, { name: 'suspends' }]);
    expect(results[0]?.content).toEqual([{ type: 'image', mimeType: 'image/png', data: 'AQID' }]);
    expect(results[1]).toMatchObject({
      isError: false,
      control: { type: 'suspend', request: { reason: 'to be answered later' } },
    });
    expect(code).toBe(0);
  });
});

describe('Ctrl-C', () => {
  /** Sends a signal once the sleeping tool sleeps. */
  async function interrupted(signal: NodeJS.Signals, lines: readonly string[], rest: string): Promise<Finished> {
    const child = command.start(QUIET);
    child.stdin.write(lines.map((line) => `${line}\n`).join('') + rest);
    await firstOf(child.stderr);
    child.kill(signal);
    return finished(child);
  }

  const SLEEPS = JSON.stringify({ id: 'sleeps', name: 'sleeps' });

  test.each<[NodeJS.Signals, number]>([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])(
    'or %s stops what runs, and every line that came has a result',
    async (signal, code) => {
      // The pipe is left open: nobody waits for the end of it.
      const ran = await interrupted(signal, [SLEEPS, echo('later', 'b'), 'nonsense'], '{"name":"half a li');
      const results = jsonLines<ToolDispatchResult>(ran.stdout);
      expect(codes({ results })).toEqual(['cancelled', 'cancelled', 'invalid_call']);
      expect(results.map(({ error }) => error?.executed)).toEqual(['stopped', 'no', 'no']);
      expect(ran.stderr).toContain('Stopping: the call under way is being answered');
      expect(ran.code).toBe(code);
    },
    20_000,
  );

  test('answers what is left of a file', async () => {
    const lines = [SLEEPS, ...Array.from({ length: 5000 }, (_, index) => echo('x', String(index)))];
    await writeFile(join(command.directory, 'long.jsonl'), lines.join('\n'));
    const child = command.start([...QUIET, 'long.jsonl']);
    await firstOf(child.stderr);
    child.kill('SIGINT');
    const ran = await finished(child);
    const results = jsonLines<ToolDispatchResult>(ran.stdout);
    expect(results.length).toBe(5001);
    expect(results.every(({ error }) => error?.code === 'cancelled')).toBe(true);
    expect(ran.code).toBe(130);
  }, 20_000);

  test('a second time ends at once, though calls keep coming', async () => {
    const child = command.start(QUIET);
    child.stdin.on('error', () => {});
    const calls = setInterval(() => child.stdin.write(`${echo('x')}\n`), 1);
    await firstOf(child.stdout);
    child.kill('SIGINT');
    await firstOf(child.stderr);
    child.kill('SIGINT');
    const { code } = await finished(child);
    clearInterval(calls);
    expect(code).toBe(130);
  }, 20_000);

  test('while a module is loaded ends the process like any other: nothing has run', async () => {
    const child = command.start(['dispatch', '--tools', 'slow-to-load.mjs', '--quiet']);
    child.stdin.write(`${JSON.stringify({ name: 'hello' })}\n`);
    await firstOf(child.stderr);
    child.kill('SIGINT');
    const ran = await finished(child);
    expect([ran.stdout, child.signalCode]).toEqual(['', 'SIGINT']);
  }, 20_000);

  test('is heeded between tools that never wait', async () => {
    const child = command.start(QUIET);
    const lines = [echo('x'), ...Array(1000).fill(JSON.stringify({ name: 'busy' }))];
    child.stdin.end(lines.join('\n'));
    const first = await firstOf(child.stdout);
    child.kill('SIGINT');
    const ran = await finished(child);
    const results = jsonLines<ToolDispatchResult>(first + ran.stdout);
    // All of them came in one chunk: without a turn of the event loop none would be.
    expect(codes({ results })).toContain('cancelled');
    expect([results.length, ran.code]).toEqual([1001, 130]);
  }, 20_000);

  test('ends a command that reads from a named pipe which somebody holds open', async () => {
    const named = join(command.directory, 'named');
    const writer = spawn('sh', ['-c', `mkfifo ${named} && (echo '${echo('one')}'; sleep 15) > ${named}`]);
    while (!existsSync(named)) await new Promise((resolve) => setTimeout(resolve, 10));
    const child = command.start([...QUIET, 'named']);
    await firstOf(child.stdout);
    child.kill('SIGINT');
    const { code } = await finished(child);
    writer.kill();
    expect(code).toBe(130);
  }, 14_000);

  test('once is enough where calls keep coming', async () => {
    const child = command.start(QUIET);
    child.stdin.on('error', () => {});
    const calls = setInterval(() => child.stdin.write(`${echo('x')}\n`), 1);
    await firstOf(child.stdout);
    child.kill('SIGTERM');
    const { code } = await finished(child);
    clearInterval(calls);
    expect(code).toBe(143);
  }, 20_000);

  test('while late tools are waited for ends the waiting', async () => {
    const child = command.start([...QUIET, '--limit-ms', '20']);
    child.stdin.end('{"name":"lingers"}');
    await firstOf(child.stderr);
    child.kill('SIGINT');
    const { code, stderr } = await finished(child);
    expect(stderr).toContain('1 of the tools did not end; they end with this process.');
    expect(code).toBe(130);
  }, 20_000);
});

test('a reader that goes away ends the work: nothing is run for nobody', async () => {
  const child = command.start(QUIET);
  child.stdin.on('error', () => {});
  const calls = setInterval(() => child.stdin.write(`${echo('x'.repeat(1000))}\n`.repeat(100)), 1);
  await firstOf(child.stdout);
  child.stdout.destroy();
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const [code] = await once(child, 'close');
  clearInterval(calls);
  expect(stderr).toMatch(
    /^toolonion: Whoever reads the results has gone away\. Line \d+ was the last that was run\.\n$/,
  );
  expect(code).toBe(141);
}, 20_000);

test('a reader that is slow gets everything, and calls after it are answered', async () => {
  const child = command.start([...QUIET, '--limit', '1000000']);
  child.stdout.pause();
  const big = { name: 'echo', arguments: { text: 'x'.repeat(90_000) } };
  const lines = [big, big, big, { name: 'heedless' }, big].map((call) => `${JSON.stringify(call)}\n`);
  child.stdin.end(lines.join(''));
  // Long enough for the pipe to be full; what is asserted does not depend on it.
  await new Promise((resolve) => setTimeout(resolve, 700));
  const ran = await finished(child);
  expect(codes({ results: jsonLines<ToolDispatchResult>(ran.stdout) })).toEqual(Array(5).fill('ok'));
  expect(ran).toMatchObject({ code: 0, stderr: '' });
}, 20_000);

test('a slow reader gets a result that was there when a tool ended the process', async () => {
  const child = command.start([...QUIET, '--limit', '1000000']);
  child.stdout.pause();
  child.stdin.end('{"name":"exitsLater"}');
  // Long enough for the process to have ended, had it not waited; and shorter than it waits.
  await new Promise((resolve) => setTimeout(resolve, 900));
  const ran = await finished(child);
  expect(codes({ results: jsonLines<ToolDispatchResult>(ran.stdout) })).toEqual(['ok']);
  expect(ran.code).toBe(1);
}, 20_000);

test('results that cannot be written end the work with the reason', async () => {
  const { stderr, code } = await command.shell(`echo '${echo('one')}' | toolonion ${QUIET.join(' ')} > /dev/full`);
  expect(stderr).toMatch(/^toolonion: The results cannot be written: ENOSPC.* Line 1 was the last that was run\.\n$/);
  expect(code).toBe(2);
});

test('standard error that nobody reads harms nothing', async () => {
  const child = command.start(TOOLS);
  child.stderr.destroy();
  let stdout = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stdin.end(`${echo('one')}\n${'nonsense\n'.repeat(3)}${echo('two')}\n`);
  const [code] = await once(child, 'close');
  expect(jsonLines(stdout).length).toBe(5);
  expect(code).toBe(1);
}, 20_000);

test('the lines that are left are answered for a slow reader as well', async () => {
  const child = command.start(QUIET);
  child.stdin.on('error', () => {});
  child.stdout.pause();
  child.stdin.end(`${echo('x'.repeat(200))}\n`.repeat(20_000));
  await new Promise((resolve) => setTimeout(resolve, 500));
  child.kill('SIGINT');
  // Longer than an interrupted command reads on from a pipe.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  const ran = await finished(child);
  expect(jsonLines(ran.stdout).length).toBe(20_000);
  expect(ran.code).toBe(130);
}, 30_000);

describe('what may run', () => {
  test('without a policy: what says that it is read-only; all else is told how it could', async () => {
    const ran = await dispatch([echo('one'), { name: 'write' }]);
    expect(codes(ran)).toEqual(['ok', 'denied']);
    expect(ran.results[1]?.content).toContain(
      'it is not read-only, and neither --policy nor --allow says that it may run',
    );
  });

  test('with --allow: what it names, too', async () => {
    const calls = [{ name: 'write' }, echo('one'), { name: 'writes' }];
    expect(codes(await dispatch(calls, [...QUIET, '--allow', 'wri*']))).toEqual(['ok', 'ok', 'not_found']);
    const mistaken = await dispatch(calls, [...QUIET, '--allow', 'write', '--allow', 'rite']);
    expect(mistaken.stderr).toBe('toolonion: --allow "rite" fits no tool.\n');
  });

  test('with --policy: what it says, its limits and logs too', async () => {
    const policy = {
      default: { permission: 'deny', outputLimit: 40 },
      tools: {
        'e*': { permission: 'allow', logValues: true },
        write: { permission: 'ask' },
        long: { permission: 'allow' },
      },
    };
    await writeFile(join(command.directory, 'policy.json'), `\uFEFF${JSON.stringify(policy)}`);
    const ran = await dispatch(
      [echo('shown'), { name: 'write' }, { name: 'long' }, { name: 'prints' }],
      [...TOOLS, '--policy', 'policy.json'],
    );
    expect(codes(ran)).toEqual(['ok', 'denied', 'ok', 'denied']);
    expect(ran.results[1]?.content).toContain('nobody can be asked');
    expect(String(ran.results[2]?.content).length).toBeLessThanOrEqual(40);
    const logged = jsonLines(ran.stderr).map(({ tool, input }) => [tool, input]);
    expect(logged.slice(0, 2)).toEqual([
      ['echo', { text: 'shown' }],
      ['write', undefined],
    ]);
    const longer = await dispatch([{ name: 'long' }], [...QUIET, '--policy', 'policy.json', '--limit', '100']);
    expect(String(longer.results[0]?.content).length).toBe(100);
  });
});

describe('a dispatcher of one’s own', () => {
  test.each(['default.mjs', 'named.mjs', 'single.mjs'])('is taken from %s', async (module) => {
    const ran = await dispatch([{ name: 'hello' }], ['dispatch', '--dispatcher', module]);
    expect(ran.results[0]?.content).toBe('hello, around');
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: '' });
  });

  test.each<[string, string]>([
    ['several.mjs', 'exports several dispatchers: "one", "two". Export the one to use as default.'],
    [
      'tools.mjs',
      'exports no dispatcher. It exports "default", "echo", "more". Export one: export default createDispatcher({ … }).',
    ],
  ])('is not found in %s', async (module, message) => {
    const ran = await dispatch([], ['dispatch', '--dispatcher', module]);
    expect(ran.stderr).toContain(message);
    expect([ran.code, ran.stdout]).toEqual([2, '']);
  });
});

test('a dispatcher that breaks its promises has each line answered all the same', async () => {
  const ran = await dispatch(
    [{ id: 'a', name: 'rejects' }, { name: 'nothing' }, { name: 'throws' }, { name: 'hello' }],
    ['dispatch', '--dispatcher', 'liar.mjs'],
  );
  expect(codes(ran)).toEqual(['internal', 'internal', 'internal', 'ok']);
  expect(ran.results[0]).toMatchObject({
    toolCallId: 'a',
    error: { executed: 'unknown' },
    content: 'The dispatcher gave no result for line 1.',
  });
  expect(ran.stderr).toContain('The dispatcher gave no result for line 1: rejected');
  expect(ran.code).toBe(1);
});

describe('a module', () => {
  test('of another copy of the package gives its tools all the same, Standard Schemas included', async () => {
    const ran = await dispatch(
      [{ name: 'foreign', arguments: { n: 1 } }, { name: 'foreign', arguments: { n: 'x' } }, { name: 'plain' }],
      ['dispatch', '--tools', 'foreign.mjs', '--quiet', '--allow', '*'],
    );
    expect(codes(ran)).toEqual(['ok', 'invalid_arguments', 'ok']);
    expect(ran.results.map(({ content }) => content)).toEqual(['2', expect.any(String), 'plain']);
  });

  test.each<[string, string, RegExp]>([
    ['that is not there', 'nowhere.mjs', /there is no file or package "nowhere\.mjs" \(looked in .*\)/],
    ['without tools', 'no-tools.mjs', /exports no tool\. It exports "helper"\. A tool is made by defineTool/],
    ['without exports', 'nothing.mjs', /exports no tool\. It exports nothing\./],
    ['with a slip in it', 'syntax.mjs', /cannot be loaded\. Unexpected token.*syntax\.mjs:2/],
    ['that throws', 'throws.mjs', /cannot be loaded\. no database \(at .*throws\.mjs:1/],
    ['that is a directory', '.', /"\." is a directory\. Give the file of a module in it\./],
    [
      'that Node.js takes for CommonJS',
      'commonjs/tools.js',
      /Node\.js takes it for CommonJS\. Name it \.mjs, or put "type": "module"/,
    ],
    ['that imports what is not installed', 'imports.mjs', /cannot be loaded\. Cannot find package 'not-installed'/],
    ['with two tools of one name', 'twice.mjs', /exports a second tool named "same"\. Rename one\./],
    ['whose exports cannot be looked at', 'hostile.mjs', /The export "trap" cannot be read: no looking\./],
    [
      'that fails where nobody waits for it',
      'stray.mjs',
      /Something failed that nobody waited for, in a module or a tool perhaps: Error: too late/,
    ],
    ['that throws nothing at all', 'throws-nothing.mjs', /cannot be loaded\. /],
    ['with a tool that cannot be', 'bad-tool.mjs', /the export "bad" is no tool\. inputSchema of tool "bad" must/],
  ])('%s is refused in plain words', async (_, module, message) => {
    const ran = await dispatch([echo('one')], ['dispatch', '--tools', module]);
    expect(ran.stderr).toMatch(message);
    expect(ran.stderr).not.toMatch(/^\s+at /m);
    expect([ran.code, ran.stdout]).toEqual([2, '']);
  });

  test('that ends the process does not end it as if all were well', async () => {
    for (const name of ['dispatch', 'tools']) {
      const ran = await command.run([name, '--tools', 'ends.mjs'], { input: echo('one') });
      expect(ran.stderr).toBe(
        'toolonion: The process was ended before the work was done, by a module or a tool perhaps.\n',
      );
      expect([ran.code, ran.stdout]).toEqual([2, '']);
    }
  });

  test('beside others gives its tools, too, and an object of tools is as good as a list', async () => {
    const ran = await dispatch(
      [echo('one'), { name: 'hello' }],
      [...QUIET, '--tools', 'object.mjs', '--allow', 'hello'],
    );
    expect(codes(ran)).toEqual(['ok', 'ok']);
  });

  test('that never finishes loading does not end as if all were well', async () => {
    const ran = await dispatch([echo('one')], ['dispatch', '--tools', 'waits.mjs']);
    expect(ran.stderr).toContain('--tools: "waits.mjs" never finishes loading: it waits for what will never come.');
    expect(ran.code).toBe(2);
  });

  test('in TypeScript is loaded where Node.js can, and else told how', async () => {
    const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
    const ran = await dispatch([{ name: 'typed' }], ['dispatch', '--tools', 'typed.ts', '--quiet']);
    if (major > 22 || (major === 22 && minor >= 18)) expect(codes(ran)).toEqual(['ok']);
    else
      expect([ran.code, ran.stderr]).toEqual([
        2,
        expect.stringMatching(/does not load this TypeScript; 22\.18 and later do\..*NODE_OPTIONS="--import tsx"/),
      ]);
    const withTsx = await dispatch([{ name: 'typed' }], ['dispatch', '--tools', 'typed.ts', '--quiet'], {
      node: ['--import', 'tsx'],
    });
    expect(codes(withTsx)).toEqual(['ok']);
  }, 20_000);
});

describe('bad usage', () => {
  test.each<[readonly string[], string]>([
    [['dispatch'], '--tools MODULE is missing, or --dispatcher MODULE in its place.'],
    [['dispatch', '--tool', 'x'], "Unknown option '--tool'. Options: --tools, --dispatcher,"],
    [['dispatch', '--tools'], "Option '--tools <value>' argument missing"],
    [
      ['dispatch', '--tools', 'tools.mjs', '--dispatcher', 'default.mjs'],
      '--tools and --dispatcher exclude each other',
    ],
    [['dispatch', '--dispatcher', 'default.mjs', '--limit', '5'], '--limit goes with --tools'],
    [['dispatch', '--dispatcher', 'default.mjs', '--allow', '*'], '--allow goes with --tools'],
    [['dispatch', '--tools', 'tools.mjs', '--limit', '0'], '--limit must be a whole number from 1 on; got "0".'],
    [
      ['dispatch', '--tools', 'tools.mjs', '--limit-ms', '1e3'],
      '--limit-ms must be a whole number from 1 to 2147483647; got "1e3".',
    ],
    [
      ['dispatch', '--tools', 'tools.mjs', '--limit-ms', '9999999999'],
      '--limit-ms must be a whole number from 1 to 2147483647',
    ],
    [
      ['dispatch', '--tools', 'tools.mjs', '--log', 'loud'],
      '--log must be one of info, warn, error, silent; got "loud".',
    ],
    [['dispatch', '--tools', 'tools.mjs', '--log', 'info', '--quiet'], '--quiet and --log exclude each other.'],
    [['dispatch', '--tools', 'tools.mjs', '--allow', ''], '--allow needs the name of a tool'],
    [['dispatch', '--tools', 'tools.mjs', '--limit', '-5'], "Option '--limit' argument is ambiguous. Options:"],
    [['tools', '--tools', 'tools.mjs', 'more'], 'What is "more"? See toolonion tools --help.'],
    [['dispatch', '--tools', 'tools.mjs', '--format', 'xml'], '--format must be json or text; got "xml".'],
    [
      ['dispatch', '--tools', 'tools.mjs', '--policy', 'p.json', '--allow', 'x'],
      '--allow and --policy exclude each other',
    ],
    [
      ['dispatch', '--tools', 'tools.mjs', '--policy', 'nowhere.json'],
      '--policy: "nowhere.json" cannot be read: ENOENT',
    ],
    [
      ['dispatch', '--tools', 'tools.mjs', '--policy', 'tools.mjs'],
      '"tools.mjs" is no JSON: it goes wrong at character 1.',
    ],
    [['dispatch', '--tools', 'tools.mjs', 'a', 'b'], 'What is "b"? See toolonion dispatch --help.'],
    [['dispense'], 'There is no command "dispense". Commands: dispatch, tools, inspect, policy, mcp, bench.'],
    [[], 'Usage: toolonion COMMAND'],
  ])('%j has a message on standard error, and exit code 2', async (args, message) => {
    const ran = await command.run(args, { input: `${echo('one')}\n` });
    expect(ran.stderr).toContain(message);
    expect(ran.stderr).not.toMatch(/^\s+at /m);
    expect([ran.code, ran.stdout]).toEqual([2, '']);
  });
});

describe('for people', () => {
  test('--format text tells the way of each call, and how many came out how', async () => {
    const ran = await command.run([...QUIET, '--format', 'text'], {
      input: `${echo('one', 'a')}\n${JSON.stringify({ name: 'write' })}\nnonsense\n`,
    });
    expect(ran.stdout).toMatch(/^echo ok [\d.]+ .s a\n {2}in {3}\{"text":"one"\}\n {2}way {2}/);
    expect(ran.stdout).toContain(
      '  way  logging › validation › permission › outputLimit › outputValidation › timeout ›\n       tool: answered\n  out  one\n',
    );
    expect(ran.stdout).toContain('  way  logging › validation › permission: refused\n');
    expect(ran.stdout).toContain('\nline 3 invalid_call, ran: no\n  in   nonsense\n  out  Line 3 holds no call: ');
    expect(ran.stdout.trimEnd().split('\n').at(-1)).toBe('3 calls: 1 ok, 1 denied, 1 invalid_call.');
  });

  test('nothing a tool says can move the cursor or forge a line', async () => {
    const ran = await command.run([...QUIET, '--format', 'text'], {
      input: `${echo('a\u001b[2Jb\r\nout  forged\u202e', 'id\u001b')}\n`,
    });
    expect(['\u001b', '\r', '\u202e'].filter((character) => ran.stdout.includes(character))).toEqual([]);
    expect(ran.stdout).toContain('  out  a [2Jb out forged\n');
  });

  const onTerminal = (stream: string): RunOptions => ({
    node: [
      '--import',
      `data:text/javascript,process.${stream}.isTTY = true; process.${stream}.hasColors = () => !process.env.NO_COLOR; process.${stream}.columns = 60`,
    ],
  });

  test('has colours and keeps to the width on a terminal, and no colours elsewhere', async () => {
    const input = `${echo('one')}\n${JSON.stringify({ name: 'long' })}\n`;
    const args = [...QUIET, '--format', 'text'];
    const plain = await command.run(args, { input });
    const terminal = await command.run(args, { input, ...onTerminal('stdout') });
    expect(plain.stdout).not.toContain('\u001b');
    expect(terminal.stdout).toContain('\u001b[32mecho');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are made of them
    const lines = terminal.stdout.replaceAll(/\u001b\[\d+m/g, '').split('\n');
    expect(lines.filter((line) => line.length > 60)).toEqual([]);
    expect((await command.run(args, { input, env: { NO_COLOR: '1' }, ...onTerminal('stdout') })).stdout).not.toContain(
      '\u001b',
    );
    expect((await command.run(args, { input, env: { FORCE_COLOR: '1' } })).stdout).toContain('\u001b[32m');
  }, 20_000);

  const SLEEPS = `${JSON.stringify({ name: 'sleeps' })}\n`;

  test('tells on a terminal how far long work is, and takes that line away', async () => {
    const child = command.start([...TOOLS, '--log', 'silent'], onTerminal('stderr'));
    child.stdin.end(`${echo('one')}\nnonsense\n${SLEEPS}`);
    const told = await toldUntil(child, 'per second');
    child.kill('SIGINT');
    const ran = await finished(child);
    expect(told).toMatch(/\r2 calls, 1 failed, [\d.,]+ per second/);
    expect(ran.stderr).toContain('\r\u001b[Ktoolonion: Stopping');
    expect(ran.stderr.endsWith('ends at once.\n')).toBe(true);
  }, 20_000);

  test('tells the share of a file, and nothing where it is to be quiet', async () => {
    await writeFile(join(command.directory, 'slow.jsonl'), SLEEPS);
    const child = command.start([...TOOLS, 'slow.jsonl'], onTerminal('stderr'));
    expect(await toldUntil(child, '% of the input')).toContain('\r100 % of the input, 0 calls');
    child.kill('SIGINT');
    await finished(child);
    const quiet = await command.run(QUIET, { input: `${echo('one')}\n`, ...onTerminal('stderr') });
    expect(quiet.stderr).toBe('');
  }, 20_000);

  test('says that it reads from the terminal', async () => {
    const node = ['--import', 'data:text/javascript,process.stdin.isTTY = true'];
    const { stderr } = await command.run([...TOOLS, '--log', 'silent'], { input: echo('one'), node });
    expect(stderr).toBe('toolonion: Reading calls from the terminal, one a line. Ctrl-D ends them.\n');
  });

  test('shows the cause the model is not told, secrets taken out', async () => {
    const args = ['dispatch', '--tools', 'fails.mjs', '--format', 'text'];
    const ran = await command.run(args, { input: '{"name":"fails"}' });
    expect(ran.stdout).toContain(
      '  out  Tool "fails" failed. The cause is in the log of whoever runs it.\n  why  Error: no route to db, password=',
    );
    expect(ran.stdout).not.toContain('hunter2');
    expect(ran.stderr).toBe('');
  });

  test('an answer takes three lines at most', async () => {
    const { stdout } = await command.run([...QUIET, '--format', 'text'], { input: echo('word '.repeat(200)) });
    const [, out = ''] = stdout.split('  out  ');
    const lines = out.split('\n\n')[0]?.split('\n') ?? [];
    expect(lines.length).toBe(3);
    expect(lines[2]?.endsWith('…')).toBe(true);
  });
});

test('redirected files work as pipes do', async () => {
  await writeFile(join(command.directory, 'in.jsonl'), `${echo('one')}\n${echo('two')}`);
  const open = (name: string, flags: string) => openSync(join(command.directory, name), flags);
  const stdio = [open('in.jsonl', 'r'), open('out.jsonl', 'w'), open('log.jsonl', 'w')];
  const child = spawn(process.execPath, [command.main, ...TOOLS], { cwd: command.directory, stdio });
  const [code] = await once(child, 'close');
  expect(code).toBe(0);
  const read = async (name: string) => jsonLines(await readFile(join(command.directory, name), 'utf8'));
  expect((await read('out.jsonl')).map(({ content }) => content)).toEqual(['one', 'two']);
  expect((await read('log.jsonl')).map(({ code: logged }) => logged)).toEqual(['ok', 'ok']);
});
