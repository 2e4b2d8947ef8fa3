import { turns } from './manual-clock.ts';

/** What a promise gives. Rejects where nothing comes of it within so many turns of the event loop: it hangs. */
export function soon<Value>(promise: Promise<Value>, count = 60): Promise<Value> {
  const late = turns(count).then(() => {
    throw new Error(`Nothing has come of it within ${count} turns of the event loop.`);
  });
  return Promise.race([promise, late]);
}
