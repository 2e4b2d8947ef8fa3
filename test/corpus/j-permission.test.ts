import { getEventListeners } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import {
  createDispatcher,
  type DispatcherOptions,
  type DispatchOptions,
  defineTool,
  forModel,
  type JsonObject,
  type JsonSchema,
  type Middleware,
  PermissionCheck,
  type StandardSchema,
  type ToolCall,
  ToolContext,
  ToolRegistry,
} from 'toolonion';
import {
  type ApprovalRequest,
  type Approver,
  allowAll,
  denyAll,
  type PermissionOptions,
  type PermissionRule,
  type PolicyDocument,
  permission,
  policy,
  type RuleSet,
  readOnlyAllowed,
  rules,
  standard,
  type ToolRule,
  timeout,
} from 'toolonion/middleware';
import { hostileValues } from '../support/hostile.ts';
import { ManualClock, turns } from '../support/manual-clock.ts';

const { allow, deny, modify } = PermissionCheck;
const question = 'Shall it be written?';
const ask: PermissionRule = () => PermissionCheck.ask(question);

const writeSchema = {
  type: 'object',
  properties: { path: { type: 'string' }, n: { type: 'number' }, force: { type: 'boolean', default: false } },
} as const;

/** A tool with an effect behind the standard onion, and what it was run with. */
function setUp(options: PermissionOptions, more: DispatcherOptions = {}) {
  const clock = new ManualClock();
  const ran: unknown[] = [];
  const warnings: string[] = [];
  const write = defineTool({
    name: 'write',
    description: 'Writes.',
    inputSchema: writeSchema,
    execute: (input) => {
      ran.push(structuredClone(input));
      return 'written';
    },
  });
  const dispatcher = createDispatcher({
    tools: [write],
    middleware: standard({ permission: options, logging: false }),
    clock,
    onWarning: (message) => warnings.push(message),
    ...more,
  });
  const dispatch = (input: JsonObject | string = { n: 1 }, dispatchOptions?: DispatchOptions) =>
    dispatcher.dispatch({ name: 'write', arguments: input }, dispatchOptions);
  return { clock, ran, warnings, dispatch, dispatcher };
}

/** An approver who answers when the test does. */
function person() {
  const requests: ApprovalRequest[] = [];
  const answers: ((answer: boolean | PermissionCheck) => void)[] = [];
  const approver: Approver = (request) => {
    requests.push(request);
    return new Promise((resolve) => answers.push(resolve));
  };
  return { approver, requests, answers };
}

function raise(message: string): never {
  throw new Error(message);
}

/** A schema that makes of the arguments whatever it is told. */
function making<Value>(make: (input: JsonObject) => Value): StandardSchema<unknown, Value> {
  return {
    '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value: make(value as JsonObject) }) },
  };
}

