import { describe, expect, test } from '@jest/globals';
import {
  createDispatcher,
  type Dispatcher,
  defineTool,
  type JsonSchema,
  type StandardSchema,
  type Tool,
  type ToolDispatchResult,
  ToolFailure,
  ToolOutput,
  ToolRegistry,
} from 'toolonion';
import { allowAll, type OutputValidationOptions, standard, timeout } from 'toolonion/middleware';
import * as v from 'valibot';
import * as z from 'zod';
import { ManualClock } from '../support/manual-clock.ts';

type Schema = JsonSchema | StandardSchema;
type Execute = () => unknown;

const tags = {
  type: 'object',
  properties: { tags: { type: 'array', items: { type: 'string' } } },
  required: ['tags'],
  additionalProperties: false,
} as const;

function onion(outputValidation: OutputValidationOptions = {}) {
  return standard({ permission: { check: allowAll }, logging: false, outputValidation });
}

function run(outputSchema: Schema, execute: Execute, options?: OutputValidationOptions): Promise<ToolDispatchResult> {
  const tool = defineTool({ name: 'work', description: 'Works.', outputSchema, execute });
  return createDispatcher({ tools: [tool], middleware: onion(options) }).dispatch({ name: 'work' });
}

/** The ways a tool may give its answer. */
const styles: readonly (readonly [string, (value: unknown) => Execute])[] = [
  ['at once', (value) => () => value],
  ['later', (value) => async () => value],
  [
    'from a generator',
    (value) =>
      async function* () {
        yield 'on the way';
        return value;
      },
  ],
];

describe('the value alone is judged', () => {
  const text = [{ type: 'text', text: 'No tags.' }] as const;
  const envelopes: readonly (readonly [string, unknown])[] = [
    ['content and structured', { content: text, structured: { tags: [] } }],
    ['and the flag of a success', { content: text, isError: false, structured: { tags: [] } }],
    ['the names of the Model Context Protocol', { content: text, structuredContent: { tags: [] }, isError: false }],
    ['and what that protocol adds', { content: text, structuredContent: { tags: [] }, _meta: { trace: 'abc' } }],
    ['frozen', Object.freeze({ content: Object.freeze([...text]), structured: Object.freeze({ tags: [] }) })],
  ];

  describe.each(styles)('%s', (_, tool) => {
    test.each(envelopes)('F01: an envelope of %s is not held against the schema', async (__, answer) => {
      expect(await run(tags, tool(answer))).toMatchObject({
        content: text,
        structured: { tags: [] },
        isError: false,
        notes: [],
      });
    });
  });

  test('F01: data in a well-formed envelope that do not match still fail', async () => {
    const result = await run(tags, () => ({ content: text, structuredContent: { tags: [1] } }));
    expect(result.error).toMatchObject({ code: 'output_invalid', executed: 'yes', retryable: false });
    expect(result.content).toContain('- tags[0]: expected string; got the number 1');
    expect(result.content).not.toContain('content"');
  });

  test('data without text are shown as their JSON', async () => {
    for (const answer of [{ structuredContent: { tags: ['a'] } }, { content: [], structuredContent: { tags: ['a'] } }])
      expect(await run(tags, () => answer)).toMatchObject({ content: '{"tags":["a"]}', structured: { tags: ['a'] } });
  });

  test('the result of another call is an envelope, too', async () => {
    const inner = defineTool({
      name: 'inner',
      description: 'Works.',
      outputSchema: tags,
      execute: () => ({ tags: [] }),
    });
    const outer = defineTool({
      name: 'outer',
      description: 'Asks another.',
      outputSchema: tags,
      execute: (_, parent): unknown => dispatcher.dispatch({ name: 'inner' }, { parent }),
    });
    const dispatcher: Dispatcher = createDispatcher({ tools: [inner, outer], middleware: onion() });
    expect(await dispatcher.dispatch({ name: 'outer' })).toMatchObject({ isError: false, structured: { tags: [] } });
  });
});

