import { type Logger, pino } from 'pino';
import {
  type Policy,
  type PolicyDocument,
  type PolicyOptions,
  policy,
  rules,
  type StandardOptions,
  standard,
} from '../../middleware/index.ts';
import {
  createDispatcher,
  type Dispatcher,
  type DispatcherOptions,
  MAX_DELAY_MS,
  PermissionCheck,
  ToolContext,
} from '../index.ts';
import type { Command, Given } from './command.ts';
import { readJsonFile } from './json-file.ts';
import { loadDispatcher, loadTools } from './modules.ts';
import { UsageError } from './usage-error.ts';

/** Options of every command that dispatches. */
export const DISPATCHER_OPTIONS: Command['options'] = {
  tools: { type: 'string' },
  dispatcher: { type: 'string' },
  policy: { type: 'string' },
  allow: { type: 'string', multiple: true },
  limit: { type: 'string' },
  'limit-ms': { type: 'string' },
  log: { type: 'string' },
};

/** What `--help` says of them. */
export const DISPATCHER_HELP = `  --tools MODULE       a module that exports tools; they get the standard layers
  --dispatcher MODULE  in place of --tools: a module that exports a dispatcher, layers and all
  --policy FILE        what tools may do, in JSON: see toolonion policy --help
  --allow NAME         a tool that may run, where there is no policy; * stands for any characters;
                       may be repeated. Without it, read-only tools run and no others
  --limit CHARACTERS   how long an answer may be, before what the policy says
  --limit-ms MS        how long a tool may take, before what the policy says
  --log LEVEL          info: a line for each call; warn: for each that failed; error; silent
`;

const LEVELS = ['info', 'warn', 'error', 'silent'];

/** What a command says of the dispatcher it opens. */
export interface OpenOptions {
  /** The level of the log where the command line names none. */
  readonly level: 'info' | 'silent';
  /** Hears of a line of the log before it is written. */
  readonly beforeLog?: () => void;
  readonly onLate?: NonNullable<DispatcherOptions['onLate']>;
}

/** The dispatcher of a module, or one with the standard layers around a module's tools. @throws UsageError */
export async function openDispatcher(given: Given, options: OpenOptions): Promise<Dispatcher> {
  const dispatcherModule = given.text('dispatcher');
  const toolsModule = given.text('tools');
  if (dispatcherModule !== undefined && toolsModule !== undefined) {
    throw new UsageError('--tools and --dispatcher exclude each other: a dispatcher has its own tools.');
  }
  if (dispatcherModule !== undefined) {
    refuseLayerOptions(given);
    return loadDispatcher(dispatcherModule);
  }
  if (toolsModule === undefined)
    throw new UsageError('--tools MODULE is missing, or --dispatcher MODULE in its place.');
  // First the command line, then what a stranger wrote: a slip is told at once.
  const middleware = standard(await layersFor(given, options));
  return createDispatcher({
    tools: await loadTools(toolsModule),
    middleware,
    context: new ToolContext({ cwd: process.cwd(), isNonInteractive: true }),
    ...(options.onLate && { onLate: options.onLate }),
  });
}

function refuseLayerOptions(given: Given): void {
  for (const option of ['policy', 'limit', 'limit-ms', 'log']) {
    if (given.text(option) !== undefined) {
      throw new UsageError(`--${option} goes with --tools: the dispatcher of a module has layers of its own.`);
    }
  }
  if (given.texts('allow').length > 0) {
    throw new UsageError('--allow goes with --tools: the dispatcher of a module has a gate of its own.');
  }
}

async function layersFor(given: Given, options: OpenOptions): Promise<StandardOptions> {
  const limit = given.count('limit');
  const limitMs = given.count('limit-ms', MAX_DELAY_MS);
  const logger = loggerFor(given.text('log') ?? options.level, options.beforeLog);
  const { permission, timeout, outputLimit, logging } = await policyFor(given);
  return {
    permission,
    logging: { ...logging, logger },
    outputLimit: limit === undefined ? outputLimit : { limit },
    timeout: limitMs === undefined ? timeout : { limitMs },
  };
}

function loggerFor(level: string, beforeLog: (() => void) | undefined): Logger {
  if (!LEVELS.includes(level)) throw new UsageError(`--log must be one of ${LEVELS.join(', ')}; got "${level}".`);
  const stderr = pino.destination({ dest: 2, sync: true });
  if (beforeLog === undefined) return pino({ level }, stderr);
  return pino({ level }, { write: (line) => beforeLog() === undefined && stderr.write(line) });
}

async function policyFor(given: Given): Promise<PolicyOptions> {
  const path = given.text('policy');
  const allow = given.texts('allow');
  if (path === undefined) return { permission: { check: gateFor(allow) }, timeout: {}, outputLimit: {}, logging: {} };
  if (allow.length > 0) throw new UsageError('--allow and --policy exclude each other: say it in the policy.');
  return (await readPolicy(path, '--policy')).options;
}

/** Without a policy: the tools that are named, or those that change nothing. */
function gateFor(allow: readonly string[]): PolicyOptions['permission']['check'] {
  if (allow.length > 0) return rules({ allow });
  return ({ tool }) =>
    tool?.readOnly === true
      ? PermissionCheck.allow()
      : PermissionCheck.deny('it is not read-only, and neither --policy nor --allow says that it may run');
}

/** The policy of a file. @throws UsageError naming each place that is wrong. */
export async function readPolicy(path: string, option: string): Promise<Policy> {
  const document = await readJsonFile(path, option);
  try {
    return policy(document as PolicyDocument);
  } catch (error) {
    throw new UsageError(`${option}: "${path}": ${(error as Error).message}`);
  }
}
