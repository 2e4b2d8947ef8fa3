import { describe, expect, test } from '@jest/globals';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import {
  createDispatcher,
  defineTool,
  isConcurrencySafe,
  isTool,
  type JsonSchema,
  namespaced,
  type Tool,
  type ToolSchema,
} from 'toolonion';
import * as v from 'valibot';
import { z } from 'zod';

type Definition = Parameters<typeof defineTool>[0];

/** Defines a tool from what TypeScript would refuse. */
function define(definition: unknown): Tool {
  return defineTool(definition as Definition);
}

const valid = { name: 'a', description: 'A tool.' };

describe('defineTool', () => {
  test('makes a frozen tool that says nothing of itself but what it was told', () => {
    const tool = defineTool(valid);
    expect(tool).toMatchObject(valid);
    expect(tool.schema).toEqual({ ...valid, inputSchema: { type: 'object', properties: {} } });
    expect([tool.readOnly, tool.destructive, tool.idempotent, tool.concurrencySafe, tool.systemPrompt]).toEqual(
      Array(5).fill(undefined),
    );
    expect(Object.isFrozen(tool)).toBe(true);
    expect(isTool(tool)).toBe(true);
  });

  test('keeps what a tool says of itself', () => {
    const traits = {
      readOnly: true,
      destructive: false,
      idempotent: true,
      concurrencySafe: () => true,
      resourceKey: () => 'a',
      systemPrompt: 'Use it.',
    };
    expect(defineTool({ ...valid, ...traits })).toMatchObject(traits);
  });

  test('takes options that are undefined for ones that are left out', () => {
    const tool = define({ ...valid, inputSchema: undefined, execute: undefined, readOnly: undefined });
    expect(tool.schema.inputSchema).toEqual({ type: 'object', properties: {} });
  });

  test('does not follow later changes of what it was made from', () => {
    const definition = { ...valid, readOnly: false, execute: () => 'first' };
    const tool = defineTool(definition);
    Object.assign(definition, { name: 'b', readOnly: true, execute: () => 'second' });
    expect(tool).toMatchObject({ name: 'a', readOnly: false });
    expect((tool as Tool<unknown>).execute?.({}, undefined as never)).toBe('first');
  });

  test.each<readonly [unknown, string]>([
    [undefined, 'defineTool takes a plain object with at least name and description, not undefined.'],
    [null, 'not null.'],
    ['a', 'not a string.'],
    [[], 'not an array.'],
    [() => 1, 'not a function.'],
    [{}, 'The name of a tool must be text, not empty, without white space around it; got undefined.'],
    [{ ...valid, name: '' }, 'got "".'],
    [{ ...valid, name: ' a' }, 'got " a".'],
    [{ ...valid, name: 'a\n' }, 'got "a\\n".'],
    [{ ...valid, name: 1n }, 'got a bigint.'],
    [{ ...valid, name: Symbol('s') }, 'got a symbol.'],
    [{ ...valid, name: ['a'] }, 'got an array.'],
    [{ name: 'a' }, 'description of tool "a" must be text; a model cannot use a tool it knows nothing of.'],
    [{ ...valid, description: 1 }, 'description of tool "a" must be text'],
    [{ ...valid, parameters: {} }, 'Unknown option "parameters" of tool "a". Allowed: name, description, inputSchema,'],
    [{ ...valid, constructor: 1 }, 'Unknown option "constructor" of tool "a".'],
    [{ ...valid, readonly: true }, 'Unknown option "readonly" of tool "a".'],
    [{ ...valid, readOnly: 'yes' }, 'readOnly of tool "a" must be boolean, not string.'],
    [{ ...valid, concurrencySafe: 1 }, 'concurrencySafe of tool "a" must be boolean or function, not number.'],
    [{ ...valid, execute: 'run' }, 'execute of tool "a" must be function, not string.'],
    [{ ...valid, resourceKey: 'a' }, 'resourceKey of tool "a" must be function, not string.'],
    [{ ...valid, systemPrompt: null }, 'systemPrompt of tool "a" must be string, not null.'],
    [{ ...valid, inputSchema: null }, 'inputSchema of tool "a" must be object or function, not null.'],
    [{ ...valid, inputSchema: true }, 'inputSchema of tool "a" must be object or function, not boolean.'],
    [{ ...valid, inputSchema: [] }, 'inputSchema of tool "a" must be a JSON Schema object or a Standard Schema.'],
    [{ ...valid, inputSchema: () => 1 }, 'inputSchema of tool "a" must be a JSON Schema object or a Standard Schema.'],
    [
      { ...valid, inputSchema: new Map() },
      'inputSchema of tool "a" must be a JSON Schema object or a Standard Schema.',
    ],
    [
      { ...valid, inputSchema: { type: 'string' } },
      'must describe an object, as arguments always are; its type is "string".',
    ],
    [{ ...valid, inputSchema: { type: ['array', 'null'] } }, 'its type is ["array","null"].'],
    [
      { ...valid, inputSchema: { type: 'object', pattern: /a/ } },
      'must be a JSON Schema: pattern is or holds a RegExp.',
    ],
    [{ ...valid, inputSchema: { properties: { a: { default: 1n } } } }, 'properties is or holds a bigint.'],
    [{ ...valid, inputSchema: cyclicSchema() }, 'must be a JSON Schema: properties nests deeper than 256 levels.'],
    [{ ...valid, outputSchema: 'text' }, 'outputSchema of tool "a" must be object or function, not string.'],
    [{ ...valid, outputSchema: [] }, 'outputSchema of tool "a" must be a JSON Schema object or a Standard Schema.'],
    [{ ...valid, inputSchema: z.string() }, 'must describe an object, as arguments always are; its type is "string".'],
  ])('refuses %p', (definition, message) => {
    expect(() => define(definition)).toThrow(TypeError);
    expect(() => define(definition)).toThrow(message);
  });

  test('refuses a class instance, whose methods would be lost', () => {
    class Echo {
      readonly name = 'echo';
      readonly description = 'Echoes.';
      execute(): string {
        return this.name;
      }
    }
    expect(() => define(new Echo())).toThrow('not a class instance. What a class inherits would be lost');
  });
});

