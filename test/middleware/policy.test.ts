import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type Logger, pino } from 'pino';
import { createDispatcher, defineTool, type JsonObject, type StandardSchema } from 'toolonion';
import { type PolicyDocument, type PolicyVerdict, policy, standard, type ToolPolicy } from 'toolonion/middleware';
import { ManualClock } from '../support/manual-clock.ts';

const NAMES = ['read_file', 'read_dir', 'write_file', 'constructor'];

const tools = NAMES.map((name) =>
  defineTool({
    name,
    description: 'Works on a path.',
    inputSchema: { type: 'object', properties: { path: { type: 'string', default: '/home' }, force: {} } },
    execute: ({ path }) => path,
  }),
);

/** What becomes of a call under a policy, in the real onion: a question is answered with yes, and kept. */
async function judge(document: PolicyDocument, name: string, input: JsonObject) {
  const questions: string[] = [];
  const { permission, ...rest } = policy(document).options;
  const approver = ({ prompt }: { readonly prompt: string }) => questions.push(prompt) > 0;
  const layers = standard({ ...rest, logging: false, permission: { ...permission, approver } });
  const result = await createDispatcher({ tools, middleware: layers }).dispatch({ name, arguments: input });
  const verdict: PolicyVerdict = result.isError ? 'deny' : questions.length > 0 ? 'ask' : 'allow';
  return { verdict, result, questions };
}

