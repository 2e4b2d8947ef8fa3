import { afterEach, beforeEach, expect } from '@jest/globals';
import { turns } from './manual-clock.ts';

/** Makes each test of the file fail where a rejection is left unhandled. @returns The reasons so far. */
export function expectNothingUnhandled(): readonly unknown[] {
  const unhandled: unknown[] = [];
  const hear = (reason: unknown) => unhandled.push(reason);

  beforeEach(() => {
    unhandled.length = 0;
    process.on('unhandledRejection', hear);
  });

  afterEach(async () => {
    await turns();
    process.off('unhandledRejection', hear);
    expect(unhandled).toEqual([]);
  });

  return unhandled;
}
