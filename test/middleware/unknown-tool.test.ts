import { describe, expect, test } from '@jest/globals';
import { createDispatcher, defineTool, named, PermissionCheck, type Tool, ToolRegistry } from 'toolonion';
import {
  type ApprovalRequest,
  allowAll,
  rules,
  standard,
  type UnknownToolOptions,
  unknownTool,
} from 'toolonion/middleware';

function toolsNamed(...names: readonly string[]): readonly Tool[] {
  return names.map((name) => defineTool({ name, description: '…', execute: () => `this is ${name}` }));
}

function dispatcherOf(names: readonly string[], options: UnknownToolOptions = {}) {
  return createDispatcher({
    tools: toolsNamed(...names),
    middleware: standard({ permission: { check: allowAll }, logging: false, unknownTool: options }),
  });
}

describe('a name that no tool has', () => {
  test.each([
    ['functions.read', 'read'],
    ['functions:read', 'read'],
    ['default_api:read', 'read'],
    ['google:read', 'read'],
    ['tools.read', 'read'],
    ['manage_cart<|channel|>commentary', 'manage_cart'],
    ['read<\uFF5Ctool\u2581sep\uFF5C>x', 'read'],
    ['read</tool_call>', 'read'],
    [' read\n', 'read'],
    ['notion_update_db', 'notion-update-db'],
    ['NOTION UPDATE DB', 'notion-update-db'],
    ['web_fetch', 'WebFetch'],
    ['webFetch', 'WebFetch'],
    ['functions.web_fetch<|end|>', 'WebFetch'],
    ['Functions.Read', 'read'],
    ['functions.read:0', 'read'],
    ['read:12', 'read'],
    ['"read"', 'read'],
    ['`read`', 'read'],
    ['read<tool_call>', 'read'],
  ])('is taken for the one tool it can stand for: %j is %s', async (asked, meant) => {
    const dispatcher = dispatcherOf(['read', 'manage_cart', 'notion-update-db', 'WebFetch']);
    const result = await dispatcher.dispatch({ name: asked });
    expect(result).toMatchObject({ content: `this is ${meant}`, resolvedToolName: meant, requested: { name: asked } });
    expect(result.notes).toMatchObject([{ type: 'resolved', by: 'unknownTool' }]);
  });

  test.each([
    ['creating:view', ['view']],
    ['execute_python', ['view']],
    ['reads', ['read']],
    ['<|channel|>', ['read']],
    ['functions.', ['read']],
    ['', ['read']],
    ['_', ['-', 'read']],
    ['constructor', ['read']],
    ['functions.toString', ['read']],
    ['__proto__', ['proto_type']],
  ])('is not found where it stands for none: %j', async (asked, names) => {
    const { error } = await dispatcherOf(names).dispatch({ name: asked });
    expect(error?.code).toMatch(/^(not_found|invalid_call)$/);
  });

  test.each([
    ['get-user', ['get_user', 'getUser']],
    ['functions.read', ['read', 'functions_read']],
    ['functions:Read', ['read', 'READ']],
  ])('is never guessed between two: %s', async (asked, names) => {
    const { error } = await dispatcherOf(names).dispatch({ name: asked });
    expect(error?.code).toBe('not_found');
    for (const name of names) expect(error?.message).toContain(name);
  });
});

test('a name that a tool has is left alone, whatever else is like it', async () => {
  const result = await dispatcherOf(['functions.read', 'read', 'READ']).dispatch({ name: 'functions.read' });
  expect(result).toMatchObject({ resolvedToolName: 'functions.read', notes: [] });
});

test('prefixes are the host’s to say, and writing may have to be exact', async () => {
  const own = dispatcherOf(['read'], { prefixes: ['mcp__files__'], normalise: false });
  for (const name of ['mcp__files__read', ' read\n', ' mcp__files__read<|end|>'])
    expect((await own.dispatch({ name })).content).toBe('this is read');
  for (const name of ['functions.read', 'Read', 'mcp__files__Read', 'MCP__files__read'])
    expect((await own.dispatch({ name })).error?.code).toBe('not_found');
});