describe('the schema of a tool', () => {
  const nested = () => ({ type: 'object', properties: { a: { type: 'object', properties: { b: { enum: ['x'] } } } } });

  test('P06: does not follow later changes of the one it was made from', () => {
    const input = nested();
    const output = nested();
    const tool = defineTool({ ...valid, inputSchema: input as JsonSchema, outputSchema: output as JsonSchema });
    input.properties.a.properties.b.enum.push('y');
    output.properties.a.type = 'string';
    expect(tool.schema).toEqual({ ...valid, inputSchema: nested(), outputSchema: nested() });
    expect([tool.inputSchema, tool.outputSchema]).toEqual([nested(), nested()]);
  });

  test('is frozen all the way down, and leaves the one it was made from as it is', () => {
    const input = nested();
    const { schema } = defineTool({ ...valid, inputSchema: input as JsonSchema });
    const frozen = [
      schema,
      schema.inputSchema,
      schema.inputSchema.properties?.['a'],
      (schema.inputSchema as ReturnType<typeof nested>).properties.a.properties.b.enum,
    ];
    expect(frozen.map(Object.isFrozen)).toEqual([true, true, true, true]);
    expect([input, input.properties.a.properties.b.enum].map(Object.isFrozen)).toEqual([false, false]);
  });

  test('may be frozen, shared between tools, or have keywords nobody knows', () => {
    const shared = Object.freeze({
      type: 'object',
      'x-order': 1,
      $defs: { a: {} },
      properties: Object.freeze({}),
    } as const);
    const tools = [defineTool({ ...valid, inputSchema: shared }), defineTool({ ...valid, inputSchema: shared })];
    for (const { schema } of tools) expect(schema.inputSchema).toEqual(shared);
  });

  test('keeps properties of any name', () => {
    const inputSchema = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{}}}');
    expect(JSON.stringify(defineTool({ ...valid, inputSchema }).schema.inputSchema)).toBe(JSON.stringify(inputSchema));
  });

  test('survives JSON', () => {
    const { schema } = defineTool({ ...valid, inputSchema: nested() as JsonSchema });
    expect(JSON.parse(JSON.stringify(schema)) as ToolSchema).toEqual(schema);
  });
});

describe('a Standard Schema', () => {
  const shape = { type: 'object', properties: { n: { type: 'number' }, s: { type: 'string' } }, required: ['n'] };
  const schemas = {
    zod: z.object({ n: z.number(), s: z.string().optional() }),
    valibot: toStandardJsonSchema(v.object({ n: v.number(), s: v.optional(v.string()) })),
    arktype: type({ n: 'number', 's?': 'string' }),
  };

  test.each(Object.entries(schemas))('of %s is used as it is, and its JSON Schema is shown', async (_, inputSchema) => {
    const tool = define({ ...valid, inputSchema, outputSchema: inputSchema, execute: (input: unknown) => input });
    expect(tool.inputSchema).toBe(inputSchema);
    expect(tool.outputSchema).toBe(inputSchema);
    expect(tool.schema.inputSchema).toMatchObject(shape);
    expect(tool.schema.outputSchema).toMatchObject(shape);
    expect(Object.isFrozen(tool.schema.inputSchema)).toBe(true);
    const result = await createDispatcher({ tools: [tool] }).dispatch({ name: 'a', arguments: { n: 1 } });
    expect(result.structured).toEqual({ n: 1 });
  });

  test('shows what the model is to send, and what it is to get, where these differ', () => {
    const schema = z.object({ n: z.number().default(1), t: z.string().transform((text) => text) });
    const { inputSchema } = defineTool({ ...valid, inputSchema: schema }).schema;
    expect(inputSchema.required).toEqual(['t']);
    const output = z.object({ n: z.number().default(1) });
    expect(defineTool({ ...valid, outputSchema: output }).schema.outputSchema?.required).toEqual(['n']);
  });

  test('that cannot say its JSON Schema is refused with the two remedies', () => {
    const raw = v.object({ n: v.number() });
    expect(() => define({ ...valid, inputSchema: raw })).toThrow(TypeError);
    expect(() => define({ ...valid, inputSchema: raw })).toThrow(
      /Standard Schema \(valibot\) that cannot say its JSON Schema/,
    );
    expect(() => define({ ...valid, inputSchema: raw })).toThrow(
      /`jsonSchema`.*toStandardJsonSchema of @valibot\/to-json-schema/,
    );
    expect(() => define({ ...valid, outputSchema: raw })).toThrow(
      'outputSchema of tool "a" is a Standard Schema (valibot)',
    );
  });

  test('that cannot say its JSON Schema is used with one beside it', () => {
    const raw = v.object({ n: v.number() });
    const jsonSchema = { type: 'object', properties: { n: { type: 'number' } } } as const;
    const tool = defineTool({
      ...valid,
      inputSchema: raw,
      jsonSchema,
      outputSchema: raw,
      outputJsonSchema: jsonSchema,
    });
    expect(tool.inputSchema).toBe(raw);
    expect(tool.schema).toEqual({ ...valid, inputSchema: jsonSchema, outputSchema: jsonSchema });
  });
});

