import { describe, expect, test } from '@jest/globals';
import {
  createDispatcher,
  defineTool,
  type JsonSchema,
  type Middleware,
  named,
  type StandardSchema,
  succeed,
  type ToolDispatchResult,
  ToolFailure,
  type ToolOutcome,
  ToolOutput,
  ToolRegistry,
  withNote,
} from 'toolonion';
import { type OutputValidationOptions, outputValidation } from 'toolonion/middleware';
import * as z from 'zod';
import { lookout } from '../support/lookout.ts';
import { ManualClock, turns } from '../support/manual-clock.ts';

const tags = {
  type: 'object',
  properties: { tags: { type: 'array', items: { type: 'string' } } },
  required: ['tags'],
  additionalProperties: false,
} as const;

/** What came of one call, what the layer was given, and how often the tool ran. */
interface Ran {
  readonly result: ToolDispatchResult;
  readonly given: ToolOutcome | undefined;
  readonly passed: ToolOutcome | undefined;
  readonly runs: number;
}

async function call(
  outputSchema: JsonSchema | StandardSchema | undefined,
  execute: () => unknown,
  options?: OutputValidationOptions,
  inside: Middleware[] = [],
): Promise<Ran> {
  let runs = 0;
  const { seen, look } = lookout();
  const tool = defineTool({
    name: 'work',
    description: 'Works.',
    ...(outputSchema && { outputSchema }),
    execute: () => {
      runs++;
      return execute();
    },
  });
  const middleware = [look('passed'), outputValidation(options), look('given'), ...inside];
  const result = await createDispatcher({ tools: [tool], middleware }).dispatch({ name: 'work' });
  return { result, given: seen['given'], passed: seen['passed'], runs };
}

describe('an answer that matches', () => {
  test.each([
    ['an object', tags, { tags: ['a'] }],
    ['F05: an array', { type: 'array', items: { type: 'number' } }, [1, 2]],
    ['F05: null', { type: 'null' }, null],
    ['F05: a number', { type: 'number' }, 5],
    ['zod', z.object({ tags: z.array(z.string()) }), { tags: ['a'] }],
    ['zod, asynchronous', z.object({ tags: z.array(z.string()).refine(async () => true) }), { tags: ['a'] }],
  ] as const)('passes untouched: %s', async (_, schema, answer) => {
    const { result, given, passed } = await call(schema as JsonSchema, () => answer);
    expect(passed).toBe(given);
    expect(result).toMatchObject({ structured: answer, isError: false, notes: [] });
  });

  test('F01: is judged by its structured part alone', async () => {
    const { result } = await call(tags, () => ToolOutput.json({ tags: [] }, 'No tags.'));
    expect(result).toMatchObject({ content: 'No tags.', structured: { tags: [] }, isError: false });
  });

  test('is not changed by what the schema would add or take away', async () => {
    const open = { type: 'object', properties: { n: { type: 'number', default: 1 } } };
    expect((await call(open, () => ({ a: 1 }))).result.structured).toEqual({ a: 1 });
    const stripping = z.object({ n: z.number().default(1) });
    expect((await call(stripping, () => ({ a: 1 }))).result.structured).toEqual({ a: 1 });
  });

  test('may be frozen', async () => {
    const answer = Object.freeze({ tags: Object.freeze(['a']) });
    const freezing: Middleware = named('freezing', async (call, next) =>
      Object.freeze({ ...(await next(call)), structured: answer }),
    );
    const { passed } = await call(tags, () => answer, {}, [freezing]);
    expect(passed?.structured).toBe(answer);
  });
});

describe('an answer that is only text', () => {
  test('has it for its structured part, where the schema takes it', async () => {
    for (const schema of [{ type: 'string' }, {}, z.string(), z.string().refine(async () => true)]) {
      const { result, given } = await call(schema, () => 'a');
      expect(result).toMatchObject({ content: 'a', structured: 'a', isError: false });
      expect(given && 'structured' in given).toBe(false);
    }
  });

  test('is told what is wrong with it, else', async () => {
    for (const schema of [{ enum: ['b'] }, z.enum(['b']), z.enum(['b']).refine(async () => true)]) {
      const { result } = await call(schema, () => 'a');
      expect(result.content).toMatch(/it has no structured part\n- .+\nThe answer is withheld/);
      expect('structured' in result).toBe(false);
    }
  });
});

