import { describe, expect, test } from '@jest/globals';
import { createDispatcher, defineTool, PermissionCheck } from 'toolonion';
import { circuitBreaker, fallback, permission, standard, ToolHealth, validation } from 'toolonion/middleware';
import { ManualClock } from '../support/manual-clock.ts';

function trial(down: ReadonlySet<string>, alternatives: readonly string[] = ['second', 'third']) {
  const clock = new ManualClock();
  const health = new ToolHealth({ failures: 1, clock });
  const judged: string[] = [];
  const tools = ['first', 'second', 'third'].map((name) =>
    defineTool({
      name,
      description: '…',
      // The third wants what the others do not.
      inputSchema: { type: 'object', properties: { q: { type: 'string' } }, required: name === 'third' ? ['q'] : [] },
      execute: () => {
        if (down.has(name)) throw Object.assign(new Error('x'), { code: 'ECONNREFUSED' });
        return `By ${name}.`;
      },
    }),
  );
  const check = ({ toolName }: { readonly toolName: string }) => {
    judged.push(toolName);
    return toolName === 'second' && down.has('denied') ? PermissionCheck.deny('No.') : PermissionCheck.allow();
  };
  const dispatcher = createDispatcher({
    tools,
    middleware: [
      fallback({ tools: { first: alternatives }, health }),
      validation(),
      permission({ check }),
      circuitBreaker({ health }),
    ],
    clock,
  });
  const call = (input = {}) => dispatcher.dispatch({ name: 'first', arguments: input });
  return { clock, health, judged, call };
}

describe('a tool that keeps failing', () => {
  test('is stood in for by the first that does well, which is judged as any call is, and the model is told', async () => {
    const { call, judged } = trial(new Set(['first']));
    expect((await call()).error?.code).toBe('io');
    expect(await call()).toMatchObject({
      content: 'By second.',
      resolvedToolName: 'second',
      requested: { name: 'first' },
      notes: [
        {
          type: 'rerouted',
          by: 'fallback',
          forModel: true,
          message: 'Tool "second" was called in the place of "first", which keeps failing.',
        },
      ],
    });
    expect(judged).toEqual(['first', 'second']);
  });

  test('is stood in for by the next where that fails as well, whose arguments are checked', async () => {
    const { call } = trial(new Set(['first', 'second']));
    await call();
    await call();
    expect((await call()).error?.code).toBe('invalid_arguments');
    expect((await call({ q: 'x' })).content).toBe('By third.');
  });

  test('J03: is not stood in for by what is not allowed', async () => {
    const { call } = trial(new Set(['first', 'denied']));
    await call();
    expect(await call()).toMatchObject({ resolvedToolName: 'second', error: { code: 'denied', executed: 'no' } });
  });

  test('is called itself where none does well, or where none is there', async () => {
    const all = trial(new Set(['first', 'second', 'third']));
    for (const input of [{}, {}, { q: 'x' }]) await all.call(input);
    expect(await all.call({ q: 'x' })).toMatchObject({ resolvedToolName: 'first', error: { code: 'circuit_open' } });
    const none = trial(new Set(['first']), ['ghost']);
    await none.call();
    expect((await none.call()).error?.code).toBe('circuit_open');
  });

  test('is called again itself once it has had time to recover', async () => {
    const down = new Set(['first']);
    const { call, clock } = trial(down);
    await call();
    down.delete('first');
    await clock.advance(30_000);
    expect(await call()).toMatchObject({ content: 'By first.', notes: [] });
  });
});

test('a tool that failed once, or has recovered, is called itself: what is not called could not do better', async () => {
  const health = new ToolHealth();
  let runs = 0;
  const tools = ['first', 'second'].map((name) =>
    defineTool({
      name,
      description: '…',
      execute: () => {
        if (name === 'first' && ++runs === 1) throw Object.assign(new Error('x'), { code: 'ECONNRESET' });
        return name;
      },
    }),
  );
  const middleware = [fallback({ tools: { first: ['second'] }, health }), circuitBreaker({ health })];
  const dispatcher = createDispatcher({ tools, middleware });
  for (let call = 0; call < 50; call++) await dispatcher.dispatch({ name: 'first' });
  expect(runs).toBe(50);
});

test('J03: what a gate allows still has to pass the breaker', async () => {
  const health = new ToolHealth({ failures: 1 });
  health.admit('tool')?.settle('failure', 1);
  const tool = defineTool({ name: 'tool', description: '…', execute: () => 'Done.' });
  const middleware = [permission({ check: () => PermissionCheck.allow() }), circuitBreaker({ health })];
  expect((await createDispatcher({ tools: [tool], middleware }).dispatch({ name: 'tool' })).error?.code).toBe(
    'circuit_open',
  );
});

test('it stands where standard puts it, outside validation', () => {
  const health = new ToolHealth();
  const names = standard({ permission: false, loopGuard: {}, fallback: { tools: { a: ['b'] }, health } }).map(
    ({ name }) => name,
  );
  expect(names.slice(0, 4)).toEqual(['logging', 'loopGuard', 'fallback', 'validation']);
});

test.each([
  [
    { tools: { a: ['a'] }, health: new ToolHealth() },
    'Option "tools" of fallback must be lists of other tools by tool',
  ],
  [{ tools: { a: [] }, health: new ToolHealth() }, 'Option "tools" of fallback must be'],
  [{ tools: { a: ['b'] }, health: {} }, 'Option "health" of fallback must be the ToolHealth of a circuitBreaker'],
  [{ tools: { a: ['b'] } }, 'fallback takes "tools", which stand in for which, and the "health" of a circuitBreaker.'],
])('%j is refused', (options, message) => {
  expect(() => fallback(options as never)).toThrow(message);
});
