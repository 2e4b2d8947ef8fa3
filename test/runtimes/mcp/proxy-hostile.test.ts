// The proxy between a client and a server that do not keep to the protocol: what either sends is written by hand.

import { afterEach, describe, expect, test } from '@jest/globals';
import { createDispatcher, type DispatcherOptions } from 'toolonion';
import { proxy } from 'toolonion/adapters/mcp';
import { allowAll, rules, type StandardOptions, standard, unknownTool } from 'toolonion/middleware';
import { turns } from '../../support/manual-clock.ts';

type Message = { id?: unknown; method?: string; params?: Record<string, unknown>; result?: unknown; error?: unknown };

/** One side: what it was sent, and what it sends. */
class Side {
  readonly sent: Message[] = [];
  onmessage: (message: unknown) => void = () => {};
  onclose: () => void = () => {};
  /** Answers requests by their methods. */
  readonly answers = new Map<string, (message: Message) => unknown>();
  fails: (message: Message) => boolean = () => false;

  async start(): Promise<void> {}

  async close(): Promise<void> {
    this.onclose();
  }

  async send(message: Message): Promise<void> {
    if (this.fails(message)) throw new Error('401');
    JSON.stringify(message);
    this.sent.push(message);
    const result = message.method && this.answers.get(message.method)?.(message);
    if (result) queueMicrotask(() => this.give({ id: message.id, result }));
  }

  give(message: unknown): void {
    this.onmessage(Array.isArray(message) ? message : { jsonrpc: '2.0', ...(message as object) });
  }

  /** The answer to a request. */
  async answerTo(id: unknown): Promise<Message> {
    for (let count = 0; count < 20_000; count++) {
      const found = this.sent.find((message) => message.id === id && message.method === undefined);
      if (found !== undefined) return found;
      await turns(1);
    }
    throw new Error(`Nothing was answered to ${id}.`);
  }
}

const open: { close(): unknown }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

const inputSchema = { type: 'object' };
const listed = (...names: readonly string[]) => ({ tools: names.map((name) => ({ name, inputSchema })) });
const text = (words: string) => ({ content: [{ type: 'text', text: words }] });

async function setUp(
  layers: Partial<StandardOptions> = {},
  outside: NonNullable<DispatcherOptions['middleware']> = [],
) {
  const [client, server] = [new Side(), new Side()];
  const errors: string[] = [];
  const { permission = { check: allowAll }, ...others } = layers;
  const middleware = [...outside, ...standard({ permission, logging: false, ...others })];
  server.answers.set('tools/list', () => listed('rm', 'pay', 'read_file'));
  server.answers.set('tools/call', ({ params }) => text(`ran ${params?.['name']}`));
  const relay = await proxy({
    client,
    server,
    dispatcher: (tools) => createDispatcher({ tools, middleware }),
    onError: (error) => errors.push(String((error as Error).message)),
  });
  open.push(relay);
  const begin = (capabilities: object = { elicitation: {} }) =>
    client.give({ id: 'begin', method: 'initialize', params: { capabilities } });
  const call = (id: unknown, name: unknown, more: object = {}) =>
    client.give({ id, method: 'tools/call', params: { name, ...more } });
  const ran = () => server.sent.filter(({ method }) => method === 'tools/call').map(({ params }) => params?.['name']);
  return { client, server, relay, errors, begin, call, ran };
}

