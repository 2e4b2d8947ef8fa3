// Faults that providers' messages bring, or that they punish. Each is known from several public projects.

import { describe, expect, test } from '@jest/globals';
import { closeDangling, createDispatcher, defineTool } from 'toolonion';
import { validation } from 'toolonion/middleware';
import { openaiChat, openaiResponses } from 'toolonion/wire';
import { PROVIDERS, type Sent, SHAPES, worker } from './shapes.ts';

describe.each(PROVIDERS)('$title', (shape) => {
  test('A10: arguments that cannot be parsed do not stand in the history, whose every later request would be refused', async () => {
    const sent = [{ id: 'a', name: 'work', input: '{"path":"a' as never }];
    const results = await worker(() => 'Done.').dispatchAll(shape.calls(sent));
    expect(shape.replay(sent, results)).toEqual([{ id: 'a', name: 'work', input: {} }]);
    expect(shape.results(results)).toMatchObject([{ id: 'a', content: expect.stringMatching(/incomplete/) }]);
  });

  test('A11: a call that the limit of output cut does not run, however complete it looks', async () => {
    let runs = 0;
    const sent = [{ id: 'a', name: 'work', input: { commands: ['npm i', 'npm t'] } }];
    const [result] = await worker(() => runs++).dispatchAll(shape.calls(sent, undefined, true));
    expect([runs, result?.error?.code]).toEqual([0, 'truncated_arguments']);
  });

  test('C12: a call without a name and an id leaves a call and an answer that the provider takes', async () => {
    const sent = [{ id: '', name: '', input: { a: 1 } }];
    const results = await worker(() => 'Done.').dispatchAll(shape.calls(sent));
    const [kept] = shape.replay(sent, results) as [Sent];
    const [answer] = shape.results(results);
    expect(kept).toEqual({ id: results[0]?.toolCallId, name: 'unnamed', input: { a: 1 } });
    expect(answer?.id).toBe(kept.id);
  });

  test('D01: two calls of one id both run, and have an id each', async () => {
    const sent = ['x', 'y'].map((text) => ({ id: 'c1', name: 'work', input: { text } }));
    const results = await worker(({ text }: { text: string }) => text).dispatchAll(shape.calls(sent));
    const answers = shape.results(results);
    expect(answers.map(({ content }) => content)).toEqual(['x', 'y']);
    expect(answers.map(({ id }) => id)).toEqual(shape.replay(sent, results).map(({ id }) => id));
    expect(new Set(answers.map(({ id }) => id)).size).toBe(2);
  });

  test('D02: an empty id and a missing one become ids of their own', async () => {
    const sent = [
      { id: '', name: 'work', input: {} },
      { name: 'work', input: {} },
    ];
    const results = await worker(() => 'Done.').dispatchAll(shape.calls(sent));
    const ids = shape.results(results).map(({ id }) => id);
    expect(ids).toEqual(shape.replay(sent, results).map(({ id }) => id));
    expect([new Set(ids).size, ids.includes('')]).toEqual([2, false]);
  });

  test('D04: answers stand in the order of the calls, whichever comes first', async () => {
    const ends: (() => void)[] = [];
    const dispatcher = worker(({ n }: { n: number }) => new Promise((resolve) => ends.push(() => resolve(`${n}`))));
    const sent = [1, 2, 3].map((n) => ({ name: 'work', input: { n } }));
    const all = dispatcher.dispatchAll(shape.calls(sent));
    for (let turn = 0; turn < 100; turn++) await null;
    expect(ends.length).toBe(3);
    for (const end of ends.reverse()) end();
    expect(shape.results(await all).map(({ content }) => content)).toEqual(['1', '2', '3']);
  });

  test('D05: calls that were aborted have their answers', async () => {
    const abort = new AbortController();
    const dispatcher = worker(() => new Promise(() => {}));
    const sent = ['a', 'b'].map((id) => ({ id, name: 'work', input: {} }));
    const all = dispatcher.dispatchAll(shape.calls(sent), { signal: abort.signal });
    abort.abort();
    expect(shape.results(await all).map(({ id, content }) => [id, typeof content])).toEqual([
      ['a', 'string'],
      ['b', 'string'],
    ]);
  });
});

describe.each(SHAPES)('$title', (shape) => {
  test('E15: a schema keeps its $defs, so that no reference dangles, and stays as it was', () => {
    const inputSchema = {
      type: 'object',
      properties: { at: { $ref: '#/$defs/point' } },
      $defs: { point: { type: 'object', description: 'A place.', properties: { x: { type: 'number' } } } },
    };
    const before = structuredClone(inputSchema);
    expect(shape.define([{ name: 'work', description: '', inputSchema }]).tools[0]?.schema).toEqual(before);
    expect(inputSchema).toEqual(before);
  });

  test.each([undefined, null, '', [], 0, false])(
    'H05: a tool that returns %j has an answer that is not blank',
    async (value) => {
      const results = await worker(() => value).dispatchAll([{ id: 'a', name: 'work' }]);
      const [answer] = shape.results(results);
      expect(answer?.isError).not.toBe(true);
      expect(JSON.stringify(answer?.content)).toMatch(/[\w[]/);
    },
  );
});

test('D07: a call that a process left open is answered without running', () => {
  const call = { type: 'function' as const, function: { name: 'work', arguments: '{}' } };
  type Message = { tool_calls?: openaiChat.ChatToolCall[] } | openaiChat.ChatToolMessage;
  const stored: Message[] = [
    { tool_calls: ['a', 'b'].map((id) => ({ id, ...call })) },
    { role: 'tool', tool_call_id: 'a', content: 'Done.' },
  ];
  const history = closeDangling(stored, {
    calls: (message) => ('role' in message ? [] : openaiChat.calls(message)),
    answers: (message) => ('role' in message ? [message.tool_call_id] : []),
    answer: (result) => openaiChat.results([result])[0] as openaiChat.ChatToolMessage,
  });
  expect(history).toEqual([
    ...stored,
    { role: 'tool', tool_call_id: 'b', content: expect.stringMatching(/^Error: .*interrupted/) },
  ]);
});

test('B01: a model that strict has fill in all arguments with null is understood', async () => {
  const tool = defineTool({
    name: 'work',
    description: 'Works.',
    inputSchema: {
      type: 'object',
      properties: { path: { type: 'string' }, limit: { type: 'integer', default: 10 } },
      required: ['path'],
    },
    execute: (input) => JSON.stringify(input),
  });
  const dispatcher = createDispatcher({ tools: [tool], middleware: [validation()] });
  const { tools, names } = openaiResponses.definitions(dispatcher.tools.schemas, { strict: true });
  expect(tools[0]?.parameters).toMatchObject({
    properties: { limit: { type: ['integer', 'null'] } },
    required: ['path', 'limit'],
  });
  const output = [{ type: 'function_call', call_id: 'a', name: 'work', arguments: '{"path":"a","limit":null}' }];
  const results = await dispatcher.dispatchAll(openaiResponses.calls({ output }, names));
  expect(results[0]?.content).toBe('{"path":"a","limit":10}');
});
