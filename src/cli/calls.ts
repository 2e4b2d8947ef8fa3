import { isPlainObject, kindOf, type ToolCallRequest } from '../index.ts';
import { jsonFault } from './json-file.ts';
import type { Line } from './lines.ts';
import type { ProviderCalls } from './provider-calls.ts';

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

/** Reads a line as a call, of this package or as a provider tells it. */
export function readCall({ text, fault }: Line, providers: ProviderCalls): ReadCall {
  if (fault !== undefined) return { fault };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: `it is no JSON: ${jsonFault(text)}` };
  }
  if (!isPlainObject(value)) return { fault: `it is ${kindOf(value)}, no object` };
  const told = providers.read(value);
  return told === undefined ? plainCall(value) : providerCall(told);
}

/** What else stands in such a call is the provider's business. */
function providerCall({ shape, call }: NonNullable<ReturnType<ProviderCalls['read']>>): ReadCall {
  const { id, ...idless } = call;
  const { name } = call;
  if (typeof name !== 'string' || name === '') return faulty({ id }, `it has the shape of ${shape}, but names no tool`);
  return { call: typeof id === 'string' ? call : idless };
}

/** A key it does not know is a fault: a call whose arguments stand under another name would run without them. */
function plainCall(value: Record<string, unknown>): ReadCall {
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
