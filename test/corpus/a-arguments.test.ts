import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { pino } from 'pino';
import { createDispatcher, type DispatcherOptions, defineTool, forModel, type JsonObject, textOf } from 'toolonion';
import { allowAll, standard } from 'toolonion/middleware';

/** A tool that takes any arguments and remembers them, within the usual layers. */
function setUp(inputSchema: JsonObject = { type: 'object' }, more: DispatcherOptions = {}) {
  const received: unknown[] = [];
  const tool = defineTool({
    name: 'tool',
    description: 'Remembers its arguments.',
    inputSchema,
    execute: (input) => {
      received.push(structuredClone(input));
      return 'ok';
    },
  });
  const middleware = standard({ permission: { check: allowAll }, logging: false });
  const dispatcher = createDispatcher({ tools: [tool], middleware, ...more });
  const call = (given: unknown) => dispatcher.dispatch({ id: 'c1', name: 'tool', arguments: given });
  return { received, dispatcher, call };
}

const repairs = (notes: readonly { readonly type: string; readonly message: string }[]) =>
  notes.filter(({ type }) => type === 'repaired').map(({ message }) => message);

describe('A01: arguments that are blank', () => {
  test.each([[''], ['   '], ['\n\t'], ['\uFEFF'], [undefined], ['""'], ['"  "']])(
    'A01: are {} for a tool without parameters: %j',
    async (given) => {
      const { received, call } = setUp();
      expect((await call(given)).isError).toBe(false);
      expect(received).toEqual([{}]);
    },
  );

  test.each([['<|call|>'], ['```json\n```'], ['<tool_call></tool_call>']])(
    'A01: are {} where there is only what stands around them: %j',
    async (given) => {
      const { received, call } = setUp();
      expect((await call(given)).isError).toBe(false);
      expect(received).toEqual([{}]);
    },
  );

  test.each([['input'], ['args'], ['parameters'], ['rawArguments']])(
    'A01: are not {} where they stand under %s: the host is told',
    async (key) => {
      const { received, dispatcher } = setUp();
      const { error } = await dispatcher.dispatch({ name: 'tool', [key]: { path: 'a' } });
      expect(error).toMatchObject({ code: 'invalid_call', executed: 'no' });
      expect(error?.message).toContain(`stand under "${key}"; they belong under "arguments"`);
      expect(received).toEqual([]);
      for (const nothing of [null, ''])
        expect((await dispatcher.dispatch({ name: 'tool', [key]: {}, arguments: nothing })).error?.code).toBe(
          'invalid_call',
        );
      const both = { name: 'tool', [key]: { path: 'a' }, arguments: { path: 'b' } };
      expect((await dispatcher.dispatch(both)).isError).toBe(false);
      expect((await dispatcher.dispatch({ name: 'tool', [key]: undefined })).isError).toBe(false);
    },
  );

  test('A01: are {} when the key is missing', async () => {
    const { received, dispatcher } = setUp();
    expect((await dispatcher.dispatch({ name: 'tool' })).isError).toBe(false);
    expect(received).toEqual([{}]);
  });

  test.each([[''], ['  '], [undefined]])('A01: are told what is required where something is: %j', async (given) => {
    const { received, call } = setUp({ type: 'object', properties: { path: {} }, required: ['path'] });
    const { error } = await call(given);
    expect(error).toMatchObject({ code: 'invalid_arguments', executed: 'no' });
    expect(error?.message).toContain('"path" is required');
    expect(received).toEqual([]);
  });
});

test.each([[null], ['null'], [' null\n'], ['"null"'], ['None'], ['null<|call|>'], ['```json\nnull\n```']])(
  'A02: null is no arguments, a log is written of it: %j',
  async (given) => {
    const lines: { readonly code: string }[] = [];
    const logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const { received, dispatcher } = setUp();
    const logged = dispatcher.with({
      middleware: standard({ permission: { check: allowAll }, logging: { logger, values: true } }),
    });
    expect((await logged.dispatch({ name: 'tool', arguments: given })).isError).toBe(false);
    expect(received).toEqual([{}]);
    expect(lines.map(({ code }) => code)).toEqual(['ok']);
  },
);

