// The command as its users have it, between real clients and real servers.

import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Command, urlTold } from '../../support/command.ts';
import { finished } from '../../support/process.ts';

const runtimes = fileURLToPath(new URL('..', import.meta.url));
const here = fileURLToPath(new URL('.', import.meta.url));
const info = { name: 'test', version: '1.0.0' };
const open: { close(): unknown }[] = [];
let command: Command;
let directory: string;
let policy: string;

beforeAll(async () => {
  command = await Command.build(join(here, 'modules'));
  directory = await realpath(await mkdtemp(join(tmpdir(), 'toolonion-')));
  policy = join(directory, 'policy.json');
  const allowed = ['add', 'wait', 'read_*', 'list_*', 'echo', 'create_entities', 'search_nodes', 'get-*', 'trigger-*'];
  const rules = {
    ...Object.fromEntries(allowed.map((name) => [name, { permission: 'allow' }])),
    deploy: { permission: 'ask' },
    write_file: { permission: 'ask' },
    move_file: { permission: [{ verdict: 'deny', reason: 'nothing moves here' }] },
  };
  await writeFile(policy, JSON.stringify({ tools: rules }));
}, 120_000);

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

afterAll(async () => {
  await command.remove();
  await rm(directory, { recursive: true, force: true });
});

const tools = () => join(command.directory, 'tools.mjs');
const textOf = (result: object) =>
  (result as { content: { text?: string }[] }).content.map(({ text }) => text).join('\n');
const publicServer = (name: string) => join(runtimes, 'node_modules/@modelcontextprotocol', name, 'dist/index.js');

/** A proxy before a server people use. */
const behindPolicy = (name: string, ...args: readonly string[]) => [
  'proxy',
  '--policy',
  policy,
  '--',
  process.execPath,
  publicServer(name),
  ...args,
];

/** How the command is started: where the SDK is, as a user's project has it. */
function started(args: readonly string[]) {
  // The memory server would write beside itself.
  const env = { ...process.env, MEMORY_FILE_PATH: join(directory, 'memory.jsonl') } as Record<string, string>;
  return {
    command: process.execPath,
    args: [command.main, 'mcp', ...args],
    cwd: runtimes,
    env,
    stderr: 'ignore' as const,
  };
}

async function connected(args: readonly string[], approve?: boolean): Promise<Client1> {
  const client = new Client1(info, { capabilities: { roots: {}, ...(approve !== undefined && { elicitation: {} }) } });
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: `file://${directory}` }] }));
  if (approve !== undefined)
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { approve } }));
  await client.connect(new Stdio1(started(args)));
  open.push(client);
  return client;
}

