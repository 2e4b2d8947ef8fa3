import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { Client as Client2, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { acceptedContent, createMcpHandler, inputRequired, McpServer, Server } from '@modelcontextprotocol/server';
import { createDispatcher, type Dispatcher, defineTool, type Tool, ToolFailure, ToolRegistry, textOf } from 'toolonion';
import { connectTools, serveTools } from 'toolonion/adapters/mcp';
import { allowAll, readOnlyAllowed, standard } from 'toolonion/middleware';
import { collectGarbage } from '../../support/garbage.ts';
import { turns } from '../../support/manual-clock.ts';
import { type Connection, LINES } from './lines.ts';

function tool(name: string, execute: (...given: never[]) => unknown, more: Partial<Tool> = {}): Tool {
  return defineTool({ name, description: `Does ${name}.`, execute: execute as () => unknown, ...(more as object) });
}

const layers = () => standard({ permission: { check: allowAll }, logging: false });
/** Waits for what has to come, for as long as a test may take. */
async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await turns(1);
}

const open: { close(): unknown }[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

describe.each(LINES)('%s: tools of a server in a dispatcher', (line, connect) => {
  async function behind(tools: readonly Tool[] | ToolRegistry): Promise<readonly [Dispatcher, Connection]> {
    const connection = await connect(createDispatcher({ tools, middleware: layers() }));
    open.push(connection);
    const { registry } = await connectTools(connection.client);
    return [createDispatcher({ tools: registry, middleware: layers() }), connection];
  }

  test('have the schemas and traits the server tells, and are not trusted', async () => {
    const add = defineTool({
      name: 'add',
      description: 'Adds.',
      inputSchema: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
      outputSchema: { type: 'object', properties: { sum: { type: 'number' } } },
      readOnly: true,
      destructive: false,
      execute: ({ a }) => ({ sum: a + 1 }),
    });
    const [dispatcher] = await behind([add]);
    expect([...dispatcher.tools]).toMatchObject([
      { name: 'add', description: 'Adds.', schema: add.schema, readOnly: true, destructive: false, untrusted: true },
    ]);
    expect(await dispatcher.dispatch({ name: 'add', arguments: '{"a":1}' })).toMatchObject({
      content: '{"sum":2}',
      structured: { sum: 2 },
    });
    expect(await dispatcher.dispatch({ name: 'add', arguments: '{}' })).toMatchObject({
      error: { code: 'invalid_arguments' },
    });
  });

  test('tell their failures as the server does', async () => {
    const failing = tool('failing', () => {
      throw new ToolFailure('There is no such city.');
    });
    const [dispatcher] = await behind([failing]);
    const result = await dispatcher.dispatch({ name: 'failing' });
    expect(result).toMatchObject({ isError: true, content: 'There is no such city.' });
    expect(result.error).toBeUndefined();
  });

  test('give pictures and links', async () => {
    const media = tool('media', () => [
      { type: 'image', mimeType: 'image/png', data: 'AAAA' },
      { type: 'file', mimeType: 'text/csv', data: 'YSxi', name: 'a.csv' },
      { type: 'resource_link', uri: 'file:///a', name: 'A' },
    ]);
    const [dispatcher] = await behind([media]);
    expect((await dispatcher.dispatch({ name: 'media' })).content).toMatchObject([
      { type: 'image', mimeType: 'image/png', data: 'AAAA' },
      { type: 'file', mimeType: 'text/csv', data: 'YSxi', name: 'attachment:a.csv' },
      { type: 'resource_link', uri: 'file:///a', name: 'A' },
    ]);
  });

  test('tell their progress, and are cancelled with the call', async () => {
    let isAborted = false;
    const busy = tool('busy', (_: unknown, call: { report(progress: object): void; signal: AbortSignal }) => {
      call.report({ progress: 1, total: 2, message: 'half' });
      call.signal.addEventListener('abort', () => {
        isAborted = true;
      });
      return new Promise(() => {});
    });
    const [dispatcher] = await behind([busy]);
    const controller = new AbortController();
    const heard: unknown[] = [];
    const onProgress = (progress: unknown) => {
      heard.push(progress);
      controller.abort();
    };
    const result = await dispatcher.dispatch({ name: 'busy' }, { signal: controller.signal, onProgress });
    expect(result).toMatchObject({ error: { code: 'cancelled' } });
    expect(heard).toMatchObject([{ progress: 1, total: 2, message: 'half' }]);
    await until(() => isAborted);
  });

  test('that were told to stop may still be running', async () => {
    let finish = () => {};
    const paid = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const pay = tool('pay', () => paid);
    const connection = await connect(createDispatcher({ tools: [pay] }));
    open.push(connection);
    const { registry } = await connectTools(connection.client);
    const middleware = standard({ permission: { check: allowAll }, logging: false, timeout: { limitMs: 5 } });
    const result = await createDispatcher({ tools: registry, middleware }).dispatch({ name: 'pay' });
    expect(result).toMatchObject({ error: { code: 'timeout', executed: 'unknown' } });
    finish();
  });

  test('whose output schemas are wrong, or dear to check, keep no other from being used', async () => {
    const odd = tool('odd', () => ({ text: `${'a'.repeat(40)}!` }));
    const [dispatcher, connection] = await behind([odd, tool('fine', () => 'fine')]);
    const { client } = connection as unknown as { client: { request: (...given: unknown[]) => Promise<object> } };
    const ask = client.request.bind(client);
    client.request = async (...given: unknown[]) => {
      const answer = (await ask(...given)) as { tools?: { outputSchema?: object }[] };
      const [first] = answer.tools ?? [];
      const pattern = '^(a+)+$';
      if (first) first.outputSchema = { type: 'object', properties: { text: { type: 'string', pattern } } };
      return answer;
    };
    const { registry } = await connectTools(connection.client);
    const again = createDispatcher({ tools: registry, middleware: dispatcher.middleware });
    // A client that checked it with a compiler of its own would hold up everything.
    expect(await again.dispatch({ name: 'odd' })).toMatchObject({ resolvedToolName: 'odd' });
    expect((await again.dispatch({ name: 'fine' })).content).toBe('fine');
  });

  test('that are gone when the connection is are answered for', async () => {
    const [dispatcher, connection] = await behind([tool('there', () => 'yes')]);
    await connection.client.close();
    expect(await dispatcher.dispatch({ name: 'there' })).toMatchObject({
      content: 'The server of this tool has gone.',
      error: { code: 'io', executed: 'no' },
    });
  });

  if (line.includes('2026')) return;

  test('come and go as the server tells', async () => {
    const served = new ToolRegistry([tool('one', () => '1')]);
    const [dispatcher] = await behind(served);
    served.register(tool('two', () => '2'));
    await until(() => dispatcher.tools.names.join() === 'one,two');
    const before = dispatcher.tools.get('two');
    served.unregister('one');
    served.register(
      tool('two', () => 'another'),
      { replace: true },
    );
    await until(() => dispatcher.tools.names.join() === 'two');
    await until(() => dispatcher.tools.get('two') !== before);
    expect(textOf((await dispatcher.dispatch({ name: 'two' })).content)).toBe('another');
  });

  test('go into a registry that has others, which are left alone', async () => {
    const registry = new ToolRegistry([tool('mine', () => 'mine')]);
    const connection = await connect(
      createDispatcher({ tools: [tool('theirs', () => 'theirs')], middleware: layers() }),
    );
    open.push(connection);
    const connected = await connectTools(connection.client, {
      registry,
      define: ({ name }) => ({ name: `far_${name}` }),
    });
    expect(registry.names).toEqual(['far_theirs', 'mine']);
    const dispatcher = createDispatcher({ tools: registry, middleware: layers() });
    expect((await dispatcher.dispatch({ name: 'far_theirs' })).content).toBe('theirs');
    connected.close();
    expect(registry.names).toEqual(['mine']);
  });

  test('are told where their names are taken', async () => {
    const registry = new ToolRegistry([tool('taken', () => 'mine')]);
    const connection = await connect(createDispatcher({ tools: [tool('taken', () => 'theirs')] }));
    open.push(connection);
    await expect(connectTools(connection.client, { registry })).rejects.toThrow('by "define"');
    expect(registry.names).toEqual(['taken']);
    expect(connection.client.fallbackNotificationHandler).toBeUndefined();
  });

  test('that take a name later are left out, and the others are kept as the server says', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const registry = new ToolRegistry([tool('taken', () => 'mine')]);
    const served = new ToolRegistry([tool('one', () => '1')]);
    const connection = await connect(createDispatcher({ tools: served }));
    open.push(connection);
    const connected = await connectTools(connection.client, { registry });
    served.register(tool('taken', () => 'theirs'));
    served.register(tool('two', () => '2'));
    served.unregister('one');
    await until(() => registry.names.join() === 'taken,two');
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('"taken"'));
    expect(await createDispatcher({ tools: registry }).dispatch({ name: 'taken' })).toMatchObject({ content: 'mine' });
    connected.close();
    expect(registry.names).toEqual(['taken']);
    warn.mockRestore();
  });

  test('can be connected twice, and let go in any order', async () => {
    const served = new ToolRegistry([tool('one', () => '1')]);
    const connection = await connect(createDispatcher({ tools: served }));
    open.push(connection);
    const [first, second] = [await connectTools(connection.client), await connectTools(connection.client)];
    first.close();
    served.register(tool('two', () => '2'));
    await until(() => second.registry.names.join() === 'one,two');
    expect(first.registry.names).toEqual([]);
    second.close();
  });
});

