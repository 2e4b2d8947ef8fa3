import { describe, expect, test } from '@jest/globals';
import { createDispatcher, defineTool, ReadonlyToolRegistry, type Tool, ToolRegistry } from 'toolonion';

function tool(name: string, traits: { readonly concurrencySafe?: boolean | (() => boolean) } = {}): Tool {
  return defineTool({ name, description: `The tool ${name}.`, execute: () => name, ...traits });
}

const oddNames = ['constructor', '__proto__', 'toString', 'hasOwnProperty', ''.padEnd(1000, 'x'), '漢 字', 'a.b/c'];

describe('ToolRegistry', () => {
  test('is empty at first', () => {
    const registry = new ToolRegistry();
    expect([registry.size, registry.names, registry.tools, registry.schemas]).toEqual([0, [], [], []]);
    expect(registry.get('a')).toBeUndefined();
    expect(registry.has('a')).toBe(false);
  });

  test('finds what was registered, and nothing that objects inherit', () => {
    const a = tool('a');
    const registry = new ToolRegistry([a]).register(tool('b'));
    expect(registry.get('a')).toBe(a);
    expect([registry.size, registry.has('a'), registry.has('b')]).toEqual([2, true, true]);
    for (const name of oddNames) expect([registry.get(name), registry.has(name)]).toEqual([undefined, false]);
  });

  test('takes any name a tool may have', async () => {
    const registry = new ToolRegistry(oddNames.map((name) => tool(name)));
    const dispatcher = createDispatcher({ tools: registry });
    for (const name of oddNames) {
      expect(registry.get(name)?.name).toBe(name);
      expect((await dispatcher.dispatch({ name })).content).toBe(name);
    }
  });

  test('lists names sorted, and tools and schemas as they were registered', () => {
    const registry = new ToolRegistry([tool('b'), tool('c'), tool('a')]);
    expect(registry.names).toEqual(['a', 'b', 'c']);
    expect(registry.tools.map(({ name }) => name)).toEqual(['b', 'c', 'a']);
    expect(registry.schemas.map(({ name }) => name)).toEqual(['b', 'c', 'a']);
    expect([...registry].map(({ name }) => name)).toEqual(['b', 'c', 'a']);
    expect(registry.schemas[0]).toEqual({
      name: 'b',
      description: 'The tool b.',
      inputSchema: { type: 'object', properties: {} },
    });
  });

  test('lists the tools that are concurrency-safe whatever their arguments', () => {
    const registry = new ToolRegistry([
      tool('always', { concurrencySafe: true }),
      tool('never', { concurrencySafe: false }),
      tool('sometimes', { concurrencySafe: () => true }),
      tool('unsaid'),
    ]);
    expect(registry.concurrencySafe.map(({ name }) => name)).toEqual(['always']);
  });

  test('lists the system prompts there are', () => {
    const registry = new ToolRegistry([
      defineTool({ name: 'b', description: 'B', systemPrompt: 'Use b.' }),
      defineTool({ name: 'a', description: 'A' }),
      defineTool({ name: 'c', description: 'C', systemPrompt: '' }),
    ]);
    expect(registry.systemPrompts).toEqual(['Use b.', '']);
  });

  test.each([
    [{ name: 'a', description: 'A' }, 'an object'],
    [{ ...tool('a') }, 'an object'],
    [null, 'null'],
    ['a', 'a string'],
    [new Proxy({}, { getPrototypeOf: () => null }), 'an object'],
  ])('refuses what defineTool has not made: %p', (value, kind) => {
    const message = `A registry takes tools made by defineTool, not ${kind}.`;
    expect(() => new ToolRegistry([value as Tool])).toThrow(new TypeError(message));
    expect(() => createDispatcher({ tools: [value as Tool] })).toThrow(TypeError);
  });

  test('refuses a name that is taken, unless the tool is to be replaced', () => {
    const registry = new ToolRegistry([tool('a'), tool('b')]);
    const other = tool('a');
    expect(() => registry.register(other)).toThrow(
      new TypeError(
        'A tool named "a" is already registered. Rename one, as namespaced() does, or pass { replace: true }.',
      ),
    );
    registry.register(other, { replace: true });
    expect(registry.tools.map((each) => each === other)).toEqual([true, false]);
    expect(() => new ToolRegistry([tool('a'), tool('a')])).toThrow('already registered');
  });

  test('tells whether there was a tool to remove', () => {
    const registry = new ToolRegistry([tool('a'), tool('b')]);
    expect([registry.unregister('a'), registry.unregister('a'), registry.unregister('constructor')]).toEqual([
      true,
      false,
      false,
    ]);
    expect(registry.names).toEqual(['b']);
    registry.register(tool('a'));
    expect(registry.tools.map(({ name }) => name)).toEqual(['b', 'a']);
  });

  test('gives lists that may be changed without changing the registry', () => {
    const registry = new ToolRegistry([tool('a'), tool('b')]);
    for (const list of [registry.names, registry.tools, registry.schemas]) (list as unknown[]).length = 0;
    expect(registry.names).toEqual(['a', 'b']);
    expect(registry.size).toBe(2);
  });
});

describe('a snapshot', () => {
  test('stays as it is, whatever becomes of the registry', () => {
    const a = tool('a');
    const registry = new ToolRegistry([a]);
    const before = registry.snapshot();
    registry.register(tool('b'));
    const between = registry.snapshot();
    registry.register(tool('a'), { replace: true });
    registry.unregister('b');
    expect(before.names).toEqual(['a']);
    expect(between.names).toEqual(['a', 'b']);
    expect([before.get('a'), between.get('a')]).toEqual([a, a]);
    expect(registry.snapshot().names).toEqual(['a']);
    expect(registry.get('a')).not.toBe(a);
  });

  test('is the same until the next change', () => {
    const registry = new ToolRegistry([tool('a')]);
    const snapshot = registry.snapshot();
    expect(registry.snapshot()).toBe(snapshot);
    registry.unregister('missing');
    expect(registry.snapshot()).toBe(snapshot);
    registry.register(tool('b'));
    expect(registry.snapshot()).not.toBe(snapshot);
  });

  test('cannot be registered with', () => {
    expect(new ToolRegistry().snapshot()).not.toHaveProperty('register');
  });

  test('is what a call sees, while it lasts', async () => {
    const registry = new ToolRegistry();
    const seen: string[][] = [];
    const leave = defineTool({
      name: 'leave',
      description: 'Removes itself.',
      execute: async (_, call) => {
        registry.unregister('leave');
        await null;
        seen.push([...call.tools.names]);
        return call.tool?.name;
      },
    });
    registry.register(leave);
    const dispatcher = createDispatcher({ tools: registry });
    const first = dispatcher.dispatch({ name: 'leave' });
    const second = dispatcher.dispatch({ name: 'leave' });
    expect((await first).content).toBe('leave');
    expect((await second).error?.code).toBe('not_found');
    expect(seen).toEqual([['leave']]);
    expect(dispatcher.tools.names).toEqual([]);
  });

  test('has the type of what can only be read', () => {
    const snapshot: ReadonlyToolRegistry = new ToolRegistry([tool('a')]).snapshot();
    expect(snapshot instanceof ReadonlyToolRegistry).toBe(true);
  });
});
