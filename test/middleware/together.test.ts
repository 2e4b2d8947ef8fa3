// All layers on one dispatcher, and a hundred thousand calls of all kinds.

import { getEventListeners } from 'node:events';
import { expect, test } from '@jest/globals';
import {
  createDispatcher,
  defineTool,
  isOutcome,
  PermissionCheck,
  type ToolCall,
  ToolContext,
  type ToolDispatchResult,
  ToolFailure,
} from 'toolonion';
import { orderWarnings, standard, ToolHealth } from 'toolonion/middleware';
import { ManualClock, turns } from '../support/manual-clock.ts';

const CALLS = 100_000;
const AT_ONCE = 1000;

/** The same numbers each time, from 0 up to 1 (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

test('one result each, by its own call, and nothing is left behind', async () => {
  const clock = new ManualClock();
  const random = seeded(7);
  const health = new ToolHealth({ failures: 5, clock });
  const late: unknown[] = [];
  const running = new Map<string, number>();
  const work = async ({ n, how }: { readonly n: number; readonly how: string }, call: ToolCall) => {
    const count = (running.get(call.id) ?? 0) + 1;
    running.set(call.id, count);
    try {
      if (how === 'fails') throw Object.assign(new Error('x'), { code: 'ECONNRESET', retryAfterMs: 5 });
      if (how === 'tells') throw new ToolFailure('No such city.');
      if (how === 'flaky' && n % 3 === 0) throw Object.assign(new Error('x'), { code: 'ECONNREFUSED' });
      if (how === 'hangs') await new Promise((resolve) => call.clock.setTimeout(() => resolve(undefined), 5000));
      return `n=${n}.`;
    } finally {
      running.set(call.id, (running.get(call.id) ?? 1) - 1);
      expect(count).toBe(1);
    }
  };
  const inputSchema = {
    type: 'object',
    properties: { n: { type: 'number' }, how: { type: 'string' } },
    required: ['n', 'how'],
  } as const;
  const tools = ['search', 'search_backup', 'read', 'write'].map((name) =>
    defineTool({
      name,
      description: '…',
      inputSchema,
      readOnly: name !== 'write',
      concurrencySafe: name !== 'write',
      execute: work as never,
    }),
  );
  const middleware = standard({
    logging: false,
    alias: { tools: { read: ['cat'] } },
    unknownTool: {},
    loopGuard: {},
    fallback: { tools: { search: ['search_backup'] }, health },
    prepareArguments: { nul: 'remove' },
    permission: {
      check: ({ input }) =>
        (input as { how?: string }).how === 'denied' ? PermissionCheck.deny('No.') : PermissionCheck.allow(),
    },
    budget: { calls: 250 },
    schedule: {},
    circuitBreaker: { health },
    retry: { attempts: 2, delayMs: 10, random },
    redaction: {},
    timeout: { limitMs: 1000 },
  });
  expect(orderWarnings(middleware.map(({ name }) => name)).filter(({ places }) => places.length > 0)).toEqual([]);
  const dispatcher = createDispatcher({ tools, middleware, clock, onLate: (outcome) => late.push(outcome) });
  const contexts = Array.from({ length: 200 }, () => new ToolContext());
  const pick = <Item>(all: readonly Item[]): Item => all[Math.floor(random() * all.length)] as Item;
  const codes = new Map<string, number>();

  for (let first = 0; first < CALLS; first += AT_ONCE) {
    const aborts: AbortController[] = [];
    const all: Promise<ToolDispatchResult>[] = [];
    for (let n = first; n < first + AT_ONCE; n++) {
      const name = pick(['search', 'read', 'cat', 'write', 'functions.read', 'ghost']);
      const how = pick(['fine', 'fine', 'fine', 'fails', 'tells', 'flaky', 'hangs', 'denied']);
      const given = pick([{ n, how }, JSON.stringify({ n, how }), random() < 0.2 ? '{"n":' : { n, how }]);
      const abort = random() < 0.3 ? new AbortController() : undefined;
      if (abort) aborts.push(abort);
      if (random() < 0.05) abort?.abort();
      const options = { context: pick(contexts), ...(abort && { signal: abort.signal }) };
      all.push(dispatcher.dispatch({ id: `c${n}`, name, arguments: given }, options));
    }
    await clock.advance(5);
    for (const abort of aborts) if (random() < 0.5) abort.abort();
    await clock.advance(60_000);
    const results = await Promise.all(all);
    for (const [place, result] of results.entries()) {
      const n = first + place;
      const told = /^n=(\d+)\.$/.exec(String(result.content))?.[1] ?? `${n}`;
      if (!isOutcome(result) || result.toolCallId !== `c${n}` || told !== `${n}` || result.error?.code === 'internal')
        throw new Error(
          `call ${n}: ${JSON.stringify(result)} ${String((result.error?.cause as Error | undefined)?.stack)}`,
        );
      const code = result.error?.code ?? 'ok';
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
    expect(clock.pending).toBe(0);
    for (const { signal } of aborts) expect(getEventListeners(signal, 'abort').length).toBe(0);
  }
  await turns();
  // Each kind of end was there.
  for (const code of [
    'ok',
    'io',
    'execution_failed',
    'timeout',
    'cancelled',
    'denied',
    'not_found',
    'truncated_arguments',
    'circuit_open',
    'budget_exceeded',
  ])
    expect([code, (codes.get(code) ?? 0) > 0]).toEqual([code, true]);
  expect(late.length).toBeGreaterThan(0);
  expect([...running.values()].every((count) => count === 0)).toBe(true);
}, 120_000);
