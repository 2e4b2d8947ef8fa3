import { readFile } from 'node:fs/promises';
import { jsonFaultIndex } from '../index.ts';
import { UsageError } from './usage-error.ts';

/** The text of a file. @throws UsageError where it cannot be read. */
export async function readText(path: string, option: string): Promise<string> {
  try {
    // Editors on Windows put a byte order mark in front.
    return (await readFile(path, 'utf8')).replace(/^\uFEFF/, '');
  } catch (error) {
    throw new UsageError(`${option}: "${path}" cannot be read: ${(error as Error).message}.`);
  }
}

/** The value of JSON text. @throws UsageError telling where it goes wrong. */
export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${what} is no JSON: ${jsonFault(text)}.`);
  }
}

/** Where text that is no JSON goes wrong, as a person would say it. */
export function jsonFault(text: string): string {
  const index = jsonFaultIndex(text);
  if (index >= text.length) return 'it ends too early';
  const before = text.slice(0, index).split('\n');
  const column = (before.at(-1)?.length ?? 0) + 1;
  return before.length === 1
    ? `it goes wrong at character ${column}`
    : `it goes wrong in line ${before.length}, character ${column}`;
}
