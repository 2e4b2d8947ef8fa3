import { describe, expect, test } from '@jest/globals';
import pino from 'pino';
import { after, type ContentPart, type Middleware, named, Passage, type ToolCall, type ToolOutcome } from 'toolonion';
import {
  alias,
  allowAll,
  budget,
  circuitBreaker,
  fallback,
  logging,
  loopGuard,
  outputLimit,
  outputValidation,
  permission,
  prepareArguments,
  redaction,
  retry,
  schedule,
  ToolHealth,
  timeout,
  unknownTool,
  validation,
  when,
} from 'toolonion/middleware';
import { testMiddleware } from 'toolonion/testing';

const OURS: Readonly<Record<string, () => Middleware>> = {
  alias: () => alias({ tools: { tool: ['gadget'] }, arguments: { tool: { a: ['b'] } } }),
  budget: () => budget({ calls: 50, callsPerTool: 40 }),
  circuitBreaker: () => circuitBreaker(),
  fallback: () => fallback({ tools: { tool: ['ghost'] }, health: new ToolHealth() }),
  logging: () => logging({ logger: pino({ enabled: false }) }),
  loopGuard: () => loopGuard(),
  outputLimit: () => outputLimit({ limit: 100 }),
  outputValidation: () => outputValidation(),
  permission: () => permission({ check: allowAll }),
  prepareArguments: () => prepareArguments({ nul: 'remove' }),
  redaction: () => redaction(),
  retry: () => retry(),
  schedule: () => schedule(),
  timeout: () => timeout({ limitMs: 1000 }),
  unknownTool: () => unknownTool(),
  validation: () => validation(),
  when: () => when('tool', retry()),
};

describe.each(Object.entries(OURS))('%s', (_, make) => testMiddleware(make, test));

/** The laws that a layer breaks. */
async function broken(make: () => Middleware): Promise<readonly string[]> {
  const laws: [title: string, check: () => Promise<void>][] = [];
  testMiddleware(make, (title, check) => laws.push([title, check]));
  const found: string[] = [];
  for (const [title, check] of laws)
    await check().catch((error: Error) => {
      found.push(`${title}: ${error.message}`);
    });
  return found;
}

describe('a layer that breaks a law is found', () => {
  test.each<[what: string, make: () => Middleware, says: RegExp]>([
    [
      'throws',
      () =>
        named('mine', () => {
          throw new Error('x');
        }),
      /It is at fault itself/,
    ],
    ['gives no outcome', () => named('mine', () => 'done' as never), /It is at fault itself/],
    ['has no name', () => named('', (call, next) => next(call)), /it has none/],
    [
      'leaves a timer',
      () =>
        named('mine', (call, next) => {
          call.clock.setTimeout(() => {}, 1e9);
          return next(call);
        }),
      /1 timers are left/,
    ],
    [
      'runs a tool beside itself',
      () =>
        named('mine', async (call, next) => {
          void next(call);
          return next(call);
        }),
      /at fault|while it was running/,
    ],
    [
      'changes the arguments it was shown',
      () =>
        named('mine', (call, next) => {
          (call.input as Record<string, unknown>)['a'] = 2;
          return next(call);
        }),
      /It is at fault itself/,
    ],
    [
      'shows what a tool threw',
      () =>
        named('mine', (call, next) =>
          after(next(call), (outcome) => ({
            ...outcome,
            content: String((outcome.error?.cause as Error | undefined)?.message ?? outcome.content),
          })),
        ),
      /the model reads what the tool threw/,
    ],
    ['never ends', () => named('mine', () => new Promise(() => {})), /has no result after an hour/],
    [
      'sends each part twice',
      () => {
        class Twice extends Passage {
          override part(part: ContentPart, call: ToolCall) {
            super.part(part, call);
            return super.part(part, call);
          }
        }
        return named('mine', (call, next) =>
          next(call.channel ? call.with({ channel: new Twice(call.channel) }) : call),
        );
      },
      /its parts are \["one ","one "/,
    ],
    [
      'keeps one answer for all',
      () => {
        let kept: ToolOutcome | undefined;
        return named(
          'mine',
          (call, next) =>
            kept ??
            after(next(call), (outcome) => {
              kept = outcome;
              return outcome;
            }),
        );
      },
      /has the result of call/,
    ],
    [
      'answers a stream in another way',
      () =>
        named('mine', (call, next) =>
          after(next(call), (outcome) => (call.channel ? { ...outcome, content: 'streamed' } : outcome)),
        ),
      /a dispatch gives/,
    ],
  ])('%s', async (_, make, says) => {
    const found = await broken(make);
    expect(found.join('\n')).toMatch(says);
  });
});