test.each([
  ['[1,2]', 'an array'],
  ['[]', 'an array'],
  ['42', 'a number'],
  ['0', 'a number'],
  ['true', 'true'],
  ['false', 'false'],
  ['"Oslo"', 'a string'],
  ['[{"q":"a"},{"q":"b"}]', 'an array'],
  ['[1,2,]', 'an array'],
  ['```\n[1]\n```', 'an array'],
  ['True', 'true'],
  [['a'], 'an array'],
  [42, 'a number'],
  [true, 'true'],
  [() => 1, 'a function'],
] as const)('A03: what is no object is refused, and its kind told: %j', async (given, kind) => {
  const { received, call } = setUp();
  const { error, requested } = await call(given);
  expect(error).toMatchObject({ code: 'invalid_arguments', executed: 'no' });
  expect(error?.message).toContain(`They are ${kind}.`);
  expect(requested.input).toEqual({});
  expect(received).toEqual([]);
});

describe('A04: arguments encoded more than once', () => {
  const city = { city: 'Oslo', note: 'a "quoted" \\ word\nand a line' };
  const encoded = (times: number) => {
    let text = JSON.stringify(city);
    for (let time = 0; time < times; time++) text = JSON.stringify(text);
    return text;
  };

  test.each([[1], [2], [3]])('A04: are unwrapped %i times, and the result says so', async (times) => {
    const { received, call } = setUp();
    const result = await call(encoded(times));
    expect(received).toEqual([city]);
    expect(repairs(result.notes)).toEqual([expect.stringContaining('JSON within a JSON text')]);
    expect(result.requested).toMatchObject({ input: city, rawArguments: encoded(times) });
  });

  test.each([
    [encoded(4), 'invalid_arguments', 'They are a string.'],
    [JSON.stringify('42'), 'invalid_arguments', 'They are a string.'],
    [JSON.stringify('[1]'), 'invalid_arguments', 'They are a string.'],
    [JSON.stringify('{"city":"Os'), 'truncated_arguments', 'They stop in the middle.'],
    [JSON.stringify('{"q":"a"}{"q":"b"}'), 'invalid_arguments', 'They are 2 different objects'],
    [JSON.stringify('{"q": }'), 'invalid_arguments', 'They are not valid JSON, near character 6'],
  ])('A04: are refused where no one object is in them: %s', async (text, code, message) => {
    const { received, call } = setUp();
    const { error } = await call(text);
    expect(error?.code).toBe(code);
    expect(error?.message).toContain(message);
    expect(received).toEqual([]);
  });
});

describe('A04: JSON in single quotes', () => {
  test.each([
    [`'{"a":1}'`, { a: 1 }],
    [String.raw`'{"a":"it\'s"}'`, { a: "it's" }],
    [String.raw`'{"a":"say \\"hi\\""}'`, { a: 'say "hi"' }],
    [String.raw`'{"a":"x\ty"}'`, { a: 'x\ty' }],
  ])('A04: is unwrapped where it can mean one thing only: %s', async (text, input) => {
    const { received, call } = setUp();
    expect((await call(text)).isError).toBe(false);
    expect(received).toEqual([input]);
  });

  test.each([[String.raw`'{"a":"C:\\new"}'`], [String.raw`'{"a":"x\\ny"}'<|call|>`], [String.raw`'{"re":"\\d"}'`]])(
    'A04: is refused where a shell would read something else than Python: %s',
    async (text) => {
      const { received, call } = setUp();
      expect((await call(text)).error?.code).toBe('invalid_arguments');
      expect(received).toEqual([]);
    },
  );
});

