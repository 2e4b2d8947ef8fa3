import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import {
  type Content,
  codeOf,
  createDispatcher,
  type Dispatcher,
  defineTool,
  describeError,
  fail,
  forModel,
  type Middleware,
  named,
  redactor,
  type ToolCall,
  type ToolDispatchResult,
  type ToolErrorCode,
  ToolFailure,
  ToolOutput,
} from 'toolonion';
import { allowAll, denyAll, type OutputLimitOptions, standard, timeout } from 'toolonion/middleware';
import { hostileValues } from '../support/hostile.ts';
import { ManualClock, turns } from '../support/manual-clock.ts';

type Line = Readonly<Record<string, unknown>> & { readonly err?: Readonly<Record<string, unknown>> };
type Execute = (input: unknown, call: ToolCall) => unknown;

/** The usual onion with a log that is kept, and a layer around the tool as a retry or a breaker would be. */
class Bench {
  readonly lines: Line[] = [];
  /** What the layer around the tool saw, in a word for each attempt. */
  readonly seen: string[] = [];
  readonly dispatcher: Dispatcher;

  constructor(execute: Execute, outputLimit: OutputLimitOptions = {}) {
    const logger = pino({ base: null, timestamp: false }, { write: (text) => this.lines.push(JSON.parse(text)) });
    const watching: Middleware = named('watching', async (call, next) => {
      const outcome = await next(call);
      this.seen.push(codeOf(outcome));
      return outcome;
    });
    const onion = standard({ permission: { check: allowAll }, logging: { logger, values: true }, outputLimit });
    this.dispatcher = createDispatcher({
      tools: [defineTool({ name: 'work', description: 'Works.', execute })],
      middleware: [...onion, watching],
    });
  }

  run(): Promise<ToolDispatchResult> {
    return this.dispatcher.dispatch({ id: 'call_1', name: 'work' });
  }
}

function run(execute: Execute): Promise<ToolDispatchResult> {
  return new Bench(execute).run();
}

/** The ways a tool may answer or throw. */
const answering: readonly (readonly [string, (value: unknown) => Execute])[] = [
  ['at once', (value) => () => value],
  ['later', (value) => async () => value],
  [
    'from a generator',
    (value) =>
      function* () {
        yield 'on the way';
        return value;
      },
  ],
];
const throwing: readonly (readonly [string, (thrown: unknown) => Execute])[] = [
  [
    'at once',
    (thrown) => () => {
      throw thrown;
    },
  ],
  ['later', (thrown) => () => turns(1).then(() => Promise.reject(thrown))],
  ['as a rejection', (thrown) => () => Promise.reject(thrown)],
  [
    'from a generator',
    (thrown) =>
      async function* () {
        yield 'on the way';
        throw thrown;
      },
  ],
];

