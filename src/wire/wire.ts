import { type Content, textOf } from '../content.ts';
import { type ForModelOptions, forModel } from '../for-model.ts';
import { cloneJson, type JsonValue } from '../json.ts';
import { linkText } from '../media.ts';
import type { ToolDispatchResult } from '../outcome.ts';
import type { ToolSchema } from '../schema.ts';
import { type NameRule, ToolNames } from './names.ts';

/** Tools as a provider is told of them, and their names there. */
export interface WireTools<Definition> {
  readonly tools: Definition[];
  /** The way back: for the calls of the reply. */
  readonly names: ToolNames;
}

/** An object schema, as every provider wants one for arguments. */
export interface ObjectSchema {
  type: 'object';
  [keyword: string]: unknown;
}

/** A tool's definition in the form of a provider. Its schema is a copy, whole: `$defs`, `$ref` and descriptions as they are. */
export function definitionsOf<Definition>(
  tools: Iterable<ToolSchema>,
  rule: NameRule,
  shape: (name: string, description: string, schema: ObjectSchema) => Definition,
): WireTools<Definition> {
  const all = [...tools];
  const names = new ToolNames(
    all.map(({ name }) => name),
    rule,
  );
  const definitions = all.map((tool) => shape(names.told(tool.name), tool.description, schemaOf(tool)));
  return { tools: definitions, names };
}

function schemaOf({ inputSchema }: ToolSchema): ObjectSchema {
  const { type: _, ...rest } = cloneJson(inputSchema as JsonValue) as Record<string, unknown>;
  return { type: 'object', ...rest };
}

/**
 * What a model is told of a result.
 *
 * @throws the signal of a runtime's own interrupt: such a call has no answer.
 */
export function toldOf(result: ToolDispatchResult, options?: ForModelOptions): Content {
  if (result.control?.type === 'interrupt') throw result.control.signal;
  return forModel(result, options);
}

/** The same as text, with media described, for where only text is taken. */
export function toldAsText(result: ToolDispatchResult): string {
  const content = toldOf(result, { accepts: ['resource_link'] });
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'resource_link' ? linkText(part) : textOf([part]))).join('\n');
}

/** The id a provider wants its answer under: the one it sent. */
export function idOf({ requested, toolCallId }: ToolDispatchResult): string {
  return requested.id || toolCallId;
}

/** Where a provider has no flag for failures, the text says so. */
export function failureText(text: string): string {
  return /^error\b/i.test(text) ? text : `Error: ${text}`;
}
