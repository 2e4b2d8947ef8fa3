import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { Client as Client2, InMemoryTransport as Memory2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport as Memory1 } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import { ElicitRequestSchema, type ServerNotification, type ServerRequest } from '@modelcontextprotocol/sdk/types.js';
import { acceptedContent, inputRequired, McpServer as Modern } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { createDispatcher, type Middleware, PermissionCheck } from 'toolonion';
import { proxy } from 'toolonion/adapters/mcp';
import { allowAll, type PermissionOptions, rules, type StandardOptions, standard } from 'toolonion/middleware';
import { z } from 'zod';
import { turns } from '../../support/manual-clock.ts';

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** A server somebody else wrote. */
function serverOf(runs: unknown[] = []): McpServer {
  const server = new McpServer({ name: 'theirs', version: '1.0.0' });
  server.registerTool(
    'echo',
    { description: 'Echoes.', inputSchema: { text: z.string() }, annotations: { readOnlyHint: true } },
    (input) => {
      runs.push(input);
      return { content: [{ type: 'text', text: input.text }], _meta: { theirs: true } };
    },
  );
  server.registerTool(
    'sum',
    { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } },
    ({ a, b }) => ({
      content: [{ type: 'text', text: String(a + b) }],
      structuredContent: { sum: a + b },
    }),
  );
  server.registerTool('failing', {}, () => {
    throw new Error('It broke.');
  });
  server.registerTool('busy', {}, async (extra: Extra) => {
    const token = extra._meta?.progressToken ?? '';
    await extra.sendNotification({
      method: 'notifications/progress',
      params: { progressToken: token, progress: 1, total: 2 },
    });
    return { content: [{ type: 'text', text: 'done' }] };
  });
  server.registerTool('deaf', {}, (extra: Extra) => {
    extra.signal.addEventListener('abort', () => runs.push('aborted'));
    return new Promise(() => {});
  });
  server.registerTool('asking', {}, async () => {
    const { action } = await server.server.elicitInput({
      message: 'Theirs?',
      requestedSchema: { type: 'object', properties: {} },
    });
    return { content: [{ type: 'text', text: action }] };
  });
  server.registerResource('a', 'test://a', {}, () => ({ contents: [{ uri: 'test://a', text: 'a resource' }] }));
  server.registerPrompt('p', {}, () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'a prompt' } }] }));
  return server;
}

const open: { close(): unknown }[] = [];
const errors: unknown[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
  expect(errors.splice(0)).toEqual([]);
});

interface SetUp {
  readonly layers?: Partial<StandardOptions>;
  readonly outside?: readonly Middleware[];
  readonly server?: McpServer;
  readonly answer?: (message: string) => { action: 'accept' | 'decline'; content?: Record<string, boolean> };
}

async function connect({ layers = {}, outside = [], server = serverOf(), answer }: SetUp = {}): Promise<Client1> {
  const { permission = { check: allowAll }, ...others } = layers;
  const middleware = [...outside, ...standard({ permission, logging: false, ...others })];
  const [clientSide, near] = Memory1.createLinkedPair();
  const [far, serverSide] = Memory1.createLinkedPair();
  await server.connect(serverSide);
  const onError = (error: unknown) => errors.push(error);
  open.push(
    await proxy({ client: near, server: far, dispatcher: (tools) => createDispatcher({ tools, middleware }), onError }),
  );
  const client = new Client1({ name: 'test', version: '1.0.0' }, { capabilities: answer ? { elicitation: {} } : {} });
  if (answer) client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params.message));
  await client.connect(clientSide);
  open.push(client);
  return client;
}

const textOf = (result: object) =>
  (result as { content: { text?: string }[] }).content.map(({ text }) => text).join('\n');
const yes = () => ({ action: 'accept' as const, content: { approve: true } });

