export { type CallLogger, type LoggingOptions, logging } from './logging.ts';
export { type OutputLimitOptions, outputLimit } from './output-limit.ts';
export { type OutputValidationOptions, outputValidation } from './output-validation.ts';
export { type ApprovalRequest, type Approver, type PermissionOptions, permission } from './permission.ts';
export {
  allowAll,
  denyAll,
  type PermissionRule,
  type RuleSet,
  readOnlyAllowed,
  rules,
  type ToolRule,
} from './permission-rules.ts';
export { type StandardOptions, standard } from './standard.ts';
export { type TimeoutOptions, timeout, timeoutMs } from './timeout.ts';
export { type ValidationMiddleware, type ValidationOptions, validation } from './validation.ts';