describe('a failure that is told by value', () => {
  class Answer {
    readonly content = 'unknown id';
    readonly isError = true;
  }
  const text = [{ type: 'text', text: 'unknown id' }] as const;
  const failures: readonly (readonly [string, unknown])[] = [
    ['text', { content: 'unknown id', isError: true }],
    ['parts', { content: text, isError: true }],
    ['a ToolOutput', ToolOutput.error('unknown id')],
    ['frozen parts', Object.freeze({ content: Object.freeze([...text]), isError: true })],
    [
      'an answer of another realm',
      runInNewContext('({ content: [{ type: "text", text: "unknown id" }], isError: true })'),
    ],
    ['an instance of a class', new Answer()],
    ['the result of a server', { content: text, isError: true, structuredContent: { id: 7 }, _meta: { trace: 'a' } }],
    [
      'an embedded resource',
      { content: [{ type: 'resource', resource: { uri: 'a:b', text: 'unknown id' } }], isError: true },
    ],
    ['a part nobody knows', { content: [{ type: 'chart', title: 'unknown id' }], isError: true }],
    ['a flag beside data', { isError: true, message: 'unknown id', code: 17 }],
  ];

  describe.each(answering)('%s', (_, tool) => {
    test.each(failures)('H01: %s is an error for the result, the log and the layers between', async (__, answer) => {
      const bench = new Bench(tool(answer));
      const result = await bench.run();
      expect(result.isError).toBe(true);
      expect(result.error).toBeUndefined();
      expect(bench.seen).toEqual(['soft_error']);
      expect(bench.lines).toMatchObject([{ level: 40, code: 'soft_error' }]);
    });

    test.each(failures)('H02: %s tells the model why', async (__, answer) => {
      expect(JSON.stringify(forModel(await run(tool(answer))))).toContain('unknown id');
    });
  });

  test.each([
    ['a text that begins like one', 'Error: unknown id'],
    ['a flag that is not set', { content: 'a', isError: false }],
    ['a flag that is no flag', { content: 'a', isError: 'true' }],
    ['another key', { error: 'unknown id', success: false, status: 'error' }],
    ['a list of failures', [{ isError: true }]],
    ['a failure further inside', { last: { isError: true }, cause: new Error('unknown id') }],
    ['a part with the flag', { type: 'text', text: 'a', isError: true }],
  ])('H01: nothing is guessed from %s', async (_, answer) => {
    const bench = new Bench(() => answer);
    expect((await bench.run()).isError).toBe(false);
    expect(bench.seen).toEqual(['ok']);
  });

  test('H01: a failure of a nested call that is passed on stays one', async () => {
    const inner = defineTool({ name: 'inner', description: 'Fails.', execute: () => ToolOutput.error('unknown id') });
    const denied = defineTool({ name: 'denied', description: 'May not run.', execute: () => 'done' });
    const outer = defineTool({
      name: 'outer',
      description: 'Asks another.',
      inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      execute: ({ name }, parent): unknown => dispatcher.dispatch({ name }, { parent }),
    });
    const check = (call: ToolCall) => (call.name === 'denied' ? denyAll() : allowAll());
    const dispatcher: Dispatcher = createDispatcher({
      tools: [inner, denied, outer],
      middleware: standard({ permission: { check }, logging: false }),
    });
    for (const name of ['inner', 'denied', 'nowhere']) {
      const nested = await dispatcher.dispatch({ name });
      const result = await dispatcher.dispatch({ name: 'outer', arguments: { name } });
      expect(result).toMatchObject({ isError: true, content: nested.content });
    }
  });

  test('H02: a message is passed on whole, and cut only by the limit of answers', async () => {
    const long = `first ${'x'.repeat(500)} last`;
    const told: readonly Execute[] = [
      () => ToolOutput.error(long),
      () => ({ content: [{ type: 'text', text: long }], isError: true }),
      () => Promise.reject(new ToolFailure(long)),
    ];
    for (const execute of told) {
      expect(JSON.stringify((await run(execute)).content)).toContain(long);
      const { content, error } = await new Bench(execute, { limit: 300 }).run();
      const shown = JSON.stringify(content);
      for (const words of ['first', 'last', 'left out']) expect(shown).toContain(words);
      expect(shown.length).toBeLessThan(400);
      expect((error?.message ?? '').length).toBeLessThanOrEqual(300);
    }
  });

  test('a failure that says nothing is told as one of this tool', async () => {
    for (const message of ['', ' \n']) {
      const result = await run(() => Promise.reject(new ToolFailure(message)));
      expect(result.content).toBe('Tool "work" failed and did not say why.');
    }
  });
});

const yielding: readonly (readonly [string, (value: unknown) => Execute])[] = [
  [
    'as a yield',
    (value) =>
      async function* () {
        yield 'on the way';
        yield value;
      },
  ],
];

test('H01: a failure that a generator yields makes its answer one, and what came before stays', async () => {
  for (const [, tool] of yielding) {
    const bench = new Bench(tool(ToolOutput.error(', and no further')));
    expect(await bench.run()).toMatchObject({ isError: true, content: 'on the way, and no further' });
    expect(bench.seen).toEqual(['soft_error']);
  }
});

test.each([...answering, ...yielding])('H03: an Error that is given %s counts as thrown', async (_, tool) => {
  for (const given of [new Error('user=admin'), runInNewContext('new TypeError("user=admin")')]) {
    const bench = new Bench(tool(given));
    const result = await bench.run();
    expect(result.error).toMatchObject({ code: 'execution_failed', executed: 'yes' });
    expect(JSON.stringify([result, forModel(result)])).not.toContain('admin');
    expect(JSON.stringify(bench.lines)).toContain('user=admin');
  }
  expect((await run(tool(new ToolFailure('No such city.')))).error?.message).toBe('No such city.');
});