describe('a server cannot', () => {
  test('have its own question answered in the place of the gate’s', async () => {
    const { client, server, begin, call, ran } = await setUp({ permission: { check: rules({ ask: ['*'] }) } });
    begin();
    call(1, 'rm');
    await turns(20);
    const [asked] = client.sent.filter(({ method }) => method === 'elicitation/create');
    expect(asked?.id).toEqual(expect.stringMatching(/^toolonion\/[0-9a-f-]{36}\//));
    server.give({ id: 'toolonion/1', method: 'elicitation/create', params: { message: 'Cats?' } });
    client.give({ id: 'toolonion/1', result: { action: 'accept', content: { approve: true } } });
    await turns(20);
    expect(ran()).toEqual([]);
    client.give({ id: asked?.id, result: { action: 'decline' } });
    expect((await client.answerTo(1)).result).toMatchObject({ isError: true });
    expect(ran()).toEqual([]);
  });

  test('answer a call in the place of the layers, nor what nobody asked', async () => {
    const { client, server, call, errors } = await setUp();
    server.answers.set('tools/call', () => undefined);
    call(5, 'rm');
    await turns(20);
    server.give({ id: 5, result: text('past the layers') });
    server.give({ id: 77, result: {} });
    await turns(5);
    expect(client.sent).toEqual([]);
    expect(errors).toHaveLength(2);
  });

  test.each([
    ['a JSON-RPC error', { code: -1, message: 'SECRET' }, 'error'],
    ['the data of an error', { code: -1, message: 'no', data: { a: 'SECRET' } }, 'error'],
    ['_meta', { ...text('fine'), _meta: { a: 'SECRET' } }, 'result'],
    ['an unknown key', { ...text('fine'), later: 'SECRET' }, 'result'],
    ['both names of data', { ...text('fine'), structured: {}, structuredContent: { a: 'SECRET' } }, 'result'],
    ['a blob', { content: [{ type: 'resource', resource: { uri: 'a:', text: 'fine', blob: 'SECRET' } }] }, 'result'],
    ['an address', { content: [{ type: 'resource', resource: { uri: 'a:SECRET', text: 'fine' } }] }, 'result'],
    ['a question', { resultType: 'input_required', inputRequests: {}, content: 'SECRET' }, 'result'],
  ])('hide anything from the layers in %s', async (_, answer, key) => {
    const { client, server, call } = await setUp({ redaction: { patterns: [/SECRET/] } });
    server.answers.set('tools/call', ({ id }) => {
      queueMicrotask(() => server.give({ id, [key]: answer }));
      return undefined;
    });
    call(1, 'rm');
    const told = JSON.stringify(await client.answerTo(1));
    expect(told).not.toContain('SECRET');
    if (key === 'result' && !told.includes('input_required')) expect(told).toContain('fine');
  });

  test('keep a call, or its cancellation, waiting for a list of tools', async () => {
    const { client, server, call } = await setUp();
    server.answers.delete('tools/list');
    call(1, 'rm');
    await turns(5);
    client.give({ method: 'notifications/cancelled', params: { requestId: 1 } });
    server.answers.set('tools/list', () => listed('rm'));
    server.give({ method: 'notifications/tools/list_changed' });
    call(2, 'rm');
    expect(await client.answerTo(2)).toMatchObject({ result: text('ran rm') });
    expect(client.sent.filter(({ id }) => id === 1)).toEqual([]);
  });

  test.each([null, 5, [], { message: { toString: null } }, { code: 'x' }])(
    'break an answer by the error %j',
    async (error) => {
      const { client, server, call } = await setUp();
      server.answers.set('tools/call', ({ id }) => {
        queueMicrotask(() => server.give({ id, error }));
        return undefined;
      });
      call(1, 'rm');
      expect(await client.answerTo(1)).toMatchObject({
        error: { code: expect.any(Number), message: expect.any(String) },
      });
    },
  );

  test('leave a call unanswered by a result that cannot be sent', async () => {
    const { client, server, call } = await setUp();
    let deep: object = {};
    for (let level = 0; level < 20_000; level++) deep = { deep };
    server.answers.set('tools/call', () => ({ ...text('fine'), structuredContent: deep }));
    call(1, 'rm');
    const { result, error } = await client.answerTo(1);
    expect(error ?? result).toBeDefined();
  });

  test('have an older list take the place of a later one', async () => {
    const { client, server, call } = await setUp();
    const pending: Message[] = [];
    server.answers.set('tools/list', (message) => void pending.push(message));
    call(1, 'b');
    await turns(5);
    server.give({ method: 'notifications/tools/list_changed' });
    call(2, 'b');
    await turns(5);
    server.answers.set('tools/list', () => listed('b'));
    server.give({ id: pending[1]?.id, result: listed('b') });
    await turns(5);
    server.give({ id: pending[0]?.id, result: listed('a') });
    expect(await client.answerTo(2)).toMatchObject({ result: text('ran b') });
    call(3, 'b');
    expect(await client.answerTo(3)).toMatchObject({ result: text('ran b') });
  });

  test('have a tool that it told nobody of be unknown for ever', async () => {
    const { client, server, call } = await setUp();
    call(1, 'rm');
    await client.answerTo(1);
    server.answers.set('tools/list', () => listed('rm', 'late'));
    call(2, 'late');
    expect(await client.answerTo(2)).toMatchObject({ result: text('ran late') });
  });
});

describe('a client cannot', () => {
  test('call a tool past the policy by a message without an id, or by a list of messages', async () => {
    const { client, server, ran, errors } = await setUp({ permission: { check: rules({ deny: ['*'] }) } });
    client.give({ method: 'tools/call', params: { name: 'rm' } });
    client.give([{ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'rm' } }]);
    await turns(20);
    expect(ran()).toEqual([]);
    expect(server.sent).toEqual([]);
    expect(errors).toHaveLength(2);
  });

  test.each([undefined, null, 7, 'rm', [], { name: 7 }, { name: null }])(
    'go unanswered with the parameters %j',
    async (params) => {
      const { client, ran } = await setUp();
      client.give({ id: 1, method: 'tools/call', params });
      expect((await client.answerTo(1)).result).toMatchObject({ isError: true });
      expect(ran()).toEqual([]);
    },
  );

  test('have one tool judged and another run', async () => {
    const layers = { permission: { check: rules({ allow: ['read_file'] }) } };
    const { client, call, ran } = await setUp(layers, [unknownTool()]);
    call(1, 'read-FILE');
    await client.answerTo(1);
    expect(ran()).toEqual(['read_file']);
  });

  test('run one tool by the approval of another, nor the same twice', async () => {
    const ask = rules({ ask: [{ tool: '*', reason: 'Sure?' }] });
    const { client, server, ran } = await setUp({ permission: { check: ask } });
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
    };
    const call = async (id: number, name: string, more: object) => {
      client.give({ id, method: 'tools/call', params: { name, _meta, ...more } });
      return (await client.answerTo(id)).result as Record<string, unknown>;
    };
    const first = await call(1, 'pay', {});
    const [key = ''] = Object.keys(first['inputRequests'] as object);
    const inputResponses = { [key]: { action: 'accept', content: { approve: true } } };
    server.answers.set('tools/call', () => ({
      resultType: 'input_required',
      inputRequests: {},
      requestState: 'theirs',
    }));
    const { requestState } = await call(2, 'pay', { inputResponses });
    expect(requestState).not.toBe('theirs');
    expect(server.sent.at(-1)?.params).not.toHaveProperty('inputResponses');
    expect(await call(3, 'rm', { requestState })).toMatchObject({ resultType: 'input_required' });
    expect(await call(4, 'rm', { inputResponses })).toMatchObject({ resultType: 'input_required' });
    expect(ran()).toEqual(['pay']);
    // It was good for one round.
    expect(await call(5, 'pay', { requestState })).toMatchObject({ inputRequests: { [key]: expect.anything() } });
    expect(ran()).toEqual(['pay']);
  });
});

