import { expect, test } from '@jest/globals';
import { createDispatcher, defineTool, type Middleware, named } from 'toolonion';
import { allowAll, denyAll, type StandardOptions, standard, ToolHealth } from 'toolonion/middleware';

const ORDER = ['logging', 'validation', 'permission', 'outputLimit', 'outputValidation', 'timeout'];

function namesOf(options: StandardOptions): readonly string[] {
  return standard(options).map(({ name }) => name);
}

test('the layers come in their order, outermost first, whatever the order of the options', () => {
  expect(namesOf({ permission: { check: allowAll } })).toEqual(ORDER);
  expect(namesOf({ timeout: { limitMs: 5 }, permission: {}, validation: {} })).toEqual(ORDER);
});

test('those that are left out by default have their places where they are asked for', () => {
  const asked = {
    alias: {},
    unknownTool: {},
    loopGuard: {},
    fallback: { tools: { a: ['b'] }, health: new ToolHealth() },
    prepareArguments: {},
    budget: { calls: 9 },
    schedule: {},
    circuitBreaker: {},
    retry: {},
  };
  const names = namesOf({ permission: { check: allowAll }, ...asked });
  expect(names).toEqual([
    ...[
      'logging',
      'alias',
      'unknownTool',
      'loopGuard',
      'fallback',
      'prepareArguments',
      'validation',
      'permission',
      'budget',
      'schedule',
      'circuitBreaker',
      'retry',
    ],
    ...['outputLimit', 'outputValidation', 'timeout'],
  ]);
  for (const layer of Object.keys(asked))
    expect(namesOf({ permission: { check: allowAll }, ...asked, [layer]: false })).toEqual(
      names.filter((name) => name !== layer),
    );
});

test('a dispatcher takes them as they are', async () => {
  const greet = defineTool({ name: 'greet', description: 'Greets.', execute: () => 'hello' });
  const middleware = standard({ logging: false, permission: { check: allowAll } });
  const dispatcher = createDispatcher({ tools: [greet], middleware });
  expect(dispatcher.middlewareNames).toEqual(ORDER.slice(1));
  expect((await dispatcher.dispatch({ name: 'greet' })).content).toBe('hello');
});

test.each(ORDER)('%s is left out where it is false', (layer) => {
  const options = { permission: { check: allowAll }, [layer]: false };
  expect(namesOf(options)).toEqual(ORDER.filter((name) => name !== layer));
});

test.each(ORDER)('a middleware takes the place of %s', (layer) => {
  const own: Middleware = named('own', (call, next) => next(call));
  const layers = standard({ permission: { check: allowAll }, [layer]: own });
  expect(layers.map(({ name }) => name)).toEqual(ORDER.map((name) => (name === layer ? 'own' : name)));
  expect(layers[ORDER.indexOf(layer)]).toBe(own);
});

test('options reach their layer', async () => {
  const shout = defineTool({ name: 'shout', description: 'Shouts.', execute: () => 'A'.repeat(1000) });
  const dispatcher = createDispatcher({
    tools: [shout],
    middleware: standard({ logging: false, permission: { check: allowAll }, outputLimit: { limit: 200 } }),
  });
  expect((await dispatcher.dispatch({ name: 'shout' })).notes).toMatchObject([{ by: 'outputLimit' }]);
  const closed = dispatcher.with({ middleware: standard({ logging: false, permission: { check: denyAll } }) });
  expect((await closed.dispatch({ name: 'shout' })).error?.code).toBe('denied');
});

test.each([[{}], [{ permission: undefined }], [undefined], [{ validation: false }]])(
  'what may run has to be said: %j is refused',
  (options) => {
    expect(() => standard(options as unknown as StandardOptions)).toThrow(
      'Option "permission" of standard must be given: what may run, as in { check: readOnlyAllowed }, or false.',
    );
  },
);

test.each<[unknown, string]>([
  [
    { permission: false, retries: {} },
    'standard has no option "retries". Its options: logging, alias, unknownTool, loopGuard, fallback, prepareArguments, validation, permission',
  ],
  [{ permission: true }, 'Option "permission" of standard must be options, a middleware, or false; got true.'],
  [{ permission: null }, 'Option "permission" of standard must be options, a middleware, or false; got null.'],
  [{ permission: false, timeout: 5000 }, 'Option "timeout" of standard must be options, a middleware, or false'],
  [{ permission: false, timeout: { limit: 5 } }, 'timeout has no option "limit"'],
  [{ permission: [] }, 'permission takes its options as an object.'],
  ['all', 'standard takes its options as an object.'],
])('%j is refused, and what is allowed is said', (options, says) => {
  expect(() => standard(options as StandardOptions)).toThrow(says);
});

test('a rule that is given in the place of the layer is refused, and where it belongs is said', () => {
  for (const permission of [allowAll, denyAll, (() => true) as never])
    expect(() => standard({ permission: permission as never })).toThrow('takes a rule as { check: rule }');
});
