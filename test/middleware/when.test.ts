import { describe, expect, test } from '@jest/globals';
import { createDispatcher, defineTool, fail, type Middleware, named, withNote } from 'toolonion';
import { type CallSelection, permission, readOnlyAllowed, validation, when } from 'toolonion/middleware';

const refuse: Middleware = named('refuse', (call) => fail(call, 'denied', 'No.'));
const tools = ['deploy', 'db_read', 'db_write'].map((name) =>
  defineTool({ name, description: '…', readOnly: name === 'db_read', execute: () => 'Done.' }),
);

async function refused(selection: CallSelection): Promise<readonly string[]> {
  const dispatcher = createDispatcher({ tools, middleware: [when(selection, refuse)] });
  const names = tools.map(({ name }) => name);
  const results = await dispatcher.dispatchAll(names.map((name) => ({ name })));
  return names.filter((_, place) => results[place]?.isError);
}

describe('when', () => {
  test.each<[selection: CallSelection, meant: readonly string[]]>([
    ['deploy', ['deploy']],
    ['db_*', ['db_read', 'db_write']],
    [
      ['deploy', '*_write'],
      ['deploy', 'db_write'],
    ],
    [({ tool }) => tool?.readOnly === true, ['db_read']],
    ['ghost', []],
  ])('%p: the layer is there for those calls only', async (selection, meant) => {
    expect(await refused(selection)).toEqual(meant);
  });

  test('has the name of the layer, and passes on what it gives', async () => {
    const layer: Middleware = named('marks', async (call, next) =>
      withNote(await next(call), { type: 'x', by: 'marks', message: 'Seen.' }),
    );
    const dispatcher = createDispatcher({ tools, middleware: [when('deploy', layer)] });
    expect(dispatcher.middlewareNames).toEqual(['marks']);
    expect((await dispatcher.dispatch({ name: 'deploy' })).notes).toMatchObject([{ by: 'marks' }]);
  });

  test('makes a fault of a function that throws, which names the layer', async () => {
    const selection = () => {
      throw new Error('secret');
    };
    const dispatcher = createDispatcher({ tools, middleware: [when(selection, refuse)] });
    const { error, content } = await dispatcher.dispatch({ name: 'deploy' });
    expect([error?.code, content]).toEqual(['internal', expect.stringContaining('refuse')]);
    expect(content).not.toContain('secret');
  });

  test('asks people where the layer does', () => {
    const gate = permission({ check: readOnlyAllowed });
    expect(createDispatcher({ tools, middleware: [when('deploy', gate)] }).mayAsk).toBe(true);
    expect(createDispatcher({ tools, middleware: [when('deploy', refuse)] }).mayAsk).toBe(false);
  });

  test.each([async () => false, () => 'no', async () => Promise.reject(new Error('x'))])(
    'is a fault where a function says neither yes nor no: %p',
    async (selection) => {
      const dispatcher = createDispatcher({ tools, middleware: [when(selection as never, refuse)] });
      expect((await dispatcher.dispatch({ name: 'deploy' })).error?.code).toBe('internal');
    },
  );

  test.each([
    [[], validation()],
    ['', validation()],
    [[7], validation()],
  ])('%j selects nothing, and is refused', (selection, layer) => {
    expect(() => when(selection as never, layer)).toThrow(
      'when takes the name of a tool, a list of names, or a function of the call.',
    );
  });

  test('takes a middleware', () => {
    expect(() => when('deploy', {} as never)).toThrow('when takes a middleware, as in when("deploy", audit).');
  });
});
