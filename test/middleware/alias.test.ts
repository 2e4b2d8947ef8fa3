import { describe, expect, test } from '@jest/globals';
import { createDispatcher, defineTool, PermissionCheck, type ToolCallRequest } from 'toolonion';
import { type AliasOptions, alias, permission, standard, validation } from 'toolonion/middleware';

const read = defineTool({
  name: 'read_file',
  description: '…',
  inputSchema: {
    type: 'object',
    properties: { path: { type: 'string' }, file: { type: 'string' } },
    required: ['path'],
    additionalProperties: false,
  },
  execute: (input) => JSON.stringify(input),
});
const cat = defineTool({ name: 'cat', description: '…', execute: () => 'A cat.' });

function dispatcherOf(options: AliasOptions, tools = [read]) {
  const judged: string[] = [];
  const check = ({ toolName }: { readonly toolName: string }) => {
    judged.push(toolName);
    return PermissionCheck.allow();
  };
  const dispatcher = createDispatcher({ tools, middleware: [alias(options), validation(), permission({ check })] });
  return { dispatch: (call: ToolCallRequest) => dispatcher.dispatch(call), judged };
}

describe('another name of a tool', () => {
  const options = { tools: { read_file: ['cat', 'open'], gone: ['old'] } };

  test('leads to the tool, which all that looks at names sees, and the result tells', async () => {
    const { dispatch, judged } = dispatcherOf(options);
    expect(await dispatch({ name: 'open', arguments: '{"path":"a"}' })).toMatchObject({
      content: '{"path":"a"}',
      resolvedToolName: 'read_file',
      requested: { name: 'open' },
      notes: [{ type: 'aliased', by: 'alias', message: '"open" was taken for "read_file".' }],
    });
    expect(judged).toEqual(['read_file']);
  });

  test('is none where a tool has it itself, or where its tool is not there', async () => {
    const { dispatch } = dispatcherOf(options, [read, cat] as never);
    expect(await dispatch({ name: 'cat' })).toMatchObject({ content: 'A cat.', notes: [] });
    expect((await dispatch({ name: 'old' })).error?.code).toBe('not_found');
    expect((await dispatch({ name: 'constructor' })).error?.code).toBe('not_found');
  });
});

describe('another name of an argument', () => {
  const options = { arguments: { read_file: { path: ['filename', 'file', 'name'] } } };

  test.each<[given: unknown, read: unknown]>([
    [{ filename: 'a' }, { path: 'a' }],
    ['{"name":"a"}', { path: 'a' }],
    // Two for one: the first that was given for it.
    [{ name: 'b', filename: 'a' }, /name/],
    // Its own name is there.
    [{ path: 'a', filename: 'b' }, /filename/],
    // The schema has it.
    [
      { path: 'a', file: 'b' },
      { path: 'a', file: 'b' },
    ],
    [{ file: 'b' }, /path/],
    ['{"filename":', /incomplete/],
    ['["filename"]', /object/],
    [undefined, /path/],
  ])('%j', async (given, found) => {
    const { content, isError } = await dispatcherOf(options).dispatch({ name: 'read_file', arguments: given });
    if (found instanceof RegExp) expect([isError, content]).toEqual([true, expect.stringMatching(found)]);
    else expect(JSON.parse(String(content))).toEqual(found);
  });

  test('is found for a tool that was called by another name as well, and the arguments given stay as they were', async () => {
    const { dispatch } = dispatcherOf({ ...options, tools: { read_file: ['open'] } });
    const given = { filename: 'a' };
    const { content, notes, requested } = await dispatch({ name: 'open', arguments: given });
    expect([content, given, requested.input]).toEqual(['{"path":"a"}', { filename: 'a' }, { filename: 'a' }]);
    expect(notes[0]?.message).toBe('"open" was taken for "read_file", and "filename" was taken for "path".');
  });
});

test('an argument that the schema names in one of its branches is none that goes by another name', async () => {
  const text = { type: 'string' } as const;
  const inputSchema = {
    type: 'object',
    anyOf: [
      { properties: { file: text }, required: ['file'], additionalProperties: false },
      { properties: { path: text, mode: text }, required: ['path', 'mode'], additionalProperties: false },
    ],
  } as const;
  const tool = defineTool({ name: 'u', description: '…', inputSchema, execute: (input) => JSON.stringify(input) });
  const { dispatch } = dispatcherOf({ arguments: { u: { path: ['file'] } } }, [tool] as never);
  expect((await dispatch({ name: 'u', arguments: { file: 'x' } })).content).toBe('{"file":"x"}');
});

test('it stands where standard puts it, outermost but for the log', () => {
  const names = standard({ permission: false, alias: {}, unknownTool: {} }).map(({ name }) => name);
  expect(names.slice(0, 3)).toEqual(['logging', 'alias', 'unknownTool']);
});

test('a tool may be told its own name', () => {
  expect(() => alias({ tools: { a: ['a', 'b'] } })).not.toThrow();
});

test.each([
  [{ tools: { a: ['b'], b: ['c'] } }, 'names that nothing else has; "b" has aliases itself'],
  [{ tools: { a: ['c'], b: ['c'] } }, 'names that stand for one thing; "c" stands for "a" and "b"'],
  [{ tools: { a: [' '] } }, 'names that are not blank'],
  [{ tools: { a: 'b' } }, 'that of "a" is none'],
  [{ arguments: { a: { x: ['y'], z: ['y'] } } }, 'for "a" names that stand for one thing; "y" stands for "x" and "z"'],
  [{ arguments: [] }, 'aliases by tool'],
  [{ names: {} }, 'alias has no option "names"'],
])('%j is refused', (options, message) => {
  expect(() => alias(options as never)).toThrow(message);
});
