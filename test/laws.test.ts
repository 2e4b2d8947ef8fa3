import { getEventListeners } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import {
  createDispatcher,
  defineTool,
  isOutcome,
  type Middleware,
  type Next,
  named,
  type ToolCall,
  type ToolDispatchResult,
  type ToolOutcome,
} from 'toolonion';
import { allowAll, standard } from 'toolonion/middleware';
import { ManualClock, turns } from './support/manual-clock.ts';

/** Something a test settles by hand. */
interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

function gate(): Gate {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

type Execute = (input: unknown, call: ToolCall) => unknown;

const TOOLS: Readonly<Record<string, (late: Gate) => Execute>> = {
  'returns at once': () => () => 'done',
  'returns later': () => async () => 'done',
  'throws at once': () => () => {
    throw new Error('secret');
  },
  'rejects later': () => async () => {
    throw new Error('secret');
  },
  'rejects with nothing': () => () => Promise.reject(),
  'never settles': () => () => new Promise(() => {}),
  'settles late': (late) => () => late.opened.then(() => 'late'),
  'rejects late': (late) => () =>
    late.opened.then(() => {
      throw new Error('late secret');
    }),
  'heeds its signal': () => (_, call) =>
    new Promise((_, reject) => {
      call.signal.addEventListener('abort', () => reject(call.signal.reason), { once: true });
    }),
  'yields and returns': () =>
    async function* () {
      yield 'a';
      yield 'b';
    },
  'yields and throws': () =>
    async function* () {
      yield 'a';
      throw new Error('secret');
    },
  'yields and hangs': () =>
    async function* () {
      yield 'a';
      await new Promise(() => {});
    },
};

const LAYERS: Readonly<Record<string, (late: Gate) => Middleware>> = {
  'passes on': () => (call, next) => next(call),
  awaits: () => async (call, next) => await next(call),
  'short-circuits': () => (call) => answer(call),
  'short-circuits later': () => async (call) => answer(call),
  throws: () => () => {
    throw new Error('secret');
  },
  'throws after next': () => async (call, next) => {
    await next(call);
    throw new Error('secret');
  },
  'forgets to await': () =>
    ((call, next) => {
      next(call);
    }) as Middleware,
  'forgets to return, asynchronous': () =>
    (async (call: ToolCall, next: Next) => {
      next(call);
    }) as unknown as Middleware,
  'calls next twice': () => (call, next) => {
    next(call);
    return next(call);
  },
  'calls next twice, asynchronous': () => async (call, next) => {
    next(call);
    return await next(call);
  },
  'calls next again afterwards': () => async (call, next) => {
    await next(call);
    return await next(call);
  },
  'answers early': () => async (call, next) => {
    next(call);
    return answer(call);
  },
  'answers early and calls next late': (late) => async (call, next) => {
    late.opened.then(() => next(call));
    return answer(call);
  },
  'answers rubbish': () => (() => ({ content: 1 })) as unknown as Middleware,
  hangs: () => () => new Promise(() => {}),
  'hangs after next': () => async (call, next) => {
    await next(call);
    return await new Promise(() => {});
  },
  'hangs until late': (late) => async (call, next) => {
    const outcome = await next(call);
    await late.opened;
    return outcome;
  },
  'passes on something else': () => (call, next) => next({ ...call } as ToolCall),
  'passes on nothing': () => (_, next) => next(undefined as unknown as ToolCall),
  'changes the call': () => (call, next) => {
    (call as { input: unknown }).input = {};
    return next(call);
  },
};

function answer(call: ToolCall): ToolOutcome {
  return { resolvedToolName: call.name, content: 'answered', isError: false, notes: [] };
}

const ABORTS = ['never', 'before', 'during', 'after'] as const;
const LIMITS = [100, Number.POSITIVE_INFINITY];

interface Tried {
  readonly result: ToolDispatchResult | undefined;
  readonly runs: number;
  readonly late: readonly ToolOutcome[];
  readonly clock: ManualClock;
  readonly signal: AbortSignal;
  readonly answers: number;
}

async function attempt(
  execute: Execute,
  layers: { readonly outside?: Middleware; readonly inside?: Middleware },
  limitMs: number,
  abort: (typeof ABORTS)[number],
  late: Gate,
): Promise<Tried> {
  const clock = new ManualClock();
  const controller = new AbortController();
  const lateOutcomes: ToolOutcome[] = [];
  let runs = 0;
  const tool = defineTool({
    name: 'tool',
    description: 'A tool under trial.',
    execute: (input, call) => {
      runs++;
      return execute(input, call);
    },
  });
  const onion = standard({ logging: false, permission: { check: allowAll }, timeout: { limitMs } });
  const middleware = [
    ...(layers.outside ? [named('outside', layers.outside)] : []),
    ...onion,
    ...(layers.inside ? [named('inside', layers.inside)] : []),
  ];
  const dispatcher = createDispatcher({
    tools: [tool],
    middleware,
    clock,
    onLate: (outcome) => lateOutcomes.push(outcome),
  });
  if (abort === 'before') controller.abort(new Error('the caller'));
  let answers = 0;
  let result: ToolDispatchResult | undefined;
  dispatcher.dispatch({ id: 'c1', name: 'tool', arguments: '{}' }, { signal: controller.signal }).then((given) => {
    answers++;
    result = given;
  });
  await turns(2);
  if (abort === 'during') controller.abort(new Error('the caller'));
  await turns(8);
  await clock.advance(200);
  await turns(8);
  const settled = result;
  late.open();
  if (abort === 'after') controller.abort(new Error('the caller'));
  await turns(8);
  return { result: settled ?? result, runs, late: lateOutcomes, clock, signal: controller.signal, answers };
}

/** Nothing but the caller's abort ends these: an abort that comes too late, or none, leaves the dispatch waiting as it must. */
function mayWait(tool: string, layer: string, limitMs: number, abort: string, outside: boolean): boolean {
  if (abort === 'before' || abort === 'during') return false;
  const hangingTool = /never|hangs|late|heeds/.test(tool) && limitMs === Number.POSITIVE_INFINITY;
  const hangingLayer = /hangs/.test(layer) && (outside || limitMs === Number.POSITIVE_INFINITY);
  return hangingTool || hangingLayer;
}

function check(
  tried: Tried,
  name: { tool: string; layer: string; limitMs: number; abort: string; outside: boolean },
): void {
  const { result, runs, clock, signal, answers } = tried;
  const { tool, layer, limitMs, abort, outside } = name;
  if (!mayWait(tool, layer, limitMs, abort, outside) || result !== undefined) {
    expect(answers).toBe(1);
    expect(isOutcome(result)).toBe(true);
    expect(result).toMatchObject({ toolCallId: 'c1', requested: { id: 'c1', name: 'tool', input: {} } });
    expect(JSON.stringify(result)).not.toContain('secret');
    expect(clock.pending).toBe(0);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  }
  // A `next` that has settled may be called again; an ignored outcome that was there at once has settled.
  const mayRepeat = /again afterwards/.test(layer) || (/next twice/.test(layer) && /at once/.test(tool));
  expect(runs).toBeLessThanOrEqual(mayRepeat ? 2 : 1);
  if (
    /next twice/.test(layer) &&
    runs === 1 &&
    result?.error?.code !== 'cancelled' &&
    result?.error?.code !== 'timeout'
  ) {
    expect(result?.content).toMatch(/"(outside|inside)" called next\(\) again before its first call had settled/);
  }
}

describe('one call has one result, and nothing is left behind', () => {
  for (const [tool, execute] of Object.entries(TOOLS)) {
    for (const limitMs of LIMITS) {
      for (const abort of ABORTS) {
        test(`a tool that ${tool}; limit ${limitMs}; abort ${abort}`, async () => {
          const late = gate();
          const tried = await attempt(execute(late), {}, limitMs, abort, late);
          check(tried, { tool, layer: '', limitMs, abort, outside: true });
        });
      }
    }
  }
});

describe('whatever a middleware does', () => {
  for (const [layer, make] of Object.entries(LAYERS)) {
    for (const outside of [true, false]) {
      test(`a middleware that ${layer}, ${outside ? 'outermost' : 'innermost'}, over every tool, limit and abort`, async () => {
        const trials = Object.entries(TOOLS).flatMap(([tool, execute]) =>
          LIMITS.flatMap((limitMs) =>
            ABORTS.map(async (abort) => {
              const late = gate();
              const middleware = make(late);
              const layers = outside ? { outside: middleware } : { inside: middleware };
              const tried = await attempt(execute(late), layers, limitMs, abort, late);
              try {
                check(tried, { tool, layer, limitMs, abort, outside });
              } catch (error) {
                (error as Error).message += `\n(a tool that ${tool}; limit ${limitMs}; abort ${abort})`;
                throw error;
              }
            }),
          ),
        );
        await Promise.all(trials);
      });
    }
  }
});
