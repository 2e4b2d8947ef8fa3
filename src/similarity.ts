/** Characters of a name that are compared: the price of one comparison is the product of two lengths. */
const COMPARED = 64;

/** What equal beginnings may add to a score. */
const PREFIX_BONUS = 0.1;

/**
 * How alike two names are, from 0 to 1, in any case of letters: the length of their longest common subsequence by that of the longer
 * name, and up to 0.1 more for a common beginning.
 */
export function similarity(one: string, other: string): number {
  return score(folded(one), folded(other));
}

/** What counts as near. */
export interface NearestOptions {
  /** The least score, from 0 to 1. Default: 0.4. */
  readonly least?: number;
  /** The most names. Default: 3. */
  readonly most?: number;
}

/** The names that are most like another one, best first; of equal ones, the first given. */
export function nearestNames(name: string, names: Iterable<string>, options: NearestOptions = {}): readonly string[] {
  const { least = 0.4, most = 3 } = options;
  const asked = folded(name);
  const scored: { readonly name: string; readonly score: number }[] = [];
  for (const each of names) {
    const candidate = folded(each);
    const found = score(asked, candidate, least);
    if (found >= least) scored.push({ name: each, score: found });
  }
  scored.sort((a, b) => b.score - a.score);
  return scored.slice(0, most).map((each) => each.name);
}

function folded(name: string): string {
  return name.slice(0, COMPARED).toLowerCase();
}

/** 0 for what cannot reach the least: no subsequence is longer than the shorter name, which spares most comparisons. */
function score(one: string, other: string, least = 0): number {
  const longer = Math.max(one.length, other.length);
  if (longer === 0) return 1;
  if (Math.min(one.length, other.length) / longer + PREFIX_BONUS < least) return 0;
  let prefix = 0;
  while (one[prefix] !== undefined && one[prefix] === other[prefix]) prefix++;
  return Math.min(1, commonSubsequence(one, other) / longer + (PREFIX_BONUS * prefix) / longer);
}

/** The length of the longest common subsequence, row by row. */
function commonSubsequence(one: string, other: string): number {
  let above = new Uint8Array(other.length + 1);
  let row = new Uint8Array(other.length + 1);
  for (let i = 0; i < one.length; i++) {
    const code = one.charCodeAt(i);
    for (let j = 0; j < other.length; j++) {
      const left = row[j] as number;
      const up = above[j + 1] as number;
      row[j + 1] = code === other.charCodeAt(j) ? (above[j] as number) + 1 : Math.max(left, up);
    }
    [above, row] = [row, above];
  }
  return above[other.length] as number;
}
