// The servers and clients of both lines are what the adapter takes. Compiled, never run.

import type { Client as Client2 } from '@modelcontextprotocol/client';
import type { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import type { McpServer as High1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { McpServer as High2, Server as Server2 } from '@modelcontextprotocol/server';
import { createDispatcher } from 'toolonion';
import { connectTools, serveTools } from 'toolonion/adapters/mcp';

export async function both(
  high1: High1,
  high2: High2,
  low2: Server2,
  client1: Client1,
  client2: Client2,
): Promise<void> {
  const dispatcher = createDispatcher();
  serveTools(high1.server, dispatcher);
  serveTools(high2.server, dispatcher);
  serveTools(low2, dispatcher);
  await connectTools(client1);
  await connectTools(client2);
}
