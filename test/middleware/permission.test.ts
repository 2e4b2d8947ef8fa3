import { getEventListeners } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import {
  type Clock,
  createDispatcher,
  type DispatcherOptions,
  type DispatchOptions,
  defineTool,
  forModel,
  type JsonObject,
  type MaybePromise,
  type Middleware,
  PermissionCheck,
  ToolContext,
  type ToolOutcome,
  type Validator,
} from 'toolonion';
import {
  type ApprovalRequest,
  type Approver,
  allowAll,
  denyAll,
  type PermissionOptions,
  type PermissionRule,
  permission,
  validation,
} from 'toolonion/middleware';
import { ManualClock, turns } from '../support/manual-clock.ts';

const ask: PermissionRule = () => PermissionCheck.ask('Shall it count?');
const { allow, deny, modify } = PermissionCheck;

/** A gated tool that takes a number, and what it was run with. */
function setUp(options: PermissionOptions, more: DispatcherOptions = {}) {
  const clock = new ManualClock();
  const ran: unknown[] = [];
  const count = defineTool({
    name: 'count',
    description: 'Counts.',
    inputSchema: {
      type: 'object',
      properties: { n: { type: 'number' }, unit: { type: 'string', default: 'sheep' } },
      required: ['n'],
    },
    execute: (input) => {
      ran.push(input);
      return 'counted';
    },
  });
  const middleware = [validation(), permission(options)];
  const dispatcher = createDispatcher({ tools: [count], middleware, clock, ...more });
  const dispatch = (input: JsonObject = { n: 1 }, dispatchOptions?: DispatchOptions) =>
    dispatcher.dispatch({ name: 'count', arguments: input }, dispatchOptions);
  return { clock, ran, dispatch, dispatcher };
}

/** An approver who answers when the test does. */
function person() {
  const requests: ApprovalRequest[] = [];
  const answers: ((answer: boolean) => void)[] = [];
  const approver: Approver = (request) => {
    requests.push(request);
    return new Promise((resolve) => answers.push(resolve));
  };
  return { approver, requests, answers };
}

test('P07: a rule or an approver that suspends the call is no failure, and nothing runs', async () => {
  let ran = false;
  const tool = defineTool({
    name: 'tool',
    description: 'A tool.',
    execute: () => {
      ran = true;
    },
  });
  let suspend = (): unknown => undefined;
  const watch: Middleware = (call, next) => {
    suspend = () => call.suspend({ reason: 'Asked by mail.' });
    return next(call);
  };
  const throwing = (): never => {
    throw suspend();
  };
  const ways = [
    permission({ check: throwing }),
    permission({ check: async () => throwing() }),
    permission({ check: () => suspend() as never }),
    permission({ check: () => PermissionCheck.ask('?'), approver: async () => throwing() }),
  ];
  for (const gate of ways) {
    const result = await createDispatcher({ tools: [tool], middleware: [watch, gate] }).dispatch({ name: 'tool' });
    expect(result).toMatchObject({ isError: false, content: 'Asked by mail.', control: { type: 'suspend' } });
  }
  expect(ran).toBe(false);
});

