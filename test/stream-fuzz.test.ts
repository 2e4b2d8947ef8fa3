import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  createDispatcher,
  type Dispatcher,
  defineTool,
  type Middleware,
  type StreamEvent,
  type ToolCall,
  type ToolDispatchResult,
  ToolFailure,
  type ToolStream,
} from 'toolonion';
import { outputLimit, redaction, timeout } from 'toolonion/middleware';
import { ManualClock, turns } from './support/manual-clock.ts';
import { image, text } from './support/parts.ts';
import { joined, normal } from './support/streamed.ts';
import { expectNothingUnhandled } from './support/unhandled.ts';

/*
 * One trial of everything at once: a generator that takes any steps and ends in any way, synchronous or not, called directly or through
 * the stream of another tool, within any of some onions; a consumer who asks, leaves, aborts, lets time pass or shuts the dispatcher down
 * in any order. Whatever comes of it, all who asked are answered, the generator is closed as often as it was begun, no timer is left,
 * nobody is warned, and there is one result, whose content is what was passed on.
 */

expectNothingUnhandled();

const STEPS = [
  'text',
  'empty',
  'image',
  'data',
  'list',
  'later',
  'rejected',
  'never',
  'report',
  'throw',
  'return',
] as const;
const ENDINGS = ['well', 'yields', 'hangs', 'throws'] as const;
const ACTS = ['ask', 'ask', 'ask', 'turn', 'abort', 'return', 'throw', 'limit', 'idle', 'shut down'] as const;

type Step = (typeof STEPS)[number];
type Ending = (typeof ENDINGS)[number];
type Act = (typeof ACTS)[number];

/** What a generator does, step by step, and how its `finally` ends. */
interface Plan {
  readonly steps: readonly Step[];
  readonly ending: Ending;
}

/** Makes generators to one plan, and counts them. */
class Generators {
  begun = 0;
  closed = 0;
  readonly #plan: Plan;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  async *asynchronous(call: ToolCall): AsyncGenerator<unknown> {
    this.begun++;
    try {
      for (const step of this.#plan.steps) {
        if (step === 'return') return 'whole';
        yield given(step, call);
      }
    } finally {
      this.closed++;
      yield* ended(this.#plan.ending);
    }
  }

  *synchronous(call: ToolCall): Generator<unknown> {
    this.begun++;
    try {
      for (const step of this.#plan.steps) {
        if (step === 'return') return 'whole';
        yield given(step, call);
      }
    } finally {
      this.closed++;
      yield* ended(this.#plan.ending);
    }
  }
}

function given(step: Step, call: ToolCall): unknown {
  if (step === 'later') return turns(1).then(() => 'later');
  if (step === 'rejected') return Promise.reject(new ToolFailure('Rejected.'));
  if (step === 'never') return new Promise(() => {});
  if (step === 'throw') throw new ToolFailure('Broken.');
  if (step === 'report') return call.report({ message: 'here' });
  const values = { text: 'text', empty: '', image, data: { n: 1 }, list: [text('a'), image, image, text('b')] };
  return values[step as keyof typeof values];
}

function* ended(ending: Ending): Generator<unknown> {
  if (ending === 'yields') yield 'in the end';
  if (ending === 'hangs') yield new Promise(() => {});
  if (ending === 'throws') throw new Error('in the end');
}

function onions(): readonly (readonly Middleware[])[] {
  const limits = { limitMs: 100, idleMs: 50 };
  return [
    [],
    [async (call, next) => ({ ...(await next(call)) })],
    [outputLimit({ limit: 200 }), redaction({ heldBack: 600 }), timeout(limits)],
    [timeout(limits), (call, next) => next(call), outputLimit({ limit: 60 })],
    [timeout({ ...limits, graceMs: 20 })],
  ];
}

/** Somebody who takes a stream. */
class Consumer {
  readonly events: StreamEvent[] = [];
  readonly results: ToolDispatchResult[] = [];
  readonly #stream: ToolStream;

  constructor(stream: ToolStream) {
    this.#stream = stream;
  }

  /** Whether there is more. */
  async ask(): Promise<boolean> {
    const { done, value } = await this.#stream.next();
    if (done !== true) this.events.push(value);
    else if (value !== undefined) this.results.push(value);
    return done !== true;
  }

  return(): Promise<unknown> {
    return this.#stream.return(undefined as never);
  }

  throw(): Promise<unknown> {
    return this.#stream.throw(new Error('mine')).catch(() => {});
  }
}

const trials = fc.record({
  steps: fc.array(fc.constantFrom(...STEPS), { maxLength: 7 }),
  ending: fc.constantFrom(...ENDINGS),
  isSynchronous: fc.boolean(),
  isNested: fc.boolean(),
  onion: fc.nat(onions().length - 1),
  acts: fc.array(fc.constantFrom<Act>(...ACTS), { maxLength: 9 }),
});

test('whatever tool, consumer and limits do, a stream ends once, whole, and leaves nothing', async () => {
  await fc.assert(
    fc.asyncProperty(trials, async ({ steps, ending, isSynchronous, isNested, onion, acts }) => {
      const generators = new Generators({ steps, ending });
      const tool = defineTool({
        name: 'tool',
        description: 'Yields.',
        execute: (_, call) => (isSynchronous ? generators.synchronous(call) : generators.asynchronous(call)),
      });
      const outer = defineTool({
        name: 'outer',
        description: 'Passes it on.',
        execute: async function* (_, call) {
          yield* dispatcher.stream({ name: 'tool' }, { parent: call });
        },
      });
      const clock = new ManualClock();
      const warnings: string[] = [];
      const dispatcher: Dispatcher = createDispatcher({
        tools: [tool, outer],
        middleware: onions()[onion] ?? [],
        clock,
        onWarning: (message) => warnings.push(message),
      });
      const controller = new AbortController();
      const consumer = new Consumer(
        dispatcher.stream({ name: isNested ? 'outer' : 'tool' }, { signal: controller.signal }),
      );
      const asked: Promise<unknown>[] = [];
      const does: Readonly<Record<Act, () => unknown>> = {
        ask: () => asked.push(consumer.ask()),
        return: () => asked.push(consumer.return()),
        throw: () => asked.push(consumer.throw()),
        turn: () => turns(1),
        abort: () => controller.abort(),
        limit: () => clock.advance(100),
        idle: () => clock.advance(50),
        'shut down': () => Promise.all([dispatcher.drain({ limitMs: 1 }), clock.advance(1)]),
      };

      for (const act of acts) await does[act]();
      await clock.advance(400);
      controller.abort();
      await turns();
      const all = Promise.all(asked).then(() => 'answered');
      expect(await Promise.race([all, turns(30).then(() => 'left waiting')])).toBe('answered');
      while (await consumer.ask()) {}
      await turns();

      expect(clock.pending).toBe(0);
      expect(warnings).toEqual([]);
      if (isSynchronous || !steps.includes('never')) expect(generators.closed).toBe(generators.begun);
      if (acts.includes('return') || acts.includes('throw')) return;
      expect(consumer.results).toHaveLength(1);
      const [result] = consumer.results;
      const isStopped = result?.error?.executed === 'stopped';
      if (isStopped && !isNested) expect(generators.closed).toBe(generators.begun);
      // What is returned stands in place of what was yielded.
      if (steps.includes('return') && result?.error === undefined) return;
      expect(joined(consumer.events)).toEqual(normal(result?.content ?? ''));
    }),
    { numRuns: 3000 },
  );
}, 60_000);
