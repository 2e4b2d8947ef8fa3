import { describe, expect, test } from '@jest/globals';
import {
  type ContentPart,
  createDispatcher,
  defineTool,
  type Middleware,
  type ToolCall,
  type ToolDispatchResult,
  ToolFailure,
  type ToolOutcome,
} from 'toolonion';
import { validation } from 'toolonion/middleware';
import { turns } from './support/manual-clock.ts';

function run(execute: (input: unknown, call: ToolCall) => unknown, signal?: AbortSignal): Promise<ToolDispatchResult> {
  const tool = defineTool({ name: 'tool', description: 'A tool.', execute });
  return createDispatcher({ tools: [tool] }).dispatch({ name: 'tool' }, signal === undefined ? {} : { signal });
}

const image: ContentPart = { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' };

describe('what a tool gives back', () => {
  test('text is the content, at once or later', async () => {
    expect(await run(() => 'x')).toMatchObject({ content: 'x', isError: false });
    expect(await run(async () => 'x')).toMatchObject({ content: 'x', isError: false });
  });

  test('H05, H11: nothing, and falsy values, are successes with a defined content', async () => {
    const contents = await Promise.all(
      [undefined, null, '', 0, false].map(async (value) => (await run(() => value)).content),
    );
    expect(contents).toEqual(['', 'null', '', '0', 'false']);
  });

  test('H01, H02: a soft failure is an error without being a hard one', async () => {
    const result = await run(() => ({ content: 'unknown id', isError: true }));
    expect(result).toMatchObject({ content: 'unknown id', isError: true });
    expect(result.error).toBeUndefined();
  });

  test('a thenable of another kind is awaited', async () => {
    const thenable = { then: (resolve: (value: string) => void) => resolve('x') };
    expect((await run(() => thenable)).content).toBe('x');
  });

  test('a thenable that misbehaves still gives one answer', async () => {
    const twice = {
      then: (resolve: (value: string) => void, reject: (reason: unknown) => void) => (
        resolve('x'), resolve('y'), reject('z')
      ),
    };
    expect((await run(() => twice)).content).toBe('x');
    const throwing = {
      get then(): unknown {
        throw new Error('secret');
      },
    };
    expect((await run(() => throwing)).error?.code).toBe('execution_failed');
  });
});

describe('what a tool throws', () => {
  test('H03: is told to the log, not to the model', async () => {
    const result = await run(() => {
      throw new Error('connect 10.0.0.5:5432 user=admin');
    });
    expect(JSON.stringify(result)).not.toContain('10.0.0.5');
    expect(result.error).toMatchObject({ code: 'execution_failed', executed: 'yes' });
    expect(result.error?.cause).toMatchObject({ message: expect.stringContaining('10.0.0.5') });
    expect(result.error?.errorId).toMatch(/./);
  });

  test('a ToolFailure says whether the tool had begun, and whether to try again', async () => {
    const result = await run(() => {
      throw new ToolFailure('Outside the project.', { code: 'invalid_arguments', executed: 'no' });
    });
    expect(result.error).toMatchObject({ executed: 'no', retryable: false });
  });

  test('a ToolFailure is told to the model, with its code', async () => {
    const result = await run(() => {
      throw new ToolFailure('No city is called "Olso".', { code: 'invalid_arguments' });
    });
    expect(result).toMatchObject({ content: 'No city is called "Olso".', error: { code: 'invalid_arguments' } });
  });

  test('H04: anything at all can be thrown or rejected', async () => {
    for (const thrown of [
      undefined,
      null,
      0,
      '',
      'text',
      Symbol('s'),
      {},
      [],
      () => 1,
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('trap');
          },
        },
      ),
    ]) {
      for (const execute of [
        () => {
          throw thrown;
        },
        () => Promise.reject(thrown),
      ]) {
        expect((await run(execute)).error?.code).toBe('execution_failed');
      }
    }
  });
});

