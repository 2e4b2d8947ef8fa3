// The tools the conformance suite for servers asks for.
import { setTimeout } from 'node:timers/promises';
import { defineTool } from 'toolonion';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const SOUND = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==';
const image = { type: 'image', mimeType: 'image/png', data: PIXEL };
const file = (name, mimeType, text) => ({ type: 'file', name, mimeType, data: Buffer.from(text).toString('base64') });

function tool(name, execute) {
  return defineTool({ name, description: `Of the conformance suite: ${name}.`, readOnly: true, execute });
}

export const tools = [
  tool('test_simple_text', () => 'This is a simple text response for testing.'),
  tool('test_image_content', () => image),
  tool('test_audio_content', () => ({ type: 'audio', mimeType: 'audio/wav', data: SOUND })),
  tool('test_embedded_resource', () => file('embedded', 'text/plain', 'This is an embedded resource content.')),
  tool('test_multiple_content_types', () => [
    { type: 'text', text: 'Multiple content types test:' },
    image,
    file('mixed.json', 'application/json', '{"test":"data","value":123}'),
  ]),
  tool('test_error_handling', () => {
    throw new Error('This tool intentionally returns an error for testing');
  }),
  tool('test_tool_with_progress', async (_, { report }) => {
    for (const progress of [0, 50, 100]) {
      report({ progress, total: 100 });
      await setTimeout(50);
    }
    return 'done';
  }),
  defineTool({
    name: 'json_schema_2020_12_tool',
    description: 'Tool with JSON Schema 2020-12 features',
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } },
      },
      properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
      additionalProperties: false,
    },
    execute: () => 'fine',
  }),
];
