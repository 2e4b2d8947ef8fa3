import { bytesOf } from '../src/testing/rounds.ts';
import { compare } from './compare.ts';
import { engine } from './engine.ts';
import { floor } from './floor.ts';
import { koa } from './koa.ts';
import { type Contestant, REQUESTS, type Scenario, scenarioOf, TOOLS } from './scenario.ts';
import { printTable, ratioCell } from './table.ts';

const CONTESTANTS: Readonly<Record<string, (scenario: Scenario) => Contestant>> = {
  floor: (scenario) => floor(scenario, 'each'),
  'floor, armed per turn': (scenario) => floor(scenario, 'turn'),
  'koa-compose': koa,
  toolonion: engine,
};

/** What five jobs cost, as ratios to the floor with its own timer. */
export async function dispatchTimes(rounds: number, repeats: number): Promise<void> {
  const rows: string[][] = [];
  for (const [tool, execute] of Object.entries(TOOLS)) {
    for (const [kind, request] of Object.entries(REQUESTS)) {
      const tasks = Object.values(CONTESTANTS).map((make) => {
        const dispatch = make(scenarioOf(execute));
        return () => dispatch(request);
      });
      const { nanoseconds, ratios } = await compare(tasks, tool === 'event loop' ? repeats / 4 : repeats, rounds);
      rows.push([tool, kind, `${Math.round(nanoseconds[0] ?? 0)} ns`, ...ratios.slice(1).map(ratioCell)]);
    }
  }
  printTable(
    'Five jobs, log off: × the floor with its own timer (median, and the middle 80 % of the rounds)',
    ['tool', 'arguments', 'floor', ...Object.keys(CONTESTANTS).slice(1)],
    rows,
  );
}

/** What five jobs allocate. */
export async function dispatchBytes(repeats: number): Promise<void> {
  const rows: string[][] = [];
  for (const [tool, execute] of Object.entries(TOOLS)) {
    for (const [kind, request] of Object.entries(REQUESTS)) {
      const cells: string[] = [];
      for (const make of Object.values(CONTESTANTS)) {
        const dispatch = make(scenarioOf(execute));
        cells.push(String(Math.round(await bytesOf(() => dispatch(request), repeats))));
      }
      rows.push([tool, kind, ...cells]);
    }
  }
  printTable('Five jobs, log off: bytes allocated per call', ['tool', 'arguments', ...Object.keys(CONTESTANTS)], rows);
}