describe('a generator', () => {
  test('adds up what it yields: text merges, parts stay in order', async () => {
    const result = await run(async function* () {
      yield 'a';
      yield 'b';
      yield image;
      yield [
        { type: 'text', text: 'c' },
        { type: 'text', text: 'd' },
      ];
    });
    expect(result.content).toEqual([{ type: 'text', text: 'ab' }, image, { type: 'text', text: 'cd' }]);
  });

  test('that yields only text answers text', async () => {
    expect(
      (
        await run(async function* () {
          yield 'a';
          yield 'b';
        })
      ).content,
    ).toBe('ab');
  });

  test('that yields nothing answers nothing', async () => {
    expect((await run(async function* () {})).content).toBe('');
  });

  test('answers what it returns, if it returns something, instead of its yields', async () => {
    expect(
      (
        await run(async function* () {
          yield 'a';
          return 'whole';
        })
      ).content,
    ).toBe('whole');
    expect(
      (
        await run(async function* () {
          yield 'a';
          return { n: 1 };
        })
      ).structured,
    ).toEqual({ n: 1 });
    expect(
      (
        await run(async function* () {
          yield 'a';
          return null;
        })
      ).content,
    ).toBe('null');
  });

  test('may be synchronous, or come out of a promise', async () => {
    expect(
      (
        await run(function* () {
          yield 'a';
          yield 'b';
        })
      ).content,
    ).toBe('ab');
    expect(
      (
        await run(async () =>
          (async function* () {
            yield 'a';
          })(),
        )
      ).content,
    ).toBe('a');
  });

  test('that throws fails the call', async () => {
    const result = await run(async function* () {
      yield 'a';
      throw new ToolFailure('Broken.');
    });
    expect(result).toMatchObject({ isError: true, content: 'a\n\nBroken.' });
  });

  test('G16: is closed once by an abort, its finally runs, and a stuck one holds nothing up', async () => {
    for (const stuck of [false, true]) {
      const controller = new AbortController();
      let closed = 0;
      const pending = run(async function* () {
        try {
          yield 'a';
          await (stuck ? new Promise(() => {}) : turns(3));
          yield 'b';
        } finally {
          closed++;
        }
      }, controller.signal);
      await turns(1);
      controller.abort();
      expect((await pending).error?.code).toBe('cancelled');
      await turns();
      expect(closed).toBe(stuck ? 0 : 1);
    }
  });
});

describe('arguments', () => {
  const schema = {
    type: 'object',
    properties: { list: { type: 'array', items: { type: 'number' } }, n: { type: 'number', default: 7 } },
  } as const;

  for (const checked of [true, false]) {
    test(`L06: each attempt gets its own, and the caller’s stay as they were, ${checked ? 'with' : 'without'} validation`, async () => {
      const seen: unknown[] = [];
      const tool = defineTool({
        name: 'tool',
        description: 'Changes its arguments.',
        inputSchema: schema,
        execute: (input) => {
          seen.push(structuredClone(input));
          input.list?.push(1);
          (input as { added?: boolean }).added = true;
          return 'x';
        },
      });
      const again: Middleware = async (call, next) => {
        await next(call);
        await next(call);
        return next(call);
      };
      const inputs: unknown[] = [];
      const watch: Middleware = async (call, next) => {
        const outcome: ToolOutcome = await next(call);
        inputs.push(call.input);
        return outcome;
      };
      const dispatcher = createDispatcher({
        tools: [tool],
        middleware: [...(checked ? [validation()] : []), watch, again],
      });
      const own = Object.freeze({ list: Object.freeze([0]) });
      const result = await dispatcher.dispatch({ name: 'tool', arguments: own });
      expect(seen).toEqual(Array(3).fill(checked ? { list: [0], n: 7 } : { list: [0] }));
      expect([own, result.requested.input, ...inputs]).toEqual(Array(3).fill({ list: [0] }));
    });
  }

  test('an own "__proto__" key stays plain data', async () => {
    let received: object = {};
    const tool = defineTool({
      name: 'tool',
      description: 'A tool.',
      inputSchema: { type: 'object' },
      execute: (input) => {
        received = input;
        return 'x';
      },
    });
    await createDispatcher({ tools: [tool], middleware: [validation()] }).dispatch({
      name: 'tool',
      arguments: '{"__proto__":{"isAdmin":true}}',
    });
    expect(Object.getPrototypeOf(received)).toBe(Object.getPrototypeOf({}));
    expect(Object.keys(received)).toEqual(['__proto__']);
    expect((received as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  test('are there for a tool as `this` is: execute is called as the method it is', async () => {
    const tool = defineTool({
      name: 'tool',
      description: 'A tool.',
      execute() {
        return (this as { name?: string } | undefined)?.name ?? 'none';
      },
    });
    expect((await createDispatcher({ tools: [tool] }).dispatch({ name: 'tool' })).content).toBe('tool');
  });
});