describe('what is known is told', () => {
  test('of a tool that was told to stop nobody knows whether it has', async () => {
    const { client, server, call } = await setUp({ timeout: { limitMs: 20 } });
    server.answers.set('tools/call', () => undefined);
    call(1, 'pay');
    const { result } = await client.answerTo(1);
    expect(JSON.stringify(result)).toContain('may still be running');
    expect(server.sent.at(-1)).toMatchObject({ method: 'notifications/cancelled' });
  });

  test('of a request that cannot be sent, its client is told', async () => {
    const { client, server, call } = await setUp();
    server.fails = ({ method }) => method !== 'tools/list';
    client.give({ id: 1, method: 'resources/list' });
    call(2, 'rm');
    expect(await client.answerTo(1)).toMatchObject({ error: { message: 'The server cannot be reached.' } });
    expect((await client.answerTo(2)).result).toMatchObject({ isError: true });
  });

  test('through two proxies in a row', async () => {
    const { client, server, call } = await setUp();
    // What an outer one asks in its own name.
    client.give({ id: 'toolonion/1', method: 'tools/list' });
    expect(await client.answerTo('toolonion/1')).toMatchObject({ result: listed('rm', 'pay', 'read_file') });
    call('toolonion/2', 'rm');
    expect(await client.answerTo('toolonion/2')).toMatchObject({ result: text('ran rm') });
    expect(server.sent.map(({ method }) => method)).toContain('tools/list');
  });

  test('arguments that are too long to be shown are not asked about, and characters nobody sees are shown', async () => {
    const { client, begin, call, ran } = await setUp({ permission: { check: rules({ ask: ['*'] }) } });
    begin();
    call(1, 'rm', { arguments: { note: 'x'.repeat(10_000), command: 'rm -rf /' } });
    expect(JSON.stringify((await client.answerTo(1)).result)).toContain('too long to be shown');
    call(2, 'rm', { arguments: { note: 'a\u202eb' } });
    await turns(20);
    const asked = client.sent.find(({ method }) => method === 'elicitation/create');
    expect(asked?.params?.['message']).toContain('a\\u{202e}b');
    expect(ran()).toEqual([]);
  });

  test('a client that asks by addresses only is not asked by a form', async () => {
    const { client, begin, call } = await setUp({ permission: { check: rules({ ask: ['*'] }) } });
    begin({ elicitation: { url: {} } });
    call(1, 'rm');
    expect(JSON.stringify((await client.answerTo(1)).result)).toContain('nobody is there to be asked');
  });
});
