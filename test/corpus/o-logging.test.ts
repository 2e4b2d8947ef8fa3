import { describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import {
  createDispatcher,
  defineTool,
  describeError,
  type JsonValue,
  type Middleware,
  named,
  redactor,
  type ToolCall,
  type ToolCallRequest,
  type ToolDispatchResult,
  ToolOutput,
} from 'toolonion';
import {
  allowAll,
  type CallLogger,
  denyAll,
  type LoggingOptions,
  type PermissionOptions,
  standard,
  timeout,
} from 'toolonion/middleware';
import { hostileValues } from '../support/hostile.ts';
import { ManualClock, turns } from '../support/manual-clock.ts';

type Line = Readonly<Record<string, unknown>> & { readonly err?: Readonly<Record<string, unknown>> };
type Execute = (input: Readonly<Record<string, unknown>>, call: ToolCall) => unknown;

interface SetUp {
  readonly logging?: LoggingOptions;
  readonly permission?: PermissionOptions;
  /** A layer in the place of validation, right inside logging. */
  readonly validation?: Middleware;
  readonly inside?: readonly Middleware[];
}

/** A tool in the usual onion, whose lines a real pino writes. */
function setUp(execute: Execute, { logging, permission = { check: allowAll }, validation, inside = [] }: SetUp = {}) {
  const lines: Line[] = [];
  const written = { write: (line: string) => lines.push(JSON.parse(line)) };
  const logger = pino({ base: null, timestamp: false }, written);
  const clock = new ManualClock();
  const tool = defineTool({ name: 'fetch', description: 'Fetches.', inputSchema: { type: 'object' }, execute });
  const middleware = [
    ...standard({ logging: { logger, ...logging }, permission, ...(validation && { validation }) }),
    ...inside,
  ];
  const dispatcher = createDispatcher({ tools: [tool], middleware, clock });
  const dispatch = (request: Partial<ToolCallRequest> = {}, signal?: AbortSignal): Promise<ToolDispatchResult> =>
    dispatcher.dispatch({ id: 'call_1', name: 'fetch', ...request }, signal && { signal });
  return { dispatch, clock, lines, shown: () => JSON.stringify(lines) };
}

const SECRET = 'Sw0rdfish';

/** Secrets as they stand in arguments, by name and by shape. */
const leaking: readonly (readonly [kind: string, value: JsonValue])[] = [
  ['a header', { headers: { Authorization: `Bearer ${SECRET}` }, params: { foo: `sk-${SECRET.repeat(2)}` } }],
  ['a list of headers', { headers: [['authorization', SECRET]], raw: ['Host', 'h', 'Cookie', SECRET] }],
  ['name and value', { variables: [{ name: 'DB_PASSWORD', value: SECRET }] }],
  ['any depth', { a: { b: { c: { apiKey: SECRET } } }, list: [{ apiKey: SECRET }] }],
  ['any case', { ApiKey: SECRET, API_KEY: SECRET, 'x-api-key': SECRET, apikey: SECRET, 'Api Key': SECRET }],
  ['JSON in a text', { raw: JSON.stringify({ apiKey: SECRET }) }],
  ['JSON in JSON in a text', { raw: JSON.stringify({ inner: JSON.stringify([['token', SECRET]]) }) }],
  ['base64', { body: Buffer.from(JSON.stringify({ apiKey: SECRET })).toString('base64') }],
  ['an address', { url: `https://user:${SECRET}@host/?access_token=${SECRET}&x=1` }],
  ['an environment', { text: `NODE_ENV=production\nexport DB_PASSWORD=${SECRET}\nPWD=/home/ada` }],
  ['a command', { command: `curl -u ada:${SECRET} -H 'X-Api-Key: ${SECRET}' --token ${SECRET} https://h` }],
  ['a form', { body: `user=ada&password=${SECRET}&x=1` }],
  ['a connection', { text: `Server=h;Uid=u;Pwd=${SECRET};AccountKey=${SECRET}==` }],
  ['a key', { text: `-----BEGIN PRIVATE KEY-----\n${SECRET}\n-----END PRIVATE KEY-----` }],
];

describe('values', () => {
  test.each(leaking)('O01: are in no line by itself, whatever they are: %s', async (_, value) => {
    const { dispatch, lines, shown } = setUp(({ given }) => ({ given }));
    await dispatch({ arguments: { given: value, city: 'Oslo' } });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ tool: 'fetch', toolCallId: 'call_1', code: 'ok', inputKeys: ['given', 'city'] });
    expect(lines[0]).not.toHaveProperty('input');
    expect(lines[0]).not.toHaveProperty('output');
    expect(shown()).not.toContain(SECRET);
    expect(shown()).not.toContain('Oslo');
  });

  test('O01: a secret is not shown either where a model took it for a name', async () => {
    const { dispatch, shown } = setUp(() => 'ok');
    const secret = `ghp_${'a1B2'.repeat(9)}`;
    await dispatch({ arguments: { [secret]: 1, [`password=${SECRET}`]: 1 } });
    await dispatch({ name: `fetch ${secret}` });
    await dispatch({ arguments: `{"token":"${SECRET}",,}` });
    expect(shown()).not.toMatch(/ghp_|Sw0rdfish/);
  });

  test.each(leaking)('O02: that are asked for are without secrets: %s', async (_, value) => {
    const base64 = Buffer.from(SECRET).toString('base64').slice(0, -4);
    const { dispatch, lines, shown } = setUp(({ given }) => [{ type: 'text', text: JSON.stringify(given) }], {
      logging: { values: true },
    });
    await dispatch({ arguments: { given: value, city: 'Oslo' } });
    expect(lines[0]).toMatchObject({ input: { city: 'Oslo' } });
    expect(shown()).toContain('[REDACTED]');
    expect(shown()).not.toContain(SECRET);
    expect(shown()).not.toContain(base64);
  });

  test('O02: that are asked for are otherwise as they are', async () => {
    const harmless = {
      max_tokens: 5,
      next_page_token: 'abc123def456',
      author: 'Ada',
      passwordless: true,
      apiKeys: 3,
      primaryKey: 'id',
      raw: '{ "author": "Ada" }',
      text: 'Unexpected token: foo. The password is wrong. See https://host:8080/a@b?page=2.',
    };
    const { dispatch, lines } = setUp(() => 'Tokens: 5', { logging: { values: true } });
    await dispatch({ arguments: harmless });
    expect(lines[0]).toMatchObject({ input: harmless, output: 'Tokens: 5' });
  });

  test('O02: what else is secret can be said', async () => {
    const redact = { keys: ['Mother'], patterns: [/\d{4}-\d{4}/] };
    const { dispatch, lines } = setUp(() => 'card 1234-5678', { logging: { values: true, redact } });
    await dispatch({ arguments: { mother: 'Ada' } });
    expect(lines[0]).toMatchObject({ input: { mother: '[REDACTED]' }, output: 'card [REDACTED]' });
  });

  test('O03: reach the tool and the result as they were sent; the caller’s object stays as it was', async () => {
    const sent = { apiKey: SECRET, list: [{ token: SECRET }] };
    const before = JSON.stringify(sent);
    const received: unknown[] = [];
    const { dispatch } = setUp((input) => received.push(input), { logging: { values: true } });
    for (const given of [sent, Object.freeze({ ...sent }), before]) {
      const result = await dispatch({ arguments: given });
      expect(result.requested.input).toEqual(JSON.parse(before));
    }
    expect(received).toEqual([sent, sent, sent]);
    expect(JSON.stringify(sent)).toBe(before);
    const cleaned = redactor()(sent);
    expect(JSON.stringify(sent)).toBe(before);
    expect(JSON.stringify(cleaned)).not.toContain(SECRET);
  });
});

