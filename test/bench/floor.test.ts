import { describe, expect, test } from '@jest/globals';
import type { ToolDispatchResult } from 'toolonion';
import { engine } from '../../bench/engine.ts';
import { floor } from '../../bench/floor.ts';
import { koa } from '../../bench/koa.ts';
import { type Execute, REQUESTS, type Scenario, scenarioOf, TOOLS } from '../../bench/scenario.ts';

/** All that must be equal: everything but what is new each time. */
function comparable(result: ToolDispatchResult): unknown {
  const { durationMs, error, toolCallId, ...rest } = result;
  expect(durationMs).toBeGreaterThanOrEqual(0);
  expect(toolCallId).toMatch(/./);
  return {
    ...rest,
    id: rest.requested.id === undefined ? 'generated' : toolCallId,
    error: error && { ...error, errorId: '' },
  };
}

async function bothOf(
  scenario: Scenario,
  request: object,
  armed: 'each' | 'turn' = 'each',
): Promise<[unknown, unknown]> {
  const call = request as (typeof REQUESTS)[string];
  const [byHand, byEngine] = await Promise.all([floor(scenario, armed)(call), engine(scenario)(call)]);
  return [comparable(byHand as ToolDispatchResult), comparable(byEngine as ToolDispatchResult)];
}

describe('floor and engine give equal results', () => {
  for (const [tool, execute] of Object.entries(TOOLS)) {
    for (const [kind, request] of Object.entries(REQUESTS)) {
      for (const armed of ['each', 'turn'] as const) {
        test(`for a good call: ${tool} tool, ${kind}, timer for ${armed}`, async () => {
          const [byHand, byEngine] = await bothOf(scenarioOf(execute), request, armed);
          expect(byHand).toEqual(byEngine);
          expect(byEngine).toMatchObject({ content: 'sunny in Oslo', isError: false });
        });
      }
    }
  }

  const good = { id: 'c1', name: 'weather', arguments: '{"city":"Oslo"}' };
  const cases: readonly (readonly [string, Partial<Scenario>, object, object])[] = [
    ['a refused call', { allowed: ['other'] }, good, { error: { code: 'denied' } }],
    ['an invalid call', {}, { ...good, arguments: { days: 'three' } }, { error: { code: 'invalid_arguments' } }],
    ['an unknown tool', {}, { ...good, name: 'whether' }, { error: { code: 'not_found' } }],
    [
      'a long answer',
      { execute: () => '0123456789'.repeat(100), limit: 500 },
      good,
      { notes: [{ type: 'truncated' }] },
    ],
    [
      'a long answer that takes its time',
      { execute: async () => '🦊'.repeat(1000), limit: 501 },
      good,
      { notes: [{ type: 'truncated' }] },
    ],
    [
      'a late call',
      { execute: () => new Promise(() => {}), limitMs: 5 },
      good,
      { error: { code: 'timeout', executed: 'unknown' } },
    ],
    ['a tool that throws', { execute: thrower(new Error('secret')) }, good, { error: { code: 'execution_failed' } }],
    [
      'a tool that rejects',
      { execute: async () => thrower(new Error('secret'))() },
      good,
      { error: { code: 'execution_failed' } },
    ],
    [
      'a tool that changes its arguments',
      { execute: (input) => Object.assign(input, { city: 'Rome' }).city },
      good,
      { content: 'Rome', requested: { input: { city: 'Oslo' } } },
    ],
  ];
  for (const [what, changes, request, expected] of cases) {
    test(`for ${what}`, async () => {
      const [byHand, byEngine] = await bothOf({ ...scenarioOf(TOOLS['synchronous'] as Execute), ...changes }, request);
      expect(byHand).toEqual(byEngine);
      expect(byEngine).toMatchObject(expected);
    });
  }
});

test('koa-compose does the same five jobs on a good call', async () => {
  const result = await koa(scenarioOf(TOOLS['microtask'] as Execute))(REQUESTS['text, id given'] as never);
  expect(result).toMatchObject({ toolCallId: 'call_1', content: 'sunny in Oslo', isError: false });
});

function thrower(error: Error): () => never {
  return () => {
    throw error;
  };
}