describe('closed by default', () => {
  test('a gate without rules denies everything', async () => {
    const { dispatch, ran } = setUp({});
    const result = await dispatch();
    expect(result.error).toMatchObject({ code: 'denied', executed: 'no', retryable: false });
    expect(result.content).toBe(
      'The call of tool "count" was denied: no permission rules are set up. Do not make the same call again.',
    );
    expect(ran).toEqual([]);
  });

  test.each<[string, () => unknown, string]>([
    ['throws', () => raise('secret'), 'its permission check failed'],
    ['rejects', () => Promise.reject(new Error('secret')), 'its permission check failed'],
    ['rejects with nothing', () => Promise.reject(), 'its permission check failed'],
    ['never settles', () => new Promise(() => {}), 'its permission check took longer than 30000 ms'],
    ['answers nothing', () => undefined, 'its permission check gave no valid answer'],
    ['answers nothing later', async () => undefined, 'its permission check gave no valid answer'],
    ['misspells its answer', () => ({ decison: 'allow' }), 'its permission check gave no valid answer'],
    ['answers true', () => true, 'its permission check gave no valid answer'],
    ['answers text', () => 'allow', 'its permission check gave no valid answer'],
    ['asks without a prompt', () => ({ type: 'ask' }), 'its permission check gave no valid answer'],
    ['denies without words', () => ({ type: 'deny', reason: 5 }), 'its permission check gave no valid answer'],
    ['edits without arguments', () => ({ type: 'modify' }), 'its permission check gave no valid answer'],
    ['edits to what JSON cannot hold', () => modify({ n: 1n } as never), 'its permission check failed'],
    ['edits to such later', async () => modify({ n: new Date() } as never), 'its permission check failed'],
    ['answers what cannot be read', () => unreadable('type'), 'its permission check failed'],
    ['answers a broken promise', () => unreadable('then'), 'its permission check failed'],
    [
      'answers a promise that throws',
      () => Object.fromEntries([['then', () => raise('secret')]]),
      'its permission check failed',
    ],
  ])('J01: a rule that %s denies the call, and says why', async (_, rule, reason) => {
    const { clock, dispatch, ran } = setUp({ check: rule as PermissionRule, approver: () => true });
    const running = dispatch();
    await clock.advance(30_000);
    const result = await running;
    expect(result.error).toMatchObject({ code: 'denied', executed: 'no' });
    expect(result.content).toBe(`The call of tool "count" was denied: ${reason}. Do not make the same call again.`);
    expect(ran).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  test.each<[string, readonly PermissionRule[]]>([
    ['throws while another rejects later', [() => raise('now'), rejectLater, allowAll]],
    ['rejects later while another throws', [rejectLater, allowAll, () => raise('now')]],
    ['rejects later, and so does another', [rejectLater, rejectLater, rejectLater]],
    ['denies while another rejects later', [denyAll, rejectLater]],
    ['rejects later while another answers rubbish', [rejectLater, () => undefined as never]],
  ])('J01: where one of several rules %s, the call is denied and nothing is left to reject', async (_, check) => {
    const { dispatch, ran, clock } = setUp({ check });
    const result = await dispatch();
    await turns();
    expect(result.error?.code).toBe('denied');
    expect(ran).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  test('what a rule threw is for the log, never for the model', async () => {
    const { dispatch } = setUp({ check: () => raise('the password is swordfish') });
    const result = await dispatch();
    expect(JSON.stringify(result)).not.toContain('swordfish');
    expect(result.error?.cause).toMatchObject({ message: 'the password is swordfish' });
  });

  test('an abort ends the wait for a rule at once, and leaves nothing behind', async () => {
    const signals: AbortSignal[] = [];
    const check: PermissionRule = (call) => {
      signals.push(call.signal);
      return new Promise(() => {});
    };
    const { dispatch, ran, clock } = setUp({ check, checkLimitMs: Number.POSITIVE_INFINITY });
    const caller = new AbortController();
    const running = dispatch({ n: 1 }, { signal: caller.signal });
    await turns();
    expect(clock.pending).toBe(0);
    caller.abort();
    const result = await running;
    expect(result.error).toMatchObject({ code: 'cancelled', executed: 'no' });
    expect(ran).toEqual([]);
    for (const signal of [caller.signal, ...signals]) expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('G10: a call that is aborted already is neither judged nor asked about', async () => {
    let judged = 0;
    const { approver, requests } = person();
    const check: PermissionRule = () => {
      judged++;
      return PermissionCheck.ask('Shall it count?');
    };
    const { dispatch, ran } = setUp({ check, approver }, { middleware: [permission({ check, approver })] });
    const result = await dispatch({ n: 1 }, { signal: AbortSignal.abort() });
    expect(result.error).toMatchObject({ code: 'cancelled', executed: 'no' });
    expect([judged, requests, ran]).toEqual([0, [], []]);
  });
});

describe('several rules', () => {
  const answers = {
    allow: () => allow(),
    modify: () => modify({ n: 2 }),
    ask: () => PermissionCheck.ask('Shall it count?'),
    deny: () => deny('no counting'),
  };

  test.each<[string, readonly (keyof typeof answers)[], string]>([
    ['all allow', ['allow', 'allow', 'allow'], 'ran with 1'],
    ['one edits', ['allow', 'modify', 'allow'], 'ran with 2'],
    ['one asks', ['allow', 'ask', 'allow'], 'asked about 1, ran with 1'],
    ['one asks and one edits', ['ask', 'modify', 'allow'], 'asked about 2, ran with 2'],
    ['one edits and one asks', ['modify', 'allow', 'ask'], 'asked about 2, ran with 2'],
    ['the last denies', ['allow', 'modify', 'ask', 'deny'], 'denied'],
    ['the first denies', ['deny', 'ask', 'modify', 'allow'], 'denied'],
  ])('J02: where %s, the strictest counts, whatever the order', async (_, types, happens) => {
    for (const later of [false, true]) {
      const seen: string[] = [];
      const check = types.map((type, index) => {
        const rule = answers[type];
        return later && index % 2 === 0 ? async () => rule() : rule;
      });
      const approver: Approver = ({ input }) => seen.push(`asked about ${(input as { n: number }).n}`) > 0;
      const { dispatch, ran } = setUp({ check, approver });
      const result = await dispatch();
      expect(result.notes).toHaveLength(happens.endsWith('ran with 2') ? 1 : 0);
      for (const input of ran) seen.push(`ran with ${(input as { n: number }).n}`);
      expect(seen.join(', ') || result.error?.code).toBe(happens);
    }
  });

  test('J03: where one rule asks and another denies, nobody is asked and nothing runs', async () => {
    const { approver, requests } = person();
    const { dispatch, ran } = setUp({ check: [ask, async () => deny('never')], approver });
    expect((await dispatch()).content).toContain('denied: never.');
    expect(requests).toEqual([]);
    expect(ran).toEqual([]);
  });

  test('the edits of all rules are made, one after the other', async () => {
    const check: PermissionRule[] = [
      (call) => modify({ ...(call.input as JsonObject), n: 7 }),
      (call) => modify({ ...(call.input as JsonObject), unit: 'goats' }),
    ];
    const { dispatch, ran } = setUp({ check });
    await dispatch();
    expect(ran).toEqual([{ n: 7, unit: 'goats' }]);
  });

  test('rules that undo each other’s edits deny the call', async () => {
    const { dispatch, ran } = setUp({ check: [() => modify({ n: 1 }), () => modify({ n: 2 })] });
    expect((await dispatch()).content).toContain('denied: its arguments were edited again and again.');
    expect(ran).toEqual([]);
  });

  test('a list of rules that is changed later changes nothing', async () => {
    const check: PermissionRule[] = [denyAll];
    const { dispatch } = setUp({ check });
    check[0] = allowAll;
    expect((await dispatch()).error?.code).toBe('denied');
  });
});

describe('a denial', () => {
  test.each<[string, PermissionOptions, string]>([
    ['J06: of a rule gives its reason', { check: () => deny('not on Fridays') }, 'was denied: not on Fridays.'],
    ['J06: ends its sentence once', { check: () => deny('Not on Fridays!') }, 'was denied: Not on Fridays!'],
    ['J06: of a rule without a reason has none', { check: () => deny() }, 'was denied.'],
    ['J06: without words has none either', { check: () => deny('') }, 'was denied.'],
    ['J06: of a person says so', { check: ask, approver: () => false }, 'was denied by the user.'],
    [
      'J06: of a person gives the reason',
      { check: ask, approver: () => deny('not on Fridays') },
      'was denied by the user: not on Fridays.',
    ],
  ])('%s', async (_, options, says) => {
    const { dispatch } = setUp(options);
    const result = await dispatch();
    expect(forModel(result)).toBe(`The call of tool "count" ${says} Do not make the same call again.`);
  });

  test('J07: is an error that tells the tool has not run', async () => {
    const { dispatch, ran } = setUp({ check: denyAll });
    const result = await dispatch();
    expect(result).toMatchObject({ isError: true, error: { code: 'denied', executed: 'no', retryable: false } });
    expect(result.error?.message).toBe(result.content);
    expect(ran).toEqual([]);
  });
});

describe('asking', () => {
  test('a yes lets the call run, and its rules are heard once', async () => {
    let judged = 0;
    const check: PermissionRule = () => {
      judged++;
      return PermissionCheck.ask('Shall it count?');
    };
    const { dispatch, ran } = setUp({ check, approver: async () => true });
    const result = await dispatch();
    expect(result).toMatchObject({ content: 'counted', isError: false, notes: [] });
    expect(ran).toEqual([{ n: 1, unit: 'sheep' }]);
    expect(judged).toBe(1);
  });

  test('an allow of the approver’s is a yes', async () => {
    const { dispatch, ran } = setUp({ check: ask, approver: () => allow() });
    await dispatch();
    expect(ran).toHaveLength(1);
  });

  test.each<[string, () => unknown, string]>([
    ['answers nothing', () => undefined, 'its approver gave no valid answer'],
    ['answers text', () => 'yes', 'its approver gave no valid answer'],
    ['answers a number', () => 1, 'its approver gave no valid answer'],
    ['misspells its answer', async () => ({ decison: 'allow' }), 'its approver gave no valid answer'],
    ['asks back', () => PermissionCheck.ask('Should I?'), 'its approver gave no valid answer'],
    ['throws', () => raise('secret'), 'its approver failed'],
    ['rejects', () => Promise.reject(new Error('secret')), 'its approver failed'],
    ['answers what cannot be read', () => unreadable('type'), 'its approver failed'],
    ['edits to what JSON cannot hold', () => modify({ n: 1n } as never), 'its approver failed'],
  ])('J01: an approver that %s denies the call, and says why', async (_, approver, reason) => {
    const { dispatch, ran, clock } = setUp({ check: ask, approver: approver as Approver });
    const result = await dispatch();
    expect(result.error).toMatchObject({ code: 'denied', executed: 'no' });
    expect(result.content).toContain(`was denied: ${reason}. Do not`);
    expect(ran).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  test('where nobody is there to be asked, the denial carries the question', async () => {
    const { dispatch, ran } = setUp({ check: ask });
    const result = await dispatch();
    expect(result.error?.code).toBe('denied');
    expect(result.content).toContain('was denied: nobody is there to be asked: Shall it count? Do not');
    expect(ran).toEqual([]);
  });

  test('in a session that is not interactive nobody is asked, and the denial carries the question', async () => {
    const { approver, requests } = person();
    const { dispatch, ran } = setUp({ check: ask, approver });
    const result = await dispatch({ n: 1 }, { context: new ToolContext({ isNonInteractive: true }) });
    expect(result.error?.code).toBe('denied');
    expect(result.content).toContain('as the session is non-interactive: Shall it count? Do not');
    expect([requests, ran]).toEqual([[], []]);
  });

  test('J10: an answer that does not come in time grants nothing, nor does it when it comes late', async () => {
    const { approver, requests, answers } = person();
    const { dispatch, ran, clock } = setUp({ check: ask, approver, approvalLimitMs: 60_000 });
    const running = dispatch();
    await clock.advance(59_999);
    expect(requests[0]?.signal.aborted).toBe(false);
    await clock.advance(1);
    const result = await running;
    expect(result.error).toMatchObject({ code: 'approval_expired', executed: 'no', retryable: false });
    expect(result.content).toBe('Nobody approved the call of tool "count" within 60000 ms, so it did not run.');
    expect(requests[0]?.signal.aborted).toBe(true);
    answers[0]?.(true);
    await turns();
    expect(ran).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  test('J10: people have five minutes unless told otherwise', async () => {
    const { dispatch, clock } = setUp({ check: ask, approver: person().approver });
    const running = dispatch();
    await clock.advance(300_000);
    expect((await running).error?.code).toBe('approval_expired');
  });

  test('J10: without a limit an answer may take for ever, and no timer is set', async () => {
    const { approver, answers } = person();
    const { dispatch, ran, clock } = setUp({ check: ask, approver, approvalLimitMs: Number.POSITIVE_INFINITY });
    const running = dispatch();
    await clock.advance(10 ** 12);
    expect(clock.pending).toBe(0);
    answers[0]?.(true);
    await running;
    expect(ran).toHaveLength(1);
  });

  test('J10: an abort ends the wait at once, and a yes after it runs nothing', async () => {
    const { approver, requests, answers } = person();
    const signals: AbortSignal[] = [];
    const check: PermissionRule = (call) => {
      signals.push(call.signal);
      return PermissionCheck.ask('Shall it count?');
    };
    const { dispatch, ran, clock } = setUp({ check, approver });
    const caller = new AbortController();
    const running = dispatch({ n: 1 }, { signal: caller.signal });
    await turns();
    expect(clock.pending).toBe(1);
    caller.abort();
    expect(requests[0]?.signal.aborted).toBe(true);
    const result = await running;
    expect(result.error).toMatchObject({ code: 'cancelled', executed: 'no' });
    expect(clock.pending).toBe(0);
    answers[0]?.(true);
    await turns();
    expect(ran).toEqual([]);
    for (const signal of [caller.signal, ...signals]) expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('J10: a yes in the very turn of the abort runs nothing', async () => {
    const { approver, answers } = person();
    const { dispatch, ran } = setUp({ check: ask, approver });
    const caller = new AbortController();
    const running = dispatch({ n: 1 }, { signal: caller.signal });
    await turns();
    answers[0]?.(true);
    caller.abort();
    expect((await running).error).toMatchObject({ code: 'cancelled', executed: 'no' });
    await turns();
    expect(ran).toEqual([]);
  });

  test('G10: nobody is asked about a call that was aborted before the question was put', async () => {
    const { approver, requests } = person();
    const { dispatch } = setUp({ check: ask, approver });
    const caller = new AbortController();
    const running = dispatch({ n: 1 }, { signal: caller.signal });
    caller.abort();
    expect((await running).error?.code).toBe('cancelled');
    expect(requests).toEqual([]);
  });

  test('the signal of a question that was answered stays as it is when the call is aborted later', async () => {
    const requests: ApprovalRequest[] = [];
    const middleware = [
      permission({ check: ask, approver: (request) => requests.push(request) > 0 }),
      (() => new Promise(() => {})) as Middleware,
    ];
    const { dispatch } = setUp({}, { middleware });
    const caller = new AbortController();
    const running = dispatch({ n: 1 }, { signal: caller.signal });
    await turns();
    caller.abort();
    expect((await running).error?.code).toBe('cancelled');
    expect(requests[0]?.signal.aborted).toBe(false);
  });

  test('J18: the approver sees a frozen copy of what will run', async () => {
    const { approver, requests, answers } = person();
    const { dispatch, ran } = setUp({ check: ask, approver });
    const input = { n: 1, unit: 'goats' };
    const running = dispatch(input);
    await turns();
    input.n = 1000;
    const [request] = requests;
    expect(request).toMatchObject({
      input: { n: 1, unit: 'goats' },
      prompt: 'Shall it count?',
      tool: { name: 'count' },
    });
    expect(Object.isFrozen(request)).toBe(true);
    expect(Object.isFrozen(request?.input)).toBe(true);
    answers[0]?.(true);
    const result = await running;
    expect(ran).toEqual([{ n: 1, unit: 'goats' }]);
    expect(request?.toolCallId).toBe(result.toolCallId);
  });

  test('J12: of several calls that wait, each has its own answer', async () => {
    const { approver, requests, answers } = person();
    const { dispatch, ran } = setUp({ check: ask, approver });
    const running = [dispatch({ n: 1 }), dispatch({ n: 2 }), dispatch({ n: 3 })];
    await turns();
    expect(new Set(requests.map(({ toolCallId }) => toolCallId)).size).toBe(3);
    answers[2]?.(true);
    answers[1]?.(false);
    answers[0]?.(true);
    const results = await Promise.all(running);
    expect(results.map(({ isError }) => isError)).toEqual([false, true, false]);
    expect(ran).toEqual([
      { n: 3, unit: 'sheep' },
      { n: 1, unit: 'sheep' },
    ]);
  });

  test.each<[string, unknown, string, string]>([
    ['J15: a call with wrong arguments', { n: 'many' }, 'count', 'invalid_arguments'],
    ['a call with unreadable arguments', '{"n": 1,,}', 'count', 'invalid_arguments'],
    ['a call that was cut off', '{"n": 1', 'count', 'truncated_arguments'],
    ['J04: a call of an unknown tool', { n: 1 }, 'cuont', 'not_found'],
    ['C06: a call of constructor', { n: 1 }, 'constructor', 'not_found'],
    ['C06: a call of __proto__', { n: 1 }, '__proto__', 'not_found'],
    ['C06: a call of toString', { n: 1 }, 'toString', 'not_found'],
  ])('%s is answered before anybody is asked', async (_, input, name, code) => {
    const { dispatcher, ran } = setUp({ check: () => raise('judged'), approver: () => raise('asked') });
    const result = await dispatcher.dispatch({ name, arguments: input });
    expect(result.error).toMatchObject({ code, executed: 'no' });
    expect(ran).toEqual([]);
    const bare = setUp({ check: allowAll }, { middleware: [permission({ check: () => raise('judged') })] });
    if (name !== 'count') expect((await bare.dispatcher.dispatch({ name, arguments: input })).error?.code).toBe(code);
  });
});

describe('edits', () => {
  test('J13: the tool runs with the arguments a person edited, and the model is told', async () => {
    const { dispatch, ran } = setUp({ check: ask, approver: () => modify({ n: 5 }) });
    const result = await dispatch();
    expect(ran).toEqual([{ n: 5, unit: 'sheep' }]);
    expect(result).toMatchObject({ content: 'counted', requested: { input: { n: 1 } } });
    expect(result.notes).toMatchObject([{ type: 'edited', by: 'permission', forModel: true }]);
    expect(forModel(result)).toBe(
      'counted\n\n[The arguments of this call were edited before it went on. They are now: {"n":5}]',
    );
  });

  test('J14: arguments a person edited are judged again, and a rule that denies them still does', async () => {
    const check: PermissionRule = (call) =>
      (call.parsed as { n: number }).n > 100 ? deny('too many') : PermissionCheck.ask('Shall it count?');
    const { dispatch, ran } = setUp({ check, approver: () => modify({ n: 101 }) });
    const result = await dispatch();
    expect(result.error?.code).toBe('denied');
    expect(result.content).toContain('denied: too many.');
    expect(forModel(result)).toContain('{"n":101}');
    expect(ran).toEqual([]);
  });

  test('what a person edited needs no second yes', async () => {
    let asked = 0;
    const approver: Approver = () => {
      asked++;
      return modify({ n: 5 });
    };
    const { dispatch, ran } = setUp({ check: ask, approver });
    await dispatch();
    expect(asked).toBe(1);
    expect(ran).toEqual([{ n: 5, unit: 'sheep' }]);
  });

  test('J18: what a rule edits after that is asked about again', async () => {
    const seen: unknown[] = [];
    const check: PermissionRule[] = [
      ask,
      (call) => modify({ ...(call.input as JsonObject), unit: 'goats' }),
      (call) => ((call.input as { n: number }).n > 9 ? modify({ ...(call.input as JsonObject), n: 9 }) : allow()),
    ];
    const approver: Approver = ({ input }) => {
      seen.push(input);
      return seen.length === 1 ? modify({ n: 10, unit: 'goats' }) : true;
    };
    const { dispatch, ran } = setUp({ check, approver });
    await dispatch();
    expect(seen).toEqual([
      { n: 1, unit: 'goats' },
      { n: 9, unit: 'goats' },
    ]);
    expect(ran).toEqual([{ n: 9, unit: 'goats' }]);
  });

  test('an edit that changes nothing is a yes, without a note', async () => {
    for (const options of [{ check: ask, approver: () => modify({ n: 1 }) }, { check: () => modify({ n: 1 }) }]) {
      const { dispatch, ran } = setUp(options);
      expect((await dispatch()).notes).toEqual([]);
      expect(ran).toHaveLength(1);
    }
  });

  test('what was edited is the rule’s own no longer: a later change does not reach the tool', async () => {
    const edited = { n: 5, list: [1] };
    const { dispatch, ran } = setUp({ check: ask, approver: async () => modify(edited) });
    const running = dispatch();
    await turns(1);
    edited.list.push(2);
    await running;
    expect(ran).toEqual([{ n: 5, list: [1], unit: 'sheep' }]);
  });

  test('the note of a long edit is cut, and well formed', async () => {
    const { dispatch } = setUp({ check: () => modify({ n: 1, text: '😀'.repeat(1000) }) });
    const [note] = (await dispatch()).notes;
    expect(note?.message.length).toBeLessThan(700);
    expect(note?.message.isWellFormed()).toBe(true);
  });

  test('an edit without a validating layer is run as it is', async () => {
    const { dispatch, ran } = setUp(
      { check: allowAll },
      { middleware: [permission({ check: () => modify({ n: 'x' }) })] },
    );
    await dispatch();
    expect(ran).toEqual([{ n: 'x' }]);
  });

  test.each<[string, Validator, string]>([
    ['hangs', () => new Promise(() => {}), 'the check of its edited arguments took longer than 1000 ms'],
    ['rejects', () => Promise.reject(new Error('secret')), 'the check of its edited arguments failed'],
    ['throws', () => raise('secret'), 'the check of its edited arguments failed'],
  ])('where the validation of an edit %s, the call is denied', async (_, validator, reason) => {
    const gate = permission({ check: () => modify({ n: 2 }), checkLimitMs: 1000 });
    const middleware: Middleware[] = [(call, next) => next(call.with({ validator })), gate];
    const { dispatch, ran, clock } = setUp({}, { middleware });
    const running = dispatch();
    await clock.advance(1000);
    expect((await running).content).toContain(`was denied: ${reason}.`);
    expect(ran).toEqual([]);
    expect(clock.pending).toBe(0);
  });
});

describe('as a layer', () => {
  test('an allow given at once costs no promise, and the outcome passes untouched', async () => {
    const outcomes: MaybePromise<ToolOutcome>[] = [];
    const probe: Middleware = (call, next) => {
      const outcome = next(call);
      outcomes.push(outcome);
      return outcome;
    };
    const { dispatch } = setUp(
      { check: allowAll },
      { middleware: [probe, permission({ check: [allowAll, () => allow()] }), probe] },
    );
    await dispatch();
    const [inner, outer] = outcomes;
    expect(outer).toHaveProperty('content', 'counted');
    expect(outer).toBe(inner);
  });

  test('an outcome passes untouched after a question, too', async () => {
    const outcomes: ToolOutcome[] = [];
    const probe: Middleware = async (call, next) => {
      const outcome = await next(call);
      outcomes.push(outcome);
      return outcome;
    };
    const { dispatch } = setUp(
      { check: allowAll },
      { middleware: [probe, permission({ check: ask, approver: () => true }), probe] },
    );
    await dispatch();
    expect(outcomes[1]).toBe(outcomes[0]);
  });

  test('rules judge the tool that will run, not the name that was asked for', async () => {
    const { dispatcher, ran } = setUp(
      { check: allowAll },
      {
        middleware: [
          (call, next) => {
            const tool = call.tools.get('count');
            return next(tool === undefined ? call : call.with({ tool }));
          },
          permission({ check: (call) => (call.tool?.name === 'count' ? deny('no counting') : allow()) }),
        ],
      },
    );
    const result = await dispatcher.dispatch({ name: 'tally', arguments: { n: 1 } });
    expect(result.content).toContain('The call of tool "count" was denied: no counting.');
    expect(ran).toEqual([]);
  });

  test('a clock whose functions need their object is asked as one', async () => {
    class Wound implements Clock {
      readonly clock = new ManualClock();
      now() {
        return this.clock.now();
      }
      setTimeout(callback: () => void, delayMs: number) {
        return this.clock.setTimeout(callback, delayMs);
      }
      clearTimeout(timer: unknown) {
        this.clock.clearTimeout(timer);
      }
    }
    const clock = new Wound();
    const { dispatch } = setUp({ check: ask, approver: person().approver, approvalLimitMs: 50 }, { clock });
    const running = dispatch();
    await clock.clock.advance(50);
    expect((await running).error?.code).toBe('approval_expired');
  });

  test('is named', () => {
    expect(permission().name).toBe('permission');
  });

  test.each<[unknown, string]>([
    [{ check: 'allow' }, 'Option "check" of permission must be a function or an array of functions'],
    [{ check: [] }, 'Option "check" of permission must be a function or an array of functions'],
    [{ check: [allowAll, {}] }, 'Option "check" of permission must be a function or an array of functions'],
    [{ approver: true }, 'Option "approver" of permission must be a function'],
    [{ checkLimitMs: 0 }, 'Option "checkLimitMs" of permission must be milliseconds above 0'],
    [
      { checkLimitMs: 2 ** 31 },
      'Option "checkLimitMs" of permission must be milliseconds above 0 and up to 2147483647',
    ],
    [{ approvalLimitMs: Number.NaN }, 'Option "approvalLimitMs" of permission must be milliseconds above 0'],
    [{ approvalLimitMs: '5' }, 'Option "approvalLimitMs" of permission must be milliseconds above 0'],
    [{ rules: [] }, 'permission has no option "rules". Its options: check, approver, checkLimitMs, approvalLimitMs.'],
    ['allow', 'permission takes its options as an object.'],
  ])('refuses the options %j, and says what is allowed', (options, says) => {
    expect(() => permission(options as PermissionOptions)).toThrow(says);
  });
});

function raise(message: string): never {
  throw new Error(message);
}

async function rejectLater(): Promise<never> {
  await turns(1);
  throw new Error('later');
}

function unreadable(key: string): object {
  return Object.defineProperty({ type: 'allow' }, key, { get: () => raise('unreadable') });
}