describe('mcp serve', () => {
  test('serves the tools of a module on standard input and output, whatever they print', async () => {
    const client = await connected(['serve', '--tools', tools(), '--policy', policy, '--name', 'mine']);
    expect(client.getServerVersion()).toMatchObject({ name: 'mine' });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['add', 'deploy', 'wait']);
    expect(textOf(await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } }))).toBe('3');
    expect(textOf(await client.callTool({ name: 'deploy' }))).toContain('nobody is there to be asked');
    const asked = await connected(['serve', '--tools', tools(), '--policy', policy], true);
    expect(textOf(await asked.callTool({ name: 'deploy' }))).toBe('Deployed.');
  });

  test('serves a client of the 2.x packages', async () => {
    const client = new Client2(info, { versionNegotiation: { mode: 'auto' } });
    await client.connect(new Stdio2(started(['serve', '--tools', tools()])));
    open.push(client);
    expect(textOf(await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } }))).toBe('3');
    expect(textOf(await client.callTool({ name: 'deploy' }))).toContain('neither --policy nor --allow');
  });

  test('serves many clients by streamable HTTP, and nobody who comes from elsewhere', async () => {
    const { cwd, args } = started(['serve', '--tools', tools(), '--policy', policy, '--http', '0']);
    const child = command.start(args.slice(1), { cwd });
    const url = await urlTold(child);
    const first = new Client1(info);
    const second = new Client2(info, { versionNegotiation: { mode: 'auto' } });
    await first.connect(new Http1(new URL(url)) as never);
    await second.connect(new Http2(new URL(url)));
    open.push(first, second);
    const input = { name: 'add', arguments: { a: 1, b: 2 } };
    const results = await Promise.all([first.callTool(input), second.callTool(input), first.callTool(input)]);
    expect(results.map(textOf)).toEqual(['3', '3', '3']);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} });
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    expect((await fetch(url.replace('/mcp', '/other'), { method: 'POST', body, headers })).status).toBe(404);
    const foreign = await fetch(url, { method: 'POST', body, headers: { ...headers, 'mcp-session-id': 'gone' } });
    expect(foreign.status).toBe(404);
    const { request } = await import('node:http');
    const rebound = await new Promise<number | undefined>((resolve) => {
      const { port } = new URL(url);
      const sent = request(
        { port, path: '/mcp', method: 'POST', headers: { ...headers, host: 'evil.example' } },
        (response) => {
          response.resume();
          resolve(response.statusCode);
        },
      );
      sent.end(body);
    });
    expect(rebound).toBe(403);
    const fromPage = (origin: string) => fetch(url, { method: 'POST', body, headers: { ...headers, origin } });
    expect((await fromPage('https://evil.example')).status).toBe(403);
    expect((await fromPage('http://LOCALHOST:5173')).status).not.toBe(403);
    expect((await fetch(`${url.replace('/mcp', '')}//`)).status).toBe(404);
    const calling = first.callTool({ name: 'wait' }, undefined, { onprogress: () => child.kill('SIGTERM') });
    expect(textOf(await calling)).toContain('may still be running');
    expect((await finished(child)).code).toBe(143);
  });

  test('ends when its client goes', async () => {
    const { args, cwd } = started(['serve', '--tools', tools()]);
    const child = command.start(args.slice(1), { cwd });
    child.stdin.end();
    expect(await finished(child)).toMatchObject({ code: 0, stdout: '' });
  });
});

describe('mcp proxy', () => {
  test('puts the filesystem server behind a policy', async () => {
    const behind = behindPolicy('server-filesystem', directory);
    const client = await connected(behind, true);
    const path = join(directory, 'a.txt');
    expect(await client.callTool({ name: 'write_file', arguments: { path, content: 'hello' } })).not.toHaveProperty(
      'isError',
    );
    expect(await readFile(path, 'utf8')).toBe('hello');
    expect(await client.callTool({ name: 'read_text_file', arguments: { path } })).toMatchObject({
      content: [{ type: 'text', text: 'hello' }],
      structuredContent: { content: 'hello' },
    });
    const moved = await client.callTool({ name: 'move_file', arguments: { source: path, destination: `${path}2` } });
    expect(textOf(moved)).toContain('nothing moves here');
    expect(textOf(await client.callTool({ name: 'read_text_file', arguments: { path: 7 } }))).toContain(
      'path: expected string',
    );
    const refusing = await connected(behind, false);
    const refused = await refusing.callTool({ name: 'write_file', arguments: { path, content: 'gone' } });
    expect(textOf(refused)).toContain('denied by the user');
    expect(await readFile(path, 'utf8')).toBe('hello');
  });

  test('puts the memory server behind a policy', async () => {
    const client = await connected(behindPolicy('server-memory'));
    const entities = [{ name: 'Ada', entityType: 'person', observations: ['wrote programs'] }];
    await client.callTool({ name: 'create_entities', arguments: { entities } });
    const found = await client.callTool({ name: 'search_nodes', arguments: { query: 'Ada' } });
    expect(found).toMatchObject({ structuredContent: { entities } });
    expect(textOf(await client.callTool({ name: 'delete_entities', arguments: { entityNames: ['Ada'] } }))).toContain(
      'denied',
    );
  });

  test('lets through all else the everything server has', async () => {
    const client = await connected(behindPolicy('server-everything'));
    expect(client.getServerVersion()?.name).toContain('everything');
    expect((await client.listTools()).tools.length).toBeGreaterThan(8);
    expect((await client.listPrompts()).prompts.length).toBeGreaterThan(0);
    expect((await client.listResources()).resources.length).toBeGreaterThan(0);
    expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'hi' } }))).toBe('Echo: hi');
    expect(await client.callTool({ name: 'get-tiny-image' })).toMatchObject({
      content: expect.arrayContaining([expect.objectContaining({ type: 'image' })]),
    });
    const heard: unknown[] = [];
    const long = { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 2 } };
    await client.callTool(long, undefined, { onprogress: (progress) => heard.push(progress) });
    // The client drops a sign of life that comes in one piece with the answer.
    expect(heard[0]).toMatchObject({ progress: 1, total: 2 });
  });

  test('stands before a server at a URL', async () => {
    const { cwd, args } = started(['serve', '--tools', tools(), '--allow', '*', '--http', '0']);
    const child = command.start(args.slice(1), { cwd });
    const url = await urlTold(child);
    const client = await connected(['proxy', '--allow', 'add', '--header', 'x-of-mine: 1', url]);
    expect(textOf(await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } }))).toBe('3');
    expect(textOf(await client.callTool({ name: 'deploy' }))).toContain('denied');
    await client.close();
    child.kill();
    await finished(child);
  });
});