describe('what is thrown', () => {
  const secret = 'connect 10.0.0.5:5432 user=admin';
  const leaky: readonly (readonly [string, unknown])[] = [
    ['an Error', new Error(secret)],
    ['a text', secret],
    ['an object', { message: secret, code: 'E1' }],
    ['an error with a cause', new Error('no', { cause: new Error(secret) })],
    ['several errors', new AggregateError([new Error(secret)], secret)],
    ['an error of another realm', runInNewContext('new Error(secret)', { secret })],
    ['a system error', Object.assign(new Error(secret), { code: 'ECONNREFUSED', errno: -111, address: '10.0.0.5' })],
    ['broken JSON', new SyntaxError(`Unexpected token in JSON: ${secret}`)],
    ['an abort', new DOMException(secret, 'AbortError')],
    ['a ToolFailure that only wraps', new Error(secret, { cause: new ToolFailure(secret) })],
    ['data that claim to be a ToolFailure', { [Symbol.for('toolonion.ToolFailure')]: true, message: secret }],
  ];

  describe.each(throwing)('%s', (_, tool) => {
    test.each(leaky)('H03: %s is told to the log alone, joined by an id', async (__, thrown) => {
      const bench = new Bench(tool(thrown));
      const result = await bench.run();
      const shown = JSON.stringify([result, { ...result.error }, forModel(result)]);
      for (const word of ['10.0.0.5', 'admin']) expect(shown).not.toContain(word);
      expect(shown).not.toMatch(/\bat .*\.ts:\d/);
      expect(result.error?.cause).toBe(thrown);
      expect(bench.lines).toHaveLength(1);
      expect(bench.lines[0]).toMatchObject({ errorId: result.error?.errorId, level: 40 });
      expect(JSON.stringify(bench.lines[0]?.err)).toContain('10.0.0.5');
    });

    test('H03: a ToolFailure is told to the model, and its cause to the log', async () => {
      const bench = new Bench(tool(new ToolFailure('No such city.', { cause: new Error(secret) })));
      const result = await bench.run();
      expect(result.content).toMatch(/^(on the way\n\n)?No such city\.$/);
      expect(JSON.stringify(result)).not.toContain('10.0.0.5');
      expect(JSON.stringify(bench.lines[0]?.err)).toContain('10.0.0.5');
    });
  });

  class Forgotten extends Error {}
  const mute = Object.defineProperty(new Error('hidden'), 'message', {
    get: () => {
      throw new Error('trap');
    },
  });
  const readable: readonly (readonly [
    string,
    unknown,
    { readonly message: string; readonly [key: string]: unknown },
  ])[] = [
    ['an object', { code: 'E1', message: 'x' }, { message: 'x', code: 'E1' }],
    ['an object with a code that is a number', { code: 14, message: 'x' }, { message: 'x', code: '14' }],
    ['an object without a message', { status: 500 }, { message: '{"status":500}' }],
    ['an object whose message is an object', { message: { id: 1 } }, { message: '{"message":{"id":1}}' }],
    ['a text', 's', { name: 'string', message: 's' }],
    ['the empty text', '', { name: 'string', message: '(no message)' }],
    ['blank text', ' \n', { name: 'string', message: '(no message)' }],
    ['undefined', undefined, { message: 'undefined' }],
    ['null', null, { message: 'null' }],
    ['a number', 42, { message: '42' }],
    ['a symbol', Symbol('s'), { message: 'Symbol(s)' }],
    ['a class that was not made', Forgotten, { message: 'a function named "Forgotten"' }],
    ['an error without a message', new RangeError(), { name: 'RangeError', message: '(no message)' }],
    ['an error with a blank message', new Error(' '), { message: '(no message)' }],
    ['an error whose message cannot be read', mute, { name: 'Error', message: '(no message)' }],
    [
      'an error with a cause',
      new Error('x', { cause: new Error('y') }),
      { message: 'x', cause: expect.objectContaining({ message: 'y' }) },
    ],
    [
      'several errors',
      new AggregateError([new Error('a')], 'all'),
      { message: 'all', errors: [expect.objectContaining({ message: 'a' })] },
    ],
    ['an answer of fetch', new Response('no'), { name: 'a Response', message: '"[Response]"' }],
    ['a Map', new Map([['status', 500]]), { name: 'a Map', message: '[["status",500]]' }],
  ];

  describe.each(throwing)('%s', (_, tool) => {
    test.each(readable)('H04: %s is readable in the log', async (__, thrown, described) => {
      const bench = new Bench(tool(thrown));
      const result = await bench.run();
      expect(result).toMatchObject({ isError: true, error: { code: 'execution_failed', executed: 'yes' } });
      expect(String(result.content)).toMatch(/(^|\n\n)Tool "work" failed/);
      expect(describeError(result.error?.cause)).toMatchObject(described);
      expect(bench.lines[0]?.err?.['message']).toContain(described.message);
    });

    test.each(hostileValues)('H04: %s ends in one result and one line', async (__, thrown) => {
      const bench = new Bench(tool(thrown));
      const result = await bench.run();
      expect(result.error).toMatchObject({ code: 'execution_failed', executed: 'yes' });
      expect(bench.lines).toHaveLength(1);
      expect(bench.lines[0]?.err?.['message']).toMatch(/./);
    });
  });

  test('H04: causes that never end are bounded', async () => {
    const endless: Error = new Error('again');
    endless.cause = new AggregateError([endless, endless], 'more', { cause: endless });
    const bench = new Bench(() => Promise.reject(endless));
    await bench.run();
    expect(JSON.stringify(bench.lines).length).toBeLessThan(100_000);
  });

  test('a program that cannot be started is no file the model asked for', async () => {
    const program = await run(
      () => new Promise((_, reject) => spawn('/does/not/exist', ['secret']).on('error', reject)),
    );
    expect(program).toMatchObject({
      content: 'Tool "work" could not start a program it needs (ENOENT).',
      error: { code: 'io', retryable: false },
    });
    expect((await run(() => readFile('/does/not/exist'))).error?.code).toBe('file_not_found');
  });
});

