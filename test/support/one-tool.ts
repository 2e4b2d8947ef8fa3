import { createDispatcher, type Dispatcher, defineTool, type Middleware, type ToolCall } from 'toolonion';

export type Execute = (input: unknown, call: ToolCall) => unknown;

/** A dispatcher with one tool, named `tool`. */
export function dispatcherOf(execute: Execute, ...middleware: readonly Middleware[]): Dispatcher {
  return createDispatcher({ tools: [defineTool({ name: 'tool', description: 'A tool.', execute })], middleware });
}

/** A layer that calls a tool again that has failed, once. */
export const retry: Middleware = async (call, next) => {
  const outcome = await next(call);
  return outcome.isError ? next(call) : outcome;
};
