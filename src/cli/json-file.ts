import { readFile } from 'node:fs/promises';
import { faultOf } from '../json-fault.ts';
import { UsageError } from './usage-error.ts';

/** Reads a file of JSON. @throws UsageError telling the line and column where it is none. */
export async function readJsonFile(path: string, option: string): Promise<unknown> {
  const text = await readText(path, option);
  try {
    return JSON.parse(text);
  } catch {
    const before = text.slice(0, faultOf(text)).split('\n');
    const [line, column] = [before.length, (before.at(-1)?.length ?? 0) + 1];
    throw new UsageError(`${option}: "${path}" is no JSON: it goes wrong in line ${line}, column ${column}.`);
  }
}

async function readText(path: string, option: string): Promise<string> {
  try {
    // Editors on Windows put a byte order mark in front.
    return (await readFile(path, 'utf8')).replace(/^\uFEFF/, '');
  } catch (error) {
    throw new UsageError(`${option}: "${path}" cannot be read: ${(error as Error).message}.`);
  }
}