describe('an answer of little or nothing', () => {
  const answers: readonly (readonly [string, unknown, Content, unknown])[] = [
    ['undefined', undefined, '', undefined],
    ['null', null, 'null', null],
    ['the empty text', '', '', undefined],
    ['zero', 0, '0', 0],
    ['minus zero', -0, '0', -0],
    ['false', false, 'false', false],
    ['NaN', Number.NaN, 'null', null],
    ['zero as a bigint', 0n, '"0"', '0'],
    ['an empty list', [], '[]', []],
    ['an empty object', {}, '{}', {}],
    ['a function', () => 1, 'null', null],
    ['a symbol', Symbol('s'), 'null', null],
  ];

  describe.each(answering.slice(0, 2))('%s', (_, tool) => {
    test.each(answers)('H05: %s is a success with a defined content', async (__, answer, content, structured) => {
      const bench = new Bench(tool(answer));
      const result = await bench.run();
      expect(result).toMatchObject({ content, isError: false, notes: [] });
      expect(result.structured).toEqual(structured);
      expect('structured' in result).toBe(structured !== undefined);
      expect(bench.seen).toEqual(['ok']);
      expect(forModel(result)).toMatch(/./);
    });
  });

  const empty: readonly (readonly [string, Execute])[] = [
    ['the empty text', () => ''],
    ['nothing', () => undefined],
    ['blank text', () => ' \n\t'],
    ['a generator that yields nothing', function* () {}],
    [
      'a generator that yields empty text',
      async function* () {
        yield '';
      },
    ],
    ['no parts', () => ({ content: [] })],
    ['an empty part', () => ({ type: 'text', text: '' })],
    ['an error that says nothing', () => ToolOutput.error('')],
  ];

  test.each(empty)('H11: %s is told to the model as no output, and as nothing else', async (_, execute) => {
    const result = await run(execute);
    const told = forModel(result);
    expect(told).toEqual(typeof result.content === 'string' ? '(no output)' : [{ type: 'text', text: '(no output)' }]);
    expect(JSON.stringify(result.content)).not.toContain('no output');
  });

  test('H11: what failed is not told as no output', async () => {
    for (const tool of throwing.map(([, make]) => make(new Error(''))))
      expect(forModel(await run(tool))).toMatch(/(^|\n\n)Tool "work" failed/);
  });
});

