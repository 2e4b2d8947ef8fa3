import { describe, expect, test } from '@jest/globals';
import {
  createDispatcher,
  type DispatchOptions,
  defineTool,
  type JsonObject,
  type Middleware,
  named,
  PermissionCheck,
  type Progress,
  settingKey,
  type ToolCallChanges,
} from 'toolonion';
import { permission, validation } from 'toolonion/middleware';
import { z } from 'zod';

function setUp(...middleware: readonly Middleware[]) {
  const received: unknown[] = [];
  const tool = defineTool({
    name: 'tool',
    description: 'Remembers its arguments.',
    inputSchema: { type: 'object', properties: { n: { type: 'number', default: 1 } } },
    execute: (input) => {
      received.push(input);
      return 'ok';
    },
  });
  const dispatcher = createDispatcher({ tools: [tool], middleware });
  return { received, call: (given: JsonObject = {}) => dispatcher.dispatch({ name: 'tool', arguments: given }) };
}

describe('call.with', () => {
  test('takes a copy of other arguments, and freezes nobody’s', async () => {
    const shared = { n: 5, list: [1] };
    const edit = named('edit', (call, next) => {
      const edited = call.with({ input: shared });
      expect(edited.input).toEqual(shared);
      return next(edited);
    });
    const { received, call } = setUp(edit, validation());
    await call();
    expect(received).toEqual([{ n: 5, list: [1] }]);
    expect(received[0]).not.toBe(shared);
    expect([Object.isFrozen(shared), Object.isFrozen(shared.list)]).toEqual([false, false]);
  });

  test.each<[string, unknown]>([
    ['a Date', { at: new Date(0) }],
    ['NaN', { n: Number.NaN }],
    ['a Map', new Map()],
    [
      'a cycle',
      Object.assign(
        {},
        {
          get self() {
            return this;
          },
        },
      ),
    ],
  ])('refuses arguments that JSON cannot hold, and the layer is named: %s', async (_, input) => {
    const edit = named('edit', (call, next) => next(call.with({ input: input as JsonObject })));
    for (const layers of [[edit], [edit, validation()]]) {
      const { received, call } = setUp(...layers);
      const { error } = await call();
      expect(error).toMatchObject({ code: 'internal', executed: 'no', message: expect.stringContaining('"edit"') });
      expect(received).toEqual([]);
    }
  });

  test('refuses a change it does not know, which would be lost', async () => {
    const edit = named('edit', (call, next) => next(call.with({ arguments: { n: 2 } } as ToolCallChanges)));
    const { received, call } = setUp(edit);
    const { error } = await call();
    expect(error?.code).toBe('internal');
    expect(String(error?.cause)).toContain(
      'call.with knows no change "arguments"; it takes input, parsed, tool, context',
    );
    expect(received).toEqual([]);
  });
});

describe('call.parsed', () => {
  test('cannot be changed by whoever looks at it, and the tool’s own can', async () => {
    const meddle = () => Object.assign({ ...PermissionCheck.allow() });
    const check = permission({
      check: (call) => {
        Object.assign(call.parsed as object, { n: 99 });
        return meddle();
      },
    });
    const { received, call } = setUp(validation(), check);
    expect((await call()).error?.code).toBe('denied');
    expect(received).toEqual([]);

    const look = named('look', (seen, next) => {
      expect(seen.parsed).toEqual({ n: 1 });
      expect(seen.parsed).toBe(seen.parsed);
      return next(seen.with({ parsed: seen.parsed }));
    });
    const other = setUp(validation(), look);
    await other.call();
    Object.assign(other.received[0] as object, { n: 2 });
    expect(other.received).toEqual([{ n: 2 }]);
  });

  test('is what a transform made, where JSON cannot hold that', async () => {
    const seen: unknown[] = [];
    const tool = defineTool({
      name: 'tool',
      description: '…',
      inputSchema: z.object({ at: z.coerce.date() }),
      jsonSchema: { type: 'object' },
      execute: ({ at }) => at.toISOString(),
    });
    const look = named('look', (call, next) => {
      seen.push((call.parsed as { at: Date }).at.getTime());
      return next(call);
    });
    const dispatcher = createDispatcher({ tools: [tool], middleware: [validation(), look] });
    const { content } = await dispatcher.dispatch({ name: 'tool', arguments: { at: '1970-01-01T00:00:00.000Z' } });
    expect([content, seen]).toEqual(['1970-01-01T00:00:00.000Z', [0]]);
  });
});

