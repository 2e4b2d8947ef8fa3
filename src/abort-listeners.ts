/** Who wants to know that a signal has aborted. */
export interface AbortListener {
  signalAborted(): void;
}

/** Those who listen to one signal. */
class Listeners {
  readonly all: Set<AbortListener> = new Set();

  /** Asks nothing of `this`: a stand-in for a signal may call its listeners as plain functions. */
  readonly notify = (): void => {
    for (const listener of [...this.all]) listener.signalAborted();
  };
}

const listeners = new WeakMap<AbortSignal, Listeners>();

/**
 * Has a listener hear of an abort. However many calls share a signal, it holds one listener: a session's signal collects neither
 * listeners nor Node's warning about too many of them.
 */
export function listen(signal: AbortSignal, listener: AbortListener): void {
  let those = listeners.get(signal);
  if (those === undefined) {
    those = new Listeners();
    listeners.set(signal, those);
  }
  if (those.all.size === 0) signal.addEventListener('abort', those.notify);
  those.all.add(listener);
}

export function unlisten(signal: AbortSignal, listener: AbortListener): void {
  const those = listeners.get(signal);
  if (those?.all.delete(listener) && those.all.size === 0) signal.removeEventListener('abort', those.notify);
}
