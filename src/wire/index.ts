export * as anthropic from './anthropic.ts';
export type { NameRule, ToolNames } from './names.ts';
export * as openaiChat from './openai-chat.ts';
export * as openaiResponses from './openai-responses.ts';
export type { ObjectSchema, WireTools } from './wire.ts';