test.each<[string, JsonObject, string, unknown]>([
  ['a list', { type: 'array', items: { type: 'string' } }, '["a","b"]', ['a', 'b']],
  ['an object', { type: 'object' }, '{"a":{"b":1}}', { a: { b: 1 } }],
])('A05: a text of JSON in the place of %s is read, where the schema takes no text', async (_, schema, text, held) => {
  const { received, call } = setUp({ type: 'object', properties: { queries: schema, name: { type: 'string' } } });
  const result = await call({ queries: text, name: text });
  expect(received).toEqual([{ queries: held, name: text }]);
  expect(result.notes).toMatchObject([{ type: 'repaired', by: 'validation' }]);
  const other = Array.isArray(held) ? '{"a":1}' : '["a"]';
  for (const wrong of [other, '5', text.slice(0, -1)])
    expect((await call({ queries: wrong })).error?.message).toContain(
      `queries: expected ${schema['type']}; got the text`,
    );
});

describe('A06: objects glued together', () => {
  test.each([
    ['{"q":"a"}{"q":"a"}', { q: 'a' }],
    ['{"q":"a"}\n{"q":"a"}\n', { q: 'a' }],
    ['{"q":"a"},{"q":"a"}', { q: 'a' }],
    ['{"a":1,"b":{"c":[1]}}{"b":{"c":[1]},"a":1}', { a: 1, b: { c: [1] } }],
    ['{"q":"a"}'.repeat(6), { q: 'a' }],
    ['{}{}', {}],
  ])('A06: run once where they are equal: %s', async (text, input) => {
    const { received, call } = setUp();
    const result = await call(text);
    expect(received).toEqual([input]);
    expect(forModel(result)).toMatch(/the same object \d times, taken once/);
  });

  test.each([
    ['{"q":"a"}{"q":"b"}'],
    ['{"q":"a"}{"q":"a","n":1}'],
    ['{}{"q":"a"}'],
    ['{"q":"a"}\n{"q":"b"}\n{"q":"a"}'],
    ['{"q":1}{"q":"1"}'],
    ['{"q":"a"}, {"q":"b"}'],
  ])('A06: run nothing where they differ, and the model is told to send each on its own: %s', async (text) => {
    const { received, call, dispatcher } = setUp();
    const { error, requested } = await call(text);
    expect(error).toMatchObject({ code: 'invalid_arguments', executed: 'no' });
    expect(error?.message).toMatch(/They are \d different objects.* Send a call of its own for each\./);
    expect(requested).toMatchObject({ input: {}, rawArguments: text });
    const strict = dispatcher.with({ repairArguments: false });
    expect((await strict.dispatch({ name: 'tool', arguments: text })).error?.code).toBe('invalid_arguments');
    expect(received).toEqual([]);
  });
});

