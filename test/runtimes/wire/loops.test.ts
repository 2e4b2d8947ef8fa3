// The agents of the examples, with the providers' own packages, against servers that refuse what the providers refuse.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Example, exampleFile, Programs } from '../../support/examples.ts';
import { root } from '../../support/pages.ts';
import { PROVIDERS, Stub, type Turn } from './providers.ts';

const SHAPES = [
  ['openaiChat', 'openai-chat'],
  ['openaiResponses', 'openai-responses'],
  ['anthropic', 'anthropic'],
  ['gemini', 'gemini'],
  ['geminiInteractions', 'gemini-interactions'],
] as const;

const examples = SHAPES.map(([, file]) => exampleFile(`docs/examples/wire/${file}.ts`));
let programs: Programs;

beforeAll(async () => {
  programs = await Programs.compile(examples, `${root}/test/runtimes`);
}, 120_000);

afterAll(() => programs.remove());

test('every agent compiles, and takes less than 40 lines', () => {
  expect(programs.errors).toEqual([]);
  for (const { code } of examples) expect(code.trimEnd().split('\n').length).toBeLessThan(40);
});

/** What each provider was sent. */
const seen = Object.fromEntries(SHAPES.map(([shape]) => [shape, []])) as unknown as Record<
  keyof typeof PROVIDERS,
  object[]
>;

const city = (id: string, text: string, name = 'weather') => ({ id, name, text });

async function run(example: Example, shape: keyof typeof PROVIDERS, script: readonly Turn[]) {
  const stub = new Stub(PROVIDERS[shape], script);
  const url = await stub.listen();
  const env = {
    ...process.env,
    OPENAI_API_KEY: 'none',
    OPENAI_BASE_URL: `${url}/v1`,
    ANTHROPIC_API_KEY: 'none',
    ANTHROPIC_BASE_URL: url,
    GEMINI_API_KEY: 'none',
    GOOGLE_GEMINI_BASE_URL: url,
  };
  try {
    const { code, stdout, stderr } = await programs.runOne(example, env);
    return {
      code,
      stdout,
      stderr: code === 0 ? '' : stderr,
      refused: stub.refused,
      told: JSON.stringify(stub.seen.at(-1)),
    };
  } finally {
    seen[shape].push(...stub.seen);
    stub.close();
  }
}

describe.each(SHAPES)('%s', (shape, file) => {
  const example = examples.find(({ place }) => place.endsWith(`/${file}.ts`)) as Example;

  test('two calls of a turn are answered, a wrong one is put right', async () => {
    const { told, ...rest } = await run(example, shape, [
      [city('c1', '{"city":"Oslo"}'), city('c2', '{"town":"Bergen"}')],
      [city('c3', '{"city":"Bergen"}')],
      'Sunny in both.',
    ]);
    expect(rest).toEqual({ code: 0, stdout: 'Sunny in both.\n', stderr: '', refused: [] });
    expect(told).toContain('Sunny in Oslo.');
    expect(told).toContain('Sunny in Bergen.');
    expect(told).toContain('town');
  });

  test.each<[what: string, script: readonly Turn[]]>([
    ['arguments that are no JSON', [[city('c1', '{"city":"Os')], 'Well.']],
    ['arguments that are no object', [[city('c1', '["Oslo"]')], 'Well.']],
    ['no arguments', [[city('c1', '')], 'Well.']],
    ['a call without an id', [[city('', '{"city":"Oslo"}')], 'Well.']],
    ['calls with one id', [[city('c1', '{"city":"Oslo"}'), city('c1', '{"city":"Bergen"}')], 'Well.']],
    ['a name that is none', [[city('c1', '{}', 'the weather, please')], 'Well.']],
    ['a call of nothing', [[city('', '{"a":1}', '')], 'Well.']],
  ])('%s leaves a history the provider takes', async (_, script) => {
    const { told: __, ...rest } = await run(example, shape, script);
    expect(rest).toEqual({ code: 0, stdout: 'Well.\n', stderr: '', refused: [] });
  });

  test('a history with a call that has no answer would be refused here', () => {
    expect(() => PROVIDERS[shape].check(UNANSWERED[shape])).toThrow();
  });
});

test('gemini: a reply whose call the provider could not read is asked for again', async () => {
  const example = examples.find(({ place }) => place.endsWith('/gemini.ts')) as Example;
  const { told: _, ...rest } = await run(example, 'gemini', ['', [city('c1', '{"city":"Oslo"}')], 'Well.']);
  expect(rest).toEqual({ code: 0, stdout: 'Well.\n', stderr: '', refused: [] });
});

test('every request is one by the types of the provider’s own package', async () => {
  const requests = SHAPES.map(([shape]): Example => {
    const { imports, type } = PROVIDERS[shape];
    const none = `// @ts-expect-error\nexport const none = [7] satisfies (${type})[];`;
    const code = `${imports}\n${none}\nexport default ${JSON.stringify(seen[shape], null, 1)} satisfies (${type})[];\n`;
    return { place: shape, page: shape, line: 1, file: shape, code, runs: false, prints: undefined };
  });
  expect(Object.values(seen).every(({ length }) => length > 10)).toBe(true);
  const compiled = await Programs.compile(requests, `${root}/test/runtimes`);
  await compiled.remove();
  expect(compiled.errors).toEqual([]);
}, 120_000);

const user = { role: 'user', content: 'And?' };

const UNANSWERED = {
  openaiChat: {
    tools: [],
    messages: [
      user,
      { role: 'assistant', tool_calls: [{ id: 'c1', function: { name: 'weather', arguments: '{}' } }] },
      user,
    ],
  },
  openaiResponses: {
    tools: [],
    input: [user, { type: 'function_call', call_id: 'c1', name: 'weather', arguments: '{}' }, user],
  },
  anthropic: {
    tools: [],
    messages: [
      user,
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'weather', input: {} }] },
      user,
    ],
  },
  gemini: {
    tools: [],
    contents: [
      { role: 'user', parts: [{ text: 'And?' }] },
      { role: 'model', parts: [{ functionCall: { name: 'weather', args: {} } }] },
      { role: 'user', parts: [{ text: 'And?' }] },
    ],
  },
  geminiInteractions: {
    tools: [],
    input: [
      { type: 'user_input' },
      { type: 'function_call', id: 'c1', name: 'weather', arguments: {} },
      { type: 'user_input' },
    ],
  },
};
