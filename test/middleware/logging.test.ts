import { describe, expect, test } from '@jest/globals';
import { type Logger, pino } from 'pino';
import {
  createDispatcher,
  type DispatcherOptions,
  type DispatchOptions,
  defineTool,
  fail,
  type Middleware,
  settingKey,
  type Tool,
  type ToolCall,
  type ToolCallRequest,
  ToolFailure,
  ToolOutput,
  withNote,
} from 'toolonion';
import {
  type CallLogger,
  denyAll,
  type LoggingOptions,
  logging,
  permission,
  timeout,
  validation,
} from 'toolonion/middleware';
import { ManualClock, turns } from '../support/manual-clock.ts';

/** A line as pino wrote it. */
type Line = Readonly<Record<string, unknown>> & { readonly err?: Readonly<Record<string, unknown>> };

const [INFO, WARN, ERROR] = [30, 40, 50];

/** A real pino, and what it wrote. */
function writer(level = 'info'): { readonly logger: Logger; readonly lines: Line[]; readonly text: () => string } {
  const lines: Line[] = [];
  const logger = pino(
    { level, base: null, timestamp: false },
    { write: (text: string) => lines.push(JSON.parse(text)) },
  );
  return { logger, lines, text: () => JSON.stringify(lines) };
}

type Execute = (input: Readonly<Record<string, unknown>>, call: ToolCall) => unknown;

function toolOf(execute: Execute, name = 'greet'): Tool {
  return defineTool({ name, description: 'Greets.', inputSchema: { type: 'object' }, execute });
}

/** A logged tool, and the lines of its calls. */
function setUp(
  execute: Execute,
  options: LoggingOptions = {},
  inside: readonly Middleware[] = [],
  more?: DispatcherOptions,
) {
  const clock = new ManualClock();
  const written = writer();
  const middleware = [logging({ logger: written.logger, ...options }), ...inside];
  const dispatcher = createDispatcher({ tools: [toolOf(execute)], middleware, clock, ...more });
  const dispatch = (request?: Partial<ToolCallRequest>, dispatchOptions?: DispatchOptions) =>
    dispatcher.dispatch({ id: 'call_1', name: 'greet', ...request }, dispatchOptions);
  return { clock, dispatch, ...written };
}

