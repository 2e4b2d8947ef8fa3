import { describe, expect, test } from '@jest/globals';
import {
  createDispatcher,
  type Dispatcher,
  defineTool,
  type Middleware,
  named,
  namespaced,
  PermissionCheck,
  type Tool,
  ToolRegistry,
} from 'toolonion';
import { allowAll, policy, rules, type StandardOptions, standard, timeoutMs } from 'toolonion/middleware';

function toolOf(name: string, answer: string = `this is ${name}`): Tool {
  return defineTool({ name, description: '…', execute: () => answer });
}

function dispatcherOf(tools: ToolRegistry | readonly Tool[], options: Partial<StandardOptions> = {}): Dispatcher {
  const middleware = standard({ permission: { check: allowAll }, logging: false, ...options });
  return createDispatcher({ tools, middleware });
}

test.each([
  ['creating:view', ['view']],
  ['execute_python', ['view']],
  ['x'.repeat(1_000_000), ['view']],
  ['\u001b[31mview\u0000', ['view']],
  ['view', []],
])('C01: an unknown name is a result that names it and the tools there are: %.30j', async (name, names) => {
  const { error, isError, requested } = await dispatcherOf(names.map((each) => toolOf(each))).dispatch({ name });
  expect([isError, error?.code, error?.executed, requested.name]).toEqual([true, 'not_found', 'no', name]);
  expect(error?.message).toContain(names.length > 0 ? 'Available tools: view.' : 'Available tools: none registered.');
  expect(error?.message).not.toMatch(/\p{Cc}/u);
  expect(error?.message.length).toBeLessThan(300);
});

test('C01: of a thousand tools the nearest and the first ten are named', async () => {
  const names = Array.from({ length: 1000 }, (_, index) => `tool_${index}`);
  const { error } = await dispatcherOf([...names, 'read_file'].map((name) => toolOf(name))).dispatch({
    name: 'readfile',
  });
  expect(error?.message).toContain('Did you mean "read_file"?');
  expect(error?.message).toMatch(/Available tools: (?:\w+, ){10}and 991 more\.$/);
});

describe('a name a model has learned elsewhere', () => {
  const names = ['read', 'manage_cart', 'notion-update-db', 'web_fetch'];
  const lenient = dispatcherOf(
    names.map((name) => toolOf(name)),
    { unknownTool: {} },
  );
  const exact = dispatcherOf(names.map((name) => toolOf(name)));

  test.each([
    ['C02', 'functions.read', 'read'],
    ['C02', 'default_api:read', 'read'],
    ['C02', 'google:read', 'read'],
    ['C03', 'manage_cart<|channel|>commentary', 'manage_cart'],
    ['C03', 'read<|constrain|>json', 'read'],
    ['C04', 'notion_update_db', 'notion-update-db'],
    ['C04', 'WebFetch', 'web_fetch'],
    ['C04', 'Read', 'read'],
  ])('%s: %s is %s where the host lets names be looked for, and the result says so', async (_, name, resolved) => {
    const result = await lenient.dispatch({ name });
    expect(result).toMatchObject({ resolvedToolName: resolved, isError: false, requested: { name } });
    expect(result.notes).toMatchObject([{ type: 'resolved', by: 'unknownTool' }]);
    expect((await exact.dispatch({ name })).error?.code).toBe('not_found');
  });

  test.each([
    ['C02', 'functions.write'],
    ['C02', 'other:read'],
    ['C03', 'write<|channel|>read'],
    ['C03', '<|channel|>read'],
    ['C04', 'notion update'],
  ])('%s: %s stays unknown, as nothing is registered that it can stand for', async (_, name) => {
    expect((await lenient.dispatch({ name })).error?.code).toBe('not_found');
  });

  test('C02, C04: the name that is registered always goes first, and two that could be meant are none', async () => {
    const twins = ['a.read', 'functions.a_read', 'A_READ'].map((name) => toolOf(name));
    const dispatcher = dispatcherOf(twins, { unknownTool: { prefixes: ['functions.'] } });
    expect((await dispatcher.dispatch({ name: 'functions.a_read' })).resolvedToolName).toBe('functions.a_read');
    expect((await dispatcher.dispatch({ name: 'a-read' })).error?.code).toBe('not_found');
  });

  test('C02: a rule for the tool holds, whatever it was called', async () => {
    const check = rules({ deny: ['read'], allow: ['*'] });
    const dispatcher = dispatcherOf([toolOf('read')], { unknownTool: {}, permission: { check } });
    for (const name of ['read', 'functions.read', 'READ'])
      expect((await dispatcher.dispatch({ name })).error?.code).toBe('denied');
  });
});

