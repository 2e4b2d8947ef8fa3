import { tmpdir } from 'node:os';
import { inspect } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { createDispatcher, defineTool, extensionKey, ToolContext, type ToolContextFields } from 'toolonion';

const UUID_V4 = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

describe('ToolContext', () => {
  test('has a default for each field', () => {
    const context = new ToolContext();
    expect(context).toMatchObject({ cwd: '.', tempDir: tmpdir(), isNonInteractive: false });
    expect(context.sessionId).toMatch(UUID_V4);
    expect(context.sessionId).not.toBe(new ToolContext().sessionId);
    expect([...context.userContext]).toEqual([]);
  });

  test('keeps what it is given', () => {
    const fields = { cwd: '/a', sessionId: 's', tempDir: '/t', isNonInteractive: true };
    expect(new ToolContext(fields)).toMatchObject(fields);
  });

  test('takes a field that is undefined for one that is left out', () => {
    const fields = { cwd: undefined, isNonInteractive: undefined } as unknown as ToolContextFields;
    expect(new ToolContext(fields)).toMatchObject({ cwd: '.', isNonInteractive: false });
  });

  test('takes the values of the host as a record, a Map or pairs, with any name', () => {
    const record: Record<string, string> = JSON.parse('{"user":"ann","__proto__":"x","constructor":"y"}');
    for (const userContext of [record, new Map(Object.entries(record)), Object.entries(record)]) {
      const context = new ToolContext({ userContext: userContext as Record<string, string> });
      expect([...context.userContext]).toEqual([
        ['user', 'ann'],
        ['__proto__', 'x'],
        ['constructor', 'y'],
      ]);
    }
  });

  test('does not follow later changes of what it was made from', () => {
    const userContext = new Map([['user', 'ann']]);
    const key = extensionKey<number>();
    const extensions = [key(1)];
    const context = new ToolContext({ userContext, extensions });
    userContext.set('user', 'bob');
    extensions.push(key(2));
    expect(context.userContext.get('user')).toBe('ann');
    expect(context.extension(key)).toBe(1);
  });

  test('is immutable', () => {
    expect(Object.isFrozen(new ToolContext())).toBe(true);
  });

  test.each([
    [{ cwd: 1 }, 'Option "cwd" of ToolContext must be text; got 1.'],
    [{ isNonInteractive: 'yes' }, 'Option "isNonInteractive" of ToolContext must be true or false; got "yes".'],
    [{ isNoninteractive: true }, 'ToolContext has no option "isNoninteractive".'],
    [{ userContext: 'ann' }, 'Option "userContext" of ToolContext must be text values by name; got "ann".'],
    [
      { extensions: [extensionKey()] },
      'Option "extensions" of ToolContext must be an array of what extension keys make',
    ],
    [{ extensions: [null] }, 'Option "extensions" of ToolContext must be'],
    [null, 'ToolContext takes its options as an object.'],
  ])('refuses %p, for a field that is silently its default may open what should be closed', (fields, message) => {
    expect(() => new ToolContext(fields as ToolContextFields)).toThrow(TypeError);
    expect(() => new ToolContext(fields as ToolContextFields)).toThrow(message);
  });
});

describe('extensions', () => {
  test('are read by the key that made them', () => {
    const database = extensionKey<{ readonly url: string }>();
    const limit = extensionKey<number>();
    const context = new ToolContext({ extensions: [database({ url: 'a' }), limit(3)] });
    expect(context.extension(database)).toEqual({ url: 'a' });
    expect(context.extension(limit)).toBe(3);
    expect(context.extension(extensionKey<number>())).toBeUndefined();
  });

  test('hold one value for a key: the later one', () => {
    const limit = extensionKey<number>();
    expect(new ToolContext({ extensions: [limit(1), limit(2)] }).extension(limit)).toBe(2);
    expect(new ToolContext({ extensions: [limit(1)] }).with({ extensions: [limit(2)] }).extension(limit)).toBe(2);
  });

  test('may hold undefined, null and zero', () => {
    const key = extensionKey<unknown>();
    for (const value of [undefined, null, 0])
      expect(new ToolContext({ extensions: [key(value)] }).extension(key)).toBe(value);
  });
});

describe('with', () => {
  const key = extensionKey<string>();
  const context = new ToolContext({ cwd: '/a', sessionId: 's', userContext: { user: 'ann' }, extensions: [key('x')] });

  test('makes another session with some fields changed and all others kept', () => {
    const changed = context.with({ cwd: '/b', isNonInteractive: true });
    expect(changed).toMatchObject({ cwd: '/b', sessionId: 's', tempDir: context.tempDir, isNonInteractive: true });
    expect(changed.userContext.get('user')).toBe('ann');
    expect(changed.extension(key)).toBe('x');
    expect(context).toMatchObject({ cwd: '/a', isNonInteractive: false });
  });

  test('keeps a field whose change is undefined', () => {
    const changes = { cwd: undefined, sessionId: undefined, userContext: undefined, extensions: undefined };
    const same = context.with(changes as unknown as ToolContextFields);
    expect(same).toMatchObject({ cwd: '/a', sessionId: 's' });
    expect(same.userContext.get('user')).toBe('ann');
    expect(same.extension(key)).toBe('x');
  });

  test('adds extensions to those that are there', () => {
    const other = extensionKey<number>();
    const changed = context.with({ extensions: [other(1)] });
    expect([changed.extension(key), changed.extension(other)]).toEqual(['x', 1]);
  });

  test('refuses a field there is not', () => {
    expect(() => context.with({ cdw: '/b' } as ToolContextFields)).toThrow('ToolContext has no option "cdw".');
  });
});

describe('what a log shows of a session', () => {
  test('counts the extensions instead of showing them', () => {
    const secret = extensionKey<string>();
    const context = new ToolContext({ cwd: '/a', userContext: { user: 'ann' }, extensions: [secret('hunter2')] });
    for (const text of [JSON.stringify(context), inspect(context)]) {
      expect(text).not.toContain('hunter2');
      expect(text).toContain('1 entry');
      expect(text).toContain('ann');
      expect(text).toContain('/a');
    }
    expect(JSON.stringify(new ToolContext())).toContain('"extensions":"0 entries"');
  });
});

describe('the session of a call', () => {
  test('is that of the dispatch, or else of the dispatcher', async () => {
    const where = defineTool({
      name: 'where',
      description: 'Says where it is.',
      execute: (_, call) => call.context.cwd,
    });
    const dispatcher = createDispatcher({ tools: [where], context: new ToolContext({ cwd: '/a' }) });
    expect((await dispatcher.dispatch({ name: 'where' })).content).toBe('/a');
    const context = new ToolContext({ cwd: '/b' });
    expect((await dispatcher.dispatch({ name: 'where' }, { context })).content).toBe('/b');
  });
});