describe('one line for each call', () => {
  test('tells what is known without a single value', async () => {
    const { dispatch, lines, clock } = setUp(async () => {
      await clock.advance(12);
      return 'Hello Ada';
    });
    await dispatch({ arguments: { name: 'Ada', loud: true } });
    expect(lines).toEqual([
      {
        level: INFO,
        msg: 'tool call',
        tool: 'greet',
        toolCallId: 'call_1',
        code: 'ok',
        durationMs: 12,
        inputKeys: ['name', 'loud'],
        inputCharacters: 26,
        outputCharacters: 9,
      },
    ]);
  });

  const hang: Execute = () => new Promise(() => {});
  const suspend: Execute = (_, call) => call.suspend({ reason: 'ask the boss' });
  const onLimit = async (clock: ManualClock) => clock.advance(1000);

  test.each<[string, number, string, Execute, readonly Middleware[], Partial<ToolCallRequest>]>([
    ['that succeeds at once', INFO, 'ok', () => 'hello', [], {}],
    ['that succeeds later', INFO, 'ok', async () => 'hello', [], {}],
    ['that tells of a failure itself', WARN, 'soft_error', () => ToolOutput.error('no'), [], {}],
    ['that throws', WARN, 'execution_failed', () => raise('broken'), [], {}],
    ['that rejects', WARN, 'execution_failed', async () => raise('broken'), [], {}],
    ['that is refused', WARN, 'denied', () => 'hello', [permission({ check: denyAll })], {}],
    ['of an unknown tool', WARN, 'not_found', () => 'hello', [validation()], { name: 'constructor' }],
    ['without a name', WARN, 'invalid_call', () => 'hello', [], { name: '' }],
    ['that cannot be read', WARN, 'invalid_arguments', () => 'hello', [validation()], { arguments: '{]' }],
    ['that takes too long', WARN, 'timeout', hang, [timeout({ limitMs: 1000 })], {}],
    ['that is suspended', INFO, 'suspend', suspend, [], {}],
    ['that a layer breaks', ERROR, 'internal', () => 'hello', [() => raise('bug')], {}],
    ['that a layer leaves unanswered', ERROR, 'internal', () => 'hello', [() => undefined as never], {}],
  ])('is written for a call %s', async (_, level, code, execute, inside, request) => {
    const { dispatch, lines, clock } = setUp(execute, {}, inside);
    const running = dispatch(request);
    await onLimit(clock);
    const result = await running;
    await turns();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level, code });
    expect(lines[0]?.['errorId']).toBe(result.error?.errorId);
    expect(lines[0]?.['executed']).toBe(result.error?.executed);
  });

  test('is written for a call that is aborted', async () => {
    const { dispatch, lines } = setUp(hang);
    const caller = new AbortController();
    const running = dispatch({}, { signal: caller.signal });
    caller.abort();
    await running;
    await turns();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: WARN, code: 'cancelled', executed: 'unknown' });
  });

  test('G10: is written for a call that is aborted before it begins', async () => {
    const { dispatch, lines } = setUp(() => raise('ran'));
    await dispatch({}, { signal: AbortSignal.abort() });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: WARN, code: 'cancelled', executed: 'no' });
  });

  test('is written for a call that is aborted while a layer hangs, and is not written again when it goes on', async () => {
    let goOn = () => {};
    const hung: Middleware = async (call, next) => {
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      return next(call);
    };
    const { dispatch, lines } = setUp(() => raise('ran'), {}, [hung]);
    const caller = new AbortController();
    const running = dispatch({}, { signal: caller.signal });
    await turns();
    caller.abort();
    const result = await running;
    goOn();
    await turns();
    expect(result.error).toMatchObject({ code: 'cancelled', executed: 'no' });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: WARN, code: 'cancelled', executed: 'no', errorId: result.error?.errorId });
  });

  test('O05: is written once, however often a layer tries again', async () => {
    const twice: Middleware = async (call, next) => {
      await next(call);
      return next(call);
    };
    const { dispatch, lines } = setUp(async () => raise('broken'), {}, [twice]);
    await dispatch();
    expect(lines).toHaveLength(1);
  });

  test('names the tool that ran, where it is another, and what was done to the call', async () => {
    const route: Middleware = async (call, next) => {
      const tool = call.tools.get('greet');
      const outcome = await next(tool ? call.with({ tool }) : call);
      return withNote(outcome, { type: 'routed', by: 'route', message: 'It went to greet.' });
    };
    const { dispatch, lines } = setUp(() => 'hello', {}, [route]);
    await dispatch({ name: 'Greet' });
    expect(lines[0]).toMatchObject({ tool: 'Greet', resolvedTool: 'greet', code: 'ok', notes: ['routed'] });
  });

  test('counts the text of an answer in parts', async () => {
    const { dispatch, lines } = setUp(() => [
      { type: 'text', text: 'four' },
      { type: 'image', mimeType: 'image/png', data: 'AAAA' },
      { type: 'text', text: 'more' },
    ]);
    await dispatch();
    expect(lines[0]).toMatchObject({ outputCharacters: 8 });
  });

  test('concurrent calls do not mix', async () => {
    const { dispatch, lines, clock } = setUp(async ({ ms }) => clock.advance(ms as number));
    await Promise.all([dispatch({ id: 'a', arguments: { ms: 1 } }), dispatch({ id: 'b', arguments: { ms: 1, x: 1 } })]);
    expect(lines.map(({ toolCallId, inputKeys }) => [toolCallId, inputKeys])).toEqual([
      ['a', ['ms']],
      ['b', ['ms', 'x']],
    ]);
  });
});

