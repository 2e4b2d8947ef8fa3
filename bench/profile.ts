import { Session } from 'node:inspector/promises';
import { engine } from './engine.ts';
import { type Execute, REQUESTS, scenarioOf, TOOLS } from './scenario.ts';
import { printTable } from './table.ts';

/** Functions that are shown. */
const SHOWN = 25;
const CALLS = 3_000_000;

/** `npm run profile [tool] [arguments]`: where the time of a dispatch goes. */
const [tool = 'synchronous', kind = 'object, id given'] = process.argv.slice(2);
const dispatch = engine(scenarioOf(TOOLS[tool] as Execute));
const request = REQUESTS[kind] as (typeof REQUESTS)[string];

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.setSamplingInterval', { interval: 200 });
for (let call = 0; call < CALLS / 10; call++) await dispatch(request);
await session.post('Profiler.start');
for (let call = 0; call < CALLS; call++) await dispatch(request);
const { profile } = await session.post('Profiler.stop');

const nodes = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
const shares = new Map<string, number>();
for (const id of profile.samples ?? []) {
  const { functionName = '', url = '', lineNumber = 0 } = nodes.get(id) ?? {};
  const place = `${functionName || '(anonymous)'}  ${url.split('/').slice(-2).join('/')}:${lineNumber + 1}`;
  shares.set(place, (shares.get(place) ?? 0) + 1 / (profile.samples?.length ?? 1));
}
const rows = [...shares].sort(([, a], [, b]) => b - a).slice(0, SHOWN);
printTable(
  `${CALLS} calls, ${tool} tool, ${kind}: share of the samples`,
  ['share', 'function'],
  rows.map(([place, share]) => [`${(share * 100).toFixed(1)} %`, place]),
);