describe('a verdict', () => {
  const inEtc = { path: { type: 'string', pattern: '^/etc/' } } as const;

  test.each<[string, PolicyDocument, PolicyVerdict, string | undefined]>([
    ['nothing said denies', {}, 'deny', undefined],
    [
      'the default counts for tools without an entry',
      { default: { permission: 'allow' } },
      'allow',
      'default.permission',
    ],
    ['a name', { tools: { read_file: { permission: 'allow' } } }, 'allow', 'tools.read_file.permission'],
    ['a pattern', { tools: { 'read_*': { permission: 'ask' } } }, 'ask', 'tools["read_*"].permission'],
    [
      'an entry goes before the default',
      { default: { permission: 'deny' }, tools: { '*': { permission: 'allow' } } },
      'allow',
      'tools["*"].permission',
    ],
    [
      'an entry without a permission leaves it to the default',
      { default: { permission: 'allow' }, tools: { read_file: { limitMs: 5 } } },
      'allow',
      'default.permission',
    ],
    [
      'deny beats allow, however particular',
      { tools: { read_file: { permission: 'allow' }, 'r*': { permission: 'deny' } } },
      'deny',
      'tools["r*"].permission',
    ],
    [
      'ask beats allow',
      { tools: { read_file: { permission: [{ verdict: 'allow' }, { verdict: 'ask' }] } } },
      'ask',
      'tools.read_file.permission[1]',
    ],
    [
      'a rule speaks of arguments that fit',
      { tools: { read_file: { permission: [{ verdict: 'allow', when: inEtc }] } } },
      'allow',
      'tools.read_file.permission[0]',
    ],
    [
      'a rule on an argument that is missing does not',
      { tools: { read_file: { permission: [{ verdict: 'allow', when: { force: { const: true } } }] } } },
      'deny',
      undefined,
    ],
    [
      'a rule wants all its arguments',
      { tools: { read_file: { permission: [{ verdict: 'allow', when: { ...inEtc, force: { const: true } } }] } } },
      'deny',
      undefined,
    ],
    [
      'where no rule of an entry speaks, the default does',
      {
        default: { permission: 'ask' },
        tools: { read_file: { permission: [{ verdict: 'allow', when: { path: { const: '/' } } }] } },
      },
      'ask',
      'default.permission',
    ],
    [
      'the default may have rules',
      { default: { permission: [{ verdict: 'allow', when: inEtc }] } },
      'allow',
      'default.permission[0]',
    ],
  ])('%s', async (_, document, verdict, decidedBy) => {
    const input = { path: '/etc/passwd' };
    expect((await judge(document, 'read_file', input)).verdict).toBe(verdict);
    expect(policy(document).explain('read_file', input)).toMatchObject({ verdict, ...(decidedBy && { decidedBy }) });
    expect(policy(document).explain('read_file', input).decidedBy).toBe(decidedBy);
  });

  test('counts what the schema fills in as given', async () => {
    const document: PolicyDocument = {
      tools: { read_file: { permission: [{ verdict: 'allow', when: { path: { const: '/home' } } }] } },
    };
    expect((await judge(document, 'read_file', {})).verdict).toBe('allow');
  });

  test('does not take what every object inherits for an argument', async () => {
    const document: PolicyDocument = { tools: { '*': { permission: [{ verdict: 'allow', when: { toString: {} } }] } } };
    expect((await judge(document, 'read_file', {})).verdict).toBe('deny');
  });

  test('holds for tools whose names every object has', async () => {
    const document = JSON.parse('{"tools":{"constructor":{"permission":"allow"},"__proto__":{"permission":"deny"}}}');
    expect((await judge(document, 'constructor', {})).verdict).toBe('allow');
    expect(policy(document).explain('__proto__', {})).toMatchObject({
      verdict: 'deny',
      decidedBy: 'tools.__proto__.permission',
    });
    expect(policy(document).explain('toString', {}).decidedBy).toBeUndefined();
  });

  test('tells its reason: the model with a denial, the approver with a question', async () => {
    const because = (verdict: PolicyVerdict): PolicyDocument => ({
      tools: { read_file: { permission: [{ verdict, reason: 'it is Sunday' }] } },
    });
    expect((await judge(because('deny'), 'read_file', {})).result.content).toBe(
      'The call of tool "read_file" was denied: it is Sunday. Do not make the same call again.',
    );
    expect((await judge(because('ask'), 'read_file', {})).questions).toEqual(['it is Sunday']);
    expect((await judge({ default: { permission: 'ask' } }, 'read_file', {})).questions).toEqual(['Run "read_file"?']);
    expect((await judge({}, 'read_file', {})).result.content).toContain('no rule of the policy speaks of it');
    expect(policy(because('deny')).explain('read_file', {}).reason).toBe('it is Sunday');
  });

  test('denies where a rule cannot judge what the schema made of the arguments', async () => {
    const odd: StandardSchema<unknown, string> = {
      '~standard': { version: 1, vendor: 'odd', validate: () => ({ value: 'no object' }) },
    };
    const tool = defineTool({
      name: 'odd',
      description: 'Odd.',
      inputSchema: odd,
      jsonSchema: { type: 'object' },
      execute: () => 'ran',
    });
    const document: PolicyDocument = {
      default: { permission: 'allow' },
      tools: { odd: { permission: [{ verdict: 'deny', when: { path: { const: '/' } } }] } },
    };
    const layers = standard({ ...policy(document).options, logging: false });
    const result = await createDispatcher({ tools: [tool], middleware: layers }).dispatch({ name: 'odd' });
    expect(result.error?.code).toBe('denied');
    expect(policy(document).explain('odd', 'no object')).toMatchObject({
      verdict: 'deny',
      reason: 'a rule of the policy cannot judge its arguments',
      decidedBy: 'tools.odd.permission[0]',
    });
  });
});

test('what explain says is what happens, for any policy and call', async () => {
  const verdict = fc.constantFrom<PolicyVerdict>('allow', 'ask', 'deny');
  const schema = fc.constantFrom<JsonObject>(
    { const: '/etc' },
    { type: 'string', minLength: 3 },
    { enum: [true, '/'] },
    {},
  );
  const rule = fc.record(
    { verdict, when: fc.dictionary(fc.constantFrom('path', 'force'), schema, { minKeys: 1 }) },
    { requiredKeys: ['verdict'] },
  );
  const permission = fc.oneof(verdict, fc.array(rule, { minLength: 1, maxLength: 4 }));
  const entry = fc.record({ permission }, { requiredKeys: [] }) as fc.Arbitrary<ToolPolicy>;
  const documents = fc.record(
    { default: entry, tools: fc.dictionary(fc.constantFrom(...NAMES, 'read_*', '*'), entry) },
    { requiredKeys: [] },
  ) as fc.Arbitrary<PolicyDocument>;
  const inputs = fc.record({ path: fc.constantFrom('/', '/etc'), force: fc.boolean() }, { requiredKeys: ['path'] });
  await fc.assert(
    fc.asyncProperty(documents, fc.constantFrom(...NAMES), inputs, async (document, name, input) => {
      const explained = policy(document).explain(name, input);
      expect((await judge(document, name, input)).verdict).toBe(explained.verdict);
    }),
    { numRuns: 300 },
  );
});