describe('what a line holds', () => {
  test('O01: no values, neither of arguments nor of answers', async () => {
    const { dispatch, lines, text } = setUp(({ params }) => `found ${JSON.stringify(params)}`);
    await dispatch({ arguments: { headers: { Authorization: 'Bearer abc' }, params: { foo: 'swordfish' } } });
    expect(lines[0]).toMatchObject({ inputKeys: ['headers', 'params'] });
    expect(text()).not.toMatch(/swordfish|abc|foo/);
  });

  test('O01: no values of arguments that cannot be read either', async () => {
    const { dispatch, lines, text } = setUp(() => 'hello', {}, [validation()]);
    await dispatch({ arguments: '{"token": "swordfish",,}' });
    expect(lines[0]).toMatchObject({ inputKeys: [], inputCharacters: 24 });
    expect(text()).not.toContain('swordfish');
  });

  test.each([[null], ['null'], [''], [undefined], [42], [true], [['a']], [Symbol('a')]])(
    'A02: arguments of any kind are logged without harm, values asked for: %p',
    async (given) => {
      const { dispatch, lines } = setUp(() => 'hello', { values: true });
      const result = await dispatch({ arguments: given });
      expect(lines).toHaveLength(1);
      expect(lines[0]).toMatchObject({ inputKeys: [], code: result.error?.code ?? 'ok' });
      expect(result.isError).toBe(given != null && given !== 'null' && given !== '');
    },
  );

  test('O02: values where they are asked for, without the secrets in them', async () => {
    const { dispatch, lines, text } = setUp(() => 'the key is sk-abcdefghijklmnopqrst', { values: true });
    const secrets = {
      a: { b: { c: { apiKey: 'swordfish' } } },
      ApiKey: 'swordfish',
      raw: '{"apiKey":"swordfish"}',
      list: [{ 'api-key': 'swordfish' }],
      city: 'Oslo',
    };
    await dispatch({ arguments: secrets });
    expect(lines[0]).toMatchObject({ input: { city: 'Oslo' }, output: 'the key is [REDACTED]' });
    expect(text()).not.toContain('swordfish');
  });

  test('O02: what else is secret can be said', async () => {
    const redact = { keys: ['Mother'], patterns: [/\d{4}-\d{4}/] };
    const { dispatch, lines } = setUp(() => 'card 1234-5678', { values: true, redact });
    await dispatch({ arguments: { mother: 'Ada' } });
    expect(lines[0]).toMatchObject({ input: { mother: '[REDACTED]' }, output: 'card [REDACTED]' });
  });

  test('O03: the tool gets what was sent, and the caller’s object stays as it was', async () => {
    const seen: unknown[] = [];
    const { dispatch } = setUp((input) => seen.push(input), { values: true });
    const sent = Object.freeze({ token: 'swordfish' });
    const result = await dispatch({ arguments: sent });
    expect(seen).toEqual([{ token: 'swordfish' }]);
    expect(result.requested.input).toEqual({ token: 'swordfish' });
  });

  test('values of some tools only', async () => {
    const { logger, lines } = writer();
    const middleware = [logging({ logger, values: { byTool: { search: true } } })];
    const tools = [toolOf(() => 'found', 'search'), toolOf(() => 'in', 'login'), toolOf(() => 'x', 'constructor')];
    const dispatcher = createDispatcher({ tools, middleware });
    for (const name of ['search', 'login', 'constructor']) await dispatcher.dispatch({ name, arguments: { q: 1 } });
    expect(lines.map(({ output }) => output)).toEqual(['found', undefined, undefined]);
  });

  test.each([
    ['login', 'search'],
    ['search', 'login'],
  ])('no values of a call of %s that %s answers, where one of them is not to be shown', async (asked, ran) => {
    const { logger, lines } = writer();
    const route: Middleware = (call, next) => {
      const tool = call.tools.get(ran);
      return next(tool ? call.with({ tool }) : call);
    };
    const middleware = [logging({ logger, values: { default: true, byTool: { login: false } } }), route];
    const tools = [toolOf(() => 'found', 'search'), toolOf(() => 'in', 'login')];
    await createDispatcher({ tools, middleware }).dispatch({ name: asked, arguments: { password: 'x' } });
    expect(lines[0]).toMatchObject({ tool: asked, resolvedTool: ran });
    expect(lines[0]).not.toHaveProperty('input');
    expect(lines[0]).not.toHaveProperty('output');
  });

  test('O04: values and causes are cut to a size, after they were redacted', async () => {
    const { dispatch, lines, text } = setUp(
      () => {
        throw Object.assign(new Error(`${'x'.repeat(1_000_000)} Bearer swordfish-swordfish`), { data: 'y' });
      },
      { values: true },
    );
    await dispatch({ arguments: { long: 'z'.repeat(1_000_000), list: Array.from({ length: 10_000 }, () => 'item') } });
    expect(lines).toHaveLength(1);
    expect(text().length).toBeLessThan(40_000);
    expect(text()).not.toContain('swordfish');
    expect(lines[0]).toMatchObject({ err: { type: 'Error' }, inputCharacters: 1_070_020 });
  });

  test('the names of keys are few, short and printable', async () => {
    const { dispatch, lines } = setUp(() => 'hello');
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`key${index}`, 1]));
    await dispatch({ arguments: { [`\u0000\u202e${'k'.repeat(1000)}`]: 1, ...many } });
    const keys = lines[0]?.['inputKeys'] as readonly string[];
    expect(keys).toHaveLength(20);
    expect(keys[0]).toMatch(/^\\u\{0\}\\u\{202e\}k+…$/);
    expect(keys[0]?.length).toBeLessThan(100);
  });

  test('O01: a secret in the name of a key or of a tool is taken out, before it is cut', async () => {
    const { dispatch, lines, text } = setUp(() => 'hello', {}, [validation()]);
    const secret = `ghp_${'a1B2'.repeat(9)}`;
    await dispatch({ name: `${'n'.repeat(40)} ${secret}`, arguments: { [secret]: 1 } });
    await dispatch({ arguments: { [`${'k'.repeat(40)} ${secret}`]: 1, 'password=hunter2': 1 } });
    expect(lines[0]).toMatchObject({ inputKeys: ['[REDACTED]'] });
    expect(text()).not.toMatch(/ghp_|hunter2/);
  });

  test('media are told by their size', async () => {
    const media = { type: 'image', mimeType: 'image/png' };
    const parts = [
      { ...media, data: new Uint8Array(20_000) },
      { ...media, data: 'AAAA' },
      { ...media, url: 'https://h/a' },
      { ...media, url: 'data:image/png;base64,AAAA' },
    ];
    const { dispatch, lines } = setUp(() => parts, { values: true });
    await dispatch();
    expect(lines[0]?.['output']).toEqual([
      { ...media, data: '20000 bytes' },
      { ...media, data: '3 bytes' },
      parts[2],
      { ...media, url: '3 bytes' },
    ]);
  });

  test.each<[string, unknown]>([
    ['that is none', null],
    ['without a type', { message: 'x' }],
    ['of an odd type', { type: Symbol('x') }],
    ['that cannot be read', unreadable()],
  ])('O04: a line is written though a layer left a note %s, which makes its outcome none', async (_, note) => {
    const notes: Middleware = async (call, next) => ({ ...(await next(call)), notes: [note as never] });
    const { dispatch, lines } = setUp(() => 'hello', {}, [notes]);
    await dispatch();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: 50, tool: 'greet', toolCallId: 'call_1', code: 'internal' });
  });

  test('a name and an id made up by a model are short and printable', async () => {
    const { dispatch, lines } = setUp(() => 'hello');
    await dispatch({ id: `\n${'i'.repeat(1000)}`, name: `\u001b[31m${'n'.repeat(1000)}` });
    const { tool, toolCallId } = lines[0] as { readonly tool: string; readonly toolCallId: string };
    expect(tool).toMatch(/^\\u\{1b\}\[31mn+…$/);
    expect(toolCallId).toMatch(/^\\u\{a\}i+…$/);
    expect(`${tool}${toolCallId}`.length).toBeLessThan(160);
  });
});