describe('data that JSON does not know', () => {
  const shared = { id: 1 };
  const circular = (): Record<string, unknown> => {
    const value: Record<string, unknown> = { first: shared, rows: [shared, shared] };
    return Object.assign(value, { self: value, map: new Map([['back', value]]), deep: { up: [value] } });
  };
  const marked = {
    first: { id: 1 },
    rows: [{ id: 1 }, { id: 1 }],
    self: '[Circular]',
    map: [['back', '[Circular]']],
    deep: { up: ['[Circular]'] },
  };

  describe.each(answering)('%s', (_, tool) => {
    test('H06: a cycle leaves a mark, and what is merely shared does not', async () => {
      const bench = new Bench(tool(circular()));
      const result = await bench.run();
      expect(result).toMatchObject({ isError: false, structured: marked });
      expect(JSON.parse(String(result.content))).toEqual(marked);
      expect(JSON.parse(String(bench.lines[0]?.['output']))).toEqual(marked);
    });

    test.each([
      ['data beside a content', (value: unknown) => ({ content: 'a', structured: value })],
      ['what a part has beyond its keys', (value: unknown) => ({ type: 'text', text: 'a', more: value })],
      ['a part of an answer', (value: unknown) => ({ content: [{ type: 'text', text: 'a', annotations: value }] })],
      ['a file at an address', (value: unknown) => ({ content: [{ type: 'file', url: 'a:b', mimeType: value }] })],
    ])('H06: the result can be sent as JSON, whatever %s holds', async (__, answerWith) => {
      const odd = [circular(), 10n, new Map([[1, 2n]]), () => 1, ...hostileValues.map(([, value]) => value)];
      for (const value of odd) {
        const result = await run(tool(answerWith(value)));
        expect(result.isError).toBe(false);
        expect(JSON.parse(JSON.stringify(result))).toMatchObject({ toolCallId: 'call_1' });
      }
    });

    test('H07: every kind is plain JSON, in the data as in the text', async () => {
      const answer = {
        at: new Date(0),
        bad: new Date(Number.NaN),
        m: new Map([[1, 2]]),
        s: new Set([1]),
        b: Buffer.from('x'),
        u: new URL('http://a'),
        n: 10n,
        e: new Error('x'),
        f: () => 1,
        r: /a/g,
      };
      const plain = {
        at: '1970-01-01T00:00:00.000Z',
        bad: null,
        m: [[1, 2]],
        s: [1],
        b: 'eA==',
        u: 'http://a/',
        n: '10',
        e: { name: 'Error', message: 'x' },
        r: '/a/g',
      };
      const result = await run(tool(answer));
      expect(result).toMatchObject({ isError: false, structured: plain });
      expect(Object.keys(result.structured as object)).toEqual(Object.keys(plain));
      expect(JSON.parse(String(result.content))).toEqual(plain);
    });
  });

  class Account {
    readonly id = 1;
    readonly #secret = 'hunter2';
    get secret(): string {
      return this.#secret;
    }
  }
  const secretive: readonly (readonly [string, unknown, unknown])[] = [
    ['a promise nobody awaited', Promise.resolve([1]), '[Promise]'],
    ['an answer of fetch', new Response('x'), '[Response]'],
    ['headers', new Headers({ a: 'b' }), '[Headers]'],
    ['a query', new URLSearchParams('a=b'), '[URLSearchParams]'],
    ['a blob', new Blob(['x']), '[Blob]'],
    ['an iterator', new Map([[1, 2]]).keys(), '[Map Iterator]'],
    ['a weak map', new WeakMap(), '[WeakMap]'],
    ['a proxy of a Map', new Proxy(new Map([[1, 2]]), {}), '[Map]'],
    ['a boxed symbol', Object(Symbol('s')), '[Symbol]'],
    ['an instance, which shows its own keys', new Account(), { id: 1 }],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ['an empty instance', new (class {})(), {}],
  ];

  test.each(secretive)('H07: %s is never an empty object by mistake', async (_, value, json) => {
    expect(await run(() => ({ value, list: [value] }))).toMatchObject({ structured: { value: json, list: [json] } });
  });

  test('H07: a promise in an answer that fails ends no process', async () => {
    const failing = () => Promise.reject(new Error('late'));
    const answers = [
      () => ({ rows: failing() }),
      () => [failing()],
      () => ({ content: 'a', structured: failing() }),
      () => ({ toJSON: failing }),
      () => new Map([['rows', failing()]]),
      () => ({ type: 'text', text: 'a', more: failing() }),
    ];
    // A rejection that nobody has heard of fails the test.
    for (const answer of answers) expect((await run(answer)).isError).toBe(false);
    await turns();
  });

  test('H07: a tool that goes on using its bytes changes no answer', async () => {
    const bytes = new Uint8Array([1]);
    const answers: readonly unknown[] = [
      bytes,
      bytes.buffer,
      { type: 'image', mimeType: 'image/png', data: bytes },
      [{ type: 'image', mimeType: 'image/png', data: bytes.buffer }],
      { content: [{ type: 'image', mimeType: 'image/png', data: new DataView(bytes.buffer) }] },
    ];
    const results = await Promise.all(answers.map((answer) => run(() => answer)));
    bytes[0] = 9;
    for (const { content } of results) expect(content).toMatchObject([{ data: new Uint8Array([1]) }]);
  });

  test('H09: a date survives every walker that cuts or cleans an answer', async () => {
    const createdAt = new Date(0);
    const answer = { createdAt, rows: Array(200).fill({ createdAt, text: 'x'.repeat(50) }) };
    const bench = new Bench(() => answer, { limit: 1000 });
    const result = await bench.run();
    const iso = '1970-01-01T00:00:00.000Z';
    const small = JSON.parse(String(result.content));
    expect([small.createdAt, small.rows[0].createdAt]).toEqual([iso, iso]);
    expect(result.structured).toMatchObject({ createdAt: iso });
    expect(JSON.parse(String(bench.lines[0]?.['output'])).createdAt).toBe(iso);
    expect(redactor()({ createdAt, at: new Set([createdAt]) })).toEqual({ createdAt: iso, at: [iso] });
  });
});

