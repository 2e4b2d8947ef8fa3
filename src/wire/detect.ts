import { isPlainObject } from '../json.ts';

/** What tells a call: the names under which this package has the shapes of calls that stand alone. */
export type Shape = 'openaiChat' | 'openaiResponses' | 'anthropic' | 'gemini' | 'geminiInteractions' | 'mcp';

/**
 * The shape of a single call, as a reply holds it; of MCP, the request. Undefined where it has none of these, as a call for the dispatcher. A call of a
 * client's model at MCP looks like one of Anthropic's.
 *
 * @example detect({ type: 'tool_use', id: 'c1', name: 'weather', input: {} }) // 'anthropic'
 */
export function detect(call: unknown): Shape | undefined {
  if (!isPlainObject(call)) return undefined;
  const { type, method } = call;
  if (method === 'tools/call') return 'mcp';
  if (type === 'tool_use') return 'anthropic';
  if (type === 'custom_tool_call') return 'openaiResponses';
  if (type === 'function_call') return isInteractions(call) ? 'geminiInteractions' : 'openaiResponses';
  if (isPlainObject(call['functionCall'])) return 'gemini';
  // With a name of its own it is a call for the dispatcher, and something else.
  if (typeof call['name'] === 'string') return undefined;
  const asked = type === 'custom' ? call['custom'] : call['function'];
  return isPlainObject(asked) && (type === 'custom' || type === 'function' || type === undefined)
    ? 'openaiChat'
    : undefined;
}

/** OpenAI's has the id of its answer under another name, and its arguments are text. */
function isInteractions(call: Readonly<Record<string, unknown>>): boolean {
  return call['call_id'] === undefined && typeof call['arguments'] !== 'string';
}
