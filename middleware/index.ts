export type { ApprovalRequest, Approver } from '../src/index.ts';
export { type Aliases, type AliasOptions, alias } from './alias.ts';
export { type BudgetOptions, budget } from './budget.ts';
export { type CircuitBreakerOptions, circuitBreaker } from './circuit-breaker.ts';
export { type FallbackOptions, fallback } from './fallback.ts';
export { type CallLogger, type LoggingOptions, logging } from './logging.ts';
export { type LoopGuardOptions, loopGuard } from './loop-guard.ts';
export { type OrderWarning, orderWarnings } from './order.ts';
export { type OutputLimitOptions, outputLimit } from './output-limit.ts';
export { type OutputValidationOptions, outputValidation } from './output-validation.ts';
export { type PermissionOptions, permission } from './permission.ts';
export {
  allowAll,
  denyAll,
  type PermissionRule,
  type RuleSet,
  readOnlyAllowed,
  rules,
  type ToolRule,
} from './permission-rules.ts';
export {
  type Policy,
  type PolicyDocument,
  type PolicyExplanation,
  type PolicyOptions,
  type PolicyRule,
  type PolicySource,
  type PolicyVerdict,
  policy,
  type ToolPolicy,
} from './policy.ts';
export { type ArgumentTransform, type PrepareArgumentsOptions, prepareArguments } from './prepare-arguments.ts';
export { type RedactionOptions, redaction } from './redaction.ts';
export { directoryStore } from './results/directory-store.ts';
export { memoryStore } from './results/memory-store.ts';
export { type ReadResultInput, type ReadResultOptions, readResultTool } from './results/read-result-tool.ts';
export type { ByteRange, ResultOwner, ResultStore, RetentionOptions, StoredBytes } from './results/result-store.ts';
export { type RetryOptions, retry } from './retry.ts';
export { type ScheduleOptions, schedule } from './schedule.ts';
export type { SchemaCompiler, SchemaOptions } from './schema/check.ts';
export type { RegExpEngine } from './schema/patterns.ts';
export { type StandardOptions, standard } from './standard.ts';
export { type TimeoutOptions, timeout, timeoutMs } from './timeout.ts';
export {
  type Admission,
  type HealthStatus,
  type SavedToolHealth,
  ToolHealth,
  type ToolHealthOptions,
  type ToolHealthReport,
} from './tool-health.ts';
export { type UnknownToolOptions, unknownTool } from './unknown-tool.ts';
export { type ValidationMiddleware, type ValidationOptions, validation } from './validation.ts';
export { type CallSelection, when } from './when.ts';