describe('limits and logs', () => {
  const document: PolicyDocument = {
    default: { permission: 'allow', limitMs: 100, outputLimit: 20 },
    tools: {
      'wait_*': { limitMs: 'none', logValues: true },
      wait_short: { limitMs: 10, outputLimit: 'none' },
    },
  };

  test('come from the entry of the name, of the first pattern that fits, of the default, or the layer', () => {
    const explain = (name: string) => policy(document).explain(name, {});
    expect(explain('wait_short')).toMatchObject({
      limitMs: { value: 10, place: 'tools.wait_short.limitMs' },
      outputLimit: { value: 'none', place: 'tools.wait_short.outputLimit' },
      logValues: { value: true, place: 'tools["wait_*"].logValues' },
    });
    expect(explain('wait_long').limitMs).toEqual({ value: 'none', place: 'tools["wait_*"].limitMs' });
    expect(explain('other')).toMatchObject({ limitMs: { value: 100, place: 'default.limitMs' }, logValues: {} });
  });

  test('hold in the onion', async () => {
    const clock = new ManualClock();
    const lines: string[] = [];
    const logger: Logger = pino({}, { write: (line) => lines.push(line) });
    const waiting = ['wait_short', 'wait_long', 'other'].map((name) =>
      defineTool({
        name,
        description: 'Waits.',
        execute: () => new Promise((done) => clock.setTimeout(() => done('x'.repeat(100)), 500)),
      }),
    );
    const { options } = policy(document);
    const layers = standard({ ...options, logging: { ...options.logging, logger } });
    const dispatcher = createDispatcher({ tools: waiting, middleware: layers, clock });
    const running = waiting.map(({ name }) => dispatcher.dispatch({ name }));
    await clock.advance(600);
    const [short, long, other] = await Promise.all(running);
    expect(short?.error?.message).toContain('its limit of 10 ms');
    expect(long?.error).toBeUndefined();
    expect(long?.notes.map(({ type }) => type)).toEqual(['truncated']);
    expect(other?.error?.code).toBe('timeout');
    const logged = lines.map((line) => JSON.parse(line)).map(({ tool, output }) => [tool, output !== undefined]);
    expect(Object.fromEntries(logged)).toEqual({ wait_short: true, wait_long: true, other: false });
  });
});

