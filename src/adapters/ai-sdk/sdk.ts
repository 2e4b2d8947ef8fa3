import type { JsonValue } from '../../json.ts';

// The SDK's own types, as far as they are needed: versions 6 and 7 agree in these. Written down here, so that nobody who uses another
// runtime needs the package; that both take and give them is tested.

/** What the SDK tells `execute`. */
export interface SdkExecuteOptions {
  readonly toolCallId: string;
  readonly messages: readonly SdkMessage[];
  readonly abortSignal?: AbortSignal | undefined;
  /** Of version 6. */
  readonly experimental_context?: unknown;
  /** Of version 7. */
  readonly context?: unknown;
}

/** A message, of which only the approvals are read. */
export interface SdkMessage {
  readonly role: string;
  readonly content: unknown;
}

/** A call, as `result.toolCalls` has it. */
export interface SdkToolCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
  /** The SDK has answered it already. */
  readonly invalid?: boolean | undefined;
  /** The provider runs it. */
  readonly providerExecuted?: boolean | undefined;
}

/** A piece of an answer. Version 7 has another for media, which the types of 6 do not know; it takes these as well. */
export type SdkOutputPart =
  | { type: 'text'; text: string }
  | { type: 'image-data'; data: string; mediaType: string }
  | { type: 'image-url'; url: string }
  | { type: 'file-data'; data: string; mediaType: string; filename?: string }
  | { type: 'file-url'; url: string; mediaType?: string };

/** What the model is told. */
export type SdkModelOutput =
  | { type: 'text'; value: string }
  | { type: 'error-text'; value: string }
  | { type: 'content'; value: SdkOutputPart[] };

/** Marks what the SDK takes for a schema. */
const SCHEMA = Symbol.for('vercel.ai.schema');

/** A JSON Schema as the SDK takes it, without a check: that is the dispatcher's, whose words tell the model more. */
export function sdkSchema(jsonSchema: JsonValue): never {
  // Its type has a symbol that each version declares anew, and no other can name.
  return { [SCHEMA]: true, _type: undefined, jsonSchema, validate: undefined } as never;
}