describe('the cause of a failure', () => {
  test('is told to the log alone, under the id the model can name', async () => {
    const { dispatch, lines } = setUp(() => raise('connection refused by 10.0.0.1'));
    const result = await dispatch();
    expect(JSON.stringify(result)).not.toContain('10.0.0.1');
    expect(lines[0]).toMatchObject({
      errorId: result.error?.errorId,
      executed: 'yes',
      err: { type: 'Error', name: 'Error', message: 'connection refused by 10.0.0.1' },
    });
    expect(lines[0]?.err?.['stack']).toContain('logging.test.ts');
  });

  test('O04: is redacted, and its own properties are left out', async () => {
    const { dispatch, lines, text } = setUp(() => {
      throw Object.assign(new Error('bad Bearer swordfish-1234'), { apiKey: 'swordfish', code: 'EBAD' });
    });
    await dispatch();
    expect(lines[0]?.err).toMatchObject({ message: 'bad [REDACTED]', code: 'EBAD' });
    expect(text()).not.toContain('swordfish');
  });

  test('is told with the causes behind it', async () => {
    const { dispatch, lines } = setUp(() => {
      throw new ToolFailure('No such city.', { cause: new TypeError('fetch failed') });
    });
    await dispatch();
    expect(lines[0]?.err).toMatchObject({ type: 'ToolFailure', message: 'No such city.: fetch failed' });
    expect(lines[0]?.err?.['stack']).toContain('caused by: TypeError: fetch failed');
  });

  test.each<[string, unknown, unknown]>([
    ['text', 'broken', 'broken'],
    ['nothing', undefined, 'undefined'],
    ['an object', { status: 500 }, '{"status":500}'],
    ['what cannot be read', unreadable(), expect.any(String)],
  ])('O04: is readable where %s was thrown', async (_, thrown, message) => {
    const { dispatch, lines } = setUp(() => {
      throw thrown;
    });
    await dispatch();
    expect(lines[0]).toMatchObject({ code: 'execution_failed', err: { message } });
  });

  test('is told where a gate was at fault', async () => {
    const { dispatch, lines } = setUp(() => 'hello', {}, [permission({ check: () => raise('rule bug') })]);
    await dispatch();
    expect(lines[0]).toMatchObject({ code: 'denied', err: { message: 'rule bug' } });
  });

  test('is not there where a layer gave none', async () => {
    const refuse: Middleware = (call) => fail(call, 'rate_limited', 'Later.');
    const { dispatch, lines } = setUp(() => 'hello', {}, [refuse]);
    await dispatch();
    expect(lines[0]).not.toHaveProperty('err');
  });
});

