export * as anthropic from './anthropic.ts';
export * as gemini from './gemini.ts';
export * as geminiInteractions from './gemini-interactions.ts';
export type { NameRule, ToolNames } from './names.ts';
export * as openaiChat from './openai-chat.ts';
export * as openaiResponses from './openai-responses.ts';
export type { ObjectSchema, WireTools } from './wire.ts';