describe('odd values', () => {
  test.each(hostileValues)('O04: an answer that is %s has its line', async (_, value) => {
    const { dispatch, lines, shown } = setUp(() => [value, { failure: new Error('x') }], { logging: { values: true } });
    const result = await dispatch();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ code: result.error?.code ?? 'ok' });
    expect(shown().length).toBeLessThan(40_000);
  });

  test.each(hostileValues)('O04: a failure by %s has its line', async (_, value) => {
    const { dispatch, lines } = setUp(() => {
      throw value;
    });
    const result = await dispatch();
    expect(result.isError).toBe(true);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ errorId: result.error?.errorId, err: { message: expect.any(String) } });
  });

  test('O04: ten million characters, and bytes, make no long line', async () => {
    const answer = () => [
      { type: 'text', text: 'x'.repeat(10_000_000) },
      { type: 'file', mimeType: 'a/b', data: new Uint8Array(1_000_000) },
    ];
    const { dispatch, lines, shown } = setUp(answer, { logging: { values: true } });
    await dispatch({ arguments: { long: 'y'.repeat(10_000_000) } });
    expect(lines).toHaveLength(1);
    expect(shown().length).toBeLessThan(40_000);
    expect(shown()).toContain('1000000 bytes');
  });

  test('O04: an error is readable wherever it stands, and its own properties are not shown', async () => {
    const error = Object.assign(new Error(`no: apiKey=${SECRET}`), { apiKey: SECRET, code: 'EBAD' });
    const failures: readonly unknown[] = [
      error,
      new Error('outer', { cause: error }),
      new AggregateError([error, { token: SECRET }], `all failed: Bearer ${SECRET}`),
      Object.assign(new Error(`{"headers":[["authorization","${SECRET}"]]}`), { response: { token: SECRET } }),
      { status: 401, request: { headers: { authorization: SECRET } } },
    ];
    for (const failure of failures) {
      const { dispatch, lines, shown } = setUp(() => {
        throw failure;
      });
      await dispatch();
      expect(lines[0]?.err).toMatchObject({ message: expect.stringMatching(/\[REDACTED\]/) });
      expect(shown()).not.toContain(SECRET);
    }
    const { dispatch, lines, shown } = setUp(() => ({ failure: error }), { logging: { values: true } });
    await dispatch();
    expect(JSON.parse(String(lines[0]?.['output']))).toEqual({
      failure: { name: 'Error', message: 'no: apiKey=[REDACTED]' },
    });
    expect(shown()).not.toContain(SECRET);
    expect(JSON.stringify(redactor()(describeError(error)))).not.toContain(SECRET);
  });

  const silent: CallLogger = { isLevelEnabled: () => true, info: () => {}, warn: () => {}, error: () => {} };
  const full = (): never => {
    throw new Error('full');
  };

  test.each<[string, CallLogger]>([
    ['throws', { ...silent, info: full, warn: full, error: full }],
    ['throws when it is asked for its level', { ...silent, isLevelEnabled: full }],
    ['rejects', { ...silent, info: (() => Promise.reject(new Error('full'))) as never }],
  ])('O04: a logger that %s fails no call', async (_, logger) => {
    const { dispatch } = setUp(({ fails }) => (fails === true ? full() : 'ok'), { logging: { logger, values: true } });
    expect((await dispatch()).content).toBe('ok');
    expect((await dispatch({ arguments: { fails: true } })).error?.code).toBe('execution_failed');
    await turns();
  });
});

