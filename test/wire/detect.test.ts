import { expect, test } from '@jest/globals';
import { detect } from 'toolonion/wire';

test.each([
  ['openaiChat', { id: 'a', type: 'function', function: { name: 'work', arguments: '{}' } }],
  ['openaiChat', { index: 0, function: { arguments: '{"' } }],
  ['openaiChat', { id: 'a', type: 'custom', custom: { name: 'run', input: 'ls' } }],
  ['openaiResponses', { type: 'function_call', call_id: 'a', name: 'work', arguments: '{}' }],
  ['openaiResponses', { type: 'function_call', name: 'work', arguments: '{}' }],
  ['openaiResponses', { type: 'custom_tool_call', call_id: 'a', name: 'run', input: 'ls' }],
  ['anthropic', { type: 'tool_use', id: 'a', name: 'work', input: {} }],
  ['gemini', { functionCall: { name: 'work', args: {} } }],
  ['gemini', { thoughtSignature: 's', functionCall: {} }],
  ['geminiInteractions', { type: 'function_call', id: 'a', name: 'work', arguments: {} }],
  ['mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'work' } }],
])('%s is what %j has the shape of', (shape, call) => {
  expect(detect(call)).toBe(shape);
});

test.each([
  { id: 'a', name: 'work', arguments: {} },
  { name: 'work', arguments: '{}', truncated: true },
  { type: 'server_tool_use', id: 'a', name: 'web_search', input: {} },
  { type: 'function', name: 'work', parameters: {} },
  { type: 'web_search_call', id: 'a' },
  { function: 'work' },
  { name: 'work', arguments: {}, function: {} },
  { functionCall: null },
  { method: 'tools/list' },
  {},
  [],
  null,
  undefined,
  'tool_use',
  7,
])('no shape is that of %j', (call) => {
  expect(detect(call)).toBeUndefined();
});