test('report and suspend may be taken off the call', async () => {
  const heard: Progress[] = [];
  const tool = defineTool({
    name: 'tool',
    description: '…',
    execute: async (_, { report, suspend }) => {
      report({ message: 'half' });
      return suspend({ reason: 'ask a person' });
    },
  });
  const dispatcher = createDispatcher({ tools: [tool] });
  const result = await dispatcher.dispatch({ name: 'tool' }, { onProgress: (progress) => heard.push(progress) });
  expect(result.control).toMatchObject({ type: 'suspend', request: { reason: 'ask a person' } });
  expect(heard).toEqual([{ message: 'half' }]);
});

test('settings count as they were when the call was made, and only such as a key has made', async () => {
  const limit = settingKey<number>((value) => {
    if (!(value > 0)) throw new TypeError('must be above 0');
  });
  const seen: unknown[] = [];
  const look = named('look', async (call, next) => {
    await new Promise((resolve) => setImmediate(resolve));
    seen.push(call.setting(limit));
    return next(call);
  });
  const tool = defineTool({ name: 'tool', description: '…', execute: () => 'ok' });
  const dispatcher = createDispatcher({ tools: [tool], middleware: [look] });
  const settings = [limit(5)];
  const running = dispatcher.dispatch({ name: 'tool' }, { settings });
  settings.length = 0;
  await running;
  expect(seen).toEqual([5]);
  const forged: DispatchOptions = { settings: [{ key: limit, value: Number.NaN }] };
  const { error } = await dispatcher.dispatch({ name: 'tool' }, forged);
  expect(error).toMatchObject({ code: 'invalid_call', message: expect.stringContaining('settings') });
});

test('arguments that an approver edited are put right and told like any others', async () => {
  const received: unknown[] = [];
  const tool = defineTool({
    name: 'tool',
    description: '…',
    inputSchema: z.object({ n: z.number(), force: z.boolean().optional() }),
    execute: (input) => {
      received.push(input);
      return 'ok';
    },
  });
  const approver = () => PermissionCheck.modify({ n: '5', forse: true });
  const layers = [validation({ coerce: true }), permission({ check: () => PermissionCheck.ask('?'), approver })];
  const dispatcher = createDispatcher({ tools: [tool], middleware: layers });
  const { notes } = await dispatcher.dispatch({ name: 'tool', arguments: { n: 1 } });
  expect(received).toEqual([{ n: 5 }]);
  expect(notes.map(({ type }) => type)).toEqual(['repaired', 'dropped_keys', 'edited']);
  expect(notes[2]?.message).toContain('{"n":5,"forse":true}');
});

test.each([
  { abortSignal: new AbortController().signal },
  { timeoutMs: 5 },
  { Signal: undefined },
  { onprogress: () => {} },
])('dispatch refuses an option it does not have: %o', async (options) => {
  const tool = defineTool({ name: 'tool', description: '…', execute: () => 'ran' });
  const result = await createDispatcher({ tools: [tool] }).dispatch({ name: 'tool' }, options as DispatchOptions);
  expect(result.error?.code).toBe('invalid_call');
  expect(result.error?.message).toContain(`has no option "${Object.keys(options)[0]}". Its options: signal, context`);
});

test('dispatch says what a signal has to be, of null as well', async () => {
  const { error } = await createDispatcher().dispatch({ name: 'tool' }, { signal: null as never });
  expect(error?.message).toContain('Option "signal" of dispatch must be an AbortSignal');
});

test.each([['x'], [null], [5], [[1]]])('call.with refuses arguments that are no object: %j', async (input) => {
  const edit = named('edit', (call, next) => next(call.with({ input: input as never })));
  const { received, call } = setUp(edit, validation());
  expect((await call()).error).toMatchObject({ code: 'internal', message: expect.stringContaining('"edit"') });
  expect(received).toEqual([]);
});