describe('the logger', () => {
  const off = (question: string): never => raise(`asked for ${question}`);

  test('that is off costs one question', async () => {
    const questions: string[] = [];
    const logger: CallLogger = {
      isLevelEnabled: (level) => questions.push(level) < 0,
      info: () => off('info'),
      warn: () => off('warn'),
      error: () => off('error'),
    };
    const seen = settingKey<string>();
    const { dispatch } = setUp(() => 'hello', { logger });
    expect((await dispatch({}, { settings: [seen('x')] })).content).toBe('hello');
    expect(questions).toEqual(['error']);
  });

  test('is given nothing on a level that is off', async () => {
    const given: string[] = [];
    const logger: CallLogger = {
      isLevelEnabled: (level) => level === 'error',
      info: () => given.push('info'),
      warn: () => given.push('warn'),
      error: () => given.push('error'),
    };
    const { dispatch } = setUp(({ fails }) => (fails ? raise('broken') : 'hello'), { logger });
    await dispatch();
    await dispatch({ arguments: { fails: true } });
    expect(given).toEqual([]);
  });

  test('decides by its level, which may change while it runs', async () => {
    const { logger, lines } = writer('silent');
    const { dispatch } = setUp(({ fails }) => (fails ? raise('broken') : 'hello'), { logger });
    for (const level of ['silent', 'fatal', 'error', 'warn', 'info', 'trace']) {
      logger.level = level;
      await dispatch();
      await dispatch({ arguments: { fails: true } });
    }
    expect(lines.map(({ level }) => level)).toEqual([WARN, INFO, WARN, INFO, WARN]);
  });

  test.each<[string, CallLogger]>([
    ['throws when it writes', { ...silent(), info: () => raise('full'), warn: () => raise('full') }],
    ['throws when it is asked for its level', { ...silent(), isLevelEnabled: () => raise('full') }],
    ['rejects', { ...silent(), info: (() => Promise.reject(new Error('full'))) as never }],
    ['throws whatever is read of it', trap(silent())],
  ])('O04: that %s never fails a call', async (_, logger) => {
    const { dispatch } = setUp(async ({ fails }) => (fails ? raise('broken') : 'hello'), { logger });
    expect((await dispatch()).content).toBe('hello');
    expect((await dispatch({ arguments: { fails: true } })).error?.code).toBe('execution_failed');
    await turns();
  });

  test('may be the host’s own, with its bindings', async () => {
    const { logger, lines } = writer();
    const { dispatch } = setUp(() => 'hello', { logger: logger.child({ session: 's1' }) });
    await dispatch();
    expect(lines[0]).toMatchObject({ session: 's1', tool: 'greet' });
  });

  test('passes an outcome on untouched, at once where it is there at once', async () => {
    const outcomes: unknown[] = [];
    const probe: Middleware = (call, next) => {
      const outcome = next(call);
      outcomes.push(outcome);
      return outcome;
    };
    const middleware = [probe, logging({ logger: writer().logger }), probe];
    await createDispatcher({ tools: [toolOf(() => 'hello')], middleware }).dispatch({ name: 'greet' });
    expect(outcomes[1]).toHaveProperty('content', 'hello');
    expect(outcomes[1]).toBe(outcomes[0]);
  });
});

