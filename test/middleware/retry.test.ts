import { getEventListeners } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import {
  createDispatcher,
  type DispatchOptions,
  defineTool,
  type JsonSchema,
  type Middleware,
  type ToolCall,
  ToolFailure,
  ToolOutput,
} from 'toolonion';
import { allowAll, outputLimit, permission, type RetryOptions, retry, timeout, validation } from 'toolonion/middleware';
import { ManualClock, turns } from '../support/manual-clock.ts';

type Execute = (input: unknown, call: ToolCall) => unknown;

interface Trial extends RetryOptions {
  readonly traits?: { readonly idempotent?: boolean; readonly readOnly?: boolean; readonly inputSchema?: JsonSchema };
  readonly outside?: readonly Middleware[];
  readonly inside?: readonly Middleware[];
}

/** A dispatcher whose one tool is tried again, and the times at which it ran. */
function trial(execute: Execute, { traits = { idempotent: true }, outside = [], inside = [], ...options }: Trial = {}) {
  const clock = new ManualClock();
  const ranAt: number[] = [];
  const late: unknown[] = [];
  const tool = defineTool({
    name: 'tool',
    description: 'A tool.',
    ...traits,
    execute: (input: unknown, call: ToolCall) => {
      ranAt.push(clock.now());
      return execute(input, call);
    },
  });
  const dispatcher = createDispatcher({
    tools: [tool],
    middleware: [...outside, retry({ random: () => 0, ...options }), ...inside],
    clock,
    onLate: (outcome) => late.push(outcome),
  });
  const dispatch = (input = {}, given: DispatchOptions = {}) =>
    dispatcher.dispatch({ name: 'tool', arguments: input }, given);
  return { clock, ranAt, late, dispatcher, dispatch };
}

/** Fails until it has run so many times. */
function failing(times: number, thrown: () => unknown = reset): Execute {
  let runs = 0;
  return () => {
    if (++runs <= times) throw thrown();
    return `Run ${runs}.`;
  };
}

function reset(): Error {
  return Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
}

describe('a failure that may pass', () => {
  test('is tried again, each time after twice as long, and the result tells it', async () => {
    const { clock, ranAt, dispatch } = trial(failing(2));
    const result = dispatch();
    await clock.advance(1000);
    expect(await result).toMatchObject({
      content: 'Run 3.',
      notes: [{ type: 'retried', by: 'retry', message: 'It was tried 3 times.', forModel: false }],
    });
    expect([ranAt, clock.pending]).toEqual([[0, 200, 600], 0]);
  });

  test('is told in the end, with how often it was tried', async () => {
    const { clock, ranAt, dispatch } = trial(failing(9), { attempts: { default: 2, byTool: { tool: 4 } } });
    const result = dispatch();
    await clock.advance(10_000);
    const { error, notes } = await result;
    expect(error).toMatchObject({ code: 'io', executed: 'yes', retryable: true });
    expect(notes).toMatchObject([{ message: 'It was tried 4 times.', forModel: true }]);
    expect(ranAt).toEqual([0, 200, 600, 1400]);
  });

  test('waits by chance for half of the time at least, and never longer than it may', async () => {
    const { clock, ranAt, dispatch } = trial(failing(9), {
      attempts: 5,
      delayMs: 100,
      maxDelayMs: 150,
      random: () => 1,
    });
    const result = dispatch();
    await clock.advance(10_000);
    await result;
    expect(ranAt).toEqual([0, 50, 150, 300, 450]);
  });

  test('is not tried again where one attempt is all', async () => {
    const { ranAt, dispatch } = trial(failing(1), { attempts: 1 });
    expect(await dispatch()).toMatchObject({ isError: true, notes: [] });
    expect(ranAt).toEqual([0]);
  });

  test('is tried again at once where no wait is wanted', async () => {
    const { clock, dispatch } = trial(failing(1), { delayMs: 0 });
    const result = dispatch();
    await clock.advance(0);
    expect((await result).content).toBe('Run 2.');
  });

  test('is left to a predicate, which sees the error and the call', async () => {
    const asked: unknown[] = [];
    const retryIf: NonNullable<RetryOptions['retryIf']> = ({ code }, { toolName }) => asked.push([code, toolName]) > 1;
    const { ranAt, dispatch } = trial(failing(2), { retryIf });
    expect((await dispatch()).isError).toBe(true);
    expect([asked, ranAt]).toEqual([[['io', 'tool']], [0]]);
  });
});

test.each<[what: string, options: RetryOptions, runs: number]>([
  [
    'a predicate that throws',
    {
      retryIf: () => {
        throw new Error('mine');
      },
    },
    1,
  ],
  ['a predicate that is late', { retryIf: (async () => Promise.reject(new Error('mine'))) as never }, 1],
  ['a predicate that says neither', { retryIf: (() => 'no') as never }, 1],
  [
    'chance that throws',
    {
      random: () => {
        throw new Error('mine');
      },
    },
    3,
  ],
  ['chance that is no number', { random: () => Number.NaN }, 3],
  ['chance beyond all bounds', { random: () => -1e9 }, 3],
])('%s loses no failure of the tool, and shortens no wait', async (_, options, runs) => {
  const { clock, ranAt, dispatch } = trial(failing(9), options);
  const result = dispatch();
  await clock.advance(10_000);
  expect((await result).error?.code).toBe('io');
  expect(ranAt).toEqual([0, 200, 600].slice(0, runs));
});

