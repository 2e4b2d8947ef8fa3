export { repairToolCall, toolApproval } from './hooks.ts';
export { type ModelOutputOptions, modelOutput, type PartialOutput, type ToolSetOutput } from './output.ts';
export type {
  SdkExecuteOptions,
  SdkMessage,
  SdkModelOutput,
  SdkOutputPart,
  SdkToolCall,
} from './sdk.ts';
export { type SdkToolMessage, type ToolMessageOptions, toolMessage } from './tool-message.ts';
export {
  type SdkRequest,
  type SdkTool,
  type SdkToolDefinition,
  sdkRequest,
  type ToolSetOptions,
  toolDefinitions,
  toolSet,
} from './tool-set.ts';
