import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from './pages.ts';
import { type Finished, finished } from './process.ts';

export interface RunOptions {
  /** What comes on standard input. Default: nothing. */
  readonly input?: string | Buffer;
  readonly env?: NodeJS.ProcessEnv;
  /** Default: where the modules are. */
  readonly cwd?: string;
  /** Options of Node.js itself. */
  readonly node?: readonly string[];
}

/** The command as its users have it: compiled, in a directory where modules find the package by its name. */
export class Command {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  /** @param modules A directory whose files are put beside it. Default: none. */
  static async build(modules?: string): Promise<Command> {
    await mkdir(join(root, 'node_modules', '.cache'), { recursive: true });
    const directory = await mkdtemp(join(root, 'node_modules', '.cache', 'command-'));
    const home = join(directory, 'node_modules', 'toolonion');
    const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
    await promisify(execFile)(process.execPath, [compiler, '-p', join(root, 'src'), '--outDir', join(home, 'dist')]);
    await cp(join(root, 'package.json'), join(home, 'package.json'));
    if (modules !== undefined) await cp(modules, directory, { recursive: true });
    return new Command(directory);
  }

  remove(): Promise<void> {
    return rm(this.directory, { recursive: true, force: true });
  }

  /** The file Node.js runs. */
  get main(): string {
    return join(this.directory, 'node_modules', 'toolonion', 'dist', 'src', 'cli', 'main.js');
  }

  /** Runs lines of a shell in which `toolonion` is the command. */
  shell(script: string): Promise<Finished> {
    const named = `toolonion() { "${process.execPath}" "${this.main}" "$@"; }\n${script}`;
    return finished(spawn('sh', ['-c', named], { cwd: this.directory }));
  }

  /** Starts it, its standard input open. */
  start(
    args: readonly string[],
    { env = {}, node = [], cwd = this.directory }: RunOptions = {},
  ): ChildProcessWithoutNullStreams {
    const { NO_COLOR: _, FORCE_COLOR: __, NODE_OPTIONS: ___, ...inherited } = process.env;
    return spawn(process.execPath, [...node, this.main, ...args], {
      cwd,
      env: { ...inherited, ...env },
    });
  }

  /** Runs it to its end. */
  run(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
    const child = this.start(args, options);
    // It may end before it has read everything.
    child.stdin.on('error', () => {});
    child.stdin.end(options.input ?? '');
    return finished(child);
  }
}

/** The first text a process writes to a stream. */
export function firstOf(stream: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => stream.once('data', (chunk) => resolve(String(chunk))));
}

/** The values of lines of JSON. */
export function jsonLines<Value = Record<string, unknown>>(text: string): readonly Value[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Value);
}

/** The address a server tells on its standard error. */
export function urlTold(child: ChildProcessWithoutNullStreams): Promise<string> {
  return new Promise((resolve) => {
    let told = '';
    child.stderr.on('data', (chunk: Buffer) => {
      told += chunk;
      const url = /http:\S+/.exec(told)?.[0];
      if (url !== undefined) resolve(url);
    });
  });
}