describe('one result for each call', () => {
  const behaviours: Readonly<Record<string, readonly [string, Execute]>> = {
    answers: ['ok', () => 'done'],
    answers_later: ['ok', async () => 'done'],
    yields: [
      'ok',
      function* () {
        yield 'done';
      },
    ],
    fails_softly: ['soft_error', () => ToolOutput.error('no')],
    throws: [
      'execution_failed',
      () => {
        throw new Error('no');
      },
    ],
    throws_nothing: ['execution_failed', () => Promise.reject()],
    throws_while_yielding: [
      'execution_failed',
      async function* () {
        yield 'half';
        throw new Error('no');
      },
    ],
    throws_an_abort: ['cancelled', () => Promise.reject(AbortSignal.abort().reason)],
    suspends: ['suspend', (_, call) => call.suspend({ reason: 'ask' })],
    is_denied: ['denied', () => 'done'],
    never_settles: ['timeout', () => new Promise(() => {})],
  };

  test('H10: and exactly one terminal event, whatever the tool does, alone or beside others', async () => {
    const clock = new ManualClock();
    const lines: Line[] = [];
    const begun: string[] = [];
    const ended: string[] = [];
    const late: unknown[] = [];
    const listening: Middleware = named('listening', async (call, next) => {
      begun.push(call.name);
      const outcome = await next(call);
      ended.push(`${call.name}: ${codeOf(outcome)}`);
      return outcome;
    });
    const check = (call: ToolCall) => (call.name === 'is_denied' ? denyAll() : allowAll());
    const logger = pino({ base: null }, { write: (text) => lines.push(JSON.parse(text)) });
    const dispatcher = createDispatcher({
      tools: Object.entries(behaviours).map(([name, [, execute]]) =>
        defineTool({ name, description: 'Works.', execute }),
      ),
      middleware: [
        listening,
        ...standard({ permission: { check }, logging: { logger }, timeout: timeout({ limitMs: 100 }) }),
      ],
      clock,
      onLate: (outcome) => late.push(outcome),
    });
    const expected = Object.entries({ ...behaviours, not_there: ['not_found'] }).map(([name, [code]]) => [name, code]);
    const alone = dispatcher.dispatchAll(expected.map(([name]) => ({ name: String(name) })));
    await clock.advance(1000);
    expect((await alone).map((result) => [result.requested.name, codeOf(result)])).toEqual(expected);
    const beside = Promise.all(expected.map(([name]) => dispatcher.dispatch({ name: String(name) })));
    await clock.advance(1000);
    expect((await beside).map((result) => [result.requested.name, codeOf(result)])).toEqual(expected);
    const each = expected.map(([name, code]) => `${name}: ${code}`);
    expect(begun.length).toBe(2 * expected.length);
    expect([...ended].sort()).toEqual([...each, ...each].sort());
    expect(lines.map(({ tool, code }) => `${tool}: ${code}`).sort()).toEqual([...each, ...each].sort());
    expect([late, clock.pending]).toEqual([[], 0]);
  });

  test('a layer whose notes nobody could read has not answered', async () => {
    for (const notes of [[null], ['text'], [{ type: 'seen' }], [{ message: 'Seen.' }], [undefined]]) {
      const noting: Middleware = named('noting', async (call, next) => ({ ...(await next(call)), notes: notes as [] }));
      const tool = defineTool({ name: 'work', description: 'Works.', execute: () => 'done' });
      const result = await createDispatcher({ tools: [tool], middleware: [noting] }).dispatch({ name: 'work' });
      expect(result.error).toMatchObject({ code: 'internal', executed: 'yes' });
      expect(forModel(result)).toContain('"noting"');
    }
  });

  test('what is sent to the model is well-formed text, with or without a limit', async () => {
    const half = 'a\ud800';
    for (const answer of [half, ToolOutput.error(half), [{ type: 'text', text: half }]]) {
      const tool = defineTool({ name: 'work', description: 'Works.', execute: () => answer });
      const told = JSON.stringify(forModel(await createDispatcher({ tools: [tool] }).dispatch({ name: 'work' })));
      expect(told).toContain('a\ufffd');
      expect(told).not.toContain('ud800');
    }
  });
});