describe('proxy', () => {
  test('passes everything but calls as it is', async () => {
    const client = await connect();
    expect(client.getServerVersion()).toMatchObject({ name: 'theirs' });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['echo', 'sum', 'failing', 'busy', 'deaf', 'asking']);
    expect(await client.readResource({ uri: 'test://a' })).toMatchObject({ contents: [{ text: 'a resource' }] });
    expect(await client.getPrompt({ name: 'p' })).toMatchObject({ messages: [{ content: { text: 'a prompt' } }] });
    await client.ping();
  });

  test('gives an answer that no layer has changed as the server did', async () => {
    const client = await connect();
    expect(await client.callTool({ name: 'echo', arguments: { text: 'hi' } })).toEqual({
      content: [{ type: 'text', text: 'hi' }],
      _meta: { theirs: true },
    });
    await client.listTools();
    expect(await client.callTool({ name: 'sum', arguments: { a: 1, b: 2 } })).toMatchObject({
      structuredContent: { sum: 3 },
    });
    expect(await client.callTool({ name: 'failing' })).toMatchObject({
      isError: true,
      content: [{ text: 'It broke.' }],
    });
  });

  test('refuses what may not run, and what is wrong, before the server sees it', async () => {
    const runs: unknown[] = [];
    const check = rules({ deny: [{ tool: 'sum', reason: 'no sums today' }], allow: ['*'] });
    const client = await connect({ layers: { permission: { check } }, server: serverOf(runs) });
    const denied = await client.callTool({ name: 'sum', arguments: { a: 1, b: 2 } });
    expect(denied).toMatchObject({ isError: true });
    expect(textOf(denied)).toContain('no sums today');
    expect(textOf(await client.callTool({ name: 'echo', arguments: {} }))).toContain('"text" is required');
    expect(textOf(await client.callTool({ name: 'gone' }))).toContain('There is no tool named "gone"');
    expect(runs).toEqual([]);
    expect(textOf(await client.callTool({ name: 'echo', arguments: { text: 'hi' } }))).toBe('hi');
  });

  test('lets rules know what the server’s annotations say', async () => {
    const check: PermissionOptions['check'] = ({ tool }) =>
      tool?.readOnly ? PermissionCheck.allow() : PermissionCheck.deny();
    const client = await connect({ layers: { permission: { check } } });
    expect(await client.callTool({ name: 'echo', arguments: { text: 'hi' } })).not.toHaveProperty('isError');
    expect(await client.callTool({ name: 'busy' })).toMatchObject({ isError: true });
  });

  test('sends on what layers edit, and gives what they change', async () => {
    const runs: unknown[] = [];
    const edit = ({ toolName }: { toolName: string }) =>
      toolName === 'echo' ? PermissionCheck.modify({ text: 'edited' }) : PermissionCheck.allow();
    const client = await connect({ layers: { permission: { check: edit } }, server: serverOf(runs) });
    const result = await client.callTool({ name: 'echo', arguments: { text: 'hi' } });
    expect(runs).toEqual([{ text: 'edited' }]);
    expect(textOf(result)).toContain('edited');
    expect(result).toMatchObject({ _meta: { theirs: true } });
    const limited = await connect({ layers: { outputLimit: { limit: 100 } } });
    expect(
      textOf(await limited.callTool({ name: 'echo', arguments: { text: 'x'.repeat(5_000) } })).length,
    ).toBeLessThan(400);
  });

  test('asks the client’s user where the policy wants somebody asked', async () => {
    const runs: unknown[] = [];
    const layers = { permission: { check: rules({ ask: ['echo'] }) } };
    const answer = jest.fn(yes);
    const client = await connect({ layers, answer, server: serverOf(runs) });
    expect(textOf(await client.callTool({ name: 'echo', arguments: { text: 'hi' } }))).toBe('hi');
    expect(answer.mock.calls).toEqual([['Run "echo"?\n\n{\n  "text": "hi"\n}']]);
    const refusing = await connect({ layers, answer: () => ({ action: 'decline' }), server: serverOf(runs) });
    expect(textOf(await refusing.callTool({ name: 'echo', arguments: { text: 'hi' } }))).toContain(
      'denied by the user',
    );
    const alone = await connect({ layers, server: serverOf(runs) });
    expect(textOf(await alone.callTool({ name: 'echo', arguments: { text: 'hi' } }))).toContain(
      'nobody is there to be asked',
    );
    expect(runs).toHaveLength(1);
  });

  test('lets the server ask the client’s user as well', async () => {
    const client = await connect({ answer: () => ({ action: 'accept', content: {} }) });
    expect(textOf(await client.callTool({ name: 'asking' }))).toBe('accept');
  });

  test('passes progress on', async () => {
    const heard: unknown[] = [];
    const client = await connect();
    await client.callTool({ name: 'busy' }, undefined, { onprogress: (progress) => heard.push(progress) });
    expect(heard).toEqual([{ progress: 1, total: 2 }]);
  });

  test('ends a call that takes too long, and tells the server', async () => {
    const runs: unknown[] = [];
    const client = await connect({ layers: { timeout: { limitMs: 20 } }, server: serverOf(runs) });
    const result = await client.callTool({ name: 'deaf' });
    expect(result).toMatchObject({ isError: true });
    expect(textOf(result)).toContain('20 ms');
    while (runs.length === 0) await turns(1);
    expect(runs).toEqual(['aborted']);
  });

  test('passes a cancellation on', async () => {
    const runs: unknown[] = [];
    const client = await connect({ server: serverOf(runs) });
    const controller = new AbortController();
    const calling = client.callTool({ name: 'deaf' }, undefined, { signal: controller.signal });
    await turns(20);
    controller.abort();
    await expect(calling).rejects.toThrow();
    while (runs.length === 0) await turns(1);
    expect(runs).toEqual(['aborted']);
  });

  test('takes new tools into account when the server tells of them', async () => {
    const server = serverOf();
    const client = await connect({ server });
    expect(textOf(await client.callTool({ name: 'late' }))).toContain('no tool named "late"');
    server.registerTool('late', {}, () => ({ content: [{ type: 'text', text: 'here' }] }));
    await turns(5);
    expect(textOf(await client.callTool({ name: 'late' }))).toBe('here');
  });

  test('a hundred calls at once are each answered', async () => {
    const client = await connect();
    const texts = Array.from({ length: 100 }, (_, n) => `${n}`);
    const results = await Promise.all(texts.map((text) => client.callTool({ name: 'echo', arguments: { text } })));
    expect(results.map(textOf)).toEqual(texts);
  });

  test('ends when the server goes, and answers what is under way', async () => {
    const server = serverOf();
    const client = await connect({ server });
    const calling = client.callTool({ name: 'deaf' });
    await turns(20);
    await server.close();
    expect(textOf(await calling)).toBe('The server of this tool has gone.');
  });

  test('a server that cannot list its tools is told as such', async () => {
    const [clientSide, near] = Memory2.createLinkedPair();
    const [far, serverSide] = Memory2.createLinkedPair();
    serverSide.onmessage = (message: object) => {
      const { id, method } = message as { id?: number; method: string };
      if (id === undefined) return;
      const info = {
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 's', version: '1' },
      };
      const answer = method === 'initialize' ? { result: info } : { error: { code: -32603, message: 'no list' } };
      serverSide.send({ jsonrpc: '2.0', id, ...answer } as never);
    };
    await serverSide.start();
    open.push(await proxy({ client: near, server: far, dispatcher: (tools) => createDispatcher({ tools }) }));
    const client = new Client2({ name: 'test', version: '1.0.0' });
    await client.connect(clientSide);
    open.push(client);
    await expect(client.callTool({ name: 'echo' })).rejects.toThrow('no list');
  });
});