describe('an error is not judged', () => {
  const failures: readonly (readonly [string, unknown])[] = [
    ['a soft one', ToolOutput.error('No such city.')],
    ['a soft one with data that do not match', { content: 'No such city.', isError: true, structured: { hint: 1 } }],
    ['that of a server', { content: [{ type: 'text', text: 'No such city.' }], isError: true, _meta: {} }],
    ['a flag beside data', { isError: true, message: 'No such city.' }],
  ];

  describe.each(styles)('%s', (_, tool) => {
    test.each(failures)('F02: %s stays what it is', async (__, answer) => {
      const result = await run(tags, tool(answer));
      expect(JSON.stringify(result.content)).toContain('No such city.');
      expect(result).toMatchObject({ isError: true, notes: [] });
      expect(result.error).toBeUndefined();
    });

    test('F02: a failure that is thrown keeps its code and its message', async () => {
      const thrown = new ToolFailure('No such city.', { code: 'invalid_arguments' });
      const result = await run(tags, () => tool(Promise.reject(thrown))());
      expect(result).toMatchObject({ error: { code: 'invalid_arguments', message: 'No such city.' } });
      expect(String(result.content)).toMatch(/No such city\.$/);
    });
  });

  test('F02: a time limit stays a time limit', async () => {
    const clock = new ManualClock();
    const tool = defineTool({
      name: 'work',
      description: 'Never ends.',
      outputSchema: tags,
      execute: () => new Promise(() => {}),
    });
    const middleware = standard({
      permission: { check: allowAll },
      logging: false,
      timeout: timeout({ limitMs: 100, graceMs: 0 }),
    });
    const pending = createDispatcher({ tools: [tool], middleware, clock }).dispatch({ name: 'work' });
    await clock.advance(200);
    expect((await pending).error).toMatchObject({ code: 'timeout', executed: 'unknown' });
    expect(clock.pending).toBe(0);
  });
});

describe('a registry that changes', () => {
  const lying = (name: string, outputSchema: Schema = tags): Tool =>
    defineTool({ name, description: 'Works.', outputSchema, execute: () => ({ tags: 'none' }) });
  const codes = async (dispatcher: Dispatcher) =>
    (await dispatcher.dispatchAll(dispatcher.tools.names.map((name) => ({ name })))).map(({ error }) => error?.code);

  test('F04: a refresh of some tools leaves the others judged as before', async () => {
    const registry = new ToolRegistry([lying('first'), lying('last')]);
    const dispatcher = createDispatcher({ tools: registry, middleware: onion() });
    expect(await codes(dispatcher)).toEqual(Array(2).fill('output_invalid'));
    registry.register(lying('first'), { replace: true }).register(lying('second'));
    expect(await codes(dispatcher)).toEqual(Array(3).fill('output_invalid'));
    registry.unregister('first');
    expect(await codes(dispatcher)).toEqual(Array(2).fill('output_invalid'));
    expect(await codes(dispatcher.with({ tools: [lying('other')] }))).toEqual(['output_invalid']);
    expect(await codes(dispatcher)).toEqual(Array(2).fill('output_invalid'));
  });

  test('F04: a tool that is replaced is judged by its own schema from then on', async () => {
    const registry = new ToolRegistry([lying('work')]);
    const dispatcher = createDispatcher({ tools: registry, middleware: onion() });
    expect(await codes(dispatcher)).toEqual(['output_invalid']);
    registry.register(lying('work', { properties: { tags: { const: 'none' } } }), { replace: true });
    expect(await codes(dispatcher)).toEqual([undefined]);
    registry.register(lying('work'), { replace: true });
    expect(await codes(dispatcher)).toEqual(['output_invalid']);
  });

  test('tools that share a schema, or only its $id, are judged each by its own', async () => {
    const open = { $id: 'urn:answer', type: 'object' };
    const dispatcher = createDispatcher({
      tools: [lying('a', tags), lying('b', tags), lying('c', { ...tags, $id: 'urn:answer' }), lying('d', open)],
      middleware: onion(),
    });
    for (let round = 0; round < 2; round++)
      expect(await codes(dispatcher)).toEqual(['output_invalid', 'output_invalid', 'output_invalid', undefined]);
  });
});

