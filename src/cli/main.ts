#!/usr/bin/env node
import { type Command, readCommandLine } from './command.ts';
import { onStall } from './stall.ts';
import { print, READER_GONE } from './stdout.ts';
import { complain } from './terminal.ts';
import { UsageError } from './usage-error.ts';

/** Loaded when they are asked for: a command pays for nothing it does not use. */
const COMMANDS: ReadonlyMap<string, () => Promise<Command>> = new Map([
  ['dispatch', async () => (await import('./commands/dispatch.ts')).dispatch],
  ['tools', async () => (await import('./commands/tools.ts')).tools],
  ['inspect', async () => (await import('./commands/inspect.ts')).inspect],
  ['policy', async () => (await import('./commands/policy.ts')).policy],
  ['bench', async () => (await import('./commands/bench.ts')).bench],
]);

onStall(() => {
  complain('Nothing is left that could go on, and the work is not done. Does a module await what never comes?');
  process.exit(2);
});

main(process.argv.slice(2)).then(end, (error: unknown) => {
  complain(UsageError.is(error) ? error.message : String((error as Error)?.stack ?? error));
  end(UsageError.is(error) ? 2 : 70);
});

/** Tools may hold connections open, which would keep the process alive. */
function end(code: number): void {
  onStall(() => {});
  print('', (error) => process.stderr.write('', () => process.exit(error ? READER_GONE : code)));
}

async function main([name = '', ...args]: readonly string[]): Promise<number> {
  if (name === '' || name === '--help' || name === '-h' || name === 'help') return overview(name === '' ? 2 : 0);
  if (name === '--version' || name === '-v') return version();
  const load = COMMANDS.get(name);
  if (load === undefined) {
    throw new UsageError(
      `There is no command "${name}". Commands: ${[...COMMANDS.keys()].join(', ')}. See toolonion --help.`,
    );
  }
  const command = await load();
  if (args.includes('--help') || args.includes('-h')) {
    print(command.help);
    return 0;
  }
  return command.run(readCommandLine(name, args, command.options));
}

async function overview(code: number): Promise<number> {
  const lines = await Promise.all(
    [...COMMANDS].map(async ([name, load]) => `  ${name.padEnd(10)}${(await load()).summary}`),
  );
  const text = `toolonion: tool calls through an onion of middlewares.

Usage: toolonion COMMAND [OPTIONS]

${lines.join('\n')}

toolonion COMMAND --help tells more, with examples. toolonion --version tells the version.
`;
  if (code === 0) print(text);
  else process.stderr.write(text);
  return code;
}

async function version(): Promise<number> {
  const { createRequire } = await import('node:module');
  const manifest = createRequire(import.meta.url)('toolonion/package.json') as { readonly version: string };
  print(`${manifest.version}\n`);
  return 0;
}
