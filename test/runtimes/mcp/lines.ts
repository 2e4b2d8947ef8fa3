// Both lines of the official SDK, each with its own client: a dispatcher behind a real server, and a real client before it.

import {
  Client as Client2,
  InMemoryTransport as Memory2,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport as Memory1 } from '@modelcontextprotocol/sdk/inMemory.js';
import { Server as Server1 } from '@modelcontextprotocol/sdk/server/index.js';
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { createMcpHandler, Server as Server2 } from '@modelcontextprotocol/server';
import type { Dispatcher } from 'toolonion';
import { type ServeToolsOptions, serveTools } from 'toolonion/adapters/mcp';
import type { McpCallResult } from 'toolonion/wire';

/** What a client's user answers to a question. */
export type Answer = (message: string) => {
  action: 'accept' | 'decline' | 'cancel';
  content?: Record<string, boolean>;
};

/** What may be said of a call: both lines have these. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: object) => void;
}

/** A connection, whatever line it is of. */
export interface Connection {
  call(name: string, input?: unknown, options?: CallOptions): Promise<McpCallResult>;
  list(): Promise<{ tools: object[] }>;
  onListChanged(listener: () => void): void;
  readonly client: Client1 | Client2;
  close(): Promise<void>;
}

type Connect = (dispatcher: Dispatcher, answer?: Answer, options?: ServeToolsOptions) => Promise<Connection>;

const info = { name: 'test', version: '1.0.0' };

async function connect1(dispatcher: Dispatcher, answer?: Answer, options?: ServeToolsOptions): Promise<Connection> {
  const server = new Server1(info);
  const end = serveTools(server, dispatcher, options);
  const client = new Client1(info, { capabilities: answer ? { elicitation: {} } : {} });
  if (answer) client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params.message));
  const [near, far] = Memory1.createLinkedPair();
  await Promise.all([server.connect(far), client.connect(near)]);
  return {
    client,
    call: (name, input, more) =>
      client.callTool(
        { name, arguments: input } as never,
        undefined,
        more as never,
      ) as unknown as Promise<McpCallResult>,
    list: () => client.listTools(),
    onListChanged: (listener) => client.setNotificationHandler(ToolListChangedNotificationSchema, listener),
    close: async () => {
      end();
      await client.close();
    },
  };
}

function client2(answer: Answer | undefined, versionNegotiation: 'auto' | undefined): Client2 {
  const client = new Client2(info, {
    capabilities: answer ? { elicitation: { form: {} } } : {},
    ...(versionNegotiation && { versionNegotiation: { mode: versionNegotiation } }),
  });
  if (answer)
    client.setRequestHandler('elicitation/create', (({ params }: { params: { message: string } }) =>
      answer(params.message)) as never);
  return client;
}

function connection2(client: Client2, end: () => unknown): Connection {
  return {
    client,
    call: (name, input, more) =>
      client.callTool({ name, arguments: input } as never, more as never) as unknown as Promise<McpCallResult>,
    list: () => client.listTools() as Promise<{ tools: object[] }>,
    onListChanged: (listener) => client.setNotificationHandler('notifications/tools/list_changed', listener),
    close: async () => {
      await end();
      await client.close();
    },
  };
}

async function connect2(dispatcher: Dispatcher, answer?: Answer, options?: ServeToolsOptions): Promise<Connection> {
  const server = new Server2(info);
  const end = serveTools(server, dispatcher, options);
  const client = client2(answer, undefined);
  const [near, far] = Memory2.createLinkedPair();
  await Promise.all([server.connect(far as never), client.connect(near)]);
  return connection2(client, end);
}

/** The revision of July 2026, over its HTTP handler. */
async function connectModern(
  dispatcher: Dispatcher,
  answer?: Answer,
  options?: ServeToolsOptions,
): Promise<Connection> {
  const ends: (() => void)[] = [];
  const handler = createMcpHandler(() => {
    const server = new Server2(info);
    ends.push(serveTools(server, dispatcher, options));
    return server;
  });
  const client = client2(answer, 'auto');
  const fetch = (url: string | URL, init?: RequestInit) => handler.fetch(new Request(url, init));
  await client.connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch: fetch as never }));
  return connection2(client, async () => {
    for (const end of ends) end();
    await handler.close();
  });
}

export const LINES: readonly (readonly [line: string, connect: Connect])[] = [
  ['the 1.x line', connect1],
  ['the 2.x packages', connect2],
  ['the 2.x packages, revision 2026-07-28', connectModern],
];