describe('J01', () => {
  const broken: readonly (readonly [what: string, handler: () => unknown, reason: string])[] = [
    ['throws', () => raise('secret'), 'failed'],
    ['rejects', async () => raise('secret'), 'failed'],
    ['never settles', () => new Promise(() => {}), 'took longer than 30000 ms'],
    ['answers nothing', () => undefined, 'gave no valid answer'],
    ['answers null', async () => null, 'gave no valid answer'],
    ['misspells its answer', () => ({ decison: 'allow' }), 'gave no valid answer'],
    ['misspells the word', () => ({ type: 'alow' }), 'gave no valid answer'],
    ['answers a word', () => 'allow', 'gave no valid answer'],
    ['forgets to make its answer', () => PermissionCheck.allow, 'gave no valid answer'],
    ['answers in a list', () => [allow()], 'gave no valid answer'],
    ['answers a function that looks like one', () => Object.assign(() => {}, allow()), 'gave no valid answer'],
  ];

  test.each(broken)(
    'J01: a handler that %s denies the call, in a bounded time, and says why',
    async (_, handler, why) => {
      const byRule = setUp({ check: handler as PermissionRule });
      const running = byRule.dispatch();
      await byRule.clock.advance(30_000);
      const result = await running;
      expect(result).toMatchObject({ isError: true, error: { code: 'denied', executed: 'no', retryable: false } });
      expect(result.content).toBe(
        `The call of tool "write" was denied: its permission check ${why}. Do not make the same call again.`,
      );
      expect([byRule.ran, byRule.clock.pending]).toEqual([[], 0]);

      const byApprover = setUp({ check: ask, approver: handler as Approver, approvalLimitMs: 30_000 });
      const asked = byApprover.dispatch();
      await byApprover.clock.advance(30_000);
      const { error } = await asked;
      if (why.startsWith('took')) expect(error).toMatchObject({ code: 'approval_expired', executed: 'no' });
      else expect(error?.message).toContain(`was denied: its approver ${why}. Do not`);
      expect([byApprover.ran, byApprover.clock.pending]).toEqual([[], 0]);
    },
  );

  test('J01: an approver that asks back has not answered', async () => {
    const { dispatch, ran } = setUp({ check: ask, approver: ask as unknown as Approver });
    expect((await dispatch()).content).toContain('its approver gave no valid answer');
    expect(ran).toEqual([]);
  });

  test('J01: whatever an object polluted for all claims, no answer is no allowance', async () => {
    const { dispatch, ran } = setUp({
      check: () => {
        Object.defineProperty(Object.prototype, 'type', { value: 'allow', configurable: true });
        return undefined as never;
      },
    });
    try {
      expect((await dispatch()).error?.code).toBe('denied');
    } finally {
      Reflect.deleteProperty(Object.prototype, 'type');
    }
    expect(ran).toEqual([]);
  });

  test.each(hostileValues)('J01: %s, thrown or answered, denies the call', async (_, value) => {
    const ways: readonly PermissionOptions[] = [
      { check: () => value as never },
      { check: async () => value as never },
      {
        check: () => {
          throw value;
        },
      },
      { check: [allowAll, () => Promise.reject(value)] },
      { check: () => ({ type: 'deny', reason: value }) as never },
      { check: ask, approver: () => value as never },
      { check: ask, approver: () => Promise.reject(value) },
      { check: rules({ allow: [{ tool: '*', when: () => value as never }] }) },
    ];
    for (const options of ways) {
      const { clock, dispatch, ran } = setUp(options);
      const running = dispatch();
      await clock.advance(300_000);
      const { error } = await running;
      expect(['denied', 'approval_expired']).toContain(error?.code);
      expect([ran, clock.pending]).toEqual([[], 0]);
    }
  });

  test('J01: what suspends the call is heard, but a rule that denies goes before it, whatever the order', async () => {
    const suspends: PermissionRule = (call) => {
      throw call.suspend({ reason: 'Asked by mail.' });
    };
    const answersIt = (call: ToolCall) => call.suspend({ reason: 'Asked by mail.' }) as never;
    for (const suspending of [suspends, async (call: ToolCall) => suspends(call), answersIt]) {
      for (const check of [
        [suspending, denyAll],
        [denyAll, suspending],
      ]) {
        expect((await setUp({ check }).dispatch()).error?.code).toBe('denied');
      }
      for (const check of [
        [suspending, ask, allowAll],
        [() => modify({ n: 2 }), suspending],
      ]) {
        const { dispatch, ran } = setUp({ check, approver: () => true });
        expect(await dispatch()).toMatchObject({ isError: false, control: { type: 'suspend' }, notes: [] });
        expect(ran).toEqual([]);
      }
    }
  });

  test('J01: a denial is no interrupt, whatever the host takes for one', async () => {
    const isControlSignal = (thrown: unknown) => (thrown as { code: string }).code === 'interrupt';
    const { dispatch, warnings } = setUp({ check: [denyAll, () => undefined as never] }, { isControlSignal });
    expect((await dispatch()).error?.code).toBe('denied');
    expect(warnings).toEqual([]);
    const eager = setUp({ check: denyAll }, { isControlSignal: () => true });
    expect(await eager.dispatch()).toMatchObject({ isError: true, error: { code: 'denied' } });
  });

  test('J01: to let everything run has to be said', async () => {
    expect(() => standard({} as never)).toThrow('Option "permission" of standard must be given');
    expect((await setUp({}).dispatch()).error?.code).toBe('denied');
    for (const options of [{ check: allowAll }, false] as const) {
      const { dispatch, ran } = setUp({}, { middleware: standard({ permission: options, logging: false }) });
      await dispatch();
      expect(ran).toHaveLength(1);
    }
  });

  test.each<[string, readonly unknown[]]>([
    ['nothing', new Array(1)],
    ['a hole and a rule', Object.assign(new Array(2), { 1: allowAll })],
    ['what a condition left over', [false, allowAll]],
  ])('J01: a list of %s is no list of rules', (_, check) => {
    expect(() => permission({ check: check as never })).toThrow('Option "check" of permission must be a function or');
  });
});

describe('J02', () => {
  const sets: readonly (readonly [what: string, set: RuleSet, code: string])[] = [
    ['a broad allow, a deny', { allow: ['fs.*'], deny: ['fs.delete'] }, 'denied'],
    ['a particular allow, a broad deny', { allow: ['fs.delete'], deny: ['*'] }, 'denied'],
    ['an ask, a deny', { ask: ['fs.delete'], deny: ['fs.*'] }, 'denied'],
    ['an allow, an ask', { allow: ['fs.delete'], ask: ['fs.*'] }, 'asked'],
    ['an allow with a predicate, an ask', { allow: [{ tool: 'fs.delete', when: () => true }], ask: ['*'] }, 'asked'],
    ['an allow, a deny that does not fit', { allow: ['fs.*'], deny: ['fs.deleted'] }, 'ok'],
  ];

  test.each(sets)('J02: of %s, deny beats ask beats allow, whatever the order or form', async (_, set, code) => {
    const entries = Object.entries(set) as [keyof RuleSet, (string | ToolRule)[]][];
    const apart = entries.map(([verdict, list]) => rules({ [verdict]: list, otherwise: 'allow' }));
    const forms = [rules(set), rules(Object.fromEntries(entries.reverse())), apart, apart.toReversed()];
    const named = entries.flatMap(([verdict, list]) =>
      list.map((rule) => [typeof rule === 'string' ? rule : rule.tool, verdict] as const),
    );
    const asDocument = (pairs: typeof named) =>
      policy({
        tools: Object.fromEntries(pairs.map(([name, verdict]) => [name, { permission: verdict }])),
      } as PolicyDocument).options.permission.check;
    for (const check of [...forms, asDocument(named), asDocument(named.toReversed())]) {
      const tool = defineTool({ name: 'fs.delete', description: 'Deletes.', execute: () => 'ok' });
      const asked: string[] = [];
      const approver: Approver = ({ prompt }) => asked.push(prompt) < 0;
      const layers = standard({ permission: { check, approver }, logging: false });
      const result = await createDispatcher({ tools: [tool], middleware: layers }).dispatch({ name: 'fs.delete' });
      expect(asked.length > 0 ? 'asked' : (result.error?.code ?? result.content)).toBe(code);
    }
  });

  test('J02: nobody waits for the other rules once one has denied', async () => {
    const hangs: PermissionRule = () => new Promise(() => {});
    const rejectsLater: PermissionRule = async () => {
      await turns(3);
      return raise('later');
    };
    for (const never of [() => deny('never'), async () => deny('never')]) {
      for (const check of [
        [hangs, never],
        [never, hangs],
        [allowAll, hangs, never, rejectsLater],
        [rejectsLater, never],
      ]) {
        const { dispatch, clock, ran } = setUp({ check, checkLimitMs: Number.POSITIVE_INFINITY });
        const result = await dispatch();
        expect(result.content).toContain('was denied: never.');
        await turns();
        expect([ran, clock.pending]).toEqual([[], 0]);
      }
    }
  });

  test.each<[unknown]>([['fs.delete '], ['\tfs.*'], [{ tool: ' fs.delete' }], [{ tool: ['fs.delete'] }]])(
    'J02: a denial of %j, which no tool can be named, is refused rather than passed over',
    (rule) => {
      expect(() => rules({ deny: [rule as never], otherwise: 'allow' })).toThrow('Option "deny" of rules must be');
      expect(() => rules({ deny: Object.assign(new Array(2), { 1: 'a' }) })).toThrow('Option "deny" of rules must be');
    },
  );
});

