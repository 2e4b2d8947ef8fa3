import { type ParseArgsConfig, parseArgs } from 'node:util';
import { UsageError } from './usage-error.ts';

/** One word after `toolonion`. */
export interface Command {
  /** For the list of commands: half a line. */
  readonly summary: string;
  /** What `--help` prints. */
  readonly help: string;
  readonly options: NonNullable<ParseArgsConfig['options']>;
  /** Does the work. What it gives is the exit code. */
  run(given: Given): Promise<number>;
}

/** What was given on the command line. */
export interface Given {
  /** What stands without an option in front. */
  readonly words: readonly string[];
  /** The value of an option that takes one. */
  text(option: string): string | undefined;
  /** The values of an option that may be repeated. */
  texts(option: string): readonly string[];
  /** Whether an option without a value was given. */
  has(option: string): boolean;
  /** @throws UsageError where it is no whole number from 1 on, or above `most`. */
  count(option: string, most?: number): number | undefined;
}

/** Reads a command line. @throws UsageError naming what is wrong, and the options there are. */
export function readCommandLine(command: string, args: readonly string[], options: Command['options']): Given {
  const { values, positionals } = parsed(command, args, { ...options, help: { type: 'boolean', short: 'h' } });
  const text = (option: string) => values[option] as string | undefined;
  return {
    words: positionals,
    text,
    texts: (option) => (values[option] as string[] | undefined) ?? [],
    has: (option) => values[option] === true,
    count(option, most = Number.MAX_SAFE_INTEGER) {
      const given = text(option);
      if (given === undefined) return undefined;
      const count = /^\d+$/.test(given) ? Number(given) : Number.NaN;
      if (!(count >= 1 && count <= most)) {
        const limit = most === Number.MAX_SAFE_INTEGER ? '1 on' : `1 to ${most}`;
        throw new UsageError(`--${option} must be a whole number from ${limit}; got "${given}".`);
      }
      return count;
    },
  };
}

function parsed(command: string, args: readonly string[], options: Command['options']) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    // Node's own words name the option; what it advises after that is about dashes.
    const [what = ''] = (error as Error).message.split('. ');
    const names = Object.keys(options).map((name) => `--${name}`);
    throw new UsageError(`${what.replace(/\.$/, '')}. Options: ${names.join(', ')}. See toolonion ${command} --help.`);
  }
}
