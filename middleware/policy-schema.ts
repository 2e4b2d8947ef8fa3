import type { JsonSchema } from '../src/index.ts';

const LIMIT_MS = { type: 'number', exclusiveMinimum: 0, maximum: 2 ** 31 - 1 };
const CHARACTERS = { type: 'integer', minimum: 1 };

/** A number, or the word for no limit: JSON has no Infinity. */
function limited(limit: JsonSchema, description: string): JsonSchema {
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
  return { description, if: { type: 'string' }, then: { const: 'none' }, else: limit };
}

/** What a policy file may hold. `policy.schema.json` is this, for editors; a test keeps them the same. */
export const POLICY_SCHEMA: JsonSchema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'A toolonion policy',
  description: 'What tools may do: for all of them, and for some by name. See docs/middleware/policy.md.',
  type: 'object',
  properties: {
    $schema: { type: 'string' },
    default: {
      description: 'For what no tool of that name or pattern says otherwise. Without a permission here: deny.',
      $ref: '#/definitions/tool',
    },
    tools: {
      description: 'By the name of a tool; * stands for any characters.',
      type: 'object',
      propertyNames: { minLength: 1 },
      additionalProperties: { $ref: '#/definitions/tool' },
    },
  },
  additionalProperties: false,
  definitions: {
    tool: {
      type: 'object',
      properties: {
        permission: {
          description:
            'Whether a call may run: one word, or rules. Of the rules that speak of a call, deny beats ask beats allow.',
          if: { type: 'string' },
          // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
          then: { $ref: '#/definitions/verdict' },
          else: { type: 'array', minItems: 1, items: { $ref: '#/definitions/rule' } },
        },
        limitMs: limited(LIMIT_MS, 'Milliseconds the tool may take, or "none".'),
        outputLimit: limited(CHARACTERS, 'Characters of text its answer may have, or "none".'),
        logValues: { description: 'Whether arguments and answers are logged, redacted.', type: 'boolean' },
      },
      additionalProperties: false,
    },
    verdict: { enum: ['allow', 'ask', 'deny'] },
    rule: {
      type: 'object',
      properties: {
        verdict: { $ref: '#/definitions/verdict' },
        when: {
          description:
            'A JSON Schema for each of some arguments: the rule speaks of a call that has them all, each as its schema wants it.',
          type: 'object',
          minProperties: 1,
          additionalProperties: { type: 'object', allOf: [{ $ref: 'http://json-schema.org/draft-07/schema#' }] },
        },
        reason: { description: 'Told to the model with a denial, or asked of whoever approves.', type: 'string' },
      },
      required: ['verdict'],
      additionalProperties: false,
    },
  },
};
