import { type Logger, pino } from 'pino';
import type { JsonSchema, ToolCallRequest, ToolDispatchResult } from '../src/index.ts';

/** What a tool of the benchmark is given: the least that all contestants can give. */
export interface Running {
  readonly signal: AbortSignal;
}

export type Execute = (input: { readonly city: string; readonly days?: number }, running: Running) => unknown;

/** Everything that is the same for all contestants. */
export interface Scenario {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly execute: Execute;
  /** Names that may run. */
  readonly allowed: readonly string[];
  /** Characters. */
  readonly limit: number;
  readonly limitMs: number;
  readonly logger: Logger;
}

/** Takes a call through the five jobs. */
export type Contestant = (request: ToolCallRequest) => Promise<ToolDispatchResult>;

export const schema: JsonSchema = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' }, units: { type: 'string' } },
  required: ['city'],
};

/** Off, as the logger of a service in production is for lines like these. */
export const logger = pino({ level: 'silent' });

/** How a tool takes its time. */
export const TOOLS: Readonly<Record<string, Execute>> = {
  synchronous: ({ city }) => `sunny in ${city}`,
  microtask: async ({ city }) => `sunny in ${city}`,
  'event loop': ({ city }) => new Promise((resolve) => setImmediate(() => resolve(`sunny in ${city}`))),
};

export function scenarioOf(execute: Execute): Scenario {
  return { name: 'weather', schema, execute, allowed: ['weather'], limit: 50_000, limitMs: 120_000, logger };
}

/** Requests: arguments as text or object, the id given or to be generated. */
export const REQUESTS: Readonly<Record<string, ToolCallRequest>> = {
  'text, id given': { id: 'call_1', name: 'weather', arguments: '{"city":"Oslo","days":3,"units":"metric"}' },
  'text, id generated': { name: 'weather', arguments: '{"city":"Oslo","days":3,"units":"metric"}' },
  'object, id given': { id: 'call_1', name: 'weather', arguments: { city: 'Oslo', days: 3, units: 'metric' } },
  'object, id generated': { name: 'weather', arguments: { city: 'Oslo', days: 3, units: 'metric' } },
};
