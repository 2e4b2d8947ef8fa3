import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer as High1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { McpServer as High2 } from '@modelcontextprotocol/server';
import {
  createDispatcher,
  type Dispatcher,
  type DispatcherOptions,
  defineTool,
  PermissionCheck,
  type Tool,
  ToolContext,
  ToolFailure,
  ToolRegistry,
} from 'toolonion';
import { type ServeToolsOptions, serveTools } from 'toolonion/adapters/mcp';
import { allowAll, rules, type StandardOptions, standard } from 'toolonion/middleware';
import { z } from 'zod';
import { type Answer, type CallOptions, type Connection, LINES } from './lines.ts';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const add = defineTool({
  name: 'add',
  description: 'Adds.',
  inputSchema: {
    type: 'object',
    properties: { a: { $ref: '#/$defs/n' }, b: { $ref: '#/$defs/n' } },
    required: ['a', 'b'],
    $defs: { n: { type: 'number' } },
  },
  outputSchema: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] },
  readOnly: true,
  idempotent: true,
  execute: (input) => {
    const { a, b } = input as { a: number; b: number };
    return { sum: a + b };
  },
});

function tool(name: string, execute: (...given: never[]) => unknown): Tool {
  return defineTool({ name, description: `Does ${name}.`, execute: execute as () => unknown });
}

function dispatcherOf(
  tools: DispatcherOptions['tools'] & object,
  layers: Partial<StandardOptions> = {},
  options: DispatcherOptions = {},
): Dispatcher {
  const { permission = { check: allowAll }, ...others } = layers;
  return createDispatcher({ tools, middleware: standard({ permission, logging: false, ...others }), ...options });
}

const textOf = ({ content }: { content: readonly object[] }) =>
  content.map((part) => (part as { text?: string }).text ?? '').join('\n');