test('gate and approver see the tool that will run, and its arguments are checked', async () => {
  const asked: string[] = [];
  const remove = defineTool({
    name: 'remove_file',
    description: 'Removes.',
    inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    execute: ({ path }) => `${path} is gone`,
  });
  const approver = ({ tool }: ApprovalRequest) => {
    asked.push(tool.name);
    return PermissionCheck.deny('not that one');
  };
  const dispatcher = createDispatcher({
    tools: [remove],
    middleware: standard({
      logging: false,
      unknownTool: {},
      permission: { check: rules({ ask: ['remove_file'], allow: ['remove-*'] }), approver },
    }),
  });
  expect((await dispatcher.dispatch({ name: 'remove-file' })).error?.code).toBe('invalid_arguments');
  const { error } = await dispatcher.dispatch({ name: 'remove-file', arguments: { path: 'a' } });
  expect([error?.code, asked]).toEqual(['denied', ['remove_file']]);
});

test.each(['read', 'functions.read', 'Read'])(
  'arguments are not repaired for a tool that wants it so, whatever it was called: %s',
  async (name) => {
    const dispatcher = dispatcherOf(['read', 'write']).with({ repairArguments: { byTool: { read: false } } });
    const { error, notes } = await dispatcher.dispatch({ name, arguments: '{"a":1,}' });
    expect(error).toMatchObject({ code: 'invalid_arguments', executed: 'no' });
    expect(error?.message).toContain('They are not valid JSON, near character 7');
    expect(notes.map(({ type }) => type)).not.toContain('repaired');
    expect((await dispatcher.dispatch({ name, arguments: '{"a":1}' })).content).toBe('this is read');
    expect((await dispatcher.dispatch({ name: 'functions.write', arguments: '{"a":1,}' })).content).toBe(
      'this is write',
    );
  },
);

test('tools that come and go are seen at the next call', async () => {
  const registry = new ToolRegistry(toolsNamed('web_fetch'));
  const dispatcher = createDispatcher({ tools: registry, middleware: [unknownTool()] });
  expect((await dispatcher.dispatch({ name: 'WebFetch' })).resolvedToolName).toBe('web_fetch');
  registry.register(toolsNamed('web.fetch')[0] as Tool);
  expect((await dispatcher.dispatch({ name: 'WebFetch' })).error?.code).toBe('not_found');
  registry.unregister('web_fetch');
  expect((await dispatcher.dispatch({ name: 'WebFetch' })).resolvedToolName).toBe('web.fetch');
});

test('a layer outside sees a name that stays unknown, as a result', async () => {
  const seen: (string | undefined)[] = [];
  const look = named('look', async (call, next) => {
    const outcome = await next(call);
    seen.push(outcome.error?.code);
    return outcome;
  });
  const dispatcher = createDispatcher({ tools: toolsNamed('read'), middleware: [look, unknownTool()] });
  await dispatcher.dispatch({ name: 'write' });
  expect(seen).toEqual(['not_found']);
});

test('a name of ten million characters costs no more than reading it', async () => {
  const { error } = await dispatcherOf(['read']).dispatch({ name: '<'.repeat(10_000_000) });
  expect(error?.code).toBe('not_found');
  expect(error?.message.length).toBeLessThan(300);
});

test.each([
  [{ prefixes: 'functions.' }, 'Option "prefixes" of unknownTool must be an array of texts'],
  [{ prefixes: [''] }, 'Option "prefixes" of unknownTool must be an array of texts'],
  [{ normalise: 1 }, 'Option "normalise" of unknownTool must be true or false; got 1.'],
  [{ normalize: true }, 'unknownTool has no option "normalize". Its options: prefixes, normalise.'],
])('options that make no sense are refused: %j', (options, message) => {
  expect(() => unknownTool(options as unknown as UnknownToolOptions)).toThrow(message);
});
