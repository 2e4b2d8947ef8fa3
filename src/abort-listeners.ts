/** Those who listen to one signal. */
const listeners = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls back when a signal aborts; the function returned ends it. However many calls share a signal, it holds one listener: a
 * session's signal collects neither listeners nor Node's warning about too many of them.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const known = listeners.get(signal);
  const callbacks = known ?? new Set();
  if (known === undefined) {
    listeners.set(signal, callbacks);
    signal.addEventListener('abort', notify);
  }
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || listeners.get(signal) !== callbacks) return;
    listeners.delete(signal);
    signal.removeEventListener('abort', notify);
  };
}

function notify(this: AbortSignal): void {
  for (const callback of [...(listeners.get(this) ?? [])]) callback();
}