/** How calls end, and what their line says. */
const endings: readonly (readonly [code: string, level: number, execute: Execute, more: SetUp])[] = [
  ['ok', 30, async () => 'ok', {}],
  ['soft_error', 40, () => ToolOutput.error('no'), {}],
  ['execution_failed', 40, () => broken(), {}],
  ['execution_failed', 40, async () => broken(), {}],
  ['denied', 40, () => 'ok', { permission: { check: denyAll } }],
  ['denied', 40, () => 'ok', { permission: { check: () => broken() } }],
  ['timeout', 40, () => new Promise(() => {}), { inside: [timeout({ limitMs: 1000 })] }],
  ['suspend', 30, (_, call) => call.suspend({ reason: 'later' }), {}],
  ['internal', 50, () => 'ok', { inside: [() => broken()] }],
  ['internal', 50, () => 'ok', { inside: [() => undefined as never] }],
];

test.each(endings)(
  'O05: a call has exactly one line, which says how it ended: %s, %i',
  async (code, level, execute, more) => {
    const { dispatch, clock, lines } = setUp(execute, more);
    const running = dispatch();
    await clock.advance(2000);
    const result = await running;
    await turns();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level, code, tool: 'fetch', durationMs: expect.any(Number) });
    expect([lines[0]?.['errorId'], lines[0]?.['executed']]).toEqual([result.error?.errorId, result.error?.executed]);
    expect(clock.pending).toBe(0);
  },
);

test('O05: a call that is cancelled has exactly one line, though its tool goes on and ends', async () => {
  let end = () => {};
  const { dispatch, lines } = setUp(() => new Promise<void>((resolve) => (end = resolve)));
  const caller = new AbortController();
  const running = dispatch({}, caller.signal);
  await turns();
  caller.abort();
  const result = await running;
  end();
  await turns();
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ level: 40, code: 'cancelled', executed: 'unknown', errorId: result.error?.errorId });
});

test('O05: a call that is cancelled has exactly one line, though a layer inside hangs, and goes on later', async () => {
  let goOn = () => {};
  const hung: Middleware = named('hung', async (call, next) => {
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
    return next(call);
  });
  const { dispatch, lines } = setUp(() => 'ok', { validation: hung });
  const caller = new AbortController();
  const running = dispatch({}, caller.signal);
  await turns();
  caller.abort();
  await running;
  await turns();
  expect(lines).toHaveLength(1);
  goOn();
  await turns();
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ level: 40, code: 'cancelled', executed: 'no' });
});

