import { isPlainObject, kindOf, type ToolCallRequest } from '../index.ts';
import { jsonFault } from './json-file.ts';
import type { Line } from './lines.ts';

/** What a line may hold. */
const KEYS: ReadonlySet<string> = new Set(['id', 'name', 'arguments', 'truncated']);

/** What the same is called elsewhere. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  args: 'arguments',
  input: 'arguments',
  parameters: 'arguments',
  tool: 'name',
  toolName: 'name',
  tool_name: 'name',
  call_id: 'id',
  toolCallId: 'id',
  tool_call_id: 'id',
};

/** Why a line holds no call, and what could be read of one. */
export interface FaultyCall {
  readonly fault: string;
  readonly id?: string;
  readonly name?: string;
}

/** What a line holds. */
export type ReadCall = { readonly call: ToolCallRequest } | FaultyCall;

/**
 * Reads a line as a call. A key it does not know is a fault: a call whose arguments stand under another name would run without them.
 */
export function readCall({ text, fault }: Line): ReadCall {
  if (fault !== undefined) return { fault };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: `it is no JSON: ${jsonFault(text)}` };
  }
  if (!isPlainObject(value)) return { fault: `it is ${kindOf(value)}, no object` };
  for (const key in value) {
    // A tool may have put something on every object.
    if (!KEYS.has(key) && Object.hasOwn(value, key)) return faulty(value, unknownKey(key));
  }
  const { id, name, truncated } = value;
  if (typeof name !== 'string') return faulty(value, 'its "name" has to be the text of a tool\'s name');
  if (id !== undefined && typeof id !== 'string') return faulty(value, `its "id" has to be text, not ${kindOf(id)}`);
  if (truncated !== undefined && typeof truncated !== 'boolean')
    return faulty(value, 'its "truncated" has to be true or false');
  return { call: value as unknown as ToolCallRequest };
}

function faulty({ id, name }: Readonly<Record<string, unknown>>, fault: string): FaultyCall {
  return { fault, ...(typeof id === 'string' && { id }), ...(typeof name === 'string' && { name }) };
}

function unknownKey(key: string): string {
  const meant = Object.hasOwn(OTHER_NAMES, key) ? ` (here it is called "${OTHER_NAMES[key]}")` : '';
  return `a call has no key ${JSON.stringify(key.slice(0, 60))}${meant}; its keys: ${[...KEYS].join(', ')}`;
}