test('a server of July 2026 can ask the client’s user before it answers', async () => {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'theirs', version: '1.0.0' });
    server.registerTool('asking', {}, ({ mcpReq }) => {
      if (acceptedContent(mcpReq.inputResponses, 'it') !== undefined)
        return { content: [{ type: 'text', text: 'thanks' }] };
      const requestedSchema = { type: 'object' as const, properties: {} };
      return inputRequired({ inputRequests: { it: inputRequired.elicit({ message: 'Theirs?', requestedSchema }) } });
    });
    return server;
  });
  const client = new Client2(
    { name: 'test', version: '1.0.0' },
    { versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: { form: {} } } },
  );
  client.setRequestHandler('elicitation/create', (() => ({ action: 'accept', content: {} })) as never);
  const send = (url: string | URL, init?: RequestInit) => handler.fetch(new Request(url, init));
  await client.connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch: send as never }));
  open.push(client, handler);
  const { registry } = await connectTools(client);
  const result = await createDispatcher({ tools: registry, middleware: layers() }).dispatch({ name: 'asking' });
  expect(result.content).toBe('thanks');
});

test('on a connection of July 2026 a change is told to whoever listens, who lists anew', async () => {
  const served = new ToolRegistry([tool('one', () => '1')]);
  const dispatcher = createDispatcher({ tools: served, middleware: layers() });
  const handler = createMcpHandler(() => {
    const server = new Server({ name: 'test', version: '1.0.0' });
    serveTools(server, dispatcher);
    return server;
  });
  dispatcher.onToolsChange(() => handler.notify.toolsChanged());
  let refresh = async (): Promise<void> => {};
  const client = new Client2(
    { name: 'test', version: '1.0.0' },
    { versionNegotiation: { mode: 'auto' }, listChanged: { tools: { onChanged: () => void refresh() } } },
  );
  const send = (url: string | URL, init?: RequestInit) => handler.fetch(new Request(url, init));
  await client.connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch: send as never }));
  open.push(client, handler);
  const connected = await connectTools(client);
  refresh = connected.refresh;
  served.register(tool('two', () => '2'));
  await until(() => connected.registry.names.join() === 'one,two');
});