describe('a document that cannot be used', () => {
  test.each<[unknown, string]>([
    [[], 'A policy is an object'],
    [null, 'A policy is an object'],
    [{ tool: {} }, 'unknown key "tool"; known keys: "$schema", "default", "tools"'],
    [
      { default: { permission: 'alow' } },
      'default.permission: expected one of "allow", "ask", "deny"; got the text "alow"',
    ],
    [{ tools: { a: 'deny' } }, 'tools.a: expected object; got the text "deny"'],
    [
      { tools: { a: { permissions: 'deny' } } },
      'tools.a: unknown key "permissions"; known keys: "permission", "limitMs"',
    ],
    [{ tools: { a: { permission: [] } } }, 'tools.a.permission: must NOT have fewer than 1 items'],
    [{ tools: { a: { permission: [{ reason: 'x' }] } } }, 'tools.a.permission[0]: "verdict" is required'],
    [
      { tools: { a: { permission: [{ verdict: 'deny', when: {} }] } } },
      'tools.a.permission[0].when: must NOT have fewer than 1 properties',
    ],
    [
      { tools: { a: { permission: [{ verdict: 'deny', when: { force: true } }] } } },
      'when.force: expected object; got true',
    ],
    [
      { tools: { a: { permission: [{ verdict: 'allow', when: { path: { pattern: '^src' } } }] } } },
      'tools.a.permission[0].when.path: missing type "string" for keyword "pattern"',
    ],
    [
      { tools: { a: { permission: [{ verdict: 'allow', when: { path: { type: 'text' } } }] } } },
      'when.path.type: expected one of',
    ],
    [
      { tools: { a: { permission: [{ verdict: 'allow', when: { path: { type: 'string', pattern: '(' } } }] } } },
      'tools.a.permission[0].when.path: Invalid regular expression',
    ],
    [{ tools: { a: { limitMs: 0 } } }, 'tools.a.limitMs: must be > 0; got the number 0'],
    [{ tools: { a: { limitMs: 'never' } } }, 'tools.a.limitMs: expected "none"; got the text "never"'],
    [{ tools: { a: { limitMs: 2 ** 31 } } }, 'tools.a.limitMs: must be <= 2147483647'],
    [{ tools: { a: { outputLimit: 1.5 } } }, 'tools.a.outputLimit: expected integer'],
    [{ tools: { a: { logValues: 'yes' } } }, 'tools.a.logValues: expected boolean'],
    [{ tools: { '': {} } }, 'tools: key "": must NOT have fewer than 1 characters'],
  ])('%j is refused, naming the place and what is allowed', (document, message) => {
    expect(() => policy(document as PolicyDocument)).toThrow(TypeError);
    expect(() => policy(document as PolicyDocument)).toThrow(message);
  });

  test.each([
    [{ type: 'string', patern: '^src/' }, 'unknown keyword: "patern"'],
    [{ typ: 'string' }, 'unknown keyword: "typ"'],
    [{ type: 'string', format: 'hostname' }, 'unknown format "hostname"'],
    [{ anyOf: [{ pattern: '^src/' }] }, 'missing type "string" for keyword "pattern"'],
    [{ type: ['string', 'array'], pattern: '^src/' }, 'give one "type", or a schema for each of them in "anyOf"'],
    [{ minProperties: 1 }, 'missing type "object" for keyword "minProperties"'],
    [{ $ref: '#/nowhere' }, "can't resolve reference"],
  ])('a condition that may not mean what it seems to is refused: %j', (path, message) => {
    const document = { tools: { a: { permission: [{ verdict: 'allow', when: { path } }] } } };
    expect(() => policy(document as unknown as PolicyDocument)).toThrow(`tools.a.permission[0].when.path: ${message}`);
  });

  test('names all faults at once', () => {
    const document = { default: { logValues: 1 }, tools: { a: { limitMs: -1 }, b: { permission: 'x' } } };
    expect(() => policy(document as unknown as PolicyDocument)).toThrow(
      /default\.logValues.*tools\.a\.limitMs.*tools\.b\.permission/s,
    );
  });
});

test('a document that is changed afterwards changes nothing, and one that is frozen will do', () => {
  const document = { tools: { read_file: { permission: 'deny' as PolicyVerdict } } };
  const own = policy(document);
  document.tools.read_file.permission = 'allow';
  expect(own.explain('read_file', {}).verdict).toBe('deny');
  expect(policy(Object.freeze({ tools: Object.freeze({}) })).explain('read_file', {}).verdict).toBe('deny');
});

test('warnings name entries no tool fits, and rules on arguments no tool has', () => {
  const when = { pth: { const: '/' } };
  const document: PolicyDocument = {
    tools: {
      delete_file: { permission: 'deny' },
      'read_*': { permission: [{ verdict: 'deny', when }, { verdict: 'ask' }] },
    },
  };
  expect(policy(document).warnings(tools)).toEqual([
    'tools.delete_file fits no tool.',
    'tools["read_*"].permission[0].when: no tool it speaks of has an argument "pth".',
  ]);
  expect(policy({ default: { permission: [{ verdict: 'allow', when }] } }).warnings(tools)).toEqual([
    'default.permission[0].when: no tool it speaks of has an argument "pth".',
  ]);
  const open = defineTool({ name: 'read_x', description: 'Open.', inputSchema: { type: 'object' }, execute: () => '' });
  expect(policy(document).warnings([open])).toEqual(['tools.delete_file fits no tool.']);
});