describe('as a layer', () => {
  test('is named, and needs no options', () => {
    expect(logging().name).toBe('logging');
  });

  test.each<[unknown, string]>([
    [{ logger: console }, 'Option "logger" of logging must be a pino logger'],
    [{ logger: null }, 'Option "logger" of logging must be a pino logger'],
    [{ values: 'all' }, 'Option "values" of logging must be true or false'],
    [{ values: { byTool: { search: 1 } } }, 'Option "values" of logging must be true or false, for each tool'],
    [{ redact: { key: ['pin'] } }, 'has no option "key". Its options: keys, patterns.'],
    [{ redact: { keys: 'pin' } }, 'Option "keys" of redactor must be an array'],
    [{ redact: { patterns: ['pin'] } }, 'Option "patterns" of redactor must be an array'],
    [{ redact: null }, 'Option "redact" of logging must be an object with keys or patterns; got null.'],
    [{ level: 'info' }, 'logging has no option "level". Its options: logger, values, redact.'],
  ])('refuses the options %#, and says what is allowed', (options, says) => {
    expect(() => logging(options as LoggingOptions)).toThrow(says);
  });
});

function raise(message: string): never {
  throw new Error(message);
}

function silent(): CallLogger {
  return { isLevelEnabled: () => true, info: () => {}, warn: () => {}, error: () => {} };
}

/** A logger that can be checked once, and throws from then on. */
function trap(logger: CallLogger): CallLogger {
  let reads = 0;
  return new Proxy(logger, {
    get: (target, key) => (++reads > 4 ? raise('trapped') : Reflect.get(target, key)),
  });
}

function unreadable(): object {
  return new Proxy({}, { get: () => raise('unreadable'), ownKeys: () => raise('unreadable') });
}
