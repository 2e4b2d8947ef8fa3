import { describe, expect, test } from '@jest/globals';
import {
  createDispatcher,
  defineTool,
  type JsonObject,
  PermissionCheck,
  type StandardSchema,
  type ToolDispatchResult,
} from 'toolonion';
import {
  allowAll,
  denyAll,
  type PermissionRule,
  permission,
  type RuleSet,
  readOnlyAllowed,
  rules,
  type ToolRule,
  validation,
} from 'toolonion/middleware';

/** Dispatches one call to a tool of that name, through a gate where a question is answered with no and kept. */
async function judge(check: PermissionRule, name: string, input: JsonObject = {}, readOnly = false) {
  const tool = defineTool({
    name,
    description: 'Works on a file.',
    inputSchema: { type: 'object', properties: { path: { type: 'string', default: '/' } } },
    readOnly,
    execute: () => 'done',
  });
  const questions: string[] = [];
  const gate = permission({ check, approver: ({ prompt }) => questions.push(prompt) < 0 });
  const dispatcher = createDispatcher({ tools: [tool], middleware: [validation(), gate] });
  const result = await dispatcher.dispatch({ name, arguments: input });
  return { verdict: verdictOf(result, questions), result, questions };
}

function verdictOf(result: ToolDispatchResult, questions: readonly string[]): string {
  if (questions.length > 0) return 'ask';
  return result.error === undefined ? 'allow' : result.error.code === 'denied' ? 'deny' : result.error.code;
}

describe('rules', () => {
  test.each<[string, RuleSet, string]>([
    ['deny beats a broader allow', { allow: ['fs.*'], deny: ['fs.delete'] }, 'deny'],
    ['deny beats a more particular allow', { allow: ['fs.delete'], deny: ['fs.*'] }, 'deny'],
    ['deny beats an allow with a predicate', { allow: [{ tool: 'fs.delete', when: () => true }], deny: ['*'] }, 'deny'],
    ['deny beats ask', { ask: ['fs.delete'], deny: ['fs.delete'] }, 'deny'],
    ['ask beats allow', { allow: ['fs.delete'], ask: ['fs.*'] }, 'ask'],
    ['deny beats what is done otherwise', { deny: ['fs.*'], otherwise: 'allow' }, 'deny'],
    ['a deny that does not match leaves it to the others', { allow: ['fs.*'], deny: ['fs.read'] }, 'allow'],
  ])('J02: %s', async (_, set, verdict) => {
    expect((await judge(rules(set), 'fs.delete')).verdict).toBe(verdict);
    const reversed = Object.fromEntries(Object.entries(set).reverse());
    expect((await judge(rules(reversed), 'fs.delete')).verdict).toBe(verdict);
  });

  test.each<[string, RuleSet, string]>([
    ['denied unless told otherwise', {}, 'deny'],
    ['denied', { otherwise: 'deny' }, 'deny'],
    ['asked about', { otherwise: 'ask' }, 'ask'],
    ['allowed', { otherwise: 'allow' }, 'allow'],
  ])('J04: a call no rule speaks of is %s', async (_, set, verdict) => {
    expect((await judge(rules({ ...set, allow: ['known'] }), 'new_tool')).verdict).toBe(verdict);
  });

  test.each<[string, string, boolean]>([
    ['read_file', 'read_file', true],
    ['read_file', 'read_files', false],
    ['read_*', 'read_file', true],
    ['read_*', 'read_', true],
    ['read_*', 'unread_file', false],
    ['*_file', 'read_file', true],
    ['*', 'anything\nat all', true],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a-c-b', false],
    ['fs.read', 'fs-read', false],
    ['fs.read', 'FS.READ', false],
    ['f(s)+[a]', 'f(s)+[a]', true],
    ['f(s)+[a]', 'fssa', false],
    ['a|b', 'a', false],
    ['constructor', 'constructor', true],
    ['toString', 'toString', true],
    ['__proto__', '__proto__', true],
    ['read_file', 'constructor', false],
    ['read_file', '__proto__', false],
  ])('C06: the name %j matches a tool named %j: %j', async (pattern, name, matches) => {
    expect((await judge(rules({ allow: [pattern] }), name)).verdict).toBe(matches ? 'allow' : 'deny');
    expect((await judge(rules({ deny: [pattern], otherwise: 'allow' }), name)).verdict).toBe(
      matches ? 'deny' : 'allow',
    );
  });

  test('a reason is told to the model, or asked of the approver', async () => {
    const set: RuleSet = {
      deny: [{ tool: 'delete', reason: 'nothing may be deleted here' }],
      ask: [{ tool: 'write', reason: 'Write to the disk?' }],
    };
    expect((await judge(rules(set), 'delete')).result.content).toContain('was denied: nothing may be deleted here.');
    expect((await judge(rules(set), 'write')).questions).toEqual(['Write to the disk?']);
  });

  test('without a reason there is a plain one', async () => {
    const set: RuleSet = { deny: ['delete'], ask: ['write\u202e'] };
    expect((await judge(rules(set), 'delete')).result.content).toContain('was denied: a rule forbids it.');
    expect((await judge(rules(set), 'other')).result.content).toContain('was denied: no rule allows it.');
    expect((await judge(rules(set), 'write\u202e')).questions).toEqual(['Run "write\\u{202e}"?']);
  });

  test('a set that is changed later changes nothing', async () => {
    const rule = { tool: 'delete' };
    const deny: (string | ToolRule)[] = [rule];
    const check = rules({ deny, otherwise: 'allow' });
    rule.tool = 'other';
    deny.pop();
    expect((await judge(check, 'delete')).verdict).toBe('deny');
  });

  test.each<[unknown, string]>([
    [{ allow: 'read_*' }, 'Option "allow" of rules must be an array of names or { tool, when, reason }'],
    [{ deny: [''] }, 'Option "deny" of rules must be an array of names'],
    [{ deny: [{ name: 'delete' }] }, 'Option "deny" of rules must be an array of names'],
    [{ deny: [{ tool: 'delete', unless: () => true }] }, 'Option "deny" of rules must be an array of names'],
    [{ ask: [{ tool: 'delete', when: true }] }, 'Option "ask" of rules must be an array of names'],
    [{ ask: [{ tool: 'delete', reason: 5 }] }, 'Option "ask" of rules must be an array of names'],
    [{ ask: [undefined] }, 'Option "ask" of rules must be an array of names'],
    [{ otherwise: 'maybe' }, 'Option "otherwise" of rules must be one of "deny", "ask", "allow"'],
    [{ denied: [] }, 'rules has no option "denied". Its options: deny, ask, allow, otherwise.'],
    [undefined, 'rules takes its options as an object.'],
  ])('refuses the set %j, and says what is allowed', (set, says) => {
    expect(() => rules(set as RuleSet)).toThrow(says);
  });
});

