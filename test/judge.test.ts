import { describe, expect, test } from '@jest/globals';
import {
  type Approver,
  approvedBy,
  createDispatcher,
  type DispatcherOptions,
  type DispatchOptions,
  defineTool,
  type Middleware,
  PermissionCheck,
  type StreamOptions,
  ToolContext,
} from 'toolonion';
import {
  allowAll,
  denyAll,
  type PermissionOptions,
  permission,
  readOnlyAllowed,
  rules,
  standard,
  validation,
} from 'toolonion/middleware';

/** A tool that counts its runs, behind a gate. */
function setUp(gate: PermissionOptions, options: DispatcherOptions = {}) {
  const runs: unknown[] = [];
  const write = defineTool({
    name: 'write',
    description: 'Writes a file.',
    inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    execute: (input) => {
      runs.push(input);
      return 'written';
    },
  });
  const middleware = [validation(), permission(gate)];
  return { runs, dispatcher: createDispatcher({ tools: [write], middleware, ...options }) };
}

const call = { id: 'c1', name: 'write', arguments: '{"path":"a.md"}' };
const asking = { check: rules({ ask: ['write'] }) };

describe('judge', () => {
  test('tells that a call would run, and does not run it', async () => {
    const { dispatcher, runs } = setUp({ check: allowAll });
    expect(await dispatcher.judge(call)).toEqual({ type: 'run' });
    expect(runs).toEqual([]);
    expect(await dispatcher.dispatch(call)).toMatchObject({ toolCallId: 'c1', content: 'written' });
    // It is the same for all, so nobody may change it.
    expect(Object.isFrozen(await dispatcher.judge(call))).toBe(true);
  });

  test('tells that somebody would be asked, and asks nobody', async () => {
    const approver: Approver = () => {
      throw new Error('nobody is to be asked');
    };
    for (const hasApprover of [false, true]) {
      const { dispatcher, runs } = setUp(hasApprover ? { ...asking, approver } : asking);
      expect(await dispatcher.judge(call)).toEqual({
        type: 'ask',
        toolName: 'write',
        prompt: 'Run "write"?',
        input: { path: 'a.md' },
        isEdited: false,
        hasApprover,
        limitMs: 300_000,
      });
      expect(runs).toEqual([]);
    }
  });

  test('tells the arguments as the gate edits them', async () => {
    const input = { path: '/tmp/a.md' };
    const { dispatcher } = setUp({ check: [() => PermissionCheck.modify(input), rules({ ask: ['write'] })] });
    expect(await dispatcher.judge(call)).toMatchObject({ type: 'ask', input, isEdited: true });
    expect(await setUp({ check: () => PermissionCheck.modify(input) }).dispatcher.judge(call)).toEqual({ type: 'run' });
  });

  test('gives the result where the call would be answered without being run', async () => {
    const { dispatcher } = setUp({ check: rules({ deny: ['write'] }) });
    const codeOf = async (request: typeof call, options?: StreamOptions) => {
      const judgement = await dispatcher.judge(request, options);
      return judgement.type === 'answer' ? judgement.result.error?.code : judgement.type;
    };
    expect(await codeOf(call)).toBe('denied');
    expect(await codeOf({ ...call, arguments: '{}' })).toBe('invalid_arguments');
    expect(await codeOf({ ...call, arguments: 'path: a' })).toBe('invalid_arguments');
    expect(await codeOf({ ...call, name: 'read' })).toBe('not_found');
    expect(await codeOf(call, { signal: AbortSignal.abort() })).toBe('cancelled');
    expect(await codeOf(null as unknown as typeof call)).toBe('invalid_call');
    expect(await codeOf(call, { onPart: () => {} } as StreamOptions)).toBe('invalid_call');
    expect(await codeOf(call, { settings: 7 } as unknown as StreamOptions)).toBe('invalid_call');
    await dispatcher.drain();
    expect(await codeOf(call)).toBe('cancelled');
  });

  test('gives the denial where nobody can be asked', async () => {
    const { dispatcher } = setUp(asking, { context: new ToolContext({ isNonInteractive: true }) });
    expect(await dispatcher.judge(call)).toMatchObject({ type: 'answer', result: { error: { code: 'denied' } } });
  });

  test('runs no tool where there is no gate, nor where the layers of a whole onion stand around it', async () => {
    for (const middleware of [[], standard({ permission: { check: allowAll }, logging: false, schedule: {} })]) {
      const { dispatcher, runs } = setUp({}, { middleware });
      expect(await dispatcher.judge(call)).toEqual({ type: 'run' });
      expect(runs).toEqual([]);
    }
  });

  test('runs no call that a layer makes for it', async () => {
    const { dispatcher, runs } = setUp({ check: allowAll });
    const nesting: Middleware = async (outer, next) => {
      await dispatcher.dispatch({ ...call, id: 'inner' }, { parent: outer });
      return next(outer);
    };
    const judgement = await dispatcher.with({ middleware: [nesting, ...dispatcher.middleware] }).judge(call);
    expect(judgement).toMatchObject({ type: 'run' });
    expect(runs).toEqual([]);
  });
});

test.each<readonly [boolean, PermissionOptions['check'] & object]>([
  [false, allowAll],
  [false, denyAll],
  [false, [rules({ allow: ['*'] }), rules({ deny: ['x'], otherwise: 'allow' })]],
  [true, rules({ ask: ['x'] })],
  [true, rules({ otherwise: 'ask' })],
  [true, readOnlyAllowed],
  [true, [allowAll, () => PermissionCheck.allow()]],
])('mayAsk is %s of a gate whose rules are %p', (mayAsk, check) => {
  expect(setUp({ check }).dispatcher.mayAsk).toBe(mayAsk);
});

describe('approvedBy', () => {
  const dispatchWith = (gate: PermissionOptions, approver: Approver, options: DispatchOptions = {}) =>
    setUp(gate).dispatcher.dispatch(call, { ...options, settings: [approvedBy(approver)] });

  test('has somebody else asked about one call, who sees what will run', async () => {
    const seen: unknown[] = [];
    const approver: Approver = ({ input, prompt, toolCallId }) => {
      seen.push([toolCallId, prompt, input]);
      return true;
    };
    expect(await dispatchWith(asking, approver)).toMatchObject({ content: 'written' });
    expect(await dispatchWith({ ...asking, approver: () => false }, approver)).toMatchObject({ content: 'written' });
    expect(seen).toEqual(Array(2).fill(['c1', 'Run "write"?', { path: 'a.md' }]));
  });

  test('asks nobody about a call that is allowed, or denied', async () => {
    const approver: Approver = () => {
      throw new Error('not asked');
    };
    expect(await dispatchWith({ check: allowAll }, approver)).toMatchObject({ content: 'written' });
    const denied = await dispatchWith({ check: rules({ deny: ['write'] }) }, approver);
    expect(denied).toMatchObject({ error: { code: 'denied' } });
  });

  test('denies where the approver denies, fails, or answers rubbish', async () => {
    const answers: readonly (() => unknown)[] = [
      () => false,
      () => PermissionCheck.deny('not today'),
      () => 'yes',
      () => Promise.reject(new Error('no')),
    ];
    for (const answer of answers) {
      expect(await dispatchWith(asking, answer as Approver)).toMatchObject({
        error: { code: 'denied', executed: 'no' },
      });
    }
  });

  test('takes a function', () => {
    expect(() => approvedBy(true as unknown as Approver)).toThrow('approvedBy takes an approver, a function.');
  });
});