describe.each(['constructor', 'toString', 'hasOwnProperty', '__proto__', 'valueOf', 'prototype'])(
  'the name %s',
  (name) => {
    test('C06: is unknown where no tool has it: to the registry, the gate, and options for each tool', async () => {
      const registry = new ToolRegistry([toolOf('view')]);
      expect([registry.get(name), registry.has(name), registry.unregister(name)]).toEqual([undefined, false, false]);
      const seen: unknown[] = [];
      const check = () => {
        seen.push(name);
        return PermissionCheck.allow();
      };
      const dispatcher = dispatcherOf(registry, {
        unknownTool: {},
        prepareArguments: { nul: { byTool: { view: 'refuse' } }, ignoreKeys: { byTool: { view: [] } } },
        permission: { check },
        timeout: { limitMs: { byTool: { view: 5 } } },
        outputLimit: { limit: { byTool: { view: 200 } } },
      });
      expect((await dispatcher.dispatch({ name }, { settings: [timeoutMs(5)] })).error?.code).toBe('not_found');
      expect(seen).toEqual([]);
    });

    test('C06: is a name like any other where one has', async () => {
      const registry = new ToolRegistry([toolOf(name)]);
      const tools = Object.fromEntries([[name, { permission: 'deny', limitMs: 5 }]]);
      expect((await dispatcherOf(registry).dispatch({ name })).content).toBe(`this is ${name}`);
      const { options } = policy({ default: { permission: 'allow' }, tools: JSON.parse(JSON.stringify(tools)) });
      expect((await dispatcherOf(registry, { ...options, logging: false }).dispatch({ name })).error?.code).toBe(
        'denied',
      );
      expect(
        (await dispatcherOf(registry, { permission: { check: rules({ allow: [name] }) } }).dispatch({ name })).isError,
      ).toBe(false);
      expect(
        (await dispatcherOf(registry, { permission: { check: rules({ deny: ['view'] }) } }).dispatch({ name })).error
          ?.code,
      ).toBe('denied');
    });
  },
);

describe('C08: a name that is taken', () => {
  const [first, second] = [toolOf('send_email', 'first'), toolOf('send_email', 'second')];

  test('C08: is refused, in a registry and in a list, and the message says what to do', () => {
    const twice =
      'A tool named "send_email" is already registered. Rename one, as namespaced() does, or pass { replace: true }.';
    expect(() => new ToolRegistry([first]).register(second)).toThrow(twice);
    expect(() => createDispatcher({ tools: [first, second] })).toThrow(twice);
    expect(() => createDispatcher({ tools: [first] }).with({ tools: [first, second] })).toThrow(twice);
  });

  test('C08: can be replaced where that is said, or both have a namespace', async () => {
    const registry = new ToolRegistry([first]).register(second, { replace: true });
    expect((await dispatcherOf(registry).dispatch({ name: 'send_email' })).content).toBe('second');
    const both = dispatcherOf([...namespaced('mail', [first]), ...namespaced('crm', [second])]);
    expect((await both.dispatch({ name: 'mail__send_email' })).content).toBe('first');
    expect((await both.dispatch({ name: 'crm__send_email' })).content).toBe('second');
  });
});

test('C09: other tools leave a dispatcher all its options', async () => {
  const late: string[] = [];
  const options = {
    tools: [toolOf('one')],
    middleware: standard({ permission: { check: allowAll }, logging: false, unknownTool: {} }),
    generateId: () => 'made',
    onLate: (_: unknown, { name }: { readonly name: string }) => void late.push(name),
    repairArguments: false,
  };
  const changed = createDispatcher(options).with({ tools: [toolOf('two')] });
  expect(await changed.dispatch({ name: 'Two' })).toMatchObject({ content: 'this is two', toolCallId: 'made' });
  expect((await changed.dispatch({ name: 'one' })).error?.code).toBe('not_found');
  expect((await changed.dispatch({ name: 'two', arguments: '{"a":1,}' })).error?.code).toBe('invalid_arguments');
});

test('C10: a call keeps the tools it met; a change is whole, and counts for the next call', async () => {
  const registry = new ToolRegistry([toolOf('work', 'old'), toolOf('gone')]);
  let meanwhile: () => void = () => {};
  const wait: Middleware = named('wait', async (call, next) => {
    await new Promise((resolve) => setImmediate(resolve));
    meanwhile();
    return next(call);
  });
  const dispatcher = createDispatcher({ tools: registry, middleware: [wait] });
  const listed = dispatcher.tools;
  meanwhile = () => {
    registry.register(toolOf('work', 'new'), { replace: true });
    registry.unregister('gone');
  };
  const running = [dispatcher.dispatch({ name: 'work' }), dispatcher.dispatch({ name: 'gone' })];
  expect((await Promise.all(running)).map(({ content }) => content)).toEqual(['old', 'this is gone']);
  expect(listed.names).toEqual(['gone', 'work']);
  expect(dispatcher.tools.names).toEqual(['work']);
  expect((await dispatcher.dispatch({ name: 'work' })).content).toBe('new');
  expect((await dispatcher.dispatch({ name: 'gone' })).error?.code).toBe('not_found');
});

test('C11: an unknown name is looked up within the onion, so that a layer outside can answer for it', async () => {
  const mapped: Middleware = named('mapped', async (call, next) => {
    const outcome = await next(call);
    return outcome.error?.code === 'not_found' ? { ...outcome, content: 'Ask a person.' } : outcome;
  });
  const inner = standard({ permission: { check: allowAll }, logging: false, unknownTool: {} });
  const dispatcher = createDispatcher({ tools: [toolOf('view')], middleware: [mapped, ...inner] });
  expect(await dispatcher.dispatch({ name: 'constructor' })).toMatchObject({
    content: 'Ask a person.',
    error: { code: 'not_found' },
  });
});

test.each([
  [{ name: '', id: '', arguments: '{"a":1}' }],
  [{ name: undefined, id: undefined }],
  [{ name: null, id: null, arguments: '' }],
  [{ name: 5, id: 5 }],
  [{}],
])(
  'C12: a call without a name is invalid, has an id of its own, and can be told from one to replay: %j',
  async (request) => {
    const dispatcher = dispatcherOf([toolOf('view')], { unknownTool: {} });
    const result = await dispatcher.dispatch(request as never);
    expect(result.error).toMatchObject({ code: 'invalid_call', executed: 'no', retryable: false });
    expect(result.toolCallId).not.toBe('');
    expect(result.requested.name).toBe('');
  },
);
