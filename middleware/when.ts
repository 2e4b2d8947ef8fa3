import { isPlainObject, type Middleware, standsFor, type ToolCall, wildcard } from '../src/index.ts';
import { unheard } from './parts/scopes.ts';

/** Which calls are meant: those of tools with these names, where `*` stands for any characters, or what a function says. */
export type CallSelection = string | readonly string[] | ((call: ToolCall) => boolean);

/**
 * A layer that is there for some calls only. It has the name of the layer it is made of.
 *
 * @throws TypeError for what selects nothing, and for what is no middleware.
 * @example when(['deploy', 'db_*'], audit)
 */
export function when(selection: CallSelection, middleware: Middleware): Middleware {
  if (typeof middleware !== 'function' || isPlainObject(middleware))
    throw new TypeError('when takes a middleware, as in when("deploy", audit).');
  const isMeant = typeof selection === 'function' ? selection : isNamed([selection].flat());
  return standsFor((call, next) => (yesOrNo(isMeant(call)) ? middleware(call, next) : next(call)), middleware);
}

function isNamed(names: readonly unknown[]): (call: ToolCall) => boolean {
  if (names.length === 0 || !names.every((name) => typeof name === 'string' && name !== ''))
    throw new TypeError('when takes the name of a tool, a list of names, or a function of the call.');
  const patterns = (names as readonly string[]).map(wildcard);
  return ({ toolName }) => patterns.some((fits) => fits(toolName));
}

function yesOrNo(said: unknown): boolean {
  if (typeof said === 'boolean') return said;
  unheard(said);
  throw new TypeError('The function of when says true or false, at once.');
}