describe('G11: an abort while it waits', () => {
  test('ends the wait at once, with no timer and no listener left, and no further run', async () => {
    const { clock, ranAt, dispatch } = trial(failing(9), { delayMs: 3000 });
    const abort = new AbortController();
    const result = dispatch({}, { signal: abort.signal });
    await clock.advance(100);
    expect(clock.pending).toBe(1);
    abort.abort();
    // What came of the only run is known.
    expect(await result).toMatchObject({ error: { code: 'io', executed: 'yes' }, notes: [] });
    await turns();
    expect([ranAt, clock.pending, getEventListeners(abort.signal, 'abort').length]).toEqual([[0], 0, 0]);
    await clock.advance(10_000);
    expect(ranAt).toEqual([0]);
  });
});

describe('a run that may have had an effect', () => {
  test('L01: is not repeated where the tool does not say that twice is once', async () => {
    const sent: string[] = [];
    const mails: Execute = () => {
      sent.push('mail');
      throw reset();
    };
    for (const traits of [{}, { idempotent: false }]) {
      const { clock, dispatch } = trial(mails, { traits, attempts: 3 });
      const result = dispatch();
      await clock.advance(10_000);
      expect((await result).notes).toEqual([]);
    }
    expect(sent.length).toBe(2);
  });

  test('L02: whose answer was lost is not repeated; with leave to, each attempt has the same key, and no other call has it', async () => {
    const keys: string[] = [];
    const lost: Execute = (_, call) => {
      keys.push(call.idempotencyKey);
      throw reset();
    };
    const unsafe = trial(lost, { traits: {} });
    const first = unsafe.dispatch();
    await unsafe.clock.advance(10_000);
    await first;
    expect(keys.length).toBe(1);
    const safe = trial(lost);
    for (let call = 0; call < 2; call++) {
      const result = safe.dispatch();
      await safe.clock.advance(10_000);
      await result;
    }
    const [, a, b, c, d, e, f] = keys;
    expect([a === b && b === c, d === e && e === f, new Set(keys).size]).toEqual([true, true, 3]);
  });

  test('is repeated where the tool only reads, or says that it has done nothing', async () => {
    const refused = () => new ToolFailure('Busy.', { code: 'rate_limited', executed: 'no' });
    for (const [traits, thrown] of [
      [{ readOnly: true }, reset],
      [{}, refused],
    ] as const) {
      const { clock, dispatch } = trial(failing(1, thrown), { traits });
      const result = dispatch();
      await clock.advance(200);
      expect((await result).content).toBe('Run 2.');
    }
  });

  test('G13: that was timed out is repeated only where twice is once, and never beside a run that goes on', async () => {
    const deaf: Execute = () => new Promise(() => {});
    const heeding: Execute = (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      });
    const limited = (execute: Execute, traits: NonNullable<Trial['traits']>) => {
      const made = trial(execute, { traits, attempts: 3, inside: [timeout({ limitMs: 20 })] });
      return { ...made, result: made.dispatch() };
    };
    const running = limited(deaf, { idempotent: true });
    await running.clock.advance(10_000);
    expect(await running.result).toMatchObject({ error: { code: 'timeout', executed: 'unknown' }, notes: [] });
    expect(running.ranAt.length).toBe(1);
    const stopped = limited(heeding, { idempotent: true });
    await stopped.clock.advance(10_000);
    expect(await stopped.result).toMatchObject({ error: { code: 'timeout', executed: 'stopped' } });
    expect(stopped.ranAt.length).toBe(3);
    const effect = limited(heeding, {});
    await effect.clock.advance(10_000);
    await effect.result;
    expect(effect.ranAt.length).toBe(1);
  });
});

describe('L04: a failure that says when to try again', () => {
  test.each<[told: unknown, waited: number]>([
    [500, 500],
    [200_000, 10_000],
    [1, 200],
    [-5, 200],
    [Number.NaN, 200],
    [Number.POSITIVE_INFINITY, 200],
    ['500', 200],
  ])('%p: the next run is after %i ms', async (retryAfterMs, waited) => {
    const thrown = () => Object.assign(reset(), { retryAfterMs });
    const { clock, ranAt, dispatch } = trial(failing(1, thrown));
    const result = dispatch();
    await clock.advance(60_000);
    expect((await result).content).toBe('Run 2.');
    expect(ranAt).toEqual([0, waited]);
  });

  test('tells it in the result as well', async () => {
    const thrown = () => new ToolFailure('Too many.', { code: 'rate_limited', retryAfterMs: 700 });
    const { dispatch } = trial(failing(1, thrown), { attempts: 1 });
    expect((await dispatch()).error).toMatchObject({ code: 'rate_limited', retryAfterMs: 700 });
  });
});