describe('with the 2.x packages alone', () => {
  let only2: string;

  beforeAll(async () => {
    only2 = join(directory, 'only2');
    await mkdir(join(only2, 'node_modules/@modelcontextprotocol'), { recursive: true });
    for (const name of ['server', 'client']) {
      const path = join('node_modules/@modelcontextprotocol', name);
      await symlink(join(runtimes, path), join(only2, path));
    }
  });

  const connected2 = async (args: readonly string[], approve?: boolean): Promise<Client2> => {
    const capabilities = approve === undefined ? {} : { elicitation: { form: {} } };
    const client = new Client2(info, { versionNegotiation: { mode: 'auto' }, capabilities });
    if (approve !== undefined)
      client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { approve } }));
    await client.connect(new Stdio2({ ...started(args), cwd: only2 }));
    open.push(client);
    return client;
  };

  test('serve speaks the revision of July 2026 on standard input and output, and the older ones', async () => {
    const serve = ['serve', '--tools', tools(), '--policy', policy];
    const client = await connected2(serve, true);
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    expect(textOf(await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } }))).toBe('3');
    expect(textOf(await client.callTool({ name: 'deploy' }))).toBe('Deployed.');
    const older = new Client1(info);
    await older.connect(new Stdio1({ ...started(serve), cwd: only2 }));
    open.push(older);
    expect(textOf(await older.callTool({ name: 'add', arguments: { a: 1, b: 2 } }))).toBe('3');
    expect(textOf(await older.callTool({ name: 'deploy' }))).toContain('nobody is there to be asked');
  });

  test('serve does by streamable HTTP as well', async () => {
    const { args } = started(['serve', '--tools', tools(), '--policy', policy, '--http', '0']);
    const child = command.start(args.slice(1), { cwd: only2 });
    const url = await urlTold(child);
    const newer = new Client2(info, {
      versionNegotiation: { mode: 'auto' },
      capabilities: { elicitation: { form: {} } },
    });
    newer.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { approve: true } }));
    const older = new Client1(info);
    await newer.connect(new Http2(new URL(url)));
    await older.connect(new Http1(new URL(url)) as never);
    open.push(newer, older);
    expect(newer.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    for (const client of [newer, older])
      expect(textOf(await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } }))).toBe('3');
    expect(textOf(await newer.callTool({ name: 'deploy' }))).toBe('Deployed.');
    const heard: unknown[] = [];
    const calling = newer.callTool(
      { name: 'wait' },
      { onprogress: (progress) => void (heard.push(progress), child.kill('SIGTERM')) },
    );
    expect(textOf(await calling)).toContain('may still be running');
    expect(heard).toHaveLength(1);
    expect((await finished(child)).code).toBe(143);
  });

  test('proxy stands before a server of the older revisions', async () => {
    const client = await connected2(behindPolicy('server-everything'));
    expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'hi' } }))).toBe('Echo: hi');
    expect(textOf(await client.callTool({ name: 'toggle-simulated-logging' }))).toContain('denied');
  });
});