describe('J03', () => {
  test('J03: an allow of a hook waives neither a deny nor a question of another rule', async () => {
    const hooks: readonly PermissionRule[] = [allowAll, () => allow(), async () => allow()];
    for (const hook of hooks) {
      for (const check of [
        [hook, rules({ deny: ['write'], otherwise: 'allow' })],
        [rules({ deny: ['write'], otherwise: 'allow' }), hook],
      ]) {
        const { dispatch, ran } = setUp({ check, approver: () => raise('asked') });
        expect((await dispatch()).content).toContain('a rule forbids it');
        expect(ran).toEqual([]);
      }
      const { requests, approver, answers } = person();
      const { dispatch, ran } = setUp({ check: [hook, ask], approver });
      const running = dispatch();
      await turns();
      expect([requests.length, ran]).toEqual([1, []]);
      answers[0]?.(false);
      expect((await running).error?.code).toBe('denied');
    }
  });

  test('J03: a yes of a person waives no rule that denies what they edited, and no stage further in', async () => {
    const check: PermissionRule = (call) =>
      String((call.parsed as JsonObject)['path']).startsWith('/etc') ? deny('off limits') : PermissionCheck.ask('?');
    const edited = setUp({ check, approver: () => modify({ path: '/etc/passwd' }) });
    expect((await edited.dispatch({ path: '/tmp/a' })).content).toContain('was denied: off limits.');
    expect(edited.ran).toEqual([]);

    const hangs = defineTool({ name: 'hangs', description: 'Hangs.', execute: () => new Promise(() => {}) });
    const layers = standard({
      permission: { check: ask, approver: () => true },
      timeout: { limitMs: 50 },
      logging: false,
    });
    const clock = new ManualClock();
    const running = createDispatcher({ tools: [hangs], middleware: layers, clock }).dispatch({ name: 'hangs' });
    await clock.advance(50);
    expect((await running).error?.code).toBe('timeout');
  });
});

describe('J04', () => {
  const checks: readonly (readonly [what: string, check: PermissionRule | undefined, code: string])[] = [
    ['no rules at all', undefined, 'denied'],
    ['an empty set', rules({}), 'denied'],
    ['a set for other tools', rules({ allow: ['read_*', 'Added', 'adde', 'added_'] }), 'denied'],
    [
      'a policy without a default',
      policy({ tools: { 'read_*': { permission: 'allow' } } }).options.permission.check,
      'denied',
    ],
    ['an empty policy', policy({}).options.permission.check, 'denied'],
    [
      'a policy whose default speaks of other things',
      policy({ default: { limitMs: 5 } }).options.permission.check,
      'denied',
    ],
    [
      'a policy whose rules speak of other arguments',
      policy({ tools: { '*': { permission: [{ verdict: 'allow', when: { path: {} } }] } } }).options.permission.check,
      'denied',
    ],
    ['trust in read-only tools', readOnlyAllowed, 'asked'],
    ['a set that asks otherwise', rules({ allow: ['read_*'], otherwise: 'ask' }), 'asked'],
    ['a policy that asks otherwise', policy({ default: { permission: 'ask' } }).options.permission.check, 'asked'],
    ['a set that allows otherwise', rules({ otherwise: 'allow' }), 'ok'],
  ];

  test.each(checks)(
    'J04: a tool added later runs only where that was said of all tools: %s',
    async (_, check, code) => {
      const registry = new ToolRegistry([]);
      const asked: string[] = [];
      const options: PermissionOptions = {
        ...(check !== undefined && { check }),
        approver: ({ prompt }) => asked.push(prompt) < 0,
      };
      const dispatcher = createDispatcher({
        tools: registry,
        middleware: standard({ permission: options, logging: false }),
      });
      expect((await dispatcher.dispatch({ name: 'added' })).error?.code).toBe('not_found');
      registry.register(defineTool({ name: 'added', description: 'New.', execute: () => 'ok' }));
      const result = await dispatcher.dispatch({ name: 'added' });
      expect(asked.length > 0 ? 'asked' : (result.error?.code ?? result.content)).toBe(code);
    },
  );

  test('J04: an unknown tool is answered without a rule or a person, whatever its name', async () => {
    const { dispatcher } = setUp({ check: () => raise('judged'), approver: () => raise('asked') });
    for (const name of ['wirte', 'constructor', '__proto__', 'toString', '*', 'write ', 'WRITE']) {
      expect((await dispatcher.dispatch({ name })).error).toMatchObject({ code: 'not_found', executed: 'no' });
    }
  });
});

