import {
  after,
  canonicalJson,
  checkOptions,
  copyJson,
  type DispatchNote,
  fail,
  isListOf,
  isOneOf,
  isPlainObject,
  type JsonObject,
  type JsonValue,
  kindOf,
  listed,
  type Middleware,
  named,
  type OptionCheck,
  type PerTool,
  perTool,
  perToolCheck,
  printable,
  type Tool,
  type ToolCall,
  type ToolOutcome,
  wildcard,
  withNote,
} from '../src/index.ts';
import { pathOf } from './schema/faults.ts';
import { repairBySchema } from './schema/repair.ts';
import { AllowedTypes } from './schema/types.ts';

/** Makes other arguments of a call's: it is given a copy, which it may change and return. */
export type ArgumentTransform = (input: JsonObject, call: ToolCall) => JsonObject;

type NulHandling = 'keep' | 'remove' | 'refuse';

/** Options of `prepareArguments`. */
export interface PrepareArgumentsOptions {
  /** Keys at the top that clients add, `*` for any characters: left out where the schema does not name them. Default: none. */
  readonly ignoreKeys?: PerTool<readonly string[]>;
  /** What becomes of NUL characters, at any depth: `keep`, `remove` or `refuse`. Default: `keep`. */
  readonly nul?: PerTool<NulHandling>;
  /** What else is to be changed, as where a provider writes `&amp;` for `&`; after the other two. Default: nothing. */
  readonly transform?: PerTool<ArgumentTransform>;
}

const areNames = isListOf((key) => typeof key === 'string', 'an array of names, such as ["_meta"]');

const isTransform: OptionCheck = (value) => typeof value === 'function' || 'a function of the arguments and the call';

/**
 * Changes arguments before they are checked: takes out what a client added, and NUL characters, and does what a function of the host's
 * does. Everything is off unless it is asked for: what a model wrote is otherwise left as it is.
 *
 * Right outside validation, so that what is checked and judged is what runs.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example prepareArguments({ ignoreKeys: ['_meta'], nul: { byTool: { shell: 'refuse' } } })
 */
export function prepareArguments(options: PrepareArgumentsOptions = {}): Middleware {
  checkOptions('prepareArguments', options, {
    ignoreKeys: perToolCheck(areNames),
    nul: perToolCheck(isOneOf('keep', 'remove', 'refuse')),
    transform: perToolCheck(isTransform),
  });
  const ignoredKeysOf = perTool(options.ignoreKeys, []);
  const nulOf = perTool<NulHandling>(options.nul, 'keep');
  const transformOf = perTool<ArgumentTransform | undefined>(options.transform, undefined);

  const steps: readonly Step[] = [
    (input, { tool, toolName }) => withoutKeys(input, tool as Tool, ignoredKeysOf(toolName)),
    (input, call) => withoutNul(input, call, nulOf(call.toolName)),
    (input, call) => transformed(transformOf(call.toolName), input, call),
  ];

  return named('prepareArguments', function prepareArguments(call, next) {
    if (call.tool === undefined || call.malformed !== undefined) return next(call);
    const notes: DispatchNote[] = [];
    let input = call.input as JsonObject;
    for (const step of steps) {
      const changed = step(input, call);
      if (changed === undefined) continue;
      if ('isError' in changed) return changed;
      input = changed.input;
      notes.push({ by: 'prepareArguments', ...changed.note });
    }
    if (notes.length === 0) return next(call);
    return after(next(call.with({ input })), (outcome) => notes.reduce(withNote, outcome));
  });
}

/** One kind of change: what comes of it, or why the call is refused, or undefined where there is nothing to change. */
type Step = (input: JsonObject, call: ToolCall) => Changed | ToolOutcome | undefined;

interface Changed {
  readonly input: JsonObject;
  readonly note: Omit<DispatchNote, 'by'>;
}

function withoutKeys(input: JsonObject, { schema }: Tool, names: readonly string[]): ReturnType<Step> {
  const fits = names.map(wildcard);
  const keys = Object.keys(input).filter((key) => fits.some((isMeant) => isMeant(key)));
  if (keys.length === 0) return undefined;
  const { inputSchema } = schema;
  // Each has looks of its own: there may be a hundred thousand keys.
  const ignored = new Set(keys.filter((key) => !new AllowedTypes(inputSchema).declares(inputSchema, key)));
  if (ignored.size === 0) return undefined;
  const left = Object.entries(input).filter(([key]) => !ignored.has(key));
  const message = `Left out, as a client added them: ${listed([...ignored], printable)}.`;
  return { input: Object.fromEntries(left), note: { type: 'ignored_keys', message } };
}

const UNWRAPPED = { unwrapText: true, dropNulls: false, coerce: false };

function withoutNul(input: JsonObject, call: ToolCall, nul: NulHandling): ReturnType<Step> {
  if (nul === 'keep') return undefined;
  // As validation reads it: what it takes out of texts may hold one that is only an escape in the text.
  const held = repairBySchema(input, (call.tool as Tool).schema.inputSchema, UNWRAPPED)?.value ?? input;
  if (placeOfNul(held, []) === undefined) return undefined;
  const clean = nul === 'remove' ? (cleaned(held) as JsonObject) : input;
  // Keys keep theirs: without it, two could become one.
  const place = placeOfNul(nul === 'remove' ? clean : held, []);
  if (place !== undefined) return refusal(call, place);
  const message = 'NUL characters were taken out of the arguments.';
  return { input: clean, note: { type: 'nul_removed', message, forModel: true } };
}

function cleaned(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value.replaceAll('\0', '');
  if (Array.isArray(value)) return value.map(cleaned);
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value as JsonObject).map(([key, item]) => [key, cleaned(item)]));
}

/** @throws TypeError for what are no arguments; what the transform throws is the layer's own failure as well. */
function transformed(transform: ArgumentTransform | undefined, input: JsonObject, call: ToolCall): ReturnType<Step> {
  if (transform === undefined) return undefined;
  const given: unknown = transform(copyJson(input) as JsonObject, call);
  if (!isPlainObject(given))
    throw new TypeError(`A transform of arguments must return an object, not ${kindOf(given)}.`);
  const copy = copyJson(given) as JsonObject;
  if (canonicalJson(copy) === canonicalJson(input)) return undefined;
  const message = 'The arguments were changed by a transform of the host.';
  return { input: copy, note: { type: 'transformed', message } };
}

function placeOfNul(value: JsonValue, path: readonly string[]): readonly string[] | undefined {
  if (typeof value === 'string') return value.includes('\0') ? path : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, item] of Object.entries(value)) {
    const within = [...path, key];
    const found = key.includes('\0') ? within : placeOfNul(item, within);
    if (found !== undefined) return found;
  }
  return undefined;
}

function refusal(call: ToolCall, path: readonly string[]): ToolOutcome {
  const message = `The arguments of tool "${printable(call.toolName)}" hold a NUL character, at ${pathOf(path)}. Send the call again without it.`;
  return fail(call, 'invalid_arguments', message);
}