describe('A08: slips of syntax', () => {
  test.each([
    ['{"a":1,}', { a: 1 }, 'a trailing comma'],
    ['{"a":1},', { a: 1 }, 'a trailing comma'],
    ['{"a":[1,2,],}', { a: [1, 2] }, 'a trailing comma'],
    ["{'a':1}", { a: 1 }, 'single quotes'],
    ["{'a': 'it\\'s', 'b': 'say \"hi\"'}", { a: "it's", b: 'say "hi"' }, 'single quotes'],
    ["{'a': True, 'b': [None, False]}", { a: true, b: [null, false] }, "a word of Python's"],
    ['{a:1, b_2: {$c-d: "x"}}', { a: 1, b_2: { '$c-d': 'x' } }, 'a key without quotes'],
    ['{"a":1}<|call|>', { a: 1 }, 'a control token'],
    ['{"a":1}<|im_end|>\n', { a: 1 }, 'a control token'],
    ['<tool_call>{"a":1}</tool_call>', { a: 1 }, 'a control token'],
    ['{"a":1}<\uFF5Ctool\u2581call\u2581end\uFF5C>', { a: 1 }, 'a control token'],
    ['```json\n{"a":1}\n```', { a: 1 }, 'a code fence'],
    ['```\n{"a":1}```', { a: 1 }, 'a code fence'],
    ['\uFEFF{"a":1}', { a: 1 }, 'white space'],
    ['{"a":\u00A01}', { a: 1 }, 'white space'],
    ['{"url":"http://a//b,}","x":"<|call|>```",}', { url: 'http://a//b,}', x: '<|call|>```' }, 'a trailing comma'],
    ['{"a":"it\\\'s"}', { a: "it's" }, 'an escape'],
  ])('A08: are read where they leave no doubt, with a note for the model: %s', async (text, input, kind) => {
    const { received, call } = setUp();
    const result = await call(text);
    if (input === undefined) {
      expect(result.error?.code).toBe('invalid_arguments');
      return;
    }
    expect(received).toEqual([input]);
    expect(result.requested).toMatchObject({ input, rawArguments: text });
    expect(repairs(result.notes)).toEqual([expect.stringContaining(kind)]);
    expect(textOf(forModel(result))).toContain(`[${repairs(result.notes)[0]}]`);
  });

  test.each([
    ['{"query": ,"n":1}', 10],
    ['{"a":1,,"b":2}', 7],
    ['{,}', 1],
    ['{"a" 1}', 5],
    ['{"a":1 "b":2}', 7],
    ['{"a":[1}', 7],
    ['{"a":"b"}}', 9],
    ['{"a":"say "hi" to"}', 11],
    ['{"a":"C:\\Users"}', 8],
    ['{"a":"\\x41"}', 6],
    ['{"a":"\\x41","b":"it\\\'s"}', 6],
    ['{"a":"it\\\'s","b":"\\x41","c":"it\\\'s"}', 18],
    ['{"a":1 // one\n}', 7],
    ['{"a":01}', 5],
    ['{"a":0x10}', 5],
    ['{"a":NaN}', 5],
    ['{"a":undefined}', 5],
    ['{"a":+1}', 5],
    ['{"a":"b" + "c"}', 9],
    ['Here it is: {"a":1}', 0],
    ['{"a":1} as you asked', 8],
    ['path=a.txt', 0],
    ['<path>a.txt</path>', 0],
    ["{'it''s': 1}", 1],
  ])('A08: are refused where they leave a doubt, with the place and the text there: %s', async (text, at) => {
    const { received, call } = setUp();
    const { error, requested } = await call(text);
    expect(error).toMatchObject({ code: 'invalid_arguments', executed: 'no' });
    expect(error?.message).toContain(`near character ${at}: `);
    expect(error?.message).toContain(JSON.stringify(text.slice(at, at + 20)).slice(1, -1));
    expect(requested).toMatchObject({ input: {}, rawArguments: text });
    expect(received).toEqual([]);
  });

  test.each([['{"a":1,}'], ["{'a':1}"], ['{"a":1}<|call|>'], ['"{\\"a\\":1}"'], ['{"a":1}{"a":1}'], ['{"a":"\n"}']])(
    'A08: are refused where repairs are off, for all tools or for this one: %j',
    async (text) => {
      for (const repairArguments of [false, { byTool: { tool: false } }]) {
        const { received, call } = setUp(undefined, { repairArguments });
        expect((await call(text)).error?.code).toBe('invalid_arguments');
        expect(received).toEqual([]);
      }
    },
  );
});

test.each([
  ['{"old":"line1\nline2"}', { old: 'line1\nline2' }],
  ['{"old":"a\tb\r\n","new":"\u001b[0m"}', { old: 'a\tb\r\n', new: '\u001b[0m' }],
  ['{"old":"\u0000\u0001\u001f"}', { old: '\u0000\u0001\u001f' }],
  ['{"a\nb":"c"}', { 'a\nb': 'c' }],
  ['{"old":"\\n stays \\\\n, \n becomes","n":1}', { old: '\n stays \\n, \n becomes', n: 1 }],
])('A09: control characters in a text are what the model wrote: %j', async (text, input) => {
  const { received, call } = setUp();
  const result = await call(text);
  expect(received).toEqual([input]);
  expect(repairs(result.notes)).toEqual([expect.stringContaining('a control character in a text')]);
});

