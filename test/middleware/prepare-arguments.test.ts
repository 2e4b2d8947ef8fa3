import { describe, expect, test } from '@jest/globals';
import { createDispatcher, defineTool, forModel, type JsonObject, type JsonSchema } from 'toolonion';
import {
  type ApprovalRequest,
  allowAll,
  type PrepareArgumentsOptions,
  prepareArguments,
  rules,
  standard,
} from 'toolonion/middleware';

function setUp(options: PrepareArgumentsOptions, inputSchema: JsonSchema = { type: 'object' }) {
  const received: unknown[] = [];
  const tool = defineTool({
    name: 'tool',
    description: 'Remembers its arguments.',
    inputSchema,
    execute: (input: unknown) => {
      received.push(input);
      return 'ok';
    },
  });
  const middleware = standard({ permission: { check: allowAll }, logging: false, prepareArguments: options });
  const dispatcher = createDispatcher({ tools: [tool], middleware });
  return { received, dispatcher, call: (given: unknown) => dispatcher.dispatch({ name: 'tool', arguments: given }) };
}

test.each(['{"a":}', '[1]', 5])(
  '%p, which is no arguments, is given to no transform, and nothing is noted',
  async (given) => {
    let asked = 0;
    const { call, received } = setUp({ transform: () => ({ asked: asked++ }), ignoreKeys: ['*'], nul: 'refuse' });
    const result = await call(given);
    expect([result.error?.code, result.notes, asked, received]).toEqual(['invalid_arguments', [], 0, []]);
  },
);

test('without options nothing is changed, and nothing noted', async () => {
  const { received, call } = setUp({});
  const given = { _meta: { a: '\u0000' }, text: '&amp;' };
  expect((await call(given)).notes).toEqual([]);
  expect(received).toEqual([given]);
});

describe('keys to ignore', () => {
  const open = { type: 'object', properties: { path: { type: 'string' } } } as const;

  test('are left out at the top only, with one note that names them, printable and bounded', async () => {
    const { received, call } = setUp({ ignoreKeys: ['_*'] }, open);
    const added = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`_\u202E${index}`, index]));
    const { notes } = await call({ path: 'a', deep: { _meta: 1 }, ...added });
    expect(received).toEqual([{ path: 'a', deep: { _meta: 1 } }]);
    expect(notes).toHaveLength(1);
    expect(notes[0]?.message).toMatch(/^Left out, as a client added them: (?:_\\u\{202e\}\d+, ){10}and 20 more\.$/);
  });

  test.each<[string, JsonSchema]>([
    ['right there', { type: 'object', properties: { _meta: {} } }],
    ['behind a reference', { $ref: '#/$defs/a', $defs: { a: { type: 'object', properties: { _meta: {} } } } }],
    ['in a branch', { type: 'object', anyOf: [{ properties: { _meta: {} } }, { properties: { other: {} } }] }],
  ])('stay where the schema names them: %s', async (_, schema) => {
    const { received, call } = setUp({ ignoreKeys: ['_meta'] }, schema);
    expect((await call({ _meta: 1 })).notes).toEqual([]);
    expect(received).toEqual([{ _meta: 1 }]);
  });

  test('are left out, however many', async () => {
    const { received, call } = setUp({ ignoreKeys: ['_*'] }, open);
    const added = Object.fromEntries(Array.from({ length: 250_000 }, (_, index) => [`_${index}`, index]));
    expect((await call({ path: 'a', ...added })).error).toBeUndefined();
    expect(received).toEqual([{ path: 'a' }]);
  });

  test('can be said for some tools alone', async () => {
    const { received, call } = setUp({ ignoreKeys: { byTool: { other: ['_meta'] } } });
    await call({ _meta: 1 });
    expect(received).toEqual([{ _meta: 1 }]);
  });
});