describe('J05', () => {
  const bypasses: readonly string[] = [
    'git status && rm -rf x',
    'git status; rm x',
    'git status | sh',
    'git status\nrm x',
    'git status $(rm x)',
    'git status `rm x`',
    'git -c core.pager=sh status',
    'env git status',
    'rm -fr x',
  ];

  test('J05: no form of rule takes a pattern on the text of an argument; a predicate takes the text apart', async () => {
    expect(() => rules({ allow: [{ tool: 'shell', command: 'git:*' } as never] })).toThrow('{ tool, when, reason }');
    const readsOnly: ToolRule = {
      tool: 'shell',
      when: ({ command }) => /^git (status|diff)( [\w/][\w/.]*)*$/.test(String(command)),
    };
    const inJson: PolicyDocument = {
      tools: {
        shell: {
          permission: [
            {
              verdict: 'allow',
              when: { command: { type: 'string', pattern: '^git (status|diff)( [\\w/][\\w/.]*)*$' } },
            },
          ],
        },
      },
    };
    for (const check of [rules({ allow: [readsOnly] }), policy(inJson).options.permission.check]) {
      const commands: string[] = [];
      const shell = defineTool({
        name: 'shell',
        description: 'Runs.',
        inputSchema: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
        execute: ({ command }) => commands.push(command),
      });
      const dispatcher = createDispatcher({
        tools: [shell],
        middleware: standard({ permission: { check }, logging: false }),
      });
      await dispatcher.dispatch({ name: 'shell', arguments: { command: 'git diff src/call.ts' } });
      for (const command of bypasses) {
        const result = await dispatcher.dispatch({ name: 'shell', arguments: { command } });
        expect(result.error?.code).toBe('denied');
      }
      expect(commands).toEqual(['git diff src/call.ts']);
    }
  });

  const unjudgeable: readonly (readonly [what: string, made: unknown])[] = [
    ['a URL', new URL('http://internal/')],
    ['a Date', new Date(0)],
    ['a Map', new Map()],
    ['a bigint', 5n],
    ['NaN', Number.NaN],
    ['a function', () => 'http://internal/'],
    ['a list with a URL in it', [new URL('http://internal/')]],
    ['what cannot be read', Object.defineProperty({}, 'x', { get: () => raise('unreadable'), enumerable: true })],
  ];

  test.each(unjudgeable)('J05: a condition on what a schema made to %s denies: it cannot tell', async (_, made) => {
    await expectDenied({ url: made }, { type: 'string', pattern: '^http://internal/' });
  });

  test('J05: nor can it tell of arguments that are an object of a class', async () => {
    class Target {
      readonly #url = 'http://internal/';
      get url(): string {
        return this.#url;
      }
    }
    await expectDenied(new Target(), { type: 'string', pattern: '^http://internal/' });
    const document: PolicyDocument = { tools: { '*': { permission: [{ verdict: 'allow', when: { url: {} } }] } } };
    expect(policy(document).explain('fetch', { url: undefined }).reason).toBe('no rule of the policy speaks of it');
    expect(policy(document).explain('fetch', { url: 'x', other: new Date(0) }).verdict).toBe('allow');
  });

  async function expectDenied(parsed: unknown, condition: JsonSchema) {
    const fetches = defineTool({
      name: 'fetch',
      description: 'Fetches.',
      inputSchema: making(() => parsed),
      jsonSchema: { type: 'object' },
      execute: () => raise('ran'),
    });
    const document: PolicyDocument = {
      default: { permission: 'allow' },
      tools: { fetch: { permission: [{ verdict: 'deny', when: { url: condition } }] } },
    };
    const layers = standard({ ...policy(document).options, logging: false });
    const result = await createDispatcher({ tools: [fetches], middleware: layers }).dispatch({ name: 'fetch' });
    expect(result.content).toContain('was denied: a rule of the policy cannot judge its arguments.');
    expect(policy(document).explain('fetch', parsed)).toMatchObject({ verdict: 'deny' });
  }
});

describe('J06', () => {
  const denials: readonly (readonly [what: string, answer: unknown, byRule: string, byPerson: string])[] = [
    ['without a reason', deny(), '.', ' by the user.'],
    ['with a reason', deny('not on Fridays'), ': not on Fridays.', ' by the user: not on Fridays.'],
    ['with an empty reason', deny(''), '.', ' by the user.'],
    ['with a blank reason', deny(' \n'), '.', ' by the user.'],
    ['with the null of JSON for a reason', { type: 'deny', reason: null }, '.', ' by the user.'],
    ['with a sentence', deny('Not on Fridays!'), ': Not on Fridays!', ' by the user: Not on Fridays!'],
    ['with a line', deny('Not on Fridays.\n'), ': Not on Fridays.', ' by the user: Not on Fridays.'],
    ['with a quotation', deny('She said "no."'), ': She said "no."', ' by the user: She said "no."'],
    ['that trails off', deny('Not now…'), ': Not now…', ' by the user: Not now…'],
    ['in another script', deny('星期五不行。'), ': 星期五不行。', ' by the user: 星期五不行。'],
  ];

  test.each(denials)(
    'J06: a denial %s reaches the model, and tells it not to repeat the call',
    async (_, answer, byRule, byPerson) => {
      const expected = (why: string) => `The call of tool "write" was denied${why} Do not make the same call again.`;
      expect(forModel(await setUp({ check: () => answer as PermissionCheck }).dispatch())).toBe(expected(byRule));
      const asked = setUp({ check: ask, approver: async () => answer as PermissionCheck });
      expect(forModel(await asked.dispatch())).toBe(expected(byPerson));
    },
  );

  test('J06: a plain no tells who said it, and a question nobody can answer is told, if it has words', async () => {
    const no = await setUp({ check: ask, approver: () => false }).dispatch();
    expect(no.content).toBe('The call of tool "write" was denied by the user. Do not make the same call again.');
    expect((await setUp({ check: ask }).dispatch()).content).toContain(`nobody is there to be asked: ${question} Do`);
    const wordless = setUp({ check: () => PermissionCheck.ask('') });
    expect((await wordless.dispatch()).content).toContain('nobody is there to be asked. Do not');
    const context = new ToolContext({ isNonInteractive: true });
    expect((await wordless.dispatch({}, { context })).content).toContain('the session is non-interactive. Do not');
  });
});

