import { type Content, textOf } from '../content.ts';
import { type ForModelOptions, forModel, toldContent } from '../for-model.ts';
import { isPlainObject, type JsonObject } from '../json.ts';
import type { ToolDispatchResult } from '../outcome.ts';
import type { ToolCallRequest } from '../request.ts';
import type { ToolRules } from './definitions.ts';
import { linkToldOf } from './media.ts';
import { fitting, type NameRule, type ToolNames } from './names.ts';

/**
 * What a model is told of a result.
 *
 * @param options What the model can be shown. Links always are, as text.
 * @throws the signal of a runtime's own interrupt: such a call has no answer.
 */
export function toldOf(result: ToolDispatchResult, options: ForModelOptions = {}): Content {
  throwInterrupt(result);
  const { accepts } = options;
  return accepts === undefined ? toldContent(result) : forModel(result, { accepts: [...accepts, ...LINKS] });
}

const LINKS = ['resource_link'];

/** The same as text, with media described, for where only text is taken. */
export function toldAsText(result: ToolDispatchResult): string {
  throwInterrupt(result);
  const content = toldContent(result, LINKS);
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'resource_link' ? linkToldOf(part) : textOf([part]))).join('\n');
}

function throwInterrupt({ control }: ToolDispatchResult): void {
  if (control?.type === 'interrupt') throw control.signal;
}

/** A value with no half of a surrogate pair in its texts, which providers take for broken JSON. The value itself where there is none. */
export function wellFormed<Value>(value: Value): Value {
  return /\\ud[89a-f]/i.test(JSON.stringify(value)) ? (mended(value) as Value) : value;
}

function mended(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(mended);
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key.toWellFormed(), mended(each)]));
}

/** The ids a provider wants its answers under: those it sent. A call that had none, or that of a call before it, has the one it was given. */
export function idsOf(all: readonly ToolDispatchResult[]): readonly string[] {
  // Most turns have one call.
  const seen = all.length > 1 ? new Set<string>() : undefined;
  return all.map(({ requested: { id }, toolCallId }, place) => {
    let told = id && seen?.has(id) !== true ? id : toolCallId;
    // Calls of one id that were dispatched one after the other keep it.
    for (let count = place; seen?.has(told); count++) told = `${toolCallId}_${count}`;
    seen?.add(told);
    return told;
  });
}

/** A call for the dispatcher. Written without spreads, which cost several times as much. */
export function requestOf(id: string | undefined, name: string, given: unknown, isCut: boolean): ToolCallRequest {
  if (isCut)
    return id === undefined
      ? { name, arguments: given, truncated: true }
      : { id, name, arguments: given, truncated: true };
  return id === undefined ? { name, arguments: given } : { id, name, arguments: given };
}

/** A call as it may be put back into the history. */
export interface Replayed {
  readonly id: string;
  readonly name: string;
  /** The arguments, as they were understood. */
  readonly input: JsonObject;
}

/** @throws TypeError when there is not a result for each call. */
export function checkCount(by: string, count: number, all: readonly ToolDispatchResult[]): void {
  if (all.length !== count)
    throw new TypeError(`${by}: takes a result for each call of the reply, which has ${count}, but got ${all.length}.`);
}

/** @throws TypeError when there is not a result for each call. */
export function replayedOf(
  count: number,
  all: readonly ToolDispatchResult[],
  { names: rule }: ToolRules,
  names?: ToolNames,
): readonly Replayed[] {
  checkCount('replay', count, all);
  const ids = idsOf(all);
  return all.map(({ requested: { name, input } }, place) => ({
    id: ids[place] as string,
    name: nameIn(name, names, rule),
    input: isPlainObject(input) ? ((names?.toldInput(name, input) ?? input) as JsonObject) : {},
  }));
}

/** The name of a tool in the history: one that the provider takes, whatever the model wrote. */
export function nameIn(name: string, names: ToolNames | undefined, rule: NameRule): string {
  return fitting(names?.told(name) ?? name, rule);
}

/** The arguments of a call in the history: its own, where they are an object, and otherwise as they were understood. */
export function inputIn(given: unknown, { input }: Replayed): Record<string, unknown> {
  return wellFormed(isPlainObject(given) ? given : input);
}

/** A list without what is nothing: a list that was put together from a stream can have holes, and servers leave out anything. */
export function present<Item>(list: readonly Item[] | null | undefined): readonly NonNullable<Item>[] {
  return (list ?? []).filter((item) => item !== null && item !== undefined) as NonNullable<Item>[];
}

/** Whether text is the JSON of an object. */
export function isObjectText(text: unknown): boolean {
  try {
    return typeof text === 'string' && isPlainObject(JSON.parse(text));
  } catch {
    return false;
  }
}

/** Where a provider has no flag for failures, the text says so. */
export function failureText(text: string): string {
  return /^error\b/i.test(text) ? text : `Error: ${text}`;
}