describe('an answer that does not match', () => {
  test('fails, and it is told that the tool ran', async () => {
    const { result, runs } = await call(tags, () => ({ tags: ['a', 1], more: true }));
    expect(result).toMatchObject({
      content:
        'Tool "work" ran, but its answer does not match the output schema it declares:\n' +
        '- unknown key "more"; known keys: "tags"\n- tags[1]: expected string; got the number 1\n' +
        'The answer is withheld. What the tool did is done: do not repeat the call for its effect.',
      isError: true,
      error: { code: 'output_invalid', executed: 'yes', retryable: false },
    });
    expect('structured' in result).toBe(false);
    expect(runs).toBe(1);
  });

  test('is one without a structured part', async () => {
    const { result } = await call(tags, () => 'tags: a');
    expect(result.error).toMatchObject({ code: 'output_invalid', executed: 'yes' });
    expect(result.content).toContain('it has no structured part');
  });

  test('is not saved by a default of the schema', async () => {
    const schema = { properties: { tags: { type: 'array', default: [] } }, required: ['tags'] };
    expect((await call(schema, () => ({}))).result.content).toContain('"tags" is required, but missing');
  });

  test('is one that zod does not accept', async () => {
    const { result } = await call(z.object({ n: z.number().refine(async (n) => n > 0, 'must be positive') }), () => ({
      n: 0,
    }));
    expect(result.content).toContain('- n: must be positive');
  });

  test('makes a message of bounded size', async () => {
    const list = { type: 'array', items: { type: 'number' } };
    const { result } = await call(list, () => new Array(10_000).fill('x'.repeat(1000)), { maxFaults: 3 });
    expect(String(result.content).match(/^- /gm)).toHaveLength(4);
    expect(String(result.content).length).toBeLessThan(700);
  });

  test('passes with a note where the host asks for that', async () => {
    const { result } = await call(tags, () => ({ tags: [1] }), { onInvalid: 'note' });
    expect(result).toMatchObject({
      content: '{"tags":[1]}',
      structured: { tags: [1] },
      isError: false,
      notes: [
        {
          type: 'output_invalid',
          by: 'outputValidation',
          message: expect.stringContaining('tags[0]: expected string'),
        },
      ],
    });
  });

  test('is not told to have run where a layer answered in its place', async () => {
    const cached: Middleware = named('cached', (call) => succeed(call, ToolOutput.json({ tags: 1 })));
    const { result, runs } = await call(tags, () => ({ tags: [] }), {}, [cached]);
    expect(result.error).toMatchObject({ code: 'output_invalid', executed: 'no' });
    expect(result.content).toBe(
      'Tool "work" did not run, and the answer given for it does not match the output schema it declares:\n' +
        '- tags: expected array; got the number 1\nThe answer is withheld.',
    );
    expect(runs).toBe(0);
  });

  test('keeps the notes of the layers inside', async () => {
    const inside: Middleware = named('inside', async (call, next) =>
      withNote(await next(call), { type: 'seen', by: 'inside', message: 'Seen.' }),
    );
    for (const onInvalid of ['fail', 'note'] as const) {
      const { result } = await call(tags, () => 1, { onInvalid }, [inside]);
      expect(result.notes[0]).toMatchObject({ type: 'seen' });
    }
  });
});

describe('what is not judged', () => {
  test.each([
    ['a tool that declares nothing', undefined, () => 'x'],
    ['F02: a soft failure', tags, () => ToolOutput.error('No such file.')],
    [
      'F02: a hard failure',
      tags,
      () => {
        throw new ToolFailure('No such file.');
      },
    ],
  ] as readonly (readonly [string, JsonSchema | undefined, () => unknown])[])(
    'passes untouched: %s',
    async (_, schema, execute) => {
      const { passed, given } = await call(schema, execute);
      expect(passed).toBe(given);
    },
  );

  test('passes untouched: a suspension', async () => {
    const tool = defineTool({
      name: 'work',
      description: 'Works.',
      outputSchema: tags,
      execute: (_, call) => call.suspend({ reason: 'Ask a person.' }),
    });
    const dispatcher = createDispatcher({ tools: [tool], middleware: [outputValidation()] });
    expect(await dispatcher.dispatch({ name: 'work' })).toMatchObject({ isError: false, control: { type: 'suspend' } });
  });
});