test('a server that nobody keeps is let go, though its dispatcher stays', async () => {
  const dispatcher = createDispatcher({ tools: new ToolRegistry(), middleware: layers() });
  const weakly = (() => {
    const server = new Server({ name: 'test', version: '1.0.0' });
    serveTools(server, dispatcher);
    return new WeakRef(server);
  })();
  await collectGarbage();
  expect(weakly.deref()).toBeUndefined();
});

test('a tool whose schema is beyond its budget is left out, with a warning', async () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const deep = (levels: number): object => (levels === 0 ? {} : { type: 'array', items: deep(levels - 1) });
  const client = {
    request: async () => ({
      tools: [
        { name: 'bad', inputSchema: { type: 'object', properties: { a: deep(100) } } },
        { name: 'good', inputSchema: { type: 'object' } },
      ],
    }),
  };
  const { registry } = await connectTools(client);
  expect(registry.names).toEqual(['good']);
  expect(warn).toHaveBeenCalledWith(expect.stringContaining('"bad"'));
  warn.mockRestore();
});

test('a server that always has a next page is listed to an end', async () => {
  const request = jest.fn(async () => ({ tools: [], nextCursor: `${Math.random()}` }));
  await connectTools({ request });
  expect(request).toHaveBeenCalledTimes(1_000);
});

