#!/usr/bin/env node
import { describeError } from '../index.ts';
import { type Command, readCommandLine } from './command.ts';
import { leave, onOtherEnd, onStall, onStray } from './ending.ts';
import { print, printed, printFault, READER_GONE } from './output.ts';
import { complain } from './terminal.ts';
import { UsageError } from './usage-error.ts';

/** Loaded when they are asked for: a command pays for nothing it does not use. */
const COMMANDS: ReadonlyMap<string, () => Promise<Command>> = new Map([
  ['dispatch', async () => (await import('./commands/dispatch.ts')).dispatch],
  ['tools', async () => (await import('./commands/tools.ts')).tools],
  ['inspect', async () => (await import('./commands/inspect.ts')).inspect],
  ['policy', async () => (await import('./commands/policy.ts')).policy],
  ['mcp', async () => (await import('./commands/mcp.ts')).mcp],
  ['bench', async () => (await import('./commands/bench.ts')).bench],
]);

onStall(() => {
  complain('Nothing is left that could go on, and the work is not done: something waits for what will never come.');
  leave(2);
});

onOtherEnd(() => {
  complain('The process was ended before the work was done, by a module or a tool perhaps.');
  process.exitCode = 2;
});

onStray((error) => {
  const { name, message } = describeError(error);
  complain(`Something failed that nobody waited for, in a module or a tool perhaps: ${name}: ${message}`);
  leave(2);
});

main(process.argv.slice(2)).then(end, (error: unknown) => {
  complain(UsageError.is(error) ? error.message : String((error as Error)?.stack ?? error));
  return end(UsageError.is(error) ? 2 : 70);
});

/** Ends the process: tools may hold connections open, which would keep it alive. */
async function end(code: number): Promise<void> {
  onStall(() => {});
  await printed();
  await new Promise<void>((resolve) => process.stderr.write('', () => resolve()));
  leave(exitCodeFor(code, printFault()));
}

async function main([name = '', ...args]: readonly string[]): Promise<number> {
  if (name === 'help' && args.length > 0) return main([...args, '--help']);
  if (name === '' || name === '--help' || name === '-h' || name === 'help') return overview(name === '' ? 2 : 0);
  if (name === '--version' || name === '-v') return version();
  const load = COMMANDS.get(name);
  if (load === undefined) {
    throw new UsageError(
      `There is no command "${name}". Commands: ${[...COMMANDS.keys()].join(', ')}. See toolonion --help.`,
    );
  }
  const command = await load();
  const given = readCommandLine(name, command, args);
  if (!given.has('help')) return command.run(given);
  print(command.help);
  return 0;
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
  const { ownVersion } = await import('./version.ts');
  print(`${ownVersion()}\n`);
  return 0;
}

/** What could not be printed has not been told. */
function exitCodeFor(code: number, fault: NodeJS.ErrnoException | undefined): number {
  if (fault === undefined) return code;
  if (fault.code === 'EPIPE') return READER_GONE;
  if (code === 0) complain(`Nothing can be written: ${fault.message}`);
  return code === 0 ? 2 : code;
}
