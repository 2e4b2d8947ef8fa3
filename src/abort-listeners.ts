import { NO_SEAT, Roster, type Seated } from './roster.ts';

/** Who wants to know that a signal has aborted. */
export interface AbortListener {
  signalAborted(): void;
}

/** A listener, as long as it listens to a signal. */
export class Listening implements Seated {
  readonly listener: AbortListener;
  seat: number = NO_SEAT;

  constructor(listener: AbortListener) {
    this.listener = listener;
  }
}

/** Those who listen to one signal. */
class Listeners {
  readonly all: Roster<Listening> = new Roster();

  /** Asks nothing of `this`: a stand-in for a signal may call its listeners as plain functions. */
  readonly notify = (): void => {
    for (const { listener } of this.all.members) listener.signalAborted();
  };
}

const listeners = new WeakMap<AbortSignal, Listeners>();

/**
 * Has a listener hear of an abort. However many calls share a signal, it holds one listener: a session's signal collects neither
 * listeners nor Node's warning about too many of them.
 */
export function listen(signal: AbortSignal, listener: AbortListener): Listening {
  let those = listeners.get(signal);
  if (those === undefined) {
    those = new Listeners();
    listeners.set(signal, those);
  }
  if (those.all.size === 0) signal.addEventListener('abort', those.notify);
  const listening = new Listening(listener);
  those.all.add(listening);
  return listening;
}

export function unlisten(signal: AbortSignal, listening: Listening): void {
  const those = listeners.get(signal);
  if (those === undefined) return;
  those.all.delete(listening);
  if (those.all.size === 0) signal.removeEventListener('abort', those.notify);
}