describe('public servers', () => {
  async function started(
    name: string,
    args: readonly string[] = [],
    env: Record<string, string> = {},
  ): Promise<Client> {
    const script = fileURLToPath(
      new URL(`../node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url),
    );
    const client = new Client({ name: 'test', version: '1.0.0' });
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [script, ...args], env, stderr: 'ignore' }),
    );
    open.push(client);
    return client;
  }

  test('filesystem: reads are let pass, and writes are asked about', async () => {
    const directory = await realpath(await mkdtemp(join(tmpdir(), 'toolonion-')));
    const { registry } = await connectTools(await started('server-filesystem', [directory]));
    const writing = createDispatcher({ tools: registry, middleware: layers() });
    const path = join(directory, 'a.txt');
    expect(await writing.dispatch({ name: 'write_file', arguments: { path, content: 'hello' } })).toMatchObject({
      isError: false,
    });
    expect(await readFile(path, 'utf8')).toBe('hello');
    const reading = writing.with({ middleware: standard({ permission: { check: readOnlyAllowed }, logging: false }) });
    expect(textOf((await reading.dispatch({ name: 'read_text_file', arguments: { path } })).content)).toBe('hello');
    const denied = await reading.dispatch({ name: 'write_file', arguments: { path, content: 'gone' } });
    expect(denied).toMatchObject({ error: { code: 'denied', executed: 'no' } });
    const outside = await reading.dispatch({ name: 'read_text_file', arguments: { path: '/etc/passwd' } });
    expect(outside).toMatchObject({ isError: true, content: expect.stringContaining('outside allowed directories') });
    await rm(directory, { recursive: true });
  });

  test('everything: text, a picture, structured data, and progress', async () => {
    const { registry } = await connectTools(await started('server-everything'));
    await until(() => registry.has('echo'));
    const dispatcher = createDispatcher({ tools: registry, middleware: layers() });
    expect((await dispatcher.dispatch({ name: 'echo', arguments: { message: 'hi' } })).content).toBe('Echo: hi');
    const { content } = await dispatcher.dispatch({ name: 'get-tiny-image' });
    expect(content).toContainEqual(expect.objectContaining({ type: 'image', mimeType: 'image/png' }));
    const weather = await dispatcher.dispatch({ name: 'get-structured-content', arguments: { location: 'Chicago' } });
    expect(weather.structured).toMatchObject({ temperature: expect.any(Number) });
    const heard: unknown[] = [];
    const long = { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 2 } };
    await dispatcher.dispatch(long, { onProgress: (progress) => heard.push(progress) });
    // The client drops a sign of life that comes in one piece with the answer.
    expect(heard[0]).toMatchObject({ progress: 1, total: 2 });
  });
});
