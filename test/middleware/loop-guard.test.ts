import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  createDispatcher,
  type Dispatcher,
  defineTool,
  forModel,
  type ToolCall,
  type ToolCallRequest,
  ToolContext,
  textOf,
} from 'toolonion';
import { allowAll, type LoopGuardOptions, loopGuard, permission, standard, validation } from 'toolonion/middleware';

function dispatcherOf(options: LoopGuardOptions = {}) {
  const tools = ['read', 'write', 'job_status'].map((name) =>
    defineTool({
      name,
      description: '…',
      inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
      execute: () => 'Done.',
    }),
  );
  return createDispatcher({ tools, middleware: [loopGuard(options), validation(), permission({ check: allowAll })] });
}

/** What becomes of calls, one after the other: `ok`, `told` or the code. */
async function outcomes(calls: readonly ToolCallRequest[], options?: LoopGuardOptions): Promise<readonly string[]> {
  const dispatcher = dispatcherOf(options);
  const found: string[] = [];
  for (const call of calls) {
    const { error, notes } = await dispatcher.dispatch(call);
    found.push(error?.code ?? (notes.some(({ by }) => by === 'loopGuard') ? 'told' : 'ok'));
  }
  return found;
}

const times = (count: number, ...calls: readonly ToolCallRequest[]) =>
  Array.from({ length: count }, () => calls).flat();
const read = { name: 'read', arguments: { a: 1, b: 2 } };
const write = { name: 'write', arguments: { a: 1 } };

describe('Q01: the same call', () => {
  test('three times in a row: the model is told, and refused in the end, whatever the order of the keys', async () => {
    const shuffled = [read, { name: 'read', arguments: '{"b":2,"a":1}' }, { name: 'read', arguments: { b: 2, a: 1 } }];
    expect(await outcomes([...shuffled, read, read, read])).toEqual([
      ...['ok', 'ok', 'told', 'told', 'loop_detected', 'loop_detected'],
    ]);
  });

  test('with arguments that cannot be read is the same as well', async () => {
    const broken = { name: 'read', arguments: '{"a": one}' };
    const code = 'invalid_arguments';
    expect(await outcomes(times(6, broken))).toEqual([code, code, code, code, 'loop_detected', 'loop_detected']);
    const other = { name: 'read', arguments: '{"a": two}' };
    expect(await outcomes(times(6, broken, other), { maxPeriod: 1 })).not.toContain('loop_detected');
  });

  test('of a tool that there is not is the same as well', async () => {
    expect(await outcomes(times(5, { name: 'ghost' }))).toEqual([...times(4, 'not_found' as never), 'loop_detected']);
  });

  test('is no loop for tools that are to be asked again', async () => {
    expect(await outcomes(times(20, { name: 'job_status' }), { except: ['*_status'] })).toEqual(
      times(20, 'ok' as never),
    );
  });

  test('is told so that the model reads it', async () => {
    const dispatcher = dispatcherOf();
    const results = [];
    for (const call of times(5, read)) results.push(await dispatcher.dispatch(call));
    expect(textOf(forModel(results[2] as (typeof results)[0]))).toBe(
      'Done.\n\n[The same call came 3 times in a row. Do something else.]',
    );
    expect(results[4]).toMatchObject({
      content:
        'The same call came 5 times in a row. It is not run again: do something else, or say what is in the way.',
      error: { executed: 'no', retryable: false },
    });
  });

  test('is forgotten once there is another', async () => {
    expect(await outcomes([...times(4, read), write, ...times(3, read)])).toEqual([
      ...['ok', 'ok', 'told', 'told', 'ok', 'ok', 'ok', 'told'],
    ]);
  });

  test('of another session is another', async () => {
    const dispatcher = dispatcherOf();
    for (let call = 0; call < 20; call++)
      expect((await dispatcher.dispatch(read, { context: new ToolContext() })).notes).toEqual([]);
  });

  test('is one for calls that come together', async () => {
    const results = await dispatcherOf().dispatchAll(times(10, read));
    expect(results.filter(({ isError }) => isError).length).toBe(6);
  });
});

