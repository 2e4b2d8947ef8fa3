// A whole agent in an MCP server, which thinks with the model of its client.

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import type { SamplingMessage } from '@modelcontextprotocol/sdk/types.js';
import { createDispatcher, defineTool } from 'toolonion';
import { readOnlyAllowed, standard } from 'toolonion/middleware';
import { mcpSampling } from 'toolonion/wire';

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
const server = new McpServer({ name: 'travel', version: '1.0.0' });

server.registerTool('advise', { description: 'Advises where to go.' }, async () => {
  const { tools, names } = mcpSampling.definitions(dispatcher.tools.schemas);
  const messages: SamplingMessage[] = [{ role: 'user', content: { type: 'text', text: 'Oslo or Bergen?' } }];
  for (let turn = 0; turn < 10; turn++) {
    const reply = await server.server.createMessage({ messages, tools, maxTokens: 4096 });
    const calls = mcpSampling.calls(reply, names);
    const blocks = [reply.content].flat();
    if (calls.length === 0) return { content: blocks.filter((block) => block.type === 'text') };
    const results = await dispatcher.dispatchAll(calls);
    messages.push(mcpSampling.replay(reply, results, names), mcpSampling.results(results));
  }
  throw new Error('There is no answer after 10 turns.');
});

await server.connect(new StdioServerTransport());