describe('the codes of failures', () => {
  const shown = defineTool({ name: 'shown', description: 'Is run elsewhere.' });
  const read = defineTool({
    name: 'read',
    description: 'Reads.',
    inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    outputSchema: { type: 'object' },
    execute: ({ path }) => {
      if (path === 'list') return [];
      throw path === 'busy' ? new ToolFailure('Not now.', { code: 'rate_limited' }) : new Error('no');
    },
  });
  const middleware = standard({
    permission: { check: (call) => (call.name === 'read' ? allowAll() : denyAll()) },
    logging: false,
  });
  const dispatcher = createDispatcher({ tools: [shown, read], middleware });
  const calls: readonly (readonly [string, object, ToolErrorCode, boolean])[] = [
    ['a tool there is not', { name: 'gone' }, 'not_found', false],
    ['a tool that is only shown', { name: 'shown' }, 'disabled', false],
    ['a call without a name', { name: '' }, 'invalid_call', false],
    ['arguments that do not fit', { name: 'read', arguments: '{}' }, 'invalid_arguments', false],
    ['arguments that are cut off', { name: 'read', arguments: '{"path":"a' }, 'truncated_arguments', false],
    ['a tool that throws', { name: 'read', arguments: { path: 'a' } }, 'execution_failed', true],
    ['a tool that says why', { name: 'read', arguments: { path: 'busy' } }, 'rate_limited', true],
    ['an answer that does not fit', { name: 'read', arguments: { path: 'list' } }, 'output_invalid', false],
  ];

  test.each(calls)('H12: %s is a result with a code and whether to try again', async (_, request, code, retryable) => {
    const result = await dispatcher.dispatch(request as { name: string });
    expect(result).toMatchObject({ isError: true, error: { code, retryable } });
    expect(result.content).toBe(result.error?.message);
    expect(result.content).toMatch(/\w/);
  });

  test('H12: a call that may not run, or whose caller has gone, is a result as well', async () => {
    const refusing = dispatcher.with({ middleware: standard({ permission: { check: denyAll }, logging: false }) });
    const call = { name: 'read', arguments: { path: 'a' } };
    expect((await refusing.dispatch(call)).error).toMatchObject({ code: 'denied', retryable: false, executed: 'no' });
    const gone = await dispatcher.dispatch(call, { signal: AbortSignal.abort() });
    expect(gone.error).toMatchObject({ code: 'cancelled', retryable: false, executed: 'no' });
  });

  test('H12: a tool cannot make up codes, or what became of it', async () => {
    class Custom extends ToolFailure {}
    const foreign = runInNewContext(`Object.defineProperty(
      Object.assign(new Error('No.'), { code: 'MINE', executed: 'maybe' }),
      Symbol.for('toolonion.ToolFailure'), { value: true })`);
    const told = { code: 'ENOENT' as ToolErrorCode, executed: 'perhaps' as 'yes' };
    const inherited = { code: 'constructor' as ToolErrorCode, executed: 'toString' as 'yes' };
    for (const thrown of [
      new ToolFailure('No.', told),
      new Custom('No.', told),
      new ToolFailure('No.', inherited),
      foreign,
    ]) {
      const bench = new Bench(() => Promise.reject(thrown));
      const result = await bench.run();
      expect(result).toMatchObject({
        content: 'No.',
        error: { code: 'execution_failed', executed: 'yes', retryable: false },
      });
      expect(bench.lines).toMatchObject([{ code: 'execution_failed', executed: 'yes' }]);
    }
  });

  test('H12: a layer gives codes of the same set', async () => {
    const limiting: Middleware = named('limiting', (call) => fail(call, 'circuit_open', 'Wait a minute.'));
    const result = await dispatcher.with({ middleware: [limiting] }).dispatch({ name: 'read' });
    expect(result.error).toMatchObject({ code: 'circuit_open', retryable: true, executed: 'no' });
  });
});

