/** Who wants to know that a signal has aborted. */
export interface AbortListener {
  signalAborted(): void;
}

/** Those who listen to one signal. */
const listeners = new WeakMap<AbortSignal, Set<AbortListener>>();

/**
 * Has a listener hear of an abort. However many calls share a signal, it holds one listener: a session's signal collects neither
 * listeners nor Node's warning about too many of them.
 */
export function listen(signal: AbortSignal, listener: AbortListener): void {
  let all = listeners.get(signal);
  if (all === undefined) {
    all = new Set();
    listeners.set(signal, all);
  }
  if (all.size === 0) signal.addEventListener('abort', notify);
  all.add(listener);
}

export function unlisten(signal: AbortSignal, listener: AbortListener): void {
  const all = listeners.get(signal);
  if (all?.delete(listener) && all.size === 0) signal.removeEventListener('abort', notify);
}

function notify(this: AbortSignal): void {
  for (const listener of [...(listeners.get(this) ?? [])]) listener.signalAborted();
}