describe('F06: an output schema that cannot be used', () => {
  const unusable = { type: 'strin' };

  test('keeps the tool from running: nothing it answered could be right', async () => {
    const { result, runs } = await call(unusable, () => ({}));
    expect(result).toMatchObject({
      content:
        'Tool "work" did not run: its output schema cannot be used, which is no fault of the call. Use another tool.',
      error: { code: 'internal', executed: 'no' },
    });
    expect(String(result.error?.cause)).toContain('strin');
    expect(runs).toBe(0);
  });

  test('is noted where the host wants mismatches noted', async () => {
    const { result, runs } = await call(unusable, () => ({ a: 1 }), { onInvalid: 'note' });
    expect(result).toMatchObject({ structured: { a: 1 }, isError: false, notes: [{ type: 'output_invalid' }] });
    expect(runs).toBe(1);
  });

  test('may show only when it is used: then the tool has run', async () => {
    const shown = () => ({ type: 'object' });
    const validate = () => {
      throw new Error('secret');
    };
    const schema: StandardSchema = {
      '~standard': { version: 1, vendor: 'test', validate, jsonSchema: { input: shown, output: shown } },
    };
    const { result } = await call(schema, () => ({}));
    expect(result.error).toMatchObject({ code: 'output_invalid', executed: 'yes' });
    expect(result.content).toContain('it could not be checked');
    expect(JSON.stringify(result)).not.toContain('secret');
  });
});

test('F04: a tool that is added, replaced or removed leaves the others judged as before', async () => {
  const lying = (name: string) =>
    defineTool({ name, description: 'Works.', outputSchema: tags, execute: () => ({ tags: 'none' }) });
  const registry = new ToolRegistry([lying('first'), lying('last')]);
  const dispatcher = createDispatcher({ tools: registry, middleware: [outputValidation()] });
  const codes = async () =>
    (await dispatcher.dispatchAll(registry.names.map((name) => ({ name })))).map((result) => result.error?.code);
  expect(await codes()).toEqual(['output_invalid', 'output_invalid']);
  registry.register(lying('added'));
  registry.register(lying('first'), { replace: true });
  expect(await codes()).toEqual(['output_invalid', 'output_invalid', 'output_invalid']);
  registry.unregister('first');
  expect(await codes()).toEqual(['output_invalid', 'output_invalid']);
});

test('an option it does not have, or a value that is not allowed, is refused', () => {
  expect(() => outputValidation({ strict: true } as OutputValidationOptions)).toThrow(/has no option "strict"/);
  expect(() => outputValidation({ onInvalid: 'warn' as 'note' })).toThrow(
    /"onInvalid" .* one of "fail", "note"; got "warn"/,
  );
  expect(() => outputValidation({ maxFaults: 0 })).toThrow(/"maxFaults" .* at least 1/);
});

test('an asynchronous schema that never answers is waited for no longer than the limit, nor than the call lives', async () => {
  const clock = new ManualClock();
  const never = { '~standard': { version: 1 as const, vendor: 'test', validate: () => new Promise<never>(() => {}) } };
  const tool = defineTool({
    name: 'work',
    description: '…',
    outputSchema: never,
    outputJsonSchema: { type: 'object' },
    execute: () => ({ a: 1 }),
  });
  const middleware = [outputValidation({ limitMs: 50 })];
  const dispatcher = createDispatcher({ tools: [tool], middleware, clock });
  const late = dispatcher.dispatch({ name: 'work' });
  await clock.advance(50);
  expect((await late).error).toMatchObject({ code: 'output_invalid', executed: 'yes' });
  const caller = new AbortController();
  const aborted = dispatcher.dispatch({ name: 'work' }, { signal: caller.signal });
  await turns();
  caller.abort();
  expect((await aborted).error).toMatchObject({ code: 'cancelled', executed: 'yes' });
  expect(clock.pending).toBe(0);
});
