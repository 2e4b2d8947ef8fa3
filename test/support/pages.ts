import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root: string = fileURLToPath(new URL('../..', import.meta.url));

/** A page of the project, as text. */
export function readPage(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** A code block of a page. */
export interface Fence {
  /** What stands behind the opening backticks. */
  readonly info: string;
  /** Its first line, counted from 1. */
  readonly line: number;
  /** The index of its last fence among the lines. */
  readonly end: number;
  readonly code: string;
}

export function fencesOf(page: string): readonly Fence[] {
  const lines = readPage(page).split('\n');
  const fences: Fence[] = [];
  for (let at = 0; at < lines.length; at++) {
    const info = /^```(.*)$/.exec(lines[at] ?? '')?.[1];
    if (info === undefined) continue;
    const end = lines.indexOf('```', at + 1);
    if (end < 0) throw new Error(`A code block that begins in line ${at + 1} of ${page} has no end.`);
    fences.push({ info, line: at + 2, end, code: `${lines.slice(at + 1, end).join('\n')}\n` });
    at = end;
  }
  return fences;
}

/** What a code block prints: the ```text block right below it. */
export function printedBelow(page: string, fences: readonly Fence[], index: number): string | undefined {
  const lines = readPage(page).split('\n');
  const next = fences[index + 1];
  const { end } = fences[index] as Fence;
  const follows = next?.info === 'text' && lines.slice(end + 1, next.line - 2).every((text) => text.trim() === '');
  return follows ? next.code : undefined;
}

/** Whether a text is what a page prints, where `…` stands for anything within a line. */
export function isPrinted(printed: string, text: string): boolean {
  const parts = printed.split('…').map((part) => part.replaceAll(/[\\^$.|?*+()[\]{}]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(text);
}