describe('mcp proxy, where things go wrong', () => {
  test('without a policy lets run what is named, whatever the server says of itself', async () => {
    const behind = ['--', process.execPath, publicServer('server-filesystem'), directory];
    const client = await connected(['proxy', '--allow', 'list_*', ...behind]);
    expect(await client.callTool({ name: 'list_directory', arguments: { path: directory } })).not.toHaveProperty(
      'isError',
    );
    const read = await client.callTool({ name: 'read_text_file', arguments: { path: policy } });
    expect(textOf(read)).toContain('no --allow names it');
  });

  test('tells that its server has ended, and of a policy that fits no tool', async () => {
    const misspelt = join(directory, 'misspelt.json');
    await writeFile(
      misspelt,
      JSON.stringify({ default: { permission: 'allow' }, tools: { ecko: { permission: 'deny' } } }),
    );
    const { args } = started(['proxy', '--policy', misspelt, '--log', 'silent', '--']);
    const child = command.start([...args.slice(1), process.execPath, publicServer('server-memory')], {
      cwd: runtimes,
      env: { MEMORY_FILE_PATH: join(directory, 'memory.jsonl') },
    });
    child.stdin.write(
      '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n',
    );
    child.stdin.write('{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_graph"}}\n');
    await new Promise((resolve) => child.stdout.once('data', resolve));
    let told = '';
    child.stderr.on('data', (chunk: Buffer) => {
      told += chunk;
    });
    while (!told.includes('fits no tool')) await new Promise((resolve) => setImmediate(resolve));
    child.stdin.end();
    expect(await finished(child)).toMatchObject({ code: 0 });
    const dying = command.start([...args.slice(1), process.execPath, '-e', 'process.exit(3)'], { cwd: runtimes });
    expect(await finished(dying)).toMatchObject({ code: 1, stderr: expect.stringContaining('The server has ended.') });
  });
});

describe('what is wrong is told', () => {
  const run = async (args: readonly string[], cwd = runtimes) => {
    const child = command.start(['mcp', ...args], { cwd });
    child.stdin.end();
    return finished(child);
  };

  test.each<readonly [readonly string[], string]>([
    [[], 'toolonion mcp takes serve or proxy, not nothing.'],
    [['server'], 'not "server"'],
    [['serve'], '--tools MODULE is missing'],
    [['serve', '--tools', 'x.js', '--http', 'a'], '--http must be a port'],
    [['serve', '--tools', 'x.js', '--host', 'a'], '--host goes with --http'],
    [['proxy', '--', 'true'], '--policy FILE is missing'],
    [['proxy', '--allow', '*'], '-- COMMAND [ARGUMENTS], or a URL'],
    [['proxy', '--allow', '*', '--header', 'secret', 'http://x'], '--header must be a name and a value'],
    [['proxy', '--allow', '*', '--header', 'a: b', '--', 'true'], '--header goes with a URL'],
    [['proxy', '--allow', '*', '--tools', 'x.js', '--', 'true'], '--tools goes with serve'],
    [['proxy', '--allow', '*', '--', 'no-such-command'], 'The server cannot be started'],
  ])('%j', async (args, message) => {
    const { code, stderr, stdout } = await run(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('secret');
  });

  test('a missing SDK, with the command that installs it', async () => {
    const nowhere = await realpath(await mkdtemp(join(tmpdir(), 'toolonion-')));
    const { code, stderr } = await run(['serve', '--tools', tools()], nowhere);
    await rm(nowhere, { recursive: true });
    expect(code).toBe(2);
    expect(stderr).toContain('npm install @modelcontextprotocol/sdk');
  });
});
