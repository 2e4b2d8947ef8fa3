import { describe, expect, test } from '@jest/globals';
import { createDispatcher, defineTool, ToolContext, type ToolDispatchResult } from 'toolonion';
import { allowAll, type BudgetOptions, budget, denyAll, permission, retry, validation } from 'toolonion/middleware';
import { ManualClock } from '../support/manual-clock.ts';

const tools = ['search', 'read'].map((name) =>
  defineTool({ name, description: '…', readOnly: true, execute: () => `This is ${name}.` }),
);

function dispatcherOf(options: BudgetOptions) {
  return createDispatcher({ tools, middleware: [budget(options)] });
}

const codes = (results: readonly ToolDispatchResult[]) => results.map(({ error }) => error?.code ?? 'ok');
const calls = (...names: readonly string[]) => names.map((name) => ({ name }));

describe('M07: a limit of one tool', () => {
  test('answers the model, and does not throw', async () => {
    const dispatcher = dispatcherOf({ callsPerTool: { byTool: { search: 3 } } });
    const results = await dispatcher.dispatchAll(calls('search', 'search', 'read', 'search', 'search', 'read'));
    expect(codes(results)).toEqual(['ok', 'ok', 'ok', 'ok', 'budget_exceeded', 'ok']);
    expect(results[4]).toMatchObject({
      content:
        'Tool "search" may be called 3 times here, which has been done. Do not make this call again: go on with what you have.',
      error: { retryable: false, executed: 'no' },
    });
  });

  test('counts for each session, user or whatever has a budget of its own', async () => {
    const bySession = dispatcherOf({ callsPerTool: 1 });
    const [one, other] = [new ToolContext(), new ToolContext()];
    for (const context of [one, other])
      expect((await bySession.dispatch({ name: 'read' }, { context })).isError).toBe(false);
    for (const context of [one, one.with({ cwd: '/tmp' })])
      expect(codes([await bySession.dispatch({ name: 'read' }, { context })])).toEqual(['budget_exceeded']);
    const byUser = dispatcherOf({ calls: 1, scope: ({ context }) => context.userContext.get('user') ?? '' });
    const of = (user: string) => ({ context: new ToolContext({ userContext: { user } }) });
    const results = [];
    for (const user of ['ada', 'ada', 'bob']) results.push(await byUser.dispatch({ name: 'read' }, of(user)));
    expect(codes(results)).toEqual(['ok', 'budget_exceeded', 'ok']);
  });
});

describe('Q03: a limit of all calls together', () => {
  test('refuses the one beyond it, whichever tool it is of, and says so to the model', async () => {
    const dispatcher = dispatcherOf({ calls: 5 });
    const results = await dispatcher.dispatchAll(calls('read', 'search', 'read', 'search', 'read', 'search'));
    expect(codes(results)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok', 'budget_exceeded']);
    expect(results[5]?.content).toMatch(/^Tools may be called 5 times here, which has been done\. Do not /);
  });

  test('is kept by calls that come together', async () => {
    const slow = defineTool({ name: 'slow', description: '…', concurrencySafe: true, execute: async () => 'Done.' });
    const dispatcher = createDispatcher({ tools: [slow], middleware: [budget({ calls: 10 })] });
    const results = await Promise.all(Array.from({ length: 1000 }, () => dispatcher.dispatch({ name: 'slow' })));
    expect(codes(results).filter((code) => code === 'ok').length).toBe(10);
  });

  test('counts a failure, and not what was denied, invalid or refused by it', async () => {
    const fails = defineTool({
      name: 'fails',
      description: '…',
      inputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
      execute: () => Promise.reject(new Error('x')),
    });
    const of = (check: typeof allowAll) =>
      createDispatcher({ tools: [fails], middleware: [validation(), permission({ check }), budget({ calls: 2 })] });
    const dispatcher = of(allowAll);
    const results = [];
    for (const input of [{}, { n: 'x' }, { n: 1 }, { n: 1 }, { n: 1 }, { n: 1 }])
      results.push(await dispatcher.dispatch({ name: 'fails', arguments: input }));
    expect(codes(results)).toEqual([
      ...['invalid_arguments', 'invalid_arguments', 'execution_failed', 'execution_failed'],
      ...['budget_exceeded', 'budget_exceeded'],
    ]);
    const denied = of(denyAll);
    for (let call = 0; call < 5; call++)
      expect(codes([await denied.dispatch({ name: 'fails', arguments: { n: 1 } })])).toEqual(['denied']);
  });

  test('counts the attempts of one call as one', async () => {
    const clock = new ManualClock();
    let runs = 0;
    const flaky = defineTool({
      name: 'flaky',
      description: '…',
      idempotent: true,
      execute: () => {
        if (++runs < 3) throw new Error('x');
        return 'Done.';
      },
    });
    const middleware = [budget({ calls: 1 }), retry()];
    const result = createDispatcher({ tools: [flaky], middleware, clock }).dispatch({ name: 'flaky' });
    await clock.advance(10_000);
    expect((await result).content).toBe('Done.');
  });
});

test('none at all is a limit as well', async () => {
  const dispatcher = dispatcherOf({ callsPerTool: { byTool: { search: 0 } } });
  const [refused, other] = await dispatcher.dispatchAll(calls('search', 'read'));
  expect(refused?.content).toMatch(/^Tool "search" may be called not at all here\./);
  expect(other?.isError).toBe(false);
});

test('of many scopes the one used longest ago is forgotten, and names no tool has are not kept', async () => {
  let user = 0;
  const dispatcher = dispatcherOf({ calls: 1, scope: () => `${user}`, maxScopes: 3 });
  const of = async (next: number) => {
    user = next;
    return codes([await dispatcher.dispatch({ name: 'read' })])[0];
  };
  for (const next of [1, 2, 3]) expect(await of(next)).toBe('ok');
  expect([await of(1), await of(4), await of(1), await of(2)]).toEqual([
    'budget_exceeded',
    'ok',
    'budget_exceeded',
    'ok',
  ]);
  const named = dispatcherOf({ callsPerTool: 1 });
  for (const name of ['ghost', 'ghost']) expect((await named.dispatch({ name })).error?.code).toBe('not_found');
});

test.each([async () => 'u', () => ({}), () => undefined, async () => Promise.reject(new Error('x'))])(
  'a scope that is no text lets nothing pass: %p',
  async (scope) => {
    const result = await dispatcherOf({ calls: 1, scope: scope as never }).dispatch({ name: 'read' });
    expect(result.error).toMatchObject({ code: 'internal', executed: 'no' });
  },
);

test('a call that is only judged costs nothing', async () => {
  const dispatcher = createDispatcher({ tools, middleware: [budget({ calls: 1 }), permission({ check: allowAll })] });
  for (let time = 0; time < 3; time++) await dispatcher.judge({ name: 'read' });
  expect((await dispatcher.dispatch({ name: 'read' })).isError).toBe(false);
});

test.each([
  [{}, 'budget takes "calls", "callsPerTool" or both: how many calls there may be.'],
  [{ calls: -1 }, 'Option "calls" of budget must be'],
  [{ calls: Number.NaN }, 'Option "calls" of budget must be'],
  [{ callsPerTool: { byTool: { search: 1.5 } } }, 'Option "callsPerTool'],
  [{ calls: 1, maxScopes: 0 }, 'Option "maxScopes" of budget must be'],
  [{ calls: 1, key: () => '' }, 'budget has no option "key"'],
])('%j is refused', (options, message) => {
  expect(() => budget(options as never)).toThrow(message);
});