describe('answers in pieces', () => {
  async function* counted() {
    yield 1;
    yield 2;
  }

  test('H05: data that are yielded stand on lines of their own, and text joins', async () => {
    expect((await run(() => counted())).content).toBe('1\n2');
    expect((await run(() => new Set([{ a: 1 }, { b: 2 }]).values())).content).toBe('{"a":1}\n{"b":2}');
    const mixed = function* () {
      yield 'on ';
      yield 'the way: ';
      yield { done: 1 };
    };
    expect((await run(mixed)).content).toBe('on the way: {"done":1}');
  });

  test('H05: a single one is the answer, data and all', async () => {
    const one = async function* () {
      yield { tags: [] };
    };
    expect(await run(one)).toMatchObject({ content: '{"tags":[]}', structured: { tags: [] } });
  });

  test('H07: what can only be iterated asynchronously is read like a generator, and closed by an abort', async () => {
    const stream = { data: 1, [Symbol.asyncIterator]: counted };
    for (const execute of [() => stream, async () => stream]) expect((await run(execute)).content).toBe('1\n2');
    expect((await run(() => Readable.from(['a', 'b']))).content).toBe('ab');
    const hanging = new Readable({ read() {} });
    const tool = defineTool({ name: 'work', description: '…', execute: () => hanging });
    const caller = new AbortController();
    const running = createDispatcher({ tools: [tool] }).dispatch({ name: 'work' }, { signal: caller.signal });
    await turns();
    caller.abort();
    expect((await running).error?.code).toBe('cancelled');
  });

  test('H07: lists, Maps and Sets stay data', async () => {
    for (const value of [[1, 2], new Set([1, 2])]) expect((await run(() => value)).structured).toEqual([1, 2]);
  });
});

test('P07: an interrupt that is returned is none the less one', async () => {
  class Interrupt extends Error {}
  const interrupt = new Interrupt('pause');
  const tool = defineTool({ name: 'work', description: '…', execute: () => interrupt });
  const isControlSignal = (thrown: unknown) => thrown === interrupt;
  const result = await createDispatcher({ tools: [tool], isControlSignal }).dispatch({ name: 'work' });
  expect(result.control).toEqual({ type: 'interrupt', signal: interrupt });
});

test('H02: what a tool that was stopped has to say reaches the model', async () => {
  const tool = defineTool({
    name: 'work',
    description: '…',
    execute: (_, { signal }) =>
      new Promise((__, reject) => {
        signal.addEventListener('abort', () => reject(new ToolFailure('5 of 9 rows were written.')));
      }),
  });
  const caller = new AbortController();
  const running = createDispatcher({ tools: [tool] }).dispatch({ name: 'work' }, { signal: caller.signal });
  await turns();
  caller.abort();
  expect(await running).toMatchObject({
    error: { code: 'cancelled', executed: 'stopped' },
    content: expect.stringContaining('It said: 5 of 9 rows were written.'),
  });
});

test('H07: a stream that nobody reads is closed, its failure ends no process, and a remark stands for it', async () => {
  const open = () => new Readable({ read() {} });
  const [nested, yielded, aborted] = [open(), open(), open()];
  expect((await run(() => ({ file: nested }))).structured).toEqual({ file: '[Stream]' });
  const yielding = async function* () {
    yield 'a';
    yield { file: yielded };
  };
  expect((await run(yielding)).content).toBe('a{"file":"[Stream]"}');
  const tool = defineTool({ name: 'work', description: '…', execute: () => aborted });
  const caller = new AbortController();
  const running = createDispatcher({ tools: [tool] }).dispatch({ name: 'work' }, { signal: caller.signal });
  await turns();
  caller.abort();
  await running;
  for (const stream of [nested, yielded, aborted]) {
    expect(stream.destroyed).toBe(true);
    expect(() => stream.emit('error', new Error('late'))).not.toThrow();
  }
});

test('H07: a stream that comes after the end is closed as well', async () => {
  const late = new Readable({ read() {} });
  let give: (stream: Readable) => void = () => {};
  const tool = defineTool({
    name: 'work',
    description: '…',
    execute: () =>
      new Promise<Readable>((resolve) => {
        give = resolve;
      }),
  });
  const caller = new AbortController();
  const running = createDispatcher({ tools: [tool] }).dispatch({ name: 'work' }, { signal: caller.signal });
  await turns();
  caller.abort();
  await running;
  give(late);
  await turns();
  expect(late.destroyed).toBe(true);
});