describe('a predicate', () => {
  test('narrows a rule to some arguments', async () => {
    const inProject: ToolRule = { tool: 'write', when: ({ path }) => String(path).startsWith('/proj/') };
    const check = rules({ allow: [inProject] });
    expect((await judge(check, 'write', { path: '/proj/a' })).verdict).toBe('allow');
    expect((await judge(check, 'write', { path: '/etc/passwd' })).verdict).toBe('deny');
  });

  test('sees the arguments as the tool will: validated, with the defaults of the schema', async () => {
    const seen: unknown[] = [];
    const check = rules({ allow: [{ tool: 'write', when: (input) => seen.push(input) > 0 }] });
    expect((await judge(check, 'write', { path: 5 })).verdict).toBe('invalid_arguments');
    await judge(check, 'write', {});
    expect(seen).toEqual([{ path: '/' }]);
  });

  test('sees what a schema made of the arguments, so that no transform gets past it', async () => {
    const inputSchema: StandardSchema<unknown, { command: string }> = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value) => ({ value: { command: String((value as JsonObject)['command']).trim() } }),
      },
    };
    const tool = defineTool({ name: 'run', description: 'Runs.', inputSchema, jsonSchema: {}, execute: () => 'ran' });
    const check = rules({ deny: [{ tool: 'run', when: ({ command }) => command === 'halt' }], otherwise: 'allow' });
    const dispatcher = createDispatcher({ tools: [tool], middleware: [validation(), permission({ check })] });
    const result = await dispatcher.dispatch({ name: 'run', arguments: { command: ' halt ' } });
    expect(result.error?.code).toBe('denied');
  });

  test('may be typed for the tool it is about, and sees the call', async () => {
    const when = ({ path }: { path: string }, call: { readonly context: { readonly cwd: string } }) =>
      path.startsWith(call.context.cwd);
    expect((await judge(rules({ allow: [{ tool: 'write', when }] }), 'write', { path: './a' })).verdict).toBe('allow');
  });

  test.each<[string, () => unknown]>([
    ['throws', () => raise('secret')],
    ['answers nothing', () => undefined],
    ['answers text', () => 'true'],
    ['answers a promise of true', async () => true],
    ['answers a promise of false', async () => false],
    ['answers a promise that rejects', () => Promise.reject(new Error('secret'))],
  ])('J01: that %s denies the call, whichever list it is in', async (_, when) => {
    for (const list of ['deny', 'ask', 'allow'] as const) {
      const set = { [list]: [{ tool: 'write', when }], otherwise: 'allow' } as RuleSet;
      const { verdict, result } = await judge(rules(set), 'write');
      expect(verdict).toBe('deny');
      expect(result.content).toContain('its permission check failed');
    }
  });

  test('J05: takes a command apart where a pattern on its text would be fooled', async () => {
    const readsOnly: ToolRule = {
      tool: 'shell',
      when({ command }) {
        const [program, verb = '', ...paths] = String(command).split(' ');
        return program === 'git' && /^(status|diff)$/.test(verb) && paths.every((path) => /^[\w/][\w/.]*$/.test(path));
      },
    };
    const check = rules({ allow: [readsOnly] });
    expect((await judge(check, 'shell', { command: 'git diff src/call.ts' })).verdict).toBe('allow');
    for (const command of [
      'git status && rm -rf x',
      'git status;rm x',
      'git status $(rm x)',
      'git status\nrm x',
      'git diff --output=x',
      'git -c alias.status=!rm status',
      'env git status',
      'git push',
    ])
      expect((await judge(check, 'shell', { command })).verdict).toBe('deny');
  });
});

describe('ready-made rules', () => {
  test('denyAll lets nothing run', async () => {
    expect((await judge(denyAll, 'read', {}, true)).verdict).toBe('deny');
  });

  test('allowAll lets everything run', async () => {
    expect((await judge(allowAll, 'delete')).verdict).toBe('allow');
  });

  test('readOnlyAllowed lets read-only tools run and asks about all others', async () => {
    expect((await judge(readOnlyAllowed, 'read', {}, true)).verdict).toBe('allow');
    expect((await judge(readOnlyAllowed, 'write')).questions).toEqual(['Run "write"?']);
  });

  test('rules of one’s own stand beside them', async () => {
    const own: PermissionRule = (call) =>
      call.context.cwd === '/' ? PermissionCheck.deny('not at the root') : PermissionCheck.allow();
    expect((await judge(own, 'read')).verdict).toBe('allow');
  });
});

function raise(message: string): never {
  throw new Error(message);
}
