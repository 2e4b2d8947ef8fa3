import { nanoid } from 'nanoid';
import { type Clock, systemClock } from './clock.ts';
import type { Host } from './dispatch.ts';
import type { DispatcherOptions } from './dispatcher.ts';
import { describeError } from './error.ts';
import { isPromise } from './maybe-promise.ts';

/** The host's hooks, as the inside of a dispatch may call them: none of them throws. */
export function hostOf({
  clock = systemClock,
  generateId = nanoid,
  onLate,
  onWarning,
  isControlSignal,
}: DispatcherOptions): Host {
  const warn = (message: string, cause: unknown) => {
    try {
      if (onWarning === undefined)
        process.emitWarning(`${message}: ${describeError(cause).message}`, 'ToolonionWarning');
      else onWarning(message, cause);
    } catch {
      // There is nobody left to tell.
    }
  };
  const tell: Host['tell'] = (observer, call) => {
    try {
      const told: unknown = call();
      if (isPromise(told)) return told.then(undefined, (thrown: unknown) => warn(`${observer} failed`, thrown));
    } catch (thrown) {
      warn(`${observer} failed`, thrown);
    }
    return undefined;
  };
  return {
    clock,
    now: totalNow(clock, warn),
    tell,
    late: (outcome, call) => {
      tell('onLate', () => onLate?.(outcome, call));
    },
    newId: () => {
      try {
        const id: unknown = generateId();
        if (typeof id === 'string' && id !== '') return id;
        warn('generateId must give text that is not empty', id);
      } catch (thrown) {
        warn('generateId failed', thrown);
      }
      return nanoid();
    },
    isInterrupt: (thrown) => {
      try {
        return isControlSignal?.(thrown) === true;
      } catch (failure) {
        warn('isControlSignal failed', failure);
        return false;
      }
    },
  };
}

/** The time, whatever the host's clock does: where that fails, time stands still. */
function totalNow(clock: Clock, warn: (message: string, cause: unknown) => void): () => number {
  if (clock === systemClock) return clock.now;
  let last = 0;
  return () => {
    try {
      last = clock.now();
    } catch (thrown) {
      warn('The clock failed', thrown);
    }
    return last;
  };
}