describe('J07', () => {
  const refusals: readonly (readonly [what: string, options: PermissionOptions, code: string])[] = [
    ['denied by a rule', { check: denyAll }, 'denied'],
    ['denied by a person', { check: ask, approver: () => false }, 'denied'],
    ['ignored by a person', { check: ask, approver: () => new Promise(() => {}) }, 'approval_expired'],
    ['asked about where nobody is', { check: ask }, 'denied'],
    ['denied after an edit', { check: ask, approver: () => modify({ n: 'x' }) }, 'invalid_arguments'],
  ];

  test.each(refusals)('J07: a call %s is an error that says nothing was done', async (_, options, code) => {
    const { clock, dispatch, ran } = setUp(options);
    const running = dispatch();
    await clock.advance(300_000);
    const result = await running;
    expect(result).toMatchObject({ isError: true, error: { code, executed: 'no', retryable: false } });
    expect(result.content).toBe(result.error?.message);
    expect(result).not.toHaveProperty('structured');
    expect(ran).toEqual([]);
  });
});

describe('J10', () => {
  test('J10: an approver who never answers grants nothing, and leaves nothing behind', async () => {
    const { approver, requests, answers } = person();
    const { clock, dispatch, ran } = setUp({ check: ask, approver });
    const running = dispatch();
    await clock.advance(299_999);
    expect(requests[0]?.signal.aborted).toBe(false);
    await clock.advance(1);
    expect((await running).error).toMatchObject({ code: 'approval_expired', executed: 'no', retryable: false });
    expect(requests[0]?.signal.aborted).toBe(true);
    answers[0]?.(true);
    await turns();
    expect([ran, clock.pending]).toEqual([[], 0]);
  });

  test('J10: a yes that kept the event loop busy past the limit grants nothing, nor does one that comes in the same turn', async () => {
    for (const later of [false, true]) {
      const signals: AbortSignal[] = [];
      const set = setUp({
        check: ask,
        approvalLimitMs: 1000,
        approver: ({ signal }) => {
          signals.push(signal);
          set.clock.jump(1001);
          return later ? turns(1).then(() => true) : true;
        },
      });
      const result = await set.dispatch();
      expect(result.error).toMatchObject({ code: 'approval_expired', executed: 'no' });
      expect(signals[0]?.aborted).toBe(true);
      expect([set.ran, set.clock.pending]).toEqual([[], 0]);
    }
    const quick = setUp({ check: ask, approvalLimitMs: 1000, approver: () => (quick.clock.jump(1000), true) });
    expect((await quick.dispatch()).content).toBe('written');
  });

  test('J10: an answer to a question that expired neither answers nor disturbs the one that was put again', async () => {
    const { approver, answers } = person();
    const again: Middleware = async (call, next) => {
      const outcome = await next(call);
      return outcome.error?.code === 'approval_expired' ? next(call) : outcome;
    };
    let finish = (_: string): void => {};
    const slow = defineTool({
      name: 'write',
      description: 'Writes.',
      execute: () =>
        new Promise((resolve) => {
          finish = resolve;
        }),
    });
    const layers = [again, ...standard({ permission: { check: ask, approver, approvalLimitMs: 100 }, logging: false })];
    for (const lateIsFirst of [true, false]) {
      const { clock, dispatch } = setUp({}, { tools: [slow], middleware: layers });
      const running = dispatch();
      await clock.advance(100);
      const [first, second] = answers.splice(0);
      clock.jump(50);
      for (const answer of lateIsFirst ? [first, second] : [second, first]) {
        answer?.(true);
        await turns();
      }
      finish('written');
      expect(await running).toMatchObject({ content: 'written', isError: false });
      expect(clock.pending).toBe(0);
    }
  });

  const waits: readonly (readonly [what: string, options: (never: () => Promise<never>) => PermissionOptions])[] = [
    ['a rule', (never) => ({ check: never })],
    ['one of several rules', (never) => ({ check: [allowAll, never, ask] })],
    ['an approver', (never) => ({ check: ask, approver: never })],
  ];
  const reasons: readonly unknown[] = [undefined, null, 0, 'enough', new Error('enough'), { odd: true }];

  test.each(waits)(
    'J10: an abort ends the wait for %s at once, whatever its reason, and leaves nothing behind',
    async (_, options) => {
      for (const reason of reasons) {
        const inside: AbortSignal[] = [];
        const watch: Middleware = (call, next) => {
          inside.push(call.signal);
          return next(call);
        };
        const never = () => new Promise<never>(() => {});
        const layers = [watch, ...standard({ permission: options(never), logging: false })];
        // A host may expect more of what is thrown than the reason of an abort has.
        const isControlSignal = (thrown: unknown) => (thrown as { code: string }).code === 'interrupt';
        const { clock, dispatch, ran, warnings } = setUp({}, { middleware: layers, isControlSignal });
        const caller = new AbortController();
        const running = dispatch({}, { signal: caller.signal });
        await turns();
        expect(clock.pending).toBe(1);
        caller.abort(reason);
        expect((await running).error).toMatchObject({ code: 'cancelled', executed: 'no' });
        expect([ran, clock.pending, warnings]).toEqual([[], 0, []]);
        for (const signal of [caller.signal, ...inside]) expect(getEventListeners(signal, 'abort')).toEqual([]);
      }
    },
  );

  test('J10: a limit further out, and the abort of the call around a nested one, end the wait as well', async () => {
    const slow = person();
    const outer = setUp(
      {},
      { middleware: [timeout({ limitMs: 50 }), permission({ check: ask, approver: slow.approver })] },
    );
    const running = outer.dispatch();
    await outer.clock.advance(50);
    expect((await running).error).toMatchObject({ code: 'timeout', executed: 'no' });
    expect(slow.requests[0]?.signal.aborted).toBe(true);
    expect(outer.clock.pending).toBe(0);

    const { approver, requests } = person();
    const gated = setUp({ check: ask, approver });
    const around = defineTool({
      name: 'around',
      description: 'Calls another.',
      execute: (_, call) => gated.dispatch({ n: 1 }, { parent: call }),
    });
    const caller = new AbortController();
    const nested = createDispatcher({ tools: [around] }).dispatch({ name: 'around' }, { signal: caller.signal });
    await turns();
    caller.abort();
    expect((await nested).isError).toBe(true);
    expect(requests[0]?.signal.aborted).toBe(true);
    expect([gated.ran, gated.clock.pending]).toEqual([[], 0]);
  });
});

