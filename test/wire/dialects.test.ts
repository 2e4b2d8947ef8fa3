import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { createDispatcher, deepFreeze, defineTool, mapSubschemas } from 'toolonion';
import { validation } from 'toolonion/middleware';
import { anthropic, gemini, openaiChat } from 'toolonion/wire';
import { argumentSchema, tameSchema, value } from './schemas.ts';

type Schema = Record<string, unknown>;

const RUNS = { numRuns: 2000 };

const DIALECTS: readonly {
  readonly title: string;
  define(inputSchema: Schema): { isStrict: boolean; schema: Schema; losses: readonly { keyword: string }[] };
}[] = [
  {
    title: 'openaiChat',
    define(inputSchema) {
      const { tools, losses } = openaiChat.definitions([{ name: 'work', description: '', inputSchema }], {
        strict: true,
      });
      const { strict = false, parameters } = (tools[0] as (typeof tools)[0]).function;
      return { isStrict: strict, schema: parameters, losses };
    },
  },
  {
    title: 'anthropic',
    define(inputSchema) {
      const { tools, losses } = anthropic.definitions([{ name: 'work', description: '', inputSchema }], {
        strict: true,
      });
      const { strict = false, input_schema } = tools[0] as (typeof tools)[0];
      return { isStrict: strict, schema: input_schema, losses };
    },
  },
  {
    title: 'gemini',
    define(inputSchema) {
      const { tools, losses } = gemini.definitions([{ name: 'work', description: '', inputSchema }], { strict: true });
      const schema = tools[0]?.functionDeclarations[0]?.parametersJsonSchema as Schema;
      return { isStrict: !JSON.stringify(losses).includes('not held to'), schema, losses };
    },
  },
];

/** A schema that anything fits, but for what it says of the value's own kind. */
function loosened(schema: Schema): Schema {
  const { additionalProperties, required: _, ...own } = schema;
  const others = additionalProperties === false ? {} : { additionalProperties };
  return mapSubschemas({ ...own, ...(additionalProperties !== undefined && others) }, (each) =>
    loosened(each as Schema),
  );
}

describe.each(DIALECTS)('strict, $title', ({ title, define }) => {
  test('what fits the schema that is told passes the validation of the tool, where nothing was lost', async () => {
    let count = 0;
    const check = async (given: Schema, some: Record<string, unknown>) => {
      const { isStrict, schema, losses } = define(deepFreeze(given) as Schema);
      // As a model has to that is held to name all.
      const missing =
        title === 'openaiChat' ? Object.keys(given['properties'] as Schema).map((name) => [name, null]) : [];
      const input = { ...Object.fromEntries(missing), ...some };
      if (!isStrict || losses.length > 0 || !fits(schema, input)) return;
      const tool = defineTool({ name: 'work', description: '', inputSchema: given, execute: () => 'Done.' });
      const { content } = await createDispatcher({ tools: [tool], middleware: [validation()] }).dispatch({
        name: 'work',
        arguments: input,
      });
      expect(content).toBe('Done.');
      count++;
    };
    await fc.assert(fc.asyncProperty(tameSchema, inputs, check), { numRuns: 400 });
    expect(count).toBeGreaterThan(10);
  });

  test('what fits the schema of the tool is not excluded, but for what is missing or not named', () => {
    let count = 0;
    const check = ({ anyOf: _, ...given }: Schema, input: Record<string, unknown>) => {
      const { isStrict, schema } = define(given);
      if (!isStrict || !fits(given, input)) return;
      expect(fits(title === 'gemini' ? schema : loosened(schema), input)).not.toBe(false);
      count++;
    };
    fc.assert(fc.property(argumentSchema, inputs, check), { numRuns: 600 });
    expect(count).toBeGreaterThan(2);
  });

  test('a schema in the dialect stays as it is', () => {
    const check = (given: Schema) => {
      const once = define(given);
      if (once.isStrict) expect(define(once.schema)).toEqual({ isStrict: true, schema: once.schema, losses: [] });
    };
    fc.assert(fc.property(argumentSchema, check), RUNS);
  });
});

const inputs = fc.dictionary(fc.constantFrom('a', 'b', 'c'), value, { maxKeys: 3 });

/** Undefined where a schema is none, or holds itself without an end. */
function fits(schema: Schema, input: unknown): boolean | undefined {
  try {
    return new Ajv2020({ strict: false, validateFormats: false, logger: false }).compile(schema)(input) === true;
  } catch {
    return undefined;
  }
}
