import koaCompose from 'koa-compose';
import { ToolCall } from '../src/call.ts';
import { Dispatch } from '../src/dispatch.ts';
import { compose, type Middleware, systemClock, ToolContext, type ToolOutcome, ToolRegistry } from '../src/index.ts';
import { bytesOf, type Task } from '../src/testing/rounds.ts';
import { compare } from './compare.ts';
import { printTable, ratioCell } from './table.ts';

const COUNTS = [0, 1, 5, 10, 20];
const OUTCOME: ToolOutcome = { resolvedToolName: 'idle', content: '', isError: false, notes: [] };

type KoaLayer = (context: object, next: () => Promise<unknown>) => unknown;

/** How a layer that does nothing can be written, for both; made anew for each place in the onion. */
const FORMS: Readonly<Record<string, { readonly ours: () => Middleware; readonly koas: () => KoaLayer }>> = {
  '(call, next) => next(call)': {
    ours: () => (call, next) => next(call),
    koas: () => (_, next) => next(),
  },
  'async, await next(call)': {
    ours: () => async (call, next) => await next(call),
    koas: () => async (_, next) => await next(),
  },
};

function tasksOf(form: string, count: number, innermost: () => ToolOutcome | Promise<ToolOutcome>): [Task, Task] {
  const { ours, koas } = FORMS[form] as (typeof FORMS)[string];
  const onion = compose(Array.from({ length: count }, ours), innermost);
  const koa = koaCompose<object>(Array.from({ length: count }, koas));
  const call = idleCall();
  const context = { name: 'idle' };
  return [() => koa(context, innermost as () => Promise<unknown>), () => onion(call)];
}

/** A call that has not entered any layer; it is outside again after each walk. */
function idleCall(): ToolCall {
  const requested = { id: 'c', name: 'idle', input: {} };
  const host = {
    clock: systemClock,
    now: systemClock.now,
    newId: () => 'c',
    tell: () => undefined,
    late: () => {},
    isInterrupt: () => false,
  };
  const tools = new ToolRegistry().snapshot();
  const dispatch = new Dispatch(0, 'c', requested, undefined, tools, {}, host);
  return ToolCall.begin(dispatch, new ToolContext(), undefined);
}

/** What layers that do nothing cost, against koa-compose. */
export async function layerTimes(rounds: number, repeats: number): Promise<void> {
  await printLayers('Idle layers: × koa-compose', 'toolonion ×', async (tasks) => {
    const { nanoseconds, ratios } = await compare(tasks, repeats, rounds);
    return [`${Math.round(nanoseconds[0] ?? 0)} ns`, ratioCell(ratios[1] as never)];
  });
}

/** What layers that do nothing allocate. */
export async function layerBytes(repeats: number): Promise<void> {
  await printLayers('Idle layers: bytes allocated per call', 'toolonion', async ([koas, ours]) => [
    String(Math.round(await bytesOf(koas, repeats))),
    String(Math.round(await bytesOf(ours, repeats))),
  ]);
}

/** A row for each form and count, with two cells for each kind of tool: koa-compose's and ours. */
async function printLayers(
  title: string,
  ours: string,
  cellsOf: (tasks: [Task, Task]) => Promise<readonly [string, string]>,
): Promise<void> {
  const rows: string[][] = [];
  for (const form of Object.keys(FORMS)) {
    for (const count of COUNTS) {
      const atOnce = await cellsOf(tasksOf(form, count, () => OUTCOME));
      const later = await cellsOf(tasksOf(form, count, async () => OUTCOME));
      rows.push([form, String(count), ...atOnce, ...later]);
    }
  }
  const head = ['layers written as', 'layers', 'koa-compose (sync tool)', ours, 'koa-compose (async tool)', ours];
  printTable(title, head, rows);
}
