import { type ParseArgsConfig, parseArgs } from 'node:util';
import { UsageError } from './usage-error.ts';

/** One word after `toolonion`. */
export interface Command {
  /** For the list of commands: half a line. */
  readonly summary: string;
  /** What `--help` prints. */
  readonly help: string;
  readonly options: NonNullable<ParseArgsConfig['options']>;
  /** The most words it takes beside its options. */
  readonly words: number;
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
  /** Whether an option that takes no value was given. */
  has(option: string): boolean;
  /** @throws UsageError where it is no whole number from 1 on, or above `most`. */
  count(option: string, most?: number): number | undefined;
}

/** Reads a command line. @throws UsageError naming what is wrong, and the options there are. */
export function readCommandLine(name: string, command: Command, args: readonly string[]): Given {
  const { values, positionals } = parsed(name, { ...command.options, help: { type: 'boolean', short: 'h' } }, args);
  const tooMany = positionals[command.words];
  if (tooMany !== undefined && values['help'] !== true) {
    throw new UsageError(`What is "${tooMany}"? See toolonion ${name} --help.`);
  }
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

function parsed(name: string, options: Command['options'], args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    // Node's own words name the option; what it advises after that is about dashes.
    const what = (error as Error).message.split(/\. |\n/)[0] ?? '';
    const known = Object.keys(options).map((option) => `--${option}`);
    throw new UsageError(`${what.replace(/\.$/, '')}. Options: ${known.join(', ')}. See toolonion ${name} --help.`);
  }
}