describe('J13', () => {
  test('J13: the tool receives the arguments that were edited, and the result shows it', async () => {
    const edit = modify({ n: 5 });
    const ways: readonly PermissionOptions[] = [
      { check: ask, approver: () => edit },
      { check: ask, approver: async () => Object.freeze({ ...edit, input: Object.freeze({ n: 5 }) }) },
      { check: () => edit },
      { check: [allowAll, async () => edit] },
    ];
    for (const options of ways) {
      const { dispatch, ran } = setUp(options);
      const result = await dispatch();
      expect(ran).toEqual([{ n: 5, force: false }]);
      expect(result.notes).toMatchObject([{ type: 'edited', by: 'permission', forModel: true }]);
      expect(result.requested.input).toEqual({ n: 1 });
    }
  });

  const withArguments: readonly (readonly [what: string, answer: unknown])[] = [
    ['an allow', { type: 'allow', input: { n: 5 } }],
    ['an allow with the text of arguments', { type: 'allow', input: '{"n":5}' }],
    ['a question', { type: 'ask', prompt: '?', input: { n: 5 } }],
    ['an edit with the text of arguments', { type: 'modify', input: '{"n":5}' }],
    ['an edit with a list', { type: 'modify', input: [{ n: 5 }] }],
  ];

  test.each(withArguments)(
    'J13: %s that brings arguments no check has denies, rather than run the old ones',
    async (_, answer) => {
      for (const options of [{ check: () => answer }, { check: ask, approver: () => answer }]) {
        const { dispatch, ran } = setUp({ approver: () => true, ...options } as PermissionOptions);
        expect((await dispatch()).content).toContain('gave no valid answer');
        expect(ran).toEqual([]);
      }
    },
  );

  test('J13: an allow whose arguments are the null of JSON is an allow', async () => {
    const { dispatch, ran } = setUp({ check: ask, approver: () => ({ type: 'allow', input: null }) as never });
    await dispatch();
    expect(ran).toHaveLength(1);
  });

  test('J13: rules that each build the same arguments anew, in another order, agree', async () => {
    const check: readonly PermissionRule[] = [
      (call) => modify({ n: (call.input as JsonObject)['n'] as number, path: '/tmp/a' }),
      (call) => modify({ path: '/tmp/a', n: (call.input as JsonObject)['n'] as number }),
    ];
    const { dispatch, ran } = setUp({ check });
    const result = await dispatch();
    expect(ran).toEqual([{ n: 1, path: '/tmp/a', force: false }]);
    expect(result.notes).toHaveLength(1);
  });
});

