// A whole MCP server without the protocol's own package: a line for each message.

import { createInterface } from 'node:readline';
import { createDispatcher, defineTool } from 'toolonion';
import { readOnlyAllowed, standard } from 'toolonion/middleware';
import { mcp } from 'toolonion/wire';

const weather = defineTool({
  name: 'weather',
  description: 'Tells the weather of a city.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  readOnly: true,
  execute: ({ city }) => `Sunny in ${city}.`,
});
const dispatcher = createDispatcher({
  tools: [weather],
  middleware: standard({ permission: { check: readOnlyAllowed }, logging: false }),
});
const defined = mcp.definitions(dispatcher.tools);

async function resultOf(message: mcp.McpMessage): Promise<unknown> {
  if (message.method === 'tools/list') return { tools: defined.tools };
  const [result] = mcp.results(await dispatcher.dispatchAll(mcp.calls(message, defined.names)), defined);
  if (result) return result;
  const serverInfo = { name: 'weather', version: '1.0.0' };
  return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.id === undefined) continue;
  resultOf(message).then((result) => console.log(JSON.stringify({ jsonrpc: '2.0', id: message.id, result })));
}
