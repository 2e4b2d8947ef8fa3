import {
  after,
  checkOptions,
  isPlainObject,
  type Middleware,
  named,
  type OptionCheck,
  printable,
  type Tool,
  type ToolCall,
  withNote,
} from '../src/index.ts';
import type { ToolHealth } from './tool-health.ts';

/** Options of `fallback`. */
export interface FallbackOptions {
  /** The tools that can stand in for a tool, the best first. */
  readonly tools: Readonly<Record<string, readonly string[]>>;
  /** What is known of the tools: the one that a `circuitBreaker` has. */
  readonly health: ToolHealth;
}

const areAlternatives: OptionCheck = (value) =>
  (isPlainObject(value) &&
    Object.entries(value).every(
      ([name, all]) =>
        Array.isArray(all) &&
        all.length > 0 &&
        all.every((each) => typeof each === 'string' && each !== '' && each !== name),
    )) ||
  'lists of other tools by tool, such as { search: ["search_backup"] }';

const isHealth: OptionCheck = (value) =>
  typeof (value as Partial<ToolHealth> | null)?.isAvailable === 'function' || 'the ToolHealth of a circuitBreaker';

/**
 * Calls another tool in the place of one that does badly: the first of its alternatives that does well; the tool itself where none does. The arguments
 * stay, and the alternative is validated and judged like any other call.
 *
 * Outside validation and the gate.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example [fallback({ tools: { search: ['search_backup'] }, health }), …, circuitBreaker({ health })]
 */
export function fallback(options: FallbackOptions): Middleware {
  checkOptions('fallback', options ?? {}, { tools: areAlternatives, health: isHealth });
  if (options?.tools === undefined || options?.health === undefined)
    throw new TypeError('fallback takes "tools", which stand in for which, and the "health" of a circuitBreaker.');
  const alternatives = new Map(Object.entries(options.tools));
  const { health } = options;

  return named('fallback', function fallback(call, next) {
    const names = alternatives.get(call.toolName);
    if (names === undefined || call.tool === undefined || health.isAvailable(call.toolName)) return next(call);
    const tool = firstAvailable(names, call);
    if (tool === undefined) return next(call);
    const message = `Tool "${printable(tool.name)}" was called in the place of "${printable(call.toolName)}", which keeps failing.`;
    return after(next(call.with({ tool })), (outcome) =>
      withNote(outcome, { type: 'rerouted', by: 'fallback', message, forModel: true }),
    );
  });

  function firstAvailable(names: readonly string[], { tools }: ToolCall): Tool | undefined {
    const name = names.find((each) => tools.get(each) !== undefined && health.isAvailable(each));
    return name === undefined ? undefined : tools.get(name);
  }
}
