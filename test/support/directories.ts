import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';

/** A maker of new directories, which are gone after the tests of the file. */
export function directories(): () => string {
  const home = mkdtempSync(join(tmpdir(), 'toolonion-'));
  afterAll(() => rmSync(home, { recursive: true, force: true }));
  return () => mkdtempSync(join(home, 'directory-'));
}