describe('answers that are no objects', () => {
  const legal: readonly (readonly [string, Schema, unknown, string])[] = [
    ['a list', { type: 'array', items: { type: 'number' } }, [1, 2], '[1,2]'],
    ['an empty list', { type: 'array' }, [], '[]'],
    ['null', { type: 'null' }, null, 'null'],
    ['null where it may be', { type: ['object', 'null'] }, null, 'null'],
    ['zero', { type: 'integer' }, 0, '0'],
    ['false', { type: 'boolean' }, false, 'false'],
    ['text', { type: 'string' }, 'abc', 'abc'],
    ['the empty text', { type: 'string' }, '', ''],
    ['text of a few', { enum: ['yes', 'no'] }, 'no', 'no'],
    ['text for zod', z.string(), 'abc', 'abc'],
    ['text for an asynchronous zod', z.string().refine(async () => true), 'abc', 'abc'],
    ['a list for zod', z.array(z.number()), [1], '[1]'],
    ['null for zod', z.null(), null, 'null'],
  ];

  describe.each(styles)('%s', (_, tool) => {
    test.each(legal)('F05: %s is a legal answer where the schema says so', async (__, schema, answer, content) => {
      expect(await run(schema, tool(answer))).toMatchObject({ content, structured: answer, isError: false, notes: [] });
    });
  });

  const illegal: readonly (readonly [string, Schema, unknown, string])[] = [
    ['a list', tags, [1, 2], 'expected object; got an array'],
    ['null', tags, null, 'expected object; got null'],
    ['text', tags, 'tags: a', 'it has no structured part\n- expected object; got the text "tags: a"'],
    ['JSON as text', tags, '{"tags":[]}', 'it has no structured part'],
    ['a text that is too long', { type: 'string', maxLength: 2 }, 'abc', 'must NOT have more than 2 characters'],
    ['nothing', tags, undefined, 'it has no structured part'],
    ['an object', { type: 'array' }, {}, 'expected array; got an object'],
    ['not a number', { type: 'number' }, Number.NaN, 'expected number; got null'],
    [
      'a promise nobody awaited',
      { properties: { tags: { type: 'array' } } },
      { tags: Promise.resolve([]) },
      '[Promise]',
    ],
  ];

  test.each(illegal)('F05: %s is refused where the schema says so', async (_, schema, answer, fault) => {
    const result = await run(schema, () => answer);
    expect(result.error).toMatchObject({ code: 'output_invalid', executed: 'yes' });
    expect(result.content).toContain(fault);
    const noted = await run(schema, () => answer, { onInvalid: 'note' });
    expect(noted).toMatchObject({ isError: false, notes: [{ type: 'output_invalid' }] });
    expect(noted.error).toBeUndefined();
  });
});

describe('an output schema that cannot be used', () => {
  const shown = () => ({ type: 'object' });
  const broken = (validate: () => never): StandardSchema => ({
    '~standard': { version: 1, vendor: 'test', validate, jsonSchema: { input: shown, output: shown } },
  });
  const unusable: readonly (readonly [string, JsonSchema])[] = [
    ['a type there is not', { type: 'strin' }],
    ['a reference to nothing', { $ref: '#/definitions/none' }],
    ['a reference to another document', { $ref: 'https://example.com/schema.json' }],
    ['a pattern that is none', { type: 'string', pattern: '(' }],
    ['a list that is none', { type: 'object', required: 'tags' as unknown as string[] }],
    ['a number that is none', { type: 'number', minimum: 'one' }],
    ['a schema within that is none', { type: 'array', items: 3 }],
  ];

  test.each(unusable)('F06: with %s, the tool does not run, at each of its calls', async (_, outputSchema) => {
    let runs = 0;
    const tool = defineTool({ name: 'work', description: 'Works.', outputSchema, execute: () => ++runs });
    const fine = defineTool({ name: 'fine', description: 'Works.', outputSchema: tags, execute: () => ({ tags: [] }) });
    const dispatcher = createDispatcher({ tools: [tool, fine], middleware: onion() });
    const results = await dispatcher.dispatchAll([{ name: 'work' }, { name: 'fine' }, { name: 'work' }]);
    expect(results.map(({ error }) => [error?.code, error?.executed, error?.retryable])).toEqual([
      ['internal', 'no', false],
      [undefined, undefined, undefined],
      ['internal', 'no', false],
    ]);
    expect(results[0]?.content).toMatch(/^Tool "work" did not run: its output schema cannot be used/);
    expect(results[0]?.error?.cause).toBeDefined();
    expect(runs).toBe(0);
  });

  test.each(unusable)('F06: with %s, the tool runs with a note where the host wants notes', async (_, schema) => {
    expect(await run(schema, () => ({ a: 1 }), { onInvalid: 'note' })).toMatchObject({
      structured: { a: 1 },
      isError: false,
      notes: [{ type: 'output_invalid', by: 'outputValidation' }],
    });
  });

  test('F06: the check may be turned off', async () => {
    const outputSchema = { type: 'strin' };
    const tool = defineTool({ name: 'work', description: 'Works.', outputSchema, execute: () => ({ a: 1 }) });
    const middleware = standard({ permission: { check: allowAll }, logging: false, outputValidation: false });
    const result = await createDispatcher({ tools: [tool], middleware }).dispatch({ name: 'work' });
    expect(result).toMatchObject({ structured: { a: 1 }, isError: false, notes: [] });
  });

  test('F06: a check that fails when it is used is told to the log, and that the tool has run', async () => {
    const explode = () => {
      throw new Error('hunter2');
    };
    const schemas: readonly (readonly [Schema, unknown])[] = [
      [broken(explode), {}],
      [broken((() => Promise.reject(new Error('hunter2'))) as unknown as () => never), {}],
      [z.string().refine(explode), 'text'],
      [z.object({}).transform(explode), {}],
    ];
    for (const [schema, answer] of schemas) {
      const tool = { name: 'work', description: 'Works.', outputSchema: schema, outputJsonSchema: {} };
      const dispatcher = createDispatcher({
        tools: [defineTool({ ...tool, execute: () => answer })],
        middleware: onion(),
      });
      const result = await dispatcher.dispatch({ name: 'work' });
      expect(result.error).toMatchObject({ code: 'output_invalid', executed: 'yes' });
      expect(result.content).toContain('it could not be checked');
      expect(JSON.stringify(result)).not.toContain('hunter2');
      expect(String(result.error?.cause)).toContain('hunter2');
    }
  });

  test('F06: what is no schema at all is refused when the tool is made', () => {
    for (const outputSchema of [[], 'object', v.object({})] as unknown as JsonSchema[])
      expect(() => defineTool({ name: 'work', description: 'Works.', outputSchema })).toThrow(
        /outputSchema of tool "work"/,
      );
  });
});

