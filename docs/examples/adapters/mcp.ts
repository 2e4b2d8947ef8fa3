// A dispatcher's tools served by the official SDK, and taken into another dispatcher from there: both ends in one process.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { createDispatcher, defineTool } from 'toolonion';
import { connectTools, serveTools } from 'toolonion/adapters/mcp';
import { allowAll, readOnlyAllowed, standard } from 'toolonion/middleware';

const weather = defineTool({
  name: 'weather',
  description: 'Tells the weather of a city.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  readOnly: true,
  execute: ({ city }) => `Sunny in ${city}.`,
});

// The server: a process of its own, elsewhere.
const served = createDispatcher({
  tools: [weather],
  middleware: standard({ permission: { check: readOnlyAllowed }, logging: false }),
});
const server = new Server({ name: 'weather', version: '1.0.0' });
serveTools(server, served);

// The agent: its dispatcher has the server's tools.
const client = new Client({ name: 'agent', version: '1.0.0' });
const [near, far] = InMemoryTransport.createLinkedPair();
await Promise.all([server.connect(far), client.connect(near)]);
const { registry } = await connectTools(client);
const agent = createDispatcher({
  tools: registry,
  middleware: standard({ permission: { check: allowAll }, logging: false }),
});

console.log((await agent.dispatch({ name: 'weather', arguments: '{"city":"Oslo"}' })).content);
await client.close();
