import type { JsonSchema } from '../../schema.ts';
import type { Tool } from '../../tool.ts';
import type { McpTool } from './protocol.ts';

/** A tool as `tools/list` tells it: its JSON Schemas as they are, and what it says of itself as annotations. */
export function toolDefinition({ name, description, schema, readOnly, destructive, idempotent }: Tool): McpTool {
  const annotations = {
    ...(readOnly !== undefined && { readOnlyHint: readOnly }),
    ...(destructive !== undefined && { destructiveHint: destructive }),
    ...(idempotent !== undefined && { idempotentHint: idempotent }),
  };
  const { inputSchema, outputSchema } = schema;
  return {
    name,
    description,
    inputSchema: { ...inputSchema, type: 'object' },
    ...(outputSchema && isOfObject(outputSchema) && { outputSchema: { ...outputSchema, type: 'object' } }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}

/** The protocol has no other data beside text than objects. */
export function isOfObject({ type }: JsonSchema): boolean {
  return type === 'object';
}