describe('J14', () => {
  test('J14: edited arguments are validated again: wrong ones do not run, and the error says whose they are', async () => {
    for (const options of [{ check: ask, approver: () => modify({ n: 'x' }) }, { check: () => modify({ n: 'x' }) }]) {
      const { dispatch, ran } = setUp(options);
      const result = await dispatch({ n: 5 });
      expect(result.error).toMatchObject({ code: 'invalid_arguments', executed: 'no' });
      expect(result.content).toContain('The arguments were edited by the gate, and are wrong now.');
      expect(result.content).toContain('- n: expected number; got the text "x"');
      expect(ran).toEqual([]);
    }
  });

  test('J14: edited arguments are judged again, and the model is told what ran', async () => {
    const check = rules({ ask: ['write'], deny: [{ tool: 'write', when: ({ n }) => Number(n) > 100 }] });
    const { dispatch, ran } = setUp({ check, approver: () => modify({ n: 101 }) });
    expect((await dispatch()).error?.code).toBe('denied');
    expect(ran).toEqual([]);
    let asked = 0;
    const fine = setUp({ check, approver: () => modify({ n: 99 + asked++ }) });
    expect(forModel(await fine.dispatch())).toBe(
      'written\n\n[The arguments of this call were edited before it went on. They are now: {"n":99}]',
    );
    // Who edits has said yes to it.
    expect(asked).toBe(1);
  });

  test('J14: an edit goes through the transforms of the schema, once', async () => {
    const seen: unknown[] = [];
    const tool = defineTool({
      name: 'write',
      description: 'Writes.',
      inputSchema: making(({ n }) => ({ n: Number(n) + 1 })),
      jsonSchema: { type: 'object' },
      execute: (input) => {
        seen.push(input);
      },
    });
    const { dispatch } = setUp({ check: ask, approver: () => modify({ n: 5 }) }, { tools: [tool] });
    await dispatch();
    expect(seen).toEqual([{ n: 6 }]);
  });

  test('J14: where edited arguments cannot be checked, nobody is said to be wrong, and the log has the cause', async () => {
    const tool = defineTool({
      name: 'write',
      description: 'Writes.',
      inputSchema: making((input) => (input['n'] === 2 ? raise('the schema broke') : input)),
      jsonSchema: { type: 'object' },
      execute: () => raise('ran'),
    });
    const { dispatch } = setUp({ check: () => modify({ n: 2 }) }, { tools: [tool] });
    const { error } = await dispatch();
    expect(error).toMatchObject({ code: 'internal', executed: 'no', cause: { message: 'the schema broke' } });
    expect(error?.message).toContain(
      'The arguments were edited by the gate. The arguments of tool "write" could not be',
    );
    expect(error?.message).not.toContain('wrong');
    expect(error?.message).not.toContain('the schema broke');
  });
});

describe('J15', () => {
  const invalid: readonly (readonly [what: string, input: unknown, code: string])[] = [
    ['of the wrong type', { n: 'many' }, 'invalid_arguments'],
    ['that are no object', '[1]', 'invalid_arguments'],
    ['that cannot be read', '{"n": 1,,}', 'invalid_arguments'],
    ['that were cut off', '{"n": 1', 'truncated_arguments'],
    ['that JSON cannot hold', { n: 1n }, 'invalid_arguments'],
  ];

  test.each(invalid)(
    'J15: arguments %s are answered before a rule is heard or anybody is asked',
    async (_, input, code) => {
      const asked: string[] = [];
      const { dispatch, ran } = setUp({
        check: () => {
          asked.push('judged');
          return PermissionCheck.ask(question);
        },
        approver: () => asked.push('asked') > 0,
      });
      expect((await dispatch(input as JsonObject)).error).toMatchObject({ code, executed: 'no' });
      expect([asked, ran]).toEqual([[], []]);
    },
  );

  test('J15: so are those that a schema refuses later', async () => {
    const later: StandardSchema<unknown, unknown> = {
      '~standard': { version: 1, vendor: 'test', validate: async () => ({ issues: [{ message: 'is wrong' }] }) },
    };
    const tool = defineTool({
      name: 'write',
      description: 'Writes.',
      inputSchema: later,
      jsonSchema: { type: 'object' },
      execute: () => raise('ran'),
    });
    const { dispatch } = setUp({ check: () => raise('judged') }, { tools: [tool] });
    expect((await dispatch()).content).toContain('- is wrong');
  });

  test('J15: what a rule edits is validated before anybody is asked about it', async () => {
    const check: PermissionRule[] = [ask, () => modify({ n: 'x' })];
    const { dispatch } = setUp({ check, approver: () => raise('asked') });
    expect((await dispatch()).error?.code).toBe('invalid_arguments');
  });
});

describe('J16', () => {
  test('J16: a yes is remembered for no other call: the next one is asked about, whatever was allowed before', async () => {
    const asked: unknown[] = [];
    const approver: Approver = ({ input }) => {
      asked.push(input);
      return !JSON.stringify(input).includes('.ssh');
    };
    const { dispatch, ran } = setUp({ check: ask, approver });
    expect((await dispatch({ path: '/proj/a' })).isError).toBe(false);
    expect((await dispatch({ path: '/.ssh/x' })).error?.code).toBe('denied');
    expect((await dispatch({ path: '/proj/a' })).isError).toBe(false);
    expect([asked.length, ran.length]).toEqual([3, 2]);
  });
});

describe('J17', () => {
  test('J17: who is asked about a call that a tool makes sees which calls it is inside of, and what is said reaches the tool', async () => {
    const requests: ApprovalRequest[] = [];
    const dispatcher = createDispatcher({
      tools: [
        defineTool({ name: 'deploy', description: '…', execute: () => 'deployed' }),
        ...['inner', 'outer'].map((name) =>
          defineTool({
            name,
            description: '…',
            execute: async (_: unknown, call: ToolCall) => {
              const next = name === 'outer' ? 'inner' : 'deploy';
              const { content, error } = await dispatcher.dispatch({ id: `id-${next}`, name: next }, { parent: call });
              return error === undefined ? `${name} › ${content}` : `${name} › ${error.code}`;
            },
          }),
        ),
      ],
      middleware: [
        permission({
          check: ({ toolName }) => (toolName === 'deploy' ? PermissionCheck.ask('Deploy?') : allow()),
          approver: (request) => {
            requests.push(request);
            return requests.length > 1;
          },
        }),
      ],
    });
    const contents = [];
    for (const id of ['a', 'b']) contents.push((await dispatcher.dispatch({ id, name: 'outer' })).content);
    expect(contents).toEqual(['outer › inner › denied', 'outer › inner › deployed']);
    expect(requests.map(({ toolCallId, path }) => [toolCallId, path])).toEqual(
      ['a', 'b'].map((id) => [
        'id-deploy',
        [
          { toolName: 'outer', toolCallId: id },
          { toolName: 'inner', toolCallId: 'id-inner' },
        ],
      ]),
    );
    await dispatcher.dispatch({ name: 'deploy' });
    expect(requests[2]?.path).toEqual([]);
  });
});

