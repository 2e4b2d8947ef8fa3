/** Between layers a value may be there already: only `dispatch` always returns a promise. */
export type MaybePromise<Value> = Value | Promise<Value>;

/** Whether a value is a promise of any realm, or anything that can be awaited like one. */
export function isPromise<Value>(value: MaybePromise<Value> | PromiseLike<Value>): value is Promise<Value> {
  if (typeof value !== 'object' && typeof value !== 'function') return false;
  return typeof (value as { readonly then?: unknown } | null)?.then === 'function';
}
