export { type ApprovalRequest, type Approver, approvedBy } from './approval.ts';
export { MalformedArguments } from './arguments.ts';
export {
  type AbortScope,
  type Progress,
  ToolCall,
  type ToolCallChanges,
  type Validation,
  type Validator,
} from './call.ts';
export { canonicalJson } from './canonical.ts';
export { type Channel, Passage } from './channel.ts';
export { type Clock, MAX_DELAY_MS, systemClock } from './clock.ts';
export {
  type Content,
  type ContentPart,
  isContent,
  isContentPart,
  type MediaPart,
  type ResourceLinkPart,
  type TextPart,
  textOf,
} from './content.ts';
export { type Extension, type ExtensionKey, extensionKey, ToolContext, type ToolContextFields } from './context.ts';
export type { ControlSignal, SuspendRequest } from './control.ts';
export {
  createDispatcher,
  type Dispatcher,
  type DispatcherOptions,
} from './dispatcher.ts';
export {
  AbortReason,
  changedError,
  describeError,
  type ErrorDescription,
  type Executed,
  notFound,
  printable,
  type ToolError,
  type ToolErrorCode,
  type ToolErrorOptions,
  ToolFailure,
  type ToolFailureOptions,
  toolError,
  toToolError,
} from './error.ts';
export { type ForModelOptions, forModel } from './for-model.ts';
export { HoldBack } from './hold-back.ts';
export type { FromJsonSchema, InferInput } from './infer-input.ts';
export { closeDangling, type HistoryShape, interrupted } from './interrupted.ts';
export { returnedValue } from './invoke.ts';
export { cloneJson, copyJson, isPlainObject, type JsonObject, type JsonValue, kindOf, toJson } from './json.ts';
export { type JsonReading, jsonFaultIndex, readJson, type Slip } from './json-reader.ts';
export { asks, type GateJudgement, type GateQuestion, isJudged, type Judgement, judged } from './judgement.ts';
export type { SettleListener } from './keeper.ts';
export { controlOf } from './layer.ts';
export { type ListedOptions, listed } from './listed.ts';
export { isPromise, type MaybePromise } from './maybe-promise.ts';
export { describePart, mediaBytes } from './media.ts';
export { after, compose, type Middleware, type Next, named } from './middleware.ts';
export {
  type ByTool,
  checkOptions,
  isBoolean,
  isCount,
  isFunction,
  isLimit,
  isLimitMs,
  isListOf,
  isOneOf,
  type OptionCheck,
  type OptionChecks,
  type PerTool,
  perTool,
  perToolCheck,
} from './options.ts';
export {
  codeOf,
  type DispatchNote,
  fail,
  failure,
  isOutcome,
  type RequestedCall,
  stopped,
  succeed,
  suspended,
  type ToolDispatchResult,
  type ToolOutcome,
  unrunnable,
  withNote,
} from './outcome.ts';
export { ToolOutput, toOutput } from './output.ts';
export { PermissionCheck } from './permission.ts';
export { REDACTED, type RedactOptions, redactor } from './redact.ts';
export { ReadonlyToolRegistry, ToolRegistry } from './registry.ts';
export type { BatchOptions, DispatchOptions, StreamOptions, ToolCallRequest } from './request.ts';
export { Schedule, type ScheduleOptions } from './schedule.ts';
export { deepFreeze, type JsonSchema, type ToolSchema } from './schema.ts';
export { mapSubschemas } from './schema-walk.ts';
export { type Setting, type SettingKey, settingKey } from './settings.ts';
export type { DrainOptions, DrainReport } from './shut-down.ts';
export { type NearestOptions, nearestNames, similarity } from './similarity.ts';
export {
  isStandardSchema,
  type StandardIssue,
  type StandardJsonSchemaConverter,
  type StandardResult,
  type StandardSchema,
  type StandardSchemaProps,
} from './standard-schema.ts';
export { standsFor } from './stands-for.ts';
export type { ToolStream } from './stream.ts';
export type { ProgressEvent, StreamEvent } from './stream-event.ts';
export { TimeLimit, timersOf } from './time-limit.ts';
export { defineTool, isConcurrencySafe, isTool, namespaced, type Tool, type ToolDefinition } from './tool.ts';
export {
  type CutOptions,
  cutTexts,
  isJsonLonger,
  type Keep,
  type Marker,
  type SizeUnit,
  shrinkJson,
  sizeOf,
} from './truncate.ts';
export { wildcard } from './wildcard.ts';