describe('J18', () => {
  test('J18: the approver sees a frozen copy of what runs, whatever becomes of the object that was sent', async () => {
    const { approver, requests, answers } = person();
    const { dispatch, ran } = setUp({ check: ask, approver });
    const input = { n: 1, path: '/tmp/a' };
    const running = dispatch(input);
    await turns();
    input.path = '/etc/passwd';
    const request = requests[0] as ApprovalRequest;
    expect(request).toMatchObject({ input: { n: 1, path: '/tmp/a' }, tool: { name: 'write' }, prompt: question });
    for (const shown of [request, request.input, request.parsed]) expect(Object.isFrozen(shown)).toBe(true);
    answers[0]?.(true);
    const { toolCallId } = await running;
    expect(ran).toEqual([request.parsed]);
    expect(request.toolCallId).toBe(toolCallId);
  });

  test('J18: the approver sees what the schema fills in and makes of it', async () => {
    const { approver, requests, answers } = person();
    const { dispatch, ran } = setUp({ check: ask, approver });
    const running = dispatch({ path: '/tmp/a' });
    await turns();
    expect(requests[0]?.input).toEqual({ path: '/tmp/a' });
    expect(requests[0]?.parsed).toEqual({ path: '/tmp/a', force: false });
    answers[0]?.(true);
    await running;
    expect(ran).toEqual([requests[0]?.parsed]);
  });

  test('J18: what is no JSON is shown as well as it can be, and arrives as the schema made it', async () => {
    const since = new Date(0);
    const received: unknown[] = [];
    const tool = defineTool({
      name: 'write',
      description: 'Writes.',
      inputSchema: making(() => ({ since })),
      jsonSchema: { type: 'object' },
      execute: (input) => {
        received.push(input.since);
      },
    });
    const { approver, requests, answers } = person();
    const running = setUp({ check: ask, approver }, { tools: [tool] }).dispatch({ since: 'long ago' });
    await turns();
    expect(requests[0]?.parsed).toEqual({ since: '1970-01-01T00:00:00.000Z' });
    answers[0]?.(true);
    await running;
    expect(received[0]).toBe(since);
  });

  test('J18: who still holds the arguments that were judged cannot change what was approved', async () => {
    const held: { path: string }[] = [];
    const hold: PermissionRule = (call) => {
      held.push(call.parsed as { path: string });
      return PermissionCheck.ask(question);
    };
    const { approver, requests, answers } = person();
    const { dispatch, ran } = setUp({ check: hold, approver });
    const running = dispatch({ path: '/tmp/a' });
    await turns();
    for (const parsed of held) expect(() => Object.assign(parsed, { path: '/etc/passwd' })).toThrow(TypeError);
    answers[0]?.(true);
    await running;
    expect(ran).toEqual([{ path: '/tmp/a', force: false }]);
    expect(ran).toEqual([requests[0]?.parsed]);
  });

  test('J18: a tool may change the arguments it was approved with, and what was shown stays as it was', async () => {
    const tool = defineTool({
      name: 'write',
      description: 'Writes.',
      inputSchema: { type: 'object', properties: { list: { type: 'array', items: { type: 'number' } } } },
      execute: ({ list = [] }) => `${(list as number[]).sort().length}, ${(list as number[]).pop()}`,
    });
    const { approver, requests, answers } = person();
    const running = setUp({ check: ask, approver }, { tools: [tool] }).dispatch({ list: [3, 1, 2] });
    await turns();
    answers[0]?.(true);
    expect((await running).content).toBe('3, 3');
    expect(requests[0]?.parsed).toEqual({ list: [3, 1, 2] });
  });

  test('J18: a predicate that takes its arguments apart changes nothing of them', async () => {
    const run = defineTool({
      name: 'run',
      description: 'Runs a program.',
      inputSchema: { type: 'object', properties: { args: { type: 'array', items: { type: 'string' } } } },
      execute: ({ args }) => (args ?? []).join(' '),
    });
    const takesApart = ({ args }: { args: string[] }) => args.shift() === 'git' && args.sort().length === 2;
    const rule = { tool: 'run', when: takesApart };
    const check = rules({
      deny: [{ tool: 'run', when: ({ args }) => (args as string[]).pop() === 'push' }],
      allow: [rule],
    });
    const middleware = standard({ permission: { check }, logging: false });
    const result = await createDispatcher({ tools: [run], middleware }).dispatch({
      name: 'run',
      arguments: { args: ['git', 'status', '-s'] },
    });
    expect(result.content).toBe('git status -s');
  });

  test('J18: the arguments as they were sent cannot be changed by a rule at all', async () => {
    const check: PermissionRule = (call) => {
      (call.input as { n: number }).n = 2;
      return allow();
    };
    const { dispatch, ran } = setUp({ check });
    expect((await dispatch()).error?.code).toBe('denied');
    expect(ran).toEqual([]);
  });

  test('J18: two calls at once are each run as they were shown', async () => {
    const { approver, requests, answers } = person();
    const { dispatch, ran } = setUp({ check: ask, approver });
    const running = [dispatch({ n: 1 }), dispatch({ n: 2 })];
    await turns();
    answers[1]?.(true);
    await turns();
    answers[0]?.(true);
    await Promise.all(running);
    expect(ran).toEqual([requests[1]?.parsed, requests[0]?.parsed]);
  });
});