describe('isTool', () => {
  test('knows what defineTool made, and nothing that looks the same', () => {
    const tool = defineTool(valid);
    expect(isTool(tool)).toBe(true);
    for (const value of [{ ...tool }, valid, null, undefined, 'a', () => 1, new Proxy(tool, {})])
      expect(isTool(value)).toBe(false);
  });
});

describe('isConcurrencySafe', () => {
  const safe = (concurrencySafe: unknown, input: unknown = {}): boolean =>
    isConcurrencySafe(define({ ...valid, concurrencySafe }) as Tool<unknown>, input);

  test('is the flag, which is false by default', () => {
    expect([safe(true), safe(false), safe(undefined)]).toEqual([true, false, false]);
  });

  test('is what the tool answers for these arguments', () => {
    const read = (input: unknown) => (input as { mode: string }).mode === 'read';
    expect([safe(read, { mode: 'read' }), safe(read, { mode: 'write' })]).toEqual([true, false]);
  });

  test('is false where the tool throws or answers anything but true', () => {
    const explode = () => {
      throw new Error('no');
    };
    const answers = [() => 'yes', () => 1, () => undefined, () => null, () => ({}), explode];
    expect(answers.map((answer) => safe(answer))).toEqual(answers.map(() => false));
  });

  test('is false for a promise, and one that rejects is no unhandled rejection', async () => {
    const reject = async () => {
      throw new Error('no');
    };
    expect([safe(async () => true), safe(reject)]).toEqual([false, false]);
    // Time enough for jest to hear of it, and to fail this test.
    await new Promise((resolve) => setImmediate(resolve));
  });
});

function cyclicSchema(): JsonSchema {
  const schema: Record<string, unknown> = { type: 'object' };
  schema['properties'] = { self: schema };
  return schema;
}

describe('namespaced', () => {
  const send = defineTool({ name: 'send', description: 'Sends.', readOnly: true, execute: () => 'sent' });

  test('C08: gives the tools of two sources names of their own', async () => {
    const other = defineTool({ name: 'send', description: 'Sends elsewhere.', execute: () => 'sent elsewhere' });
    const tools = [...namespaced('mail', [send]), ...namespaced('chat', [other], '-')];
    const dispatcher = createDispatcher({ tools });
    expect(dispatcher.tools.names).toEqual(['chat-send', 'mail__send']);
    expect(dispatcher.tools.schemas.map(({ name }) => name)).toEqual(['mail__send', 'chat-send']);
    expect((await dispatcher.dispatch({ name: 'mail__send' })).content).toBe('sent');
    expect((await dispatcher.dispatch({ name: 'chat-send' })).content).toBe('sent elsewhere');
    expect((await dispatcher.dispatch({ name: 'send' })).error?.code).toBe('not_found');
  });

  test('changes nothing else, and the tool it is made from not at all', () => {
    const [named] = namespaced('mail', [send]);
    expect(named).toEqual({ ...send, name: 'mail__send', schema: { ...send.schema, name: 'mail__send' } });
    expect(Object.isFrozen(named)).toBe(true);
    expect(isTool(named)).toBe(true);
    expect(send.name).toBe('send');
  });

  test('refuses a namespace that is none, and what is no tool', () => {
    for (const namespace of ['', ' mail', undefined])
      expect(() => namespaced(namespace as string, [send])).toThrow('A namespace must be text, not empty');
    expect(() => namespaced('mail', [{ name: 'send' } as never])).toThrow('tools made by defineTool, not an object');
  });
});
