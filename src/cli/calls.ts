import { isPlainObject, kindOf, type ToolCallRequest } from '../index.ts';
import { faultOf } from '../json-fault.ts';
import type { Line } from './lines.ts';

/** What a line may hold. */
const KEYS: ReadonlySet<string> = new Set(['id', 'name', 'arguments', 'truncated']);

/** Why a line holds no call, and what could be read of one. */
export interface FaultyCall {
  readonly fault: string;
  readonly id?: string;
  readonly name?: string;
}

/**
 * Reads a line as a call. A key it does not know is a fault: a call whose arguments stand under another name would run without them.
 */
export function readCall({ text, fault }: Line): { readonly call: ToolCallRequest } | FaultyCall {
  if (fault !== undefined) return { fault };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: `it is no JSON: it goes wrong at character ${faultOf(text) + 1} of ${text.length}` };
  }
  if (!isPlainObject(value)) return { fault: `it is ${kindOf(value)}, no object` };
  for (const key in value) {
    if (!KEYS.has(key))
      return faulty(value, `a call has no key ${JSON.stringify(key)}; its keys: ${[...KEYS].join(', ')}`);
  }
  if (typeof value['name'] !== 'string') return faulty(value, 'its "name" has to be the text of a tool\'s name');
  return { call: value as unknown as ToolCallRequest };
}

function faulty({ id, name }: Readonly<Record<string, unknown>>, fault: string): FaultyCall {
  return { fault, ...(typeof id === 'string' && { id }), ...(typeof name === 'string' && { name }) };
}