test.each<[string, JsonSchema, unknown]>([
  [
    'an object with content',
    { type: 'object', properties: { content: { type: 'string' } }, required: ['content'] },
    { content: 'file text' },
  ],
  [
    'a page of content',
    { type: 'object', properties: { content: { type: 'array' }, isError: {} }, required: ['content'] },
    { content: [], isError: false },
  ],
  [
    'an object with a type',
    { type: 'object', properties: { type: {}, text: {} }, required: ['type', 'text'] },
    { type: 'text', text: 'hello' },
  ],
  ['a list of files', { type: 'array', items: { type: 'object' } }, [{ type: 'file', url: 'http://a/b' }]],
])('F01: what the schema describes is data, though it looks like an answer: %s', async (_, schema, answer) => {
  const result = await run(schema, () => answer);
  expect(result).toMatchObject({ isError: false, structured: answer });
  expect(result.content).toBe(JSON.stringify(answer));
});

test.each([[false], [true], [{}], ['x'], [5], [[]]])(
  'F06: a validator that answers %j, which is no result, judges nothing right',
  async (answer) => {
    const outputSchema = { '~standard': { version: 1 as const, vendor: 'test', validate: () => answer as never } };
    const tool = defineTool({
      name: 'work',
      description: '…',
      outputSchema,
      outputJsonSchema: {},
      execute: () => ({ a: 1 }),
    });
    const dispatcher = createDispatcher({
      tools: [tool],
      middleware: standard({ permission: { check: allowAll }, logging: false }),
    });
    expect((await dispatcher.dispatch({ name: 'work' })).error?.code).toBe('output_invalid');
  },
);

const described = { type: 'object', properties: { content: { type: 'string' } }, required: ['content'] };

test.each<[string, JsonSchema]>([
  ['behind a reference', { $defs: { c: described }, $ref: '#/$defs/c' }],
  ['in allOf', { allOf: [described] }],
  ['beside null', { anyOf: [described, { type: 'null' }] }],
  ['by its keys alone', { type: 'object', required: ['content'] }],
  ['as any object', { type: 'object' }],
  ['and no other keys', { ...described, additionalProperties: false }],
])('F01: content is data where the schema says so %s, from a function and from a generator', async (_, schema) => {
  const answer = { content: 'hi' };
  const yielding = async function* () {
    yield answer;
  };
  for (const execute of [() => answer, async () => answer, yielding])
    expect(await run(schema, execute)).toMatchObject({ isError: false, structured: answer });
});

test('F01: parts that are yielded are data where the schema says so, and several yields are none', async () => {
  const part = { type: 'text', text: 'q' };
  const yielding = async function* () {
    yield [part];
  };
  expect((await run({ type: 'array', items: { type: 'object' } }, yielding)).structured).toEqual([part]);
  const twice = async function* () {
    yield { content: 'a' };
    yield { content: 'b' };
  };
  expect((await run(described, twice)).error?.code).toBe('output_invalid');
});