test('O05: a layer around the others sees one beginning and one end of each call, a failure among them', async () => {
  const seen: string[] = [];
  const observed: Middleware = named('observed', async (call, next) => {
    seen.push(`begin ${call.id}`);
    const outcome = await next(call);
    seen.push(`end ${call.id} ${outcome.error?.code ?? 'ok'}`);
    return outcome;
  });
  const tool = defineTool({
    name: 'fetch',
    description: 'Fetches.',
    inputSchema: { type: 'object', properties: { fails: { type: 'boolean' } } },
    execute: ({ fails }) => (fails ? broken() : 'ok'),
  });
  const middleware = [observed, ...standard({ permission: { check: allowAll }, logging: false })];
  const dispatcher = createDispatcher({ tools: [tool], middleware, clock: new ManualClock() });
  await dispatcher.dispatchAll([
    { id: 'a', name: 'fetch' },
    { id: 'b', name: 'fetch', arguments: { fails: true } },
    { id: 'c', name: 'fetch', arguments: { fails: 'yes' } },
  ]);
  expect(seen.toSorted()).toEqual([
    'begin a',
    'begin b',
    'begin c',
    'end a ok',
    'end b execution_failed',
    'end c invalid_arguments',
  ]);
});

test('O08: what an audit keeps of a call does not change, whatever its tool, other layers or the caller do', async () => {
  const kept: JsonValue[] = [];
  const audit: Middleware = named('audit', (call, next) => {
    kept.push(call.input);
    return next(call);
  });
  const meddles: Middleware = named('meddles', (call, next) => {
    expect(() => Object.assign((call.input as { a: object }).a, { b: 'layer' })).toThrow(TypeError);
    return next(call);
  });
  const { dispatch } = setUp(
    (input) => {
      Object.assign(input, { more: 1 });
      Object.assign(input['a'] as object, { b: 'tool' });
      return 'ok';
    },
    { inside: [audit, meddles, audit] },
  );
  const sent = { a: { b: 'sent' } };
  const running = dispatch({ arguments: sent });
  sent.a.b = 'caller';
  const result = await running;
  expect(result.content).toBe('ok');
  expect(kept).toEqual([{ a: { b: 'sent' } }, { a: { b: 'sent' } }]);
  expect(Object.isFrozen((kept[0] as { a: object }).a)).toBe(true);
  expect(result.requested.input).toEqual({ a: { b: 'sent' } });
});

function broken(): never {
  throw new Error('broken');
}

test('O02: a fault of a secret’s value does not quote it', async () => {
  const tool = defineTool({
    name: 'login',
    description: '…',
    inputSchema: { type: 'object', properties: { password: { type: 'number' }, city: { type: 'number' } } },
    execute: () => 'ok',
  });
  const middleware = standard({ permission: { check: allowAll }, logging: false });
  const dispatcher = createDispatcher({ tools: [tool], middleware });
  const { content } = await dispatcher.dispatch({ name: 'login', arguments: { password: 'Zq8vTr4k', city: 'Oslo' } });
  expect(content).toContain('- password: expected number; got the text "[REDACTED]"');
  expect(content).toContain('- city: expected number; got the text "Oslo"');
});

test('O07: credentials in what a tool prints do not reach the model, wherever the limit cuts, and the shape stays', async () => {
  const token = `ghp_${'a1B2'.repeat(10)}`;
  for (let before = 0; before < 120; before += 3) {
    const text = `${'x'.repeat(before)}\ntoken is ${token}\nDB_PASSWORD=hunter2hunter2\n${'y'.repeat(400)}`;
    const tool = defineTool({
      name: 'env',
      description: 'Prints.',
      execute: () => ({ content: text, structured: { key: token, n: 1 }, isError: false }),
    });
    const middleware = standard({
      permission: { check: allowAll },
      logging: false,
      redaction: {},
      outputLimit: { limit: 200 },
    });
    const result = await createDispatcher({ tools: [tool], middleware }).dispatch({ name: 'env' });
    const told = JSON.stringify(result);
    expect([told.includes('ghp_a'), told.includes('a1B2'), told.includes('hunter2')]).toEqual([false, false, false]);
    expect(result.structured).toMatchObject({ n: 1 });
  }
});