describe.each(LINES)('%s', (line, connectTo) => {
  const open: Connection[] = [];
  const connect = async (dispatcher: Dispatcher, answer?: Answer, options?: ServeToolsOptions) => {
    const connection = await connectTo(dispatcher, answer, options);
    open.push(connection);
    return connection;
  };

  afterEach(async () => {
    await Promise.all(open.splice(0).map((connection) => connection.close()));
  });

  test('lists the tools with their schemas as they are, and what they say of themselves', async () => {
    const shown = defineTool({ name: 'shown', description: 'Is run elsewhere.' });
    const { list } = await connect(dispatcherOf([add, tool('plain', () => ''), shown]));
    const { tools } = await list();
    expect(tools).toMatchObject([
      {
        name: 'add',
        description: 'Adds.',
        inputSchema: add.schema.inputSchema,
        outputSchema: add.schema.outputSchema,
        annotations: { readOnlyHint: true, idempotentHint: true },
      },
      { name: 'plain', inputSchema: { type: 'object' } },
    ]);
    expect(tools[1]).not.toHaveProperty('annotations');
  });

  test('a call is dispatched, and gives text and data', async () => {
    const { call } = await connect(dispatcherOf([add]));
    const result = await call('add', { a: 2, b: 3 });
    expect(result).toMatchObject({
      content: [{ type: 'text', text: '{"sum":5}' }],
      structuredContent: { sum: 5 },
      _meta: { 'toolonion/dispatch': { resolvedToolName: 'add', durationMs: expect.any(Number) } },
    });
    expect(result.isError ?? false).toBe(false);
  });

  test('invalid arguments are told, and can be put right', async () => {
    const { call } = await connect(dispatcherOf([add]));
    const wrong = await call('add', { a: 2 });
    expect(wrong).toMatchObject({ isError: true });
    expect(textOf(wrong)).toContain('"b" is required');
    expect(await call('add', { a: 2, b: 3 })).toMatchObject({ structuredContent: { sum: 5 } });
  });

  test('a denial, an unknown tool and what a tool throws are failures the model can read', async () => {
    const failing = tool('failing', () => {
      throw new Error('connect postgres://admin:hunter2@db');
    });
    const telling = tool('telling', () => {
      throw new ToolFailure('There is no such city.');
    });
    const check = rules({ deny: [{ tool: 'add', reason: 'not today' }], allow: ['*'] });
    const { call } = await connect(dispatcherOf([add, failing, telling], { permission: { check } }));
    expect(textOf(await call('add', { a: 1, b: 1 }))).toContain('not today');
    expect(await call('gone')).toMatchObject({ isError: true });
    expect(textOf(await call('gone'))).toContain('There is no tool named "gone"');
    expect(textOf(await call('constructor'))).toContain('There is no tool named "constructor"');
    const failed = await call('failing');
    expect(failed).toMatchObject({ isError: true });
    expect(JSON.stringify(failed)).not.toContain('hunter2');
    expect(textOf(await call('telling'))).toContain('There is no such city.');
  });

  describe('approval', () => {
    const check = rules({ ask: ['deploy'] });
    const yes: Answer = () => ({ action: 'accept', content: { approve: true } });
    const input = { where: 'there' };

    function setUp(permission: StandardOptions['permission'] = { check }) {
      const execute = jest.fn((given: unknown) => `Deployed ${JSON.stringify(given)}.`);
      const inputSchema = { type: 'object', properties: { where: { type: 'string' } } } as const;
      const deploy = defineTool({ name: 'deploy', description: 'Deploys.', inputSchema, execute });
      return { execute, dispatcher: dispatcherOf([deploy], { permission }) };
    }

    test('is asked of the client’s user, who sees the arguments', async () => {
      const { dispatcher, execute } = setUp();
      const answer = jest.fn(yes);
      const { call } = await connect(dispatcher, answer);
      expect(textOf(await call('deploy', input))).toBe('Deployed {"where":"there"}.');
      expect(answer).toHaveBeenCalledTimes(1);
      expect(answer.mock.calls[0]?.[0]).toBe('Run "deploy"?\n\n{\n  "where": "there"\n}');
      expect(execute).toHaveBeenCalledTimes(1);
    });

    test.each([
      ['declined', { action: 'decline' }],
      ['cancelled', { action: 'cancel' }],
      ['answered with no', { action: 'accept', content: { approve: false } }],
    ] as const)('that is %s runs nothing', async (_, said) => {
      const { dispatcher, execute } = setUp();
      const { call } = await connect(dispatcher, () => said as ReturnType<Answer>);
      const result = await call('deploy', input);
      expect(result).toMatchObject({ isError: true });
      expect(textOf(result)).toContain('was denied by the user');
      expect(execute).not.toHaveBeenCalled();
    });

    test('cannot be had of a client that asks nobody', async () => {
      const { dispatcher, execute } = setUp();
      const { call } = await connect(dispatcher);
      expect(textOf(await call('deploy', input))).toContain('nobody is there to be asked');
      expect(execute).not.toHaveBeenCalled();
    });

    test('is asked of the gate’s own approver, where there is one', async () => {
      const { dispatcher } = setUp({ check, approver: () => true });
      const answer = jest.fn(yes);
      const { call } = await connect(dispatcher, answer);
      expect(textOf(await call('deploy', input))).toContain('Deployed');
      expect(answer).not.toHaveBeenCalled();
    });

    test('of arguments that the gate edits is of the edited ones', async () => {
      const edit = () => PermissionCheck.modify({ where: 'elsewhere' });
      const { dispatcher } = setUp({ check: [check, edit] });
      const answer = jest.fn(yes);
      const { call } = await connect(dispatcher, answer);
      expect(textOf(await call('deploy', input))).toContain('Deployed {"where":"elsewhere"}.');
      expect(answer.mock.calls[0]?.[0]).toContain('elsewhere');
    });

    test('of one call is none of what it has become meanwhile', async () => {
      let where = 'first';
      const edit = () => PermissionCheck.modify({ where });
      const { dispatcher, execute } = setUp({ check: [check, edit] });
      const { call } = await connect(dispatcher, (message) => {
        where = 'second';
        return yes(message);
      });
      // The 2.x packages ask again, as it is another question: a second yes is one to what runs.
      const result = await call('deploy', input).catch((thrown: unknown) => ({ content: [{ text: String(thrown) }] }));
      if (execute.mock.calls.length > 0) expect(execute.mock.calls).toEqual([[{ where: 'second' }, expect.anything()]]);
      else expect(textOf(result)).toContain('was denied');
    });
  });

  test('a tool that ignores its signal is answered for at its limit', async () => {
    const deaf = tool('deaf', () => new Promise(() => {}));
    const { call } = await connect(dispatcherOf([deaf], { timeout: { limitMs: 20 } }));
    const result = await call('deaf');
    expect(result).toMatchObject({ isError: true });
    expect(textOf(result)).toContain('20 ms');
  });

  test('a call the client cancels is aborted', async () => {
    const controller = new AbortController();
    const aborted = new Promise<void>((resolve) => {
      const waiting = tool('waiting', (_: unknown, { signal }: { signal: AbortSignal }) => {
        signal.addEventListener('abort', () => resolve());
        controller.abort(new Error('gone'));
        return new Promise(() => {});
      });
      connect(dispatcherOf([waiting])).then(({ call }) =>
        call('waiting', {}, { signal: controller.signal }).catch(() => {}),
      );
    });
    await aborted;
  });

  test('signs of life are told as progress, whose numbers only grow', async () => {
    const busy = tool('busy', async (_: unknown, { report }: { report: (progress: object) => void }) => {
      report({ progress: 1, total: 4, message: 'begun' });
      report({ message: 'on the way' });
      report({ progress: 1, total: 4 });
      report({ progress: 4, total: 4 });
      await new Promise((resolve) => setImmediate(resolve));
      return 'done';
    });
    const { call } = await connect(dispatcherOf([busy]));
    const heard: object[] = [];
    const options: CallOptions = { onprogress: (progress) => heard.push(progress) };
    expect(textOf(await call('busy', {}, options))).toBe('done');
    expect(heard).toEqual([
      { progress: 1, total: 4, message: 'begun' },
      { progress: 2, message: 'on the way' },
      { progress: 3, total: 4 },
      { progress: 4, total: 4 },
    ]);
  });

  test('a picture, a sound, a file and a link arrive as such', async () => {
    const media = tool('media', () => [
      { type: 'image', mimeType: 'image/png', data: Uint8Array.from(atob(PIXEL), (each) => each.charCodeAt(0)) },
      { type: 'audio', mimeType: 'audio/wav', data: PIXEL },
      { type: 'file', mimeType: 'text/csv', data: 'YSxi', name: 'a b.csv' },
      { type: 'video', url: 'https://example.org/v.mp4', mimeType: 'video/mp4' },
      { type: 'resource_link', uri: 'file:///a' },
    ]);
    const { call } = await connect(dispatcherOf([media]));
    expect((await call('media')).content).toEqual([
      { type: 'image', mimeType: 'image/png', data: PIXEL },
      { type: 'audio', mimeType: 'audio/wav', data: PIXEL },
      { type: 'resource', resource: { uri: 'attachment:a%20b.csv', mimeType: 'text/csv', blob: 'YSxi' } },
      {
        type: 'resource_link',
        uri: 'https://example.org/v.mp4',
        name: 'https://example.org/v.mp4',
        mimeType: 'video/mp4',
      },
      { type: 'resource_link', uri: 'file:///a', name: 'file:///a' },
    ]);
  });

  test('a stream arrives whole', async () => {
    const count = defineTool({
      name: 'count',
      description: 'Counts.',
      async *execute() {
        yield 'one, ';
        yield 'two';
      },
    });
    const { call } = await connect(dispatcherOf([count]));
    expect((await call('count')).content).toEqual([{ type: 'text', text: 'one, two' }]);
  });

  test('two calls run side by side, and each has its own answer', async () => {
    const slow = defineTool({
      name: 'slow',
      description: 'Takes a turn.',
      inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
      execute: async ({ id }) => {
        await new Promise((resolve) => setImmediate(resolve));
        return id;
      },
    });
    const { call } = await connect(dispatcherOf([slow]));
    const results = await Promise.all(['a', 'b', 'c'].map((id) => call('slow', { id })));
    expect(results.map(textOf)).toEqual(['a', 'b', 'c']);
  });

  test('output over the limit is cut and says so; where that takes the data away, it is a failure', async () => {
    const long = tool('long', () => 'x'.repeat(10_000));
    const promised = defineTool({
      name: 'promised',
      description: 'Gives data.',
      outputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
      execute: () => ({ text: 'x'.repeat(10_000) }),
    });
    const { call, list } = await connect(dispatcherOf([long, promised], { outputLimit: { limit: 200 } }));
    const cut = textOf(await call('long'));
    expect(cut.length).toBeLessThan(500);
    expect(cut).toMatch(/characters/);
    await list();
    const result = await call('promised');
    if (result.structuredContent === undefined) expect(result).toMatchObject({ isError: true });
  });

  test('a call that a tool stops to be answered later is a failure here', async () => {
    const later = tool('later', (_: unknown, { suspend }: { suspend: (request: object) => unknown }) =>
      suspend({ reason: 'Sign it first.' }),
    );
    const result = await (await connect(dispatcherOf([later]))).call('later');
    expect(result).toMatchObject({ isError: true });
    expect(textOf(result)).toContain('Sign it first.');
  });

  if (!line.includes('2026'))
    test('tells when the tools change', async () => {
      const registry = new ToolRegistry([add]);
      const { list, onListChanged } = await connect(dispatcherOf(registry));
      expect((await list()).tools).toHaveLength(1);
      const told = new Promise<void>((resolve) => onListChanged(resolve));
      registry.register(tool('more', () => ''));
      await told;
      expect((await list()).tools).toHaveLength(2);
    });

  test('the client becomes a session where the host says how', async () => {
    let session = '';
    const curious = tool('curious', (_: unknown, { context }: { context: ToolContext }) => {
      session = context.sessionId;
    });
    const context = () => new ToolContext({ sessionId: 'of the client' });
    await (await connect(dispatcherOf([curious]), undefined, { context })).call('curious');
    expect(session).toBe('of the client');
  });
});

