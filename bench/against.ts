import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compare } from './compare.ts';
import { engine } from './engine.ts';
import { REQUESTS, scenarioOf, TOOLS } from './scenario.ts';
import { printTable, ratioCell } from './table.ts';

/** What five jobs cost, as ratios to those of another checkout, in which `npm run bench` has been run before. */
export async function againstTimes(directory: string, rounds: number, repeats: number): Promise<void> {
  const file = resolve(directory, 'node_modules/.cache/bench/bench/engine.js');
  const other: { readonly engine: typeof engine } = await import(pathToFileURL(file).href);
  const rows: string[][] = [];
  for (const [tool, execute] of Object.entries(TOOLS)) {
    for (const [kind, request] of Object.entries(REQUESTS)) {
      const tasks = [other.engine, engine].map((make) => {
        const dispatch = make(scenarioOf(execute));
        return () => dispatch(request);
      });
      const { nanoseconds, ratios } = await compare(tasks, tool === 'event loop' ? repeats / 4 : repeats, rounds);
      rows.push([tool, kind, `${Math.round(nanoseconds[0] ?? 0)} ns`, ...ratios.slice(1).map(ratioCell)]);
    }
  }
  printTable(
    'Five jobs, log off: × another checkout (median, and the middle 80 % of the rounds)',
    ['tool', 'arguments', 'the other', 'this one'],
    rows,
  );
}