describe('the same calls in turn', () => {
  test.each([2, 3, 4, 5])(
    '%i of them: the model is told the third time round, and refused the fifth',
    async (period) => {
      const cycle = Array.from({ length: period }, (_, a) => ({ name: 'read', arguments: { a } }));
      const found = await outcomes(times(6, ...cycle));
      expect(found.indexOf('told')).toBe(3 * period - 1);
      expect(found.indexOf('loop_detected')).toBe(5 * period - 1);
      expect(found.slice(5 * period)).toEqual(times(period, 'loop_detected' as never));
    },
  );

  test('more than are looked at are no loop', async () => {
    const cycle = Array.from({ length: 6 }, (_, a) => ({ name: 'read', arguments: { a } }));
    expect(await outcomes(times(6, ...cycle))).toEqual(times(36, 'ok' as never));
  });

  test('are found as they are by counting, whatever calls come', async () => {
    const names = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(names, fc.integer({ min: 1, max: 4 }), async (all, maxPeriod) => {
        const calls = all.map((name) => ({ name: 'read', arguments: { a: name.charCodeAt(0) } }));
        const found = await outcomes(calls, { maxPeriod, warnAt: 2, refuseAt: 3 });
        for (const [place, outcome] of found.entries()) {
          const most = Math.max(
            ...Array.from({ length: maxPeriod }, (_, index) => repeats(all.slice(0, place + 1), index + 1)),
          );
          expect(outcome).toBe(most >= 3 ? 'loop_detected' : most >= 2 ? 'told' : 'ok');
        }
      }),
      { numRuns: 200 },
    );
  });
});

/** How often the last few stand at the end, one after the other. */
function repeats(all: readonly string[], period: number): number {
  const last = all.slice(-period).join();
  let count = 0;
  for (let end = all.length; end >= period && all.slice(end - period, end).join() === last; end -= period) count++;
  return Math.max(1, count);
}

test('a call that a tool makes is none', async () => {
  const inner = defineTool({ name: 'inner', description: '…', execute: () => 'Done.' });
  const outer = defineTool({
    name: 'outer',
    description: '…',
    execute: async (_: unknown, call: ToolCall) => {
      const results = [];
      for (let time = 0; time < 9; time++)
        results.push((await dispatcher.dispatch({ name: 'inner' }, { parent: call })).isError);
      return String(results.some(Boolean));
    },
  });
  const dispatcher: Dispatcher = createDispatcher({ tools: [inner, outer], middleware: [loopGuard()] });
  expect((await dispatcher.dispatch({ name: 'outer' })).content).toBe('false');
});

test('a call that is only judged is none', async () => {
  const dispatcher = dispatcherOf();
  for (let time = 0; time < 9; time++) await dispatcher.judge(read);
  expect((await dispatcher.dispatch(read)).notes).toEqual([]);
});

test('of many scopes the one used longest ago is forgotten', async () => {
  let run = '';
  const dispatcher = dispatcherOf({ scope: () => run, maxScopes: 2, warnAt: 2, refuseAt: 3 });
  const told = async (next: string) => {
    run = next;
    return (await dispatcher.dispatch(read)).notes.length;
  };
  expect([await told('a'), await told('b'), await told('a'), await told('c'), await told('b')]).toEqual([
    0, 0, 1, 0, 0,
  ]);
});

test('it stands where standard puts it, outside validation', () => {
  const names = standard({ permission: false, loopGuard: {}, unknownTool: {} }).map(({ name }) => name);
  expect(names.slice(0, 4)).toEqual(['logging', 'unknownTool', 'loopGuard', 'validation']);
});

test.each([
  [{ warnAt: 1 }, 'Option "warnAt" of loopGuard must be a whole number of at least 2; got 1.'],
  [{ refuseAt: 3 }, 'Option "refuseAt" of loopGuard must be more than "warnAt", which is 3; got 3.'],
  [{ maxPeriod: 0 }, 'Option "maxPeriod" of loopGuard must be'],
  [{ maxPeriod: 1e9 }, 'Option "maxPeriod" of loopGuard must be a whole number from 1 to 100'],
  [{ except: 'read' }, 'Option "except" of loopGuard must be an array of names'],
  [{ maxScopes: Number.NaN }, 'Option "maxScopes" of loopGuard must be'],
  [{ repeats: 3 }, 'loopGuard has no option "repeats"'],
])('%j is refused', (options, message) => {
  expect(() => loopGuard(options as never)).toThrow(message);
});