test('a server of the 1.x line keeps what it has of its own, and is told of the rest', async () => {
  const high = new High1({ name: 'theirs', version: '1.0.0' });
  high.registerPrompt('p', {}, () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'a prompt' } }] }));
  serveTools(high.server, dispatcherOf([add]));
  const client = new Client1({ name: 'test', version: '1.0.0' });
  const [near, far] = InMemoryTransport.createLinkedPair();
  await Promise.all([high.connect(far), client.connect(near)]);
  expect(await client.getPrompt({ name: 'p' })).toMatchObject({ messages: [{ content: { text: 'a prompt' } }] });
  expect((await client.listTools()).tools).toHaveLength(1);
  const unknown = client.request({ method: 'tools/unknown' }, z.object({}));
  await expect(unknown).rejects.toMatchObject({ code: -32_601 });
  await client.close();
});

test('a server with tools of its own, or another dispatcher’s, is told: they would be called past this one', () => {
  for (const High of [High1, High2]) {
    const own = new High({ name: 'theirs', version: '1.0.0' }) as High1;
    own.registerTool('theirs', {}, () => ({ content: [] }));
    expect(() => serveTools(own.server, dispatcherOf([add]))).toThrow('tools/call');
    const twice = new High({ name: 'theirs', version: '1.0.0' });
    serveTools(twice.server, dispatcherOf([add]));
    expect(() => serveTools(twice.server, dispatcherOf([add]))).toThrow('already');
  }
});

test('a high-level server in the place of its low-level one is told', () => {
  for (const High of [High1, High2]) {
    const server = new High({ name: 'theirs', version: '1.0.0' });
    expect(() => serveTools(server as never, dispatcherOf([add]))).toThrow('serveTools(mcpServer.server, dispatcher)');
  }
});

test('signs of life that are no numbers are counted', async () => {
  const [[, connect]] = LINES as [(typeof LINES)[number]];
  const odd = tool('odd', async (_: unknown, { report }: { report: (progress: object) => void }) => {
    report({ progress: Number.NaN, total: 'many', message: 7 });
    report({ progress: '2' });
    await new Promise((resolve) => setImmediate(resolve));
    return 'done';
  });
  const connection = await connect(dispatcherOf([odd]));
  const heard: object[] = [];
  expect(textOf(await connection.call('odd', {}, { onprogress: (progress) => heard.push(progress) }))).toBe('done');
  expect(heard).toEqual([{ progress: 0 }, { progress: 1 }]);
  await connection.close();
});
