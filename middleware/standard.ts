import { checkOptions, type Middleware, type OptionCheck } from '../src/index.ts';
import { type AliasOptions, alias } from './alias.ts';
import { type BudgetOptions, budget } from './budget.ts';
import { type CircuitBreakerOptions, circuitBreaker } from './circuit-breaker.ts';
import { type FallbackOptions, fallback } from './fallback.ts';
import { type LoggingOptions, logging } from './logging.ts';
import { type LoopGuardOptions, loopGuard } from './loop-guard.ts';
import { type OutputLimitOptions, outputLimit } from './output-limit.ts';
import { type OutputValidationOptions, outputValidation } from './output-validation.ts';
import { type PermissionOptions, permission } from './permission.ts';
import { type PrepareArgumentsOptions, prepareArguments } from './prepare-arguments.ts';
import { type RedactionOptions, redaction } from './redaction.ts';
import { type RetryOptions, retry } from './retry.ts';
import { type ScheduleOptions, schedule } from './schedule.ts';
import { type TimeoutOptions, timeout } from './timeout.ts';
import { type UnknownToolOptions, unknownTool } from './unknown-tool.ts';
import { type ValidationOptions, validation } from './validation.ts';

/** Options of each layer; `false` leaves a layer out, a middleware takes its place. */
export interface StandardOptions {
  readonly logging?: LoggingOptions | Middleware | false;
  /** Default: left out. */
  readonly alias?: AliasOptions | Middleware | false;
  /** Default: left out. */
  readonly unknownTool?: UnknownToolOptions | Middleware | false;
  /** Default: left out. */
  readonly loopGuard?: LoopGuardOptions | Middleware | false;
  /** Default: left out. */
  readonly fallback?: FallbackOptions | Middleware | false;
  /** Default: left out. */
  readonly prepareArguments?: PrepareArgumentsOptions | Middleware | false;
  readonly validation?: ValidationOptions | Middleware | false;
  /** Has to be said: what may run is the host's own decision. */
  readonly permission: PermissionOptions | Middleware | false;
  /** Default: left out. */
  readonly budget?: BudgetOptions | Middleware | false;
  /** Default: left out. */
  readonly schedule?: ScheduleOptions | Middleware | false;
  /** Default: left out. */
  readonly circuitBreaker?: CircuitBreakerOptions | Middleware | false;
  /** Default: left out. */
  readonly retry?: RetryOptions | Middleware | false;
  readonly outputLimit?: OutputLimitOptions | Middleware | false;
  /** Default: left out. */
  readonly redaction?: RedactionOptions | Middleware | false;
  readonly outputValidation?: OutputValidationOptions | Middleware | false;
  readonly timeout?: TimeoutOptions | Middleware | false;
}

const isLayer: OptionCheck = (value) =>
  value === false ||
  typeof value === 'function' ||
  (typeof value === 'object' && value !== null) ||
  'options, a middleware, or false';

const LAYERS = {
  logging: isLayer,
  alias: isLayer,
  unknownTool: isLayer,
  loopGuard: isLayer,
  fallback: isLayer,
  prepareArguments: isLayer,
  validation: isLayer,
  permission: isLayer,
  budget: isLayer,
  schedule: isLayer,
  circuitBreaker: isLayer,
  retry: isLayer,
  outputLimit: isLayer,
  redaction: isLayer,
  outputValidation: isLayer,
  timeout: isLayer,
};

/**
 * The layers in the order in which they work together, outermost first: logging, alias, unknown tool, loop guard, fallback, prepare arguments,
 * validation, permission, budget, schedule, circuit breaker, retry, output limit, redaction, output validation, timeout. Logging, validation,
 * permission, output limit, output validation and timeout are there unless they are left out; the others where they are given.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example createDispatcher({ tools, middleware: standard({ permission: { check: readOnlyAllowed, approver } }) })
 */
export function standard(options: StandardOptions): readonly Middleware[] {
  checkOptions('standard', options ?? {}, LAYERS);
  if (options?.permission === undefined) {
    throw new TypeError(
      'Option "permission" of standard must be given: what may run, as in { check: readOnlyAllowed }, or false.',
    );
  }
  if (typeof options.permission === 'function' && options.permission.length < 2) {
    throw new TypeError('Option "permission" of standard takes a rule as { check: rule }; this one is no middleware.');
  }
  return [
    layer(logging, options.logging),
    layer(alias, options.alias ?? false),
    layer(unknownTool, options.unknownTool ?? false),
    layer(loopGuard, options.loopGuard ?? false),
    layer(fallback, options.fallback ?? false),
    layer(prepareArguments, options.prepareArguments ?? false),
    layer(validation, options.validation),
    layer(permission, options.permission),
    layer(budget, options.budget ?? false),
    layer(schedule, options.schedule ?? false),
    layer(circuitBreaker, options.circuitBreaker ?? false),
    layer(retry, options.retry ?? false),
    layer(outputLimit, options.outputLimit),
    layer(redaction, options.redaction ?? false),
    layer(outputValidation, options.outputValidation),
    layer(timeout, options.timeout),
  ].flat();
}

function layer<Options extends object>(
  make: (options: Options) => Middleware,
  option: Options | Middleware | false | undefined,
): readonly Middleware[] {
  if (option === false) return [];
  return [typeof option === 'function' ? (option as Middleware) : make((option ?? {}) as Options)];
}
