import { type Logger, pino } from 'pino';
import { type Policy, type PolicyOptions, type StandardOptions, standard } from '../../middleware/index.ts';
import {
  createDispatcher,
  type Dispatcher,
  type DispatcherOptions,
  MAX_DELAY_MS,
  PermissionCheck,
  type Tool,
  ToolContext,
  wildcard,
} from '../index.ts';
import type { Command, Given } from './command.ts';
import { loadDispatcher, loadTools } from './modules.ts';
import { readPolicy } from './policy-file.ts';
import { complain } from './terminal.ts';
import { UsageError } from './usage-error.ts';

/** Options of every command that looks at a dispatcher. */
export const MODULE_OPTIONS: Command['options'] = {
  tools: { type: 'string', multiple: true },
  dispatcher: { type: 'string' },
};

/** Options of every command that dispatches. */
export const DISPATCHER_OPTIONS: Command['options'] = {
  ...MODULE_OPTIONS,
  policy: { type: 'string' },
  allow: { type: 'string', multiple: true },
  limit: { type: 'string' },
  'limit-ms': { type: 'string' },
  log: { type: 'string' },
};

/** What `--help` says of them. */
export const DISPATCHER_HELP = `  --tools MODULE       a module that exports tools; may be repeated. They get the standard layers
  --dispatcher MODULE  in place of --tools: a module that exports a dispatcher, layers and all
  --policy FILE        what tools may do, in JSON: see toolonion policy --help
  --allow NAME         where there is no policy, read-only tools run, and those that are named
                       here; * stands for any characters; may be repeated
  --limit CHARACTERS   how long an answer may be, whatever the policy says; without both 50,000
  --limit-ms MS        how long a tool may take, whatever the policy says; without both 120,000
  --log LEVEL          info: a line for each call; warn: for each that failed; error: for those
                       where the engine itself was at fault; silent
`;

const LEVELS = ['info', 'warn', 'error', 'silent'];

/** What a command says of the dispatcher it opens. */
export interface OpenOptions {
  /** Whether somebody can be asked. Default: false. */
  readonly isInteractive?: boolean;
  /** Whether the tools come from a stranger, whose word that they are read-only counts for nothing. Default: false. */
  readonly isForeign?: boolean;
  /** The level of the log where the command line names none. */
  readonly level: 'info' | 'silent';
  readonly onLate?: NonNullable<DispatcherOptions['onLate']>;
}

/** The dispatcher of a module, or one with the standard layers around a module's tools. @throws UsageError */
export async function openDispatcher(given: Given, options: OpenOptions): Promise<Dispatcher> {
  const dispatcherModule = given.text('dispatcher');
  const toolsModules = given.texts('tools');
  if (dispatcherModule !== undefined && toolsModules.length > 0) {
    throw new UsageError('--tools and --dispatcher exclude each other: a dispatcher has its own tools.');
  }
  if (dispatcherModule !== undefined) {
    refuseLayerOptions(given);
    return loadDispatcher(dispatcherModule);
  }
  if (toolsModules.length === 0)
    throw new UsageError('--tools MODULE is missing, or --dispatcher MODULE in its place.');
  // First the command line, then what a stranger wrote: a slip is told at once.
  const { policy, ...made } = await openLayers(given, options);
  const tools = await loadTools(toolsModules);
  for (const warning of policy.warnings(tools)) complain(warning);
  return createDispatcher({ ...made, tools });
}

/** The standard layers as the command line says, for tools that come later. @throws UsageError */
export async function openLayers(
  given: Given,
  options: OpenOptions,
): Promise<DispatcherOptions & { readonly policy: PolicyParts }> {
  const policy = await policyFor(given, options.isForeign === true);
  return {
    policy,
    middleware: standard(layersFor(given, options, policy)),
    context: new ToolContext({ cwd: process.cwd(), isNonInteractive: options.isInteractive !== true }),
    ...(options.onLate && { onLate: options.onLate }),
  };
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

function layersFor(given: Given, { level }: OpenOptions, { options }: PolicyParts): StandardOptions {
  const limit = given.count('limit');
  const limitMs = given.count('limit-ms', MAX_DELAY_MS);
  const logger = loggerFor(given.text('log') ?? level);
  return {
    permission: options.permission,
    logging: { ...options.logging, logger },
    outputLimit: limit === undefined ? options.outputLimit : { limit },
    timeout: limitMs === undefined ? options.timeout : { limitMs },
  };
}

function loggerFor(level: string): Logger {
  if (!LEVELS.includes(level)) throw new UsageError(`--log must be one of ${LEVELS.join(', ')}; got "${level}".`);
  // On a terminal by the stream, which takes a line about the progress away first; else at once, so that no end of the process loses it.
  return pino({ level }, process.stderr.isTTY ? process.stderr : pino.destination({ dest: 2, sync: true }));
}

/** What is asked of a policy here. */
export type PolicyParts = Pick<Policy, 'options' | 'warnings'>;

async function policyFor(given: Given, isForeign: boolean): Promise<PolicyParts> {
  const path = given.text('policy');
  const allow = given.texts('allow');
  if (path === undefined) {
    const fits = (name: string, tools: readonly Tool[]) => tools.some((tool) => wildcard(name)(tool.name));
    return {
      options: { permission: { check: gateFor(allow, isForeign) }, timeout: {}, outputLimit: {}, logging: {} },
      warnings: (tools) => allow.flatMap((name) => (fits(name, [...tools]) ? [] : [`--allow "${name}" fits no tool.`])),
    };
  }
  if (allow.length > 0) throw new UsageError('--allow and --policy exclude each other: say it in the policy.');
  return readPolicy(path, '--policy');
}

/** Without a policy: the tools that change nothing, and those that are named. */
function gateFor(allow: readonly string[], isForeign: boolean): PolicyOptions['permission']['check'] {
  if (allow.includes('')) throw new UsageError('--allow needs the name of a tool; * stands for any characters.');
  const named = allow.map(wildcard);
  return ({ tool, toolName }) =>
    (tool?.readOnly === true && !isForeign) || named.some((fits) => fits(toolName))
      ? PermissionCheck.allow()
      : PermissionCheck.deny(isForeign ? 'no --allow names it' : NOT_ALLOWED);
}

const NOT_ALLOWED = 'it is not read-only, and neither --policy nor --allow says that it may run';
