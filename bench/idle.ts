import {
  alias,
  budget,
  circuitBreaker,
  fallback,
  loopGuard,
  redaction,
  retry,
  ToolHealth,
  when,
} from '../middleware/index.ts';
import { createDispatcher, defineTool, type Middleware } from '../src/index.ts';
import { compare } from './compare.ts';
import { floor } from './floor.ts';
import { scenarioOf, TOOLS } from './scenario.ts';
import { printTable } from './table.ts';

/** Layers that have nothing to do with the tool that is called. */
const LAYERS: Readonly<Record<string, () => Middleware>> = {
  alias: () => alias({ tools: { other: ['another'] }, arguments: { other: { a: ['b'] } } }),
  loopGuard: () => loopGuard({ except: ['weather'] }),
  fallback: () => fallback({ tools: { other: ['another'] }, health: new ToolHealth() }),
  budget: () => budget({ callsPerTool: { byTool: { other: 1 } } }),
  retry: () => retry({ attempts: { default: 1, byTool: { other: 3 } } }),
  'when(name, circuitBreaker)': () => when('other', circuitBreaker()),
  'when(function, redaction)': () => when(({ tool }) => tool?.destructive === true, redaction()),
};

/** So many of one, for one costs less than can be told. */
const COPIES = 20;

/** What a layer costs that is there, and not for this tool, as a share of the floor's dispatch. */
export async function idleTimes(rounds: number, repeats: number): Promise<void> {
  const tool = defineTool({ name: 'weather', description: '…', execute: () => 'Sunny.' });
  const request = { id: 'c', name: 'weather', arguments: { city: 'Oslo', days: 3, units: 'metric' } };
  const dispatch = floor(scenarioOf(TOOLS['synchronous'] as never));
  const dispatcherOf = (middleware: readonly Middleware[]) => createDispatcher({ tools: [tool], middleware });
  const bare = dispatcherOf([]);
  const many = Object.values(LAYERS).map((make) => dispatcherOf(Array.from({ length: COPIES }, make)));
  const { ratios } = await compare(
    [() => dispatch(request), () => bare.dispatch(request), ...many.map((each) => () => each.dispatch(request))],
    repeats,
    rounds,
  );
  const [, none, ...all] = ratios.map(({ median }) => median);
  printTable(
    'Layers that are not for this tool: × the floor’s dispatch, each',
    ['layer', 'adds'],
    Object.keys(LAYERS).map((name, place) => [name, (((all[place] ?? 0) - (none ?? 0)) / COPIES).toFixed(3)]),
  );
}