describe('proxy between sides that speak the revision of July 2026', () => {
  async function connectModern(
    layers: Partial<StandardOptions>,
    answer: (message: string) => object = yes,
  ): Promise<readonly [Client2, unknown[]]> {
    const runs: unknown[] = [];
    const { permission = { check: allowAll }, ...others } = layers;
    const middleware = standard({ permission, logging: false, ...others });
    const [clientSide, near] = Memory2.createLinkedPair();
    const [far, serverSide] = Memory2.createLinkedPair();
    const handle = serveStdio(
      () => {
        const server = new Modern({ name: 'theirs', version: '1.0.0' });
        server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, (input) => {
          runs.push(input);
          return { content: [{ type: 'text', text: input.text }] };
        });
        server.registerTool('asking', {}, (context) => {
          const said = acceptedContent(context.mcpReq.inputResponses, 'theirs');
          if (said === undefined) {
            const requestedSchema = { type: 'object' as const, properties: {} };
            return inputRequired({
              inputRequests: { theirs: inputRequired.elicit({ message: 'Theirs?', requestedSchema }) },
            });
          }
          return { content: [{ type: 'text', text: 'thanks' }] };
        });
        return server;
      },
      { transport: serverSide as never },
    );
    open.push(handle);
    open.push(
      await proxy({ client: near, server: far, dispatcher: (tools) => createDispatcher({ tools, middleware }) }),
    );
    const client = new Client2(
      { name: 'test', version: '1.0.0' },
      { versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: { form: {} } } },
    );
    client.setRequestHandler('elicitation/create', (({ params }: { params: { message: string } }) =>
      answer(params.message)) as never);
    await client.connect(clientSide);
    open.push(client);
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    return [client, runs];
  }

  test('takes calls through its layers, and lets the server ask', async () => {
    const [client, runs] = await connectModern({});
    expect(textOf(await client.callTool({ name: 'echo', arguments: { text: 'hi' } }))).toBe('hi');
    expect(textOf(await client.callTool({ name: 'echo', arguments: {} }))).toContain('"text" is required');
    expect(textOf(await client.callTool({ name: 'asking' }))).toBe('thanks');
    expect(runs).toEqual([{ text: 'hi' }]);
  });

  test('asks the client’s user, and then lets the server ask as well', async () => {
    const asked: string[] = [];
    const answer = (message: string) => {
      asked.push(message);
      return yes();
    };
    const [client, runs] = await connectModern({ permission: { check: rules({ ask: ['*'] }) } }, answer);
    expect(textOf(await client.callTool({ name: 'echo', arguments: { text: 'hi' } }))).toBe('hi');
    expect(runs).toEqual([{ text: 'hi' }]);
    expect(asked.splice(0)).toEqual(['Run "echo"?\n\n{\n  "text": "hi"\n}']);
    expect(textOf(await client.callTool({ name: 'asking' }))).toContain('thanks');
    expect(asked).toContain('Theirs?');
  });

  test('runs nothing after a no', async () => {
    const [client, runs] = await connectModern({ permission: { check: rules({ ask: ['*'] }) } }, () => ({
      action: 'decline',
    }));
    expect(textOf(await client.callTool({ name: 'echo', arguments: { text: 'hi' } }))).toContain('denied by the user');
    expect(runs).toEqual([]);
  });
});
