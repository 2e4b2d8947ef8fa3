// The providers' own packages as the measure of strict schemas: what they make of one must be that very one.

import { transformJSONSchema } from '@anthropic-ai/sdk/lib/transform-json-schema.js';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { toStrictJsonSchema } from 'openai/lib/transform.js';
import { anthropic, openaiResponses } from 'toolonion/wire';
import { argumentSchema } from '../../wire/schemas.ts';

const RUNS = { numRuns: 4000 };

test('OpenAI’s package finds nothing to change in a strict schema', () => {
  let count = 0;
  const check = (inputSchema: Record<string, unknown>) => {
    const [tool] = openaiResponses.definitions([{ name: 'work', description: '', inputSchema }], {
      strict: true,
    }).tools;
    if (tool?.strict !== true) return;
    count++;
    expect(toStrictJsonSchema(structuredClone(tool.parameters))).toEqual(tool.parameters);
  };
  fc.assert(fc.property(argumentSchema, check), RUNS);
  expect(count).toBeGreaterThan(100);
});

test('Anthropic’s package finds nothing to change in a strict schema, but a type beside values', () => {
  let count = 0;
  const check = (inputSchema: Record<string, unknown>) => {
    const [tool] = anthropic.definitions([{ name: 'work', description: '', inputSchema }], { strict: true }).tools;
    if (tool?.strict !== true) return;
    count++;
    expect(transformJSONSchema(tool.input_schema)).toEqual(withoutTypes(tool.input_schema));
  };
  fc.assert(fc.property(argumentSchema, check), RUNS);
  expect(count).toBeGreaterThan(100);
});

function withoutTypes(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutTypes);
  if (typeof schema !== 'object' || schema === null) return schema;
  const isOfValues = 'enum' in schema || 'const' in schema;
  const entries = Object.entries(schema).filter(([keyword]) => !isOfValues || keyword !== 'type');
  return Object.fromEntries(entries.map(([keyword, value]) => [keyword, withoutTypes(value)]));
}
