// A program for a process of its own: where turns go round in a circle, its event loop never turns again.

import { createDispatcher, type Middleware } from 'toolonion';
import { schedule } from 'toolonion/middleware';
import { gate } from './gate.ts';
import { turns } from './manual-clock.ts';
import { calls, Work } from './work.ts';

const work = new Work();
const read = work.tool('read', { concurrencySafe: true });
const edit = work.tool('edit', { concurrencySafe: true, resourceKey: ({ key }) => key });
const { layer, open } = gate();
const reroute: Middleware = (call, next) => next(call.id === 'held2' ? call.with({ tool: read }) : call);

const dispatcher = createDispatcher({
  tools: [read, edit],
  middleware: [layer, reroute, schedule({ concurrency: 1 })],
});
const batch = dispatcher.dispatchAll(
  calls('read a', 'edit held1 key=f', 'edit held2 key=g', 'edit b key=h', 'edit c key=i'),
);
await turns();
open('held2');
await turns();
open('held1');
for (let left = 5; left > 0; left--) {
  await turns();
  work.end(...work.running);
}
console.log((await batch).map(({ content }) => content).join(' '));
