import { describe, expect, test } from '@jest/globals';
import {
  createDispatcher,
  defineTool,
  isConcurrencySafe,
  notFound,
  PermissionCheck,
  ToolContext,
  ToolFailure,
  ToolOutput,
  ToolRegistry,
  type ToolSchema,
  toOutput,
} from 'toolonion';

// The checks with which the tool layer of loopctl, which this package carries over, tests itself.

const echo = defineTool({
  name: 'echo',
  description: 'Echoes back the input',
  inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
  readOnly: true,
  concurrencySafe: true,
  execute: ({ message }) => ToolOutput.text(message),
});

const fail = defineTool({
  name: 'fail',
  description: 'Always fails',
  inputSchema: { type: 'object', properties: {} },
  execute: () => {
    throw new ToolFailure('always fails');
  },
});

describe('ToolOutput', () => {
  test('holds a success', () => {
    const output = ToolOutput.text('hello');
    expect(output.isError).toBe(false);
    expect(ToolOutput.textContent(output)).toBe('hello');
  });

  test('holds an error', () => {
    const output = ToolOutput.error('something went wrong');
    expect(output.isError).toBe(true);
    expect(ToolOutput.textContent(output)).toBe('something went wrong');
  });

  test('is a success when it is made of text', () => {
    expect(toOutput('hello').isError).toBe(false);
  });

  test('is a success when it is made of text that was put together', () => {
    expect(toOutput(['hel', 'lo'].join(''))).toEqual(ToolOutput.text('hello'));
  });
});

describe('the error for a tool that is not found', () => {
  test('names what was asked for and what there is', () => {
    const { message } = notFound('missing', ['tool_a', 'tool_b']);
    expect(message).toContain('missing');
    expect(message).toContain('tool_a');
  });

  test('says when none are registered', () => {
    expect(notFound('missing', []).message).toContain('none registered');
  });

  test('counts the names beyond the tenth', () => {
    const names = Array.from({ length: 15 }, (_, index) => `tool_${index}`);
    expect(notFound('missing', names).message).toContain('and 5 more');
  });
});

describe('ToolContext', () => {
  test('is by default in the current directory, with somebody to ask', () => {
    const context = new ToolContext();
    expect(context.cwd).toBe('.');
    expect(context.isNonInteractive).toBe(false);
  });
});

describe('PermissionCheck', () => {
  test('allows', () => {
    const check = PermissionCheck.allow();
    expect(PermissionCheck.isAllow(check)).toBe(true);
    expect(PermissionCheck.isDeny(check)).toBe(false);
  });

  test('denies', () => {
    const check = PermissionCheck.deny('unsafe');
    expect(PermissionCheck.isDeny(check)).toBe(true);
    expect(PermissionCheck.isAllow(check)).toBe(false);
  });

  test('asks', () => {
    expect(PermissionCheck.isAsk(PermissionCheck.ask('Run this?'))).toBe(true);
  });

  test('modifies', () => {
    expect(PermissionCheck.isModify(PermissionCheck.modify({ safe: true }))).toBe(true);
  });
});

describe('ToolSchema', () => {
  test('comes back from JSON', () => {
    const schema: ToolSchema = { name: 'test', description: 'A test tool', inputSchema: { type: 'object' } };
    const back = JSON.parse(JSON.stringify(schema)) as ToolSchema;
    expect(back.name).toBe(schema.name);
    expect(JSON.parse(JSON.stringify(echo.schema))).toEqual(echo.schema);
  });
});

describe('ToolRegistry', () => {
  test('gives the tool that was registered', () => {
    const registry = new ToolRegistry();
    expect(registry.size).toBe(0);
    registry.register(echo);
    expect(registry.size).toBe(1);
    expect(registry.has('echo')).toBe(true);
    expect(registry.get('echo')?.name).toBe('echo');
  });

  test('gives nothing for a name that is missing', () => {
    expect(new ToolRegistry().get('missing')).toBeUndefined();
  });

  test('gives all schemas', () => {
    const { schemas } = new ToolRegistry([echo]);
    expect(schemas.length).toBe(1);
    expect(schemas[0]?.name).toBe('echo');
  });

  test('gives the names sorted', () => {
    expect(new ToolRegistry([fail, echo]).names).toEqual(['echo', 'fail']);
  });

  test('gives the tools that are concurrency-safe', () => {
    const safe = new ToolRegistry([echo, fail]).concurrencySafe;
    expect(safe.length).toBe(1);
    expect(safe[0]?.name).toBe('echo');
  });
});

describe('a tool that is called', () => {
  const dispatcher = createDispatcher({ tools: [echo, fail] });

  test('answers with what it was given', async () => {
    const result = await dispatcher.dispatch({ name: 'echo', arguments: { message: 'hello' } });
    expect(result.error).toBeUndefined();
    expect(ToolOutput.textContent(result)).toBe('hello');
  });

  test('fails with what it says', async () => {
    const result = await dispatcher.dispatch({ name: 'fail', arguments: {} });
    expect(result.isError).toBe(true);
    expect(result.error).toMatchObject({ code: 'execution_failed', message: 'always fails' });
  });
});

describe('a tool that says nothing of itself', () => {
  test('is not concurrency-safe', () => {
    expect(fail.concurrencySafe ?? false).toBe(false);
    expect(isConcurrencySafe(fail, {})).toBe(false);
  });

  test('is not read-only', () => {
    expect(fail.readOnly ?? false).toBe(false);
  });

  test('adds nothing to the system prompt', () => {
    expect(echo.systemPrompt).toBeUndefined();
  });
});