describe('L05: what will fail again', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };

  test.each<[what: string, execute: Execute, trial: Trial]>([
    [
      'arguments that are invalid',
      () => 'Done.',
      { inside: [validation()], traits: { idempotent: true, inputSchema: schema } },
    ],
    [
      'a call that is denied',
      () => 'Done.',
      { inside: [permission({ check: () => ({ verdict: 'deny', reason: 'No.' }) as never })] },
    ],
    ['a failure of the tool’s own that it can tell', failing(9, () => new ToolFailure('No such city.')), {}],
    ['a file that is not there', failing(9, () => Object.assign(new Error('x'), { code: 'ENOENT' })), {}],
    ['an answer that says it is a failure', () => ToolOutput.error('No.'), {}],
    ['work of its own that was aborted', failing(9, () => new DOMException('x', 'AbortError')), {}],
  ])('%s: is tried once', async (_, execute, options) => {
    const { clock, ranAt, dispatch } = trial(execute, options);
    const result = dispatch();
    await clock.advance(60_000);
    expect(await result).toMatchObject({ isError: true });
    expect(ranAt.length).toBeLessThan(2);
    expect((await result).notes.some(({ by }) => by === 'retry')).toBe(false);
  });

  test('a tool that there is not is looked for once', async () => {
    const { dispatcher } = trial(() => 'Done.');
    expect((await dispatcher.dispatch({ name: 'tol' })).error?.code).toBe('not_found');
  });
});

test('L06: each run has the arguments as they were sent, whatever the one before did to its own', async () => {
  const seen: unknown[] = [];
  const spoils: Execute = (input) => {
    const { list } = input as { list: number[] };
    seen.push([...list]);
    list.push(1);
    throw reset();
  };
  const { clock, dispatch } = trial(spoils);
  const input = { list: [0] };
  const result = dispatch(input);
  await clock.advance(10_000);
  await result;
  expect([seen, input]).toEqual([[[0], [0], [0]], { list: [0] }]);
});

describe('an answer that streams', () => {
  const parts = (yielded: number): Execute => {
    let runs = 0;
    return async function* () {
      runs++;
      for (let part = 0; part < yielded; part++) yield `run ${runs} `;
      if (runs === 1) throw reset();
      yield 'done';
    };
  };

  test('is not begun anew once a part of it has left', async () => {
    const { clock, ranAt, dispatcher } = trial(parts(1));
    const told: string[] = [];
    const result = dispatcher.dispatch(
      { name: 'tool' },
      { onPart: (part) => void told.push((part as { text: string }).text) },
    );
    await clock.advance(10_000);
    expect(await result).toMatchObject({ isError: true, notes: [] });
    expect([told[0], ranAt, clock.pending]).toEqual(['run 1 ', [0], 0]);
  });

  test('is, where nothing has left yet, and only what the last run gave is told', async () => {
    const { clock, dispatcher } = trial(parts(0));
    const told: string[] = [];
    const result = dispatcher.dispatch(
      { name: 'tool' },
      { onPart: (part) => void told.push((part as { text: string }).text) },
    );
    await clock.advance(10_000);
    expect((await result).content).toBe('done');
    expect(told).toEqual(['done']);
  });

  test('is, where a layer inside holds its parts back', async () => {
    const { clock, dispatcher } = trial(parts(1), { inside: [outputLimit({ limit: 100 })] });
    const result = dispatcher.dispatch({ name: 'tool' }, { onPart: () => {} });
    await clock.advance(10_000);
    expect((await result).content).toBe('run 2 done');
  });
});

test('a thousand at once do not disturb each other', async () => {
  const failures = new Map<number, number>();
  const flaky: Execute = (input) => {
    const { n } = input as { n: number };
    const count = (failures.get(n) ?? 0) + 1;
    failures.set(n, count);
    if (count <= n % 4) throw reset();
    return `${n}`;
  };
  const { clock, dispatch } = trial(flaky, { outside: [permission({ check: allowAll })] });
  const all = Promise.all(Array.from({ length: 1000 }, (_, n) => dispatch({ n })));
  await clock.advance(10_000);
  const results = await all;
  expect(results.every(({ isError, content }, n) => isError === (n % 4 === 3) && (isError || content === `${n}`))).toBe(
    true,
  );
  expect(clock.pending).toBe(0);
});

test.each([
  [{ attempts: 0 }, 'Option "attempts" of retry must be'],
  [{ attempts: Number.NaN }, 'Option "attempts" of retry must be'],
  [{ delayMs: -1 }, 'Option "delayMs" of retry must be milliseconds from 0 up to 2147483647; got -1.'],
  [{ maxDelayMs: Number.POSITIVE_INFINITY }, 'Option "maxDelayMs" of retry must be milliseconds'],
  [{ retryIf: true }, 'Option "retryIf" of retry must be'],
  [{ retries: 3 }, 'retry has no option "retries"'],
])('%j is refused', (options, message) => {
  expect(() => retry(options as never)).toThrow(message);
});