test.each([['{"a": }'], ['not JSON'], ['{"a":"half'], ['[1]'], ['{"a":"\ud800" x}'], [[1]], [{ f: () => 1 }]])(
  'A10: what was asked for is safe to replay, whatever it was: %j',
  async (given) => {
    const { dispatcher, call } = setUp();
    const { requested } = await call(given);
    expect(requested.input).toEqual({});
    expect(requested.rawArguments).toBe(typeof given === 'string' ? given : undefined);
    expect(JSON.parse(JSON.stringify(requested.input))).toEqual({});
    const next = await dispatcher.dispatch({ ...requested, arguments: { a: 1 } });
    expect(next.isError).toBe(false);
  },
);

describe('A11: arguments that were cut off', () => {
  test.each([
    ['{"path":"a.txt","content":"half a fi'],
    ['{"commands":["npm i","npm t"'],
    ['{"commands":["npm i","npm t"]'],
    ['{"path":"a.txt","content":""'],
    ["{'path':'a.txt','content':'half"],
    ['{"path":"a.txt",'],
    ['{"path":"a.txt","n":12'],
    ['```json\n{"path":"a.txt"'],
    ['{"path":"a\nb'],
    ['{'],
    ["{'overwrite': Tru"],
    ["{'overwrite': Fals"],
    ["{'a': [N"],
    [`{'id': 1${'0'.repeat(400)}`],
  ])('A11: are never completed, and the model is told to send less: %j', async (text) => {
    const { received, call } = setUp();
    const { error } = await call(text);
    expect(error).toMatchObject({ code: 'truncated_arguments', executed: 'no' });
    expect(error?.message).toContain('split it into smaller calls');
    expect(received).toEqual([]);
  });

  test.each([['{"a":1}'], [{ a: 1 }], [''], ['{"a":1,}']])(
    'A11: are refused where the caller knows it: %j',
    async (given) => {
      const { received, dispatcher } = setUp();
      const { error } = await dispatcher.dispatch({ name: 'tool', arguments: given, truncated: true });
      expect(error).toMatchObject({ code: 'truncated_arguments', executed: 'no' });
      expect(received).toEqual([]);
    },
  );
});

describe('numbers', () => {
  test.each([
    ['{"id":12345678901234567890}', '12345678901234567890'],
    ['{"id":9007199254740993}', '9007199254740993'],
    ['{"ids":[1,-1234567890123456789]}', '-1234567890123456789'],
    ["{'id':9007199254740993}", '9007199254740993'],
    ['"{\\"id\\":9007199254740993}"', '9007199254740993'],
    [`{"id":1${'0'.repeat(99)}1}`, `1${'0'.repeat(39)}…`],
  ])('that would arrive as another one are refused, and the model told to send text: %s', async (text, number) => {
    const { received, call } = setUp();
    const { error } = await call(text);
    expect(error?.code).toBe('invalid_arguments');
    expect(error?.message).toContain(`the number ${number} has more digits than a number can hold`);
    expect(received).toEqual([]);
  });

  test.each([['{"n":1e21}'], ['{"n":9007199254740992}'], ['{"n":33253922728781590}'], ['{"n":0.1234567890123456789}']])(
    'that are the nearest there is arrive: %s',
    async (text) => {
      const { received, call } = setUp();
      expect((await call(text)).notes).toEqual([]);
      expect(received).toEqual([JSON.parse(text)]);
    },
  );

  test.each([
    ['401 digits', 400],
    ['ten million digits', 10_000_000],
  ])('that nothing can hold are told, whatever else is wrong with the text: %s', async (_, zeros) => {
    const { received, call } = setUp();
    const number = `1${'0'.repeat(zeros)}`;
    const results = [
      [`{'id':${number}}`, 'invalid_arguments', 'id is or holds a number that is too large'],
      [`{"id":${number} x}`, 'invalid_arguments', 'They are not valid JSON'],
      [`{"id":${number}`, 'truncated_arguments', 'They stop in the middle'],
    ] as const;
    for (const [text, code, message] of results) {
      const { error } = await call(text);
      expect(error?.code).toBe(code);
      expect(error?.message).toContain(message);
    }
    expect(received).toEqual([]);
  });

  test('as text keep their digits, however many', async () => {
    const { received, call } = setUp();
    await call('{"id":"12345678901234567890"}');
    expect(received).toEqual([{ id: '12345678901234567890' }]);
  });
});