describe('a transform', () => {
  test('gets a copy, after the other two, and the call', async () => {
    const seen: unknown[] = [];
    const given = Object.freeze({ list: Object.freeze(['a\u0000']), _meta: 1 });
    const { received, call } = setUp({
      nul: 'remove',
      ignoreKeys: ['_meta'],
      transform: (input, { name, toolName }) => {
        seen.push(structuredClone(input), name, toolName);
        (input['list'] as string[]).push('b');
        return input;
      },
    });
    const { notes } = await call(given);
    expect(seen).toEqual([{ list: ['a'] }, 'tool', 'tool']);
    expect(received).toEqual([{ list: ['a', 'b'] }]);
    expect(notes.map(({ type }) => type)).toEqual(['ignored_keys', 'nul_removed', 'transformed']);
    expect(given).toEqual({ list: ['a\u0000'], _meta: 1 });
  });

  test('that changes nothing leaves no note', async () => {
    const { call } = setUp({ transform: ({ b, a }) => ({ a: a ?? null, b: b ?? null }) });
    expect((await call({ b: 1, a: 2 })).notes).toEqual([]);
  });

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
    ['answers nothing', () => undefined],
    ['answers a promise', async () => ({})],
    ['answers a list', () => []],
    ['answers what JSON cannot hold', () => ({ at: new Date() })],
  ])('that %s stops the call, and the layer is named', async (_, transform) => {
    const { received, call } = setUp({ transform: transform as () => JsonObject });
    const { error } = await call({});
    expect(error).toMatchObject({
      code: 'internal',
      executed: 'no',
      message: expect.stringContaining('"prepareArguments"'),
    });
    expect(received).toEqual([]);
  });

  test('comes before the check and the gate, so that what is judged is what runs', async () => {
    const asked: unknown[] = [];
    const approver = ({ input }: ApprovalRequest) => {
      asked.push(input);
      return true;
    };
    const tool = defineTool({
      name: 'tool',
      description: '…',
      inputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
      execute: ({ n }) => `${n}`,
    });
    const dispatcher = createDispatcher({
      tools: [tool],
      middleware: standard({
        logging: false,
        prepareArguments: { transform: ({ number }) => (number === undefined ? {} : { n: number }) },
        permission: { check: rules({ ask: ['tool'] }), approver },
      }),
    });
    expect((await dispatcher.dispatch({ name: 'tool', arguments: { number: 5 } })).content).toBe('5');
    expect((await dispatcher.dispatch({ name: 'tool', arguments: { n: 5 } })).error?.code).toBe('invalid_arguments');
    expect(asked).toEqual([{ n: 5 }]);
  });
});

test('a call nobody can run is answered further inside', async () => {
  const { dispatcher, call } = setUp({ nul: 'refuse', transform: () => ({ other: true }) });
  expect((await dispatcher.dispatch({ name: 'unknown' })).error?.code).toBe('not_found');
  expect((await call('{"a":')).error?.code).toBe('truncated_arguments');
});

test('a NUL character in a key that is left out refuses no call', async () => {
  const { received, call } = setUp({ nul: 'refuse', ignoreKeys: ['_*'] });
  expect((await call({ a: 1, _meta: '\u0000', '_\u0000': 1 })).isError).toBe(false);
  expect(received).toEqual([{ a: 1 }]);
});

test('a NUL character in a key refuses a call, though one in a text before it was taken out', async () => {
  const { received, call } = setUp({ nul: 'remove' });
  expect((await call({ a: '\u0000', 'b\u0000': 1 })).error?.code).toBe('invalid_arguments');
  expect(received).toEqual([]);
});

test('that characters were taken out the model reads, that keys were left out it does not', async () => {
  const { call } = setUp({ nul: 'remove', ignoreKeys: ['_meta'] });
  expect(forModel(await call({ a: '\u0000', _meta: 1 }))).toBe(
    'ok\n\n[NUL characters were taken out of the arguments.]',
  );
});

test.each([
  [{ ignoreKeys: '_meta' }, 'Option "ignoreKeys" of prepareArguments must be an array of names, such as ["_meta"]'],
  [{ nul: true }, 'Option "nul" of prepareArguments must be one of "keep", "remove", "refuse"; got true.'],
  [{ nul: { byTool: { shell: 'drop' } } }, 'for each tool ("shell" has "drop")'],
  [{ transform: {} }, 'Option "transform" of prepareArguments must be a function of the arguments and the call'],
  [{ transforms: [] }, 'prepareArguments has no option "transforms"'],
])('options that make no sense are refused: %j', (options, message) => {
  expect(() => prepareArguments(options as PrepareArgumentsOptions)).toThrow(message);
});