describe('text of any kind', () => {
  const object = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue());

  test('that is the JSON of an object arrives unchanged, without a note', async () => {
    const { received, call } = setUp();
    const layout = fc.constantFrom(undefined, 2, '\t');
    await fc.assert(
      fc.asyncProperty(object, layout, async (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        const result = await call(text);
        expect(result.notes).toEqual([]);
        expect(JSON.stringify(received.at(-1))).toBe(JSON.stringify(JSON.parse(text)));
        expect(result.requested).toEqual({ id: 'c1', name: 'tool', input: JSON.parse(text), rawArguments: text });
      }),
    );
  });

  test('arrives the same as Python would write it', async () => {
    const { received, call } = setUp();
    const single = (text: string) =>
      `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
    const sloppy = (value: unknown): string => {
      if (typeof value === 'string') return single(value);
      if (Array.isArray(value)) return `[${value.map((item) => `${sloppy(item)},`).join(' ')}]`;
      if (typeof value !== 'object' || value === null)
        return { true: 'True', false: 'False', null: 'None' }[String(value)] ?? JSON.stringify(value);
      return `{${Object.entries(value)
        .map(([key, item]) => `${single(key)}: ${sloppy(item)},`)
        .join('\n')}}`;
    };
    await fc.assert(
      fc.asyncProperty(object, async (value) => {
        received.length = 0;
        const result = await call(sloppy(value));
        expect([result.error?.message, received]).toEqual([undefined, [JSON.parse(JSON.stringify(value))]]);
      }),
    );
  });

  test('that was cut anywhere is never run', async () => {
    const { received, call } = setUp();
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), fc.nat(), async (value, at) => {
        const text = JSON.stringify(value);
        expect((await call(text.slice(0, 1 + (at % (text.length - 1))))).error?.code).toBe('truncated_arguments');
        expect(received).toEqual([]);
      }),
    );
  });
});

describe('A13: NUL characters', () => {
  const shell: JsonObject = { cmd: 'ls\u0000 -la', env: { list: ['a', { deep: 'b\u0000' }] } };
  const dispatchWith = async (nul: 'keep' | 'remove' | 'refuse', given: unknown = shell) => {
    const { received, dispatcher } = setUp();
    const prepared = dispatcher.with({
      middleware: standard({
        permission: { check: allowAll },
        logging: false,
        prepareArguments: { nul: { byTool: { tool: nul } } },
      }),
    });
    return { received, result: await prepared.dispatch({ name: 'tool', arguments: given }) };
  };

  test('A13: are refused, at any depth, where the host says so, and the place is told', async () => {
    const { received, result } = await dispatchWith('refuse');
    expect(result.error).toMatchObject({ code: 'invalid_arguments', executed: 'no' });
    expect(result.content).toContain('hold a NUL character, at cmd. Send the call again without it.');
    const deep = await dispatchWith('refuse', { env: shell['env'] });
    expect(deep.result.content).toContain('at env.list[1].deep');
    expect(received).toEqual([]);
  });

  test('A13: are taken out, at any depth, where the host says so, and the model is told', async () => {
    const { received, result } = await dispatchWith('remove', JSON.stringify(shell));
    expect(received).toEqual([{ cmd: 'ls -la', env: { list: ['a', { deep: 'b' }] } }]);
    expect(result.notes).toMatchObject([{ type: 'nul_removed', by: 'prepareArguments', forModel: true }]);
    expect(result.requested.input).toEqual(shell);
  });

  test.each(['remove', 'refuse'] as const)(
    'A13: in a key are refused under %s: without them it could be another’s',
    async (nul) => {
      const { result } = await dispatchWith(nul, { env: { 'A\u0000': 'x' } });
      expect(result.error?.code).toBe('invalid_arguments');
    },
  );

  test('A13: stay where nothing is said: a text may hold them', async () => {
    const { received, call } = setUp();
    expect((await call(shell)).notes).toEqual([]);
    expect(received).toEqual([shell]);
  });
});

describe('A14: entities', () => {
  test.each([
    [{ content: 'a &lt; b &amp;&amp; c &#39;d&#39; &quot;' }],
    [{ cmd: 'echo %20 \\u0041 &nbsp;' }],
    [{ html: '<b>&copy;</b>' }],
  ])('A14: are what the model wrote: %j', async (given) => {
    const { received, call } = setUp();
    for (const sent of [given, JSON.stringify(given)]) expect((await call(sent)).notes).toEqual([]);
    expect(received).toEqual([given, given]);
  });

  test('A14: can be decoded by the host, for the tool that needs it', async () => {
    const { received, dispatcher } = setUp();
    const transform = (input: JsonObject) => ({ ...input, cmd: String(input['cmd']).replaceAll('&amp;', '&') });
    const decoding = dispatcher.with({
      middleware: standard({
        permission: { check: allowAll },
        logging: false,
        prepareArguments: { transform: { byTool: { tool: transform } } },
      }),
    });
    const { notes, requested } = await decoding.dispatch({
      name: 'tool',
      arguments: { cmd: 'mkdir x &amp;&amp; cd x' },
    });
    expect(received).toEqual([{ cmd: 'mkdir x && cd x' }]);
    expect(notes).toMatchObject([{ type: 'transformed', by: 'prepareArguments' }]);
    expect(requested.input).toEqual({ cmd: 'mkdir x &amp;&amp; cd x' });
  });
});

test('A13: a text of JSON in the place of a text is left alone, whatever escapes it holds', async () => {
  const text = '{\n  "id": 12345678901234567890,\n  "v": 1.0,\n  "sep": "\\u0000"\n}\n';
  for (const nul of ['refuse', 'remove'] as const) {
    const { received, dispatcher } = setUp({ type: 'object', properties: { text: { type: 'string' } } });
    const layers = standard({ permission: { check: allowAll }, logging: false, prepareArguments: { nul } });
    const { notes } = await dispatcher.with({ middleware: layers }).dispatch({ name: 'tool', arguments: { text } });
    expect([received, notes]).toEqual([[{ text }], []]);
  }
});

test.each([
  [{ l: '["x\\u0000"]' }, { l: ['x'] }],
  [{ l: '[{"cmd":"ls\\u0000 -la"}]' }, { l: [{ cmd: 'ls -la' }] }],
])('A13: a NUL within a text of JSON, which the tool gets as a list, counts as well: %j', async (given, clean) => {
  const schema: JsonObject = { type: 'object', properties: { l: { type: 'array' } } };
  for (const nul of ['refuse', 'remove'] as const) {
    const { received, dispatcher } = setUp(schema);
    const layers = standard({ permission: { check: allowAll }, logging: false, prepareArguments: { nul } });
    const { error } = await dispatcher.with({ middleware: layers }).dispatch({ name: 'tool', arguments: given });
    expect([error?.code, received]).toEqual(nul === 'refuse' ? ['invalid_arguments', []] : [undefined, [clean]]);
  }
});

test.each([['length'], ['true'], [1], [true]])(
  'A11: a call that is said to be cut off is refused, in whatever words: %j',
  async (truncated) => {
    const { received, dispatcher } = setUp();
    const request = { name: 'tool', arguments: { a: 1 }, truncated: truncated as true };
    for (const result of [await dispatcher.dispatch(request), ...(await dispatcher.dispatchAll([request]))])
      expect(result.error?.code).toBe('truncated_arguments');
    expect(received).toEqual([]);
  },
);

test.each([['{"n":1e400}'], ['{"a":[{"n":-1e999}]}'], ["{'n':1e400}"]])(
  'a number that is too large is called that: %s',
  async (text) => {
    const { received, call } = setUp();
    const { error } = await call(text);
    expect(error?.message).toContain('is or holds a number that is too large.');
    expect(received).toEqual([]);
  },
);
