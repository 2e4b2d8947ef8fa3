import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createDispatcher, defineTool, type JsonObject, type Middleware, type ToolCallRequest } from 'toolonion';
import { hostileValues, nested } from './support/hostile.ts';

const received: unknown[] = [];
const echo = defineTool({
  name: 'echo',
  description: 'Remembers its arguments.',
  execute: (input) => {
    received.push(input);
    return 'ok';
  },
});
const dispatcher = createDispatcher({ tools: [echo] });
const strict = dispatcher.with({ repairArguments: false });

/** Dispatches a call of echo with these arguments: its result, and what the tool received, if it ran. */
async function call(given: Omit<ToolCallRequest, 'name'>, by = dispatcher) {
  received.length = 0;
  const result = await by.dispatch({ name: 'echo', ...given });
  return { result, ran: received.length > 0, input: received[0] };
}

test.each(['{"n":1e400}', '{"n":-1E+999}', '{"a":[{"n":2e308}]}', `{"n":${'9'.repeat(400)}}`])(
  'a number too large to be held is refused, not changed: %s',
  async (text) => {
    const { result, ran } = await call({ arguments: text });
    expect([result.error?.code, ran]).toEqual(['invalid_arguments', false]);
  },
);

test.each(["{'a':1", '{a:[1,2', '{"a":1}{"b":', '{"a":"\\x'])(
  'text that stops in the middle is told as such where nothing is repaired, whatever else is wrong with it: %s',
  async (text) => {
    expect((await call({ arguments: text }, strict)).result.error?.code).toBe('truncated_arguments');
  },
);

describe('arguments that are nothing', () => {
  test.each([
    ['left out', {}],
    ['undefined', { arguments: undefined }],
    ['null', { arguments: null }],
    ['the text null', { arguments: 'null' }],
    ['empty text', { arguments: '' }],
    ['blank text', { arguments: ' \n\t ' }],
    ['a byte order mark', { arguments: '\uFEFF' }],
  ])('A01, A02: are {} when they are %s', async (_, given) => {
    const { result, input } = await call(given);
    expect(result.isError).toBe(false);
    expect(result.requested.input).toEqual({});
    expect(input).toEqual({});
  });

  test('are an object of its own for each call, which the tool may change', async () => {
    const first = await call({});
    Object.assign(first.input as object, { left: 'over' });
    expect((await call({})).input).toEqual({});
  });
});

describe('arguments as text', () => {
  test('arrive as the object they are the JSON of', async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (object) => {
        const text = JSON.stringify(object);
        const { result, input } = await call({ arguments: text });
        expect(JSON.stringify(input)).toBe(text);
        expect(result.requested).toEqual({ name: 'echo', input: JSON.parse(text), rawArguments: text });
      }),
    );
  });

  test('A14: keep entities, control characters and `__proto__` as the model wrote them', async () => {
    const text = '{"content":"a &lt; b","cmd":"ls\\u0000 -la","__proto__":{"admin":true}}';
    const { input } = await call({ arguments: text });
    expect(JSON.stringify(input)).toBe(text);
    expect((input as { admin?: unknown }).admin).toBeUndefined();
  });

  test('arrive whole when they are 10 MB long', async () => {
    const content = 'x"\\\u{1F98A}'.repeat(1_500_000);
    const { input } = await call({ arguments: JSON.stringify({ content }) });
    expect((input as { content: string }).content === content).toBe(true);
  });

  test.each([
    ['[1,2]', 'an array'],
    ['42', 'a number'],
    ['true', 'true'],
    ['"{\\"city\\":\\"Oslo\\"}"', 'a string'],
    ['"Oslo"', 'a string'],
  ])('A03: are refused when they are not an object: %s', async (text, kind) => {
    const { result, ran } = await call({ arguments: text }, strict);
    expect(ran).toBe(false);
    expect(result.error).toMatchObject({ code: 'invalid_arguments', executed: 'no' });
    expect(result.content).toContain(`They are ${kind}.`);
  });

  test.each([
    ['{"query": ,"n":1}', 10],
    ['{"a":1,}', 7],
    ['{"a":[1,]}', 8],
    ['{,}', 1],
    ["{'a':1}", 1],
    ['{a:1}', 1],
    ['{"a":nil}', 5],
    ['{"a":01}', 5],
    ['{"a":1.}', 5],
    ['{"a":1}<|call|>', 7],
    ['{"q":"a"}{"q":"b"}', 9],
    ['{"a":[1}', 7],
    ['{"a" 1}', 5],
    ['{"a":1 "b":2}', 7],
    ['{"a":"one\ntwo"}', 9],
    ['{"a":"\u001b[0m"}', 6],
    ['{"a":"\\x"}', 6],
    ['{"a":"\\u12G4"}', 6],
    ['{"a":"b"}]', 9],
    ['```json\n{"a":1}\n```', 0],
    ['not JSON', 0],
    [']', 0],
  ])('A08: are refused with the place of the fault, where nothing is repaired: %j', async (text, at) => {
    const { result, ran } = await call({ arguments: text }, strict);
    expect(ran).toBe(false);
    expect(result.error).toMatchObject({ code: 'invalid_arguments', executed: 'no' });
    expect(result.content).toContain(`near character ${at}: `);
    expect(result.requested).toEqual({ name: 'echo', input: {}, rawArguments: text });
  });

  test('are shown only around the fault, however long they are', async () => {
    const { result } = await call({ arguments: `{"a":"${'x'.repeat(10_000_000)}" oops}` });
    expect(result.error?.code).toBe('invalid_arguments');
    expect(result.content).toContain('oops');
    expect(result.content.length).toBeLessThan(400);
  });

  test.each([
    ['{"path":"a.txt","content":"half a fi'],
    ['{"commands":["npm i","npm t"'],
    ['{"a":'],
    ['{"a"'],
    ['{'],
    ['{"a":1,'],
    ['{"a":tr'],
    ['{"a":-'],
    ['{"a":1.'],
    ['{"a":"\\'],
    ['{"a":"\\u00'],
    ['"abc\\'],
    ['"abc'],
    ['{"a":1 \n '],
    ['{"a":"one\ntwo'],
  ])('are incomplete, not faulty, when they stop in the middle: %j', async (text) => {
    const { result, ran } = await call({ arguments: text });
    expect(ran).toBe(false);
    expect(result.error).toMatchObject({ code: 'truncated_arguments', executed: 'no' });
    expect(result.content).toContain('They stop in the middle.');
    expect(result.requested.rawArguments).toBe(text);
  });

  test('are incomplete wherever the text of an object is cut', async () => {
    const object = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue(), { minKeys: 1 });
    const cut = fc.tuple(object, fc.nat(), fc.constantFrom(undefined, 2)).map(([value, at, indent]) => {
      const text = JSON.stringify(value, null, indent);
      return text.slice(0, 1 + (at % (text.length - 1)));
    });
    await fc.assert(
      fc.asyncProperty(cut, async (text) => {
        expect((await call({ arguments: text })).result.error?.code).toBe('truncated_arguments');
      }),
    );
  });

  test('are refused where brackets open without end, and cost little memory', async () => {
    const { result, ran } = await call({ arguments: '['.repeat(10_000_000) });
    expect(ran).toBe(false);
    expect(result.content).toContain('They are not valid JSON, near character 1000000: ');
  });

  test('are incomplete when they are 10 MB of one unfinished text', async () => {
    const { result } = await call({ arguments: `{"a":"${'x\\"'.repeat(3_500_000)}` });
    expect(result.error?.code).toBe('truncated_arguments');
  });

  test('are read, refused or incomplete whatever the text is', async () => {
    const scraps = fc.constantFrom(
      ...'{}[]:,"\\ \n',
      '\\u00',
      '1',
      '-',
      'e',
      '.',
      'tru',
      'null',
      '"a"',
      '\u0000',
      '\ud800',
    );
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(scraps).map((parts) => parts.join('')),
    );
    await fc.assert(
      fc.asyncProperty(text, async (given) => {
        const { result, ran } = await call({ arguments: given });
        expect(result.toolCallId).not.toBe('');
        if (!ran) expect(result.error?.code).toMatch(/^(invalid|truncated)_arguments$/);
        expect(JSON.stringify(result).isWellFormed()).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ['objects', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`, 'invalid_arguments'],
    ['lists in an object', `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 'invalid_arguments'],
    ['lists', '['.repeat(100_000) + ']'.repeat(100_000), 'invalid_arguments'],
    ['objects without an end', '{"a":'.repeat(100_000), 'truncated_arguments'],
    ['lists without an end', '['.repeat(100_000), 'truncated_arguments'],
    ['brackets that do not match', '['.repeat(100_000) + '}'.repeat(100_000), 'invalid_arguments'],
  ])('are refused when they are 100,000 levels of %s', async (_, text, code) => {
    const { result, ran } = await call({ arguments: text });
    expect(ran).toBe(false);
    expect(result.error?.code).toBe(code);
  });
});

describe('arguments the caller knows to be cut off', () => {
  test.each([['{"a":1}'], ['{"a":'], [''], [{ a: 1 }], [undefined]])(
    'A11: are refused, however complete they look: %j',
    async (given) => {
      const { result, ran } = await call({ arguments: given, truncated: true });
      expect(ran).toBe(false);
      expect(result.error).toMatchObject({ code: 'truncated_arguments', executed: 'no' });
      expect(result.requested.input).toEqual({});
      expect(result.requested.rawArguments).toBe(typeof given === 'string' ? given : undefined);
    },
  );
});

describe('arguments as an object', () => {
  test('arrive as an equal object', async () => {
    const given = { city: 'Oslo', days: [1, 2, { deep: null }], ok: true };
    const { result, input } = await call({ arguments: given });
    expect(input).toEqual(given);
    expect(result.requested).toEqual({ name: 'echo', input: given });
  });

  test('stay untouched by whatever the tool does to its own', async () => {
    const given = { list: [1], nested: { a: 1 } };
    const { result, input } = await call({ arguments: given });
    (input as typeof given).list.push(2);
    (input as typeof given).nested.a = 9;
    expect(given).toEqual({ list: [1], nested: { a: 1 } });
    expect(result.requested.input).toEqual({ list: [1], nested: { a: 1 } });
  });

  test('stay as they were when the call was made, whatever the caller does to them later', async () => {
    const given = { list: [1] };
    const pending = dispatcher.dispatch({ name: 'echo', arguments: given });
    given.list.push(2);
    expect((await pending).requested.input).toEqual({ list: [1] });
  });

  test('may be frozen, and are not frozen for the tool', async () => {
    const { input } = await call({ arguments: Object.freeze({ list: Object.freeze([1]) }) });
    expect(Object.isFrozen(input)).toBe(false);
    expect(Object.isFrozen((input as { list: unknown }).list)).toBe(false);
  });

  test('P04: may be frozen where a layer passes on others, and stay as they were', async () => {
    const given = Object.freeze({ list: Object.freeze([1]) });
    const edit: Middleware = (inner, next) =>
      next(inner.with({ input: { ...(inner.input as JsonObject), added: true } }));
    const result = await dispatcher.with({ middleware: [edit] }).dispatch({ name: 'echo', arguments: given });
    expect(result.isError).toBe(false);
    expect(received.at(-1)).toEqual({ list: [1], added: true });
    expect(given).toEqual({ list: [1] });
  });

  test('may come from another realm or have no prototype', async () => {
    expect((await call({ arguments: runInNewContext('({ a: [1] })') })).input).toEqual({ a: [1] });
    expect((await call({ arguments: Object.assign(Object.create(null), { a: 1 }) })).input).toEqual({ a: 1 });
  });

  test('lose keys that hold undefined, as in JSON', async () => {
    expect(Object.keys((await call({ arguments: { a: undefined, b: 1 } })).input as object)).toEqual(['b']);
  });

  test('keep `__proto__` as a key like any other', async () => {
    const { input } = await call({ arguments: JSON.parse('{"__proto__":{"admin":true}}') });
    expect(JSON.stringify(input)).toBe('{"__proto__":{"admin":true}}');
    expect((input as { admin?: unknown }).admin).toBeUndefined();
  });

  test('are read once, getters included', async () => {
    let reads = 0;
    const given = {
      get a(): number {
        return ++reads;
      },
    };
    const { result, input } = await call({ arguments: given });
    expect(reads).toBe(1);
    expect(input).toEqual({ a: 1 });
    expect(result.requested.input).toEqual({ a: 1 });
  });

  test.each([
    ['a Date', { at: new Date() }, 'In them, at is or holds a Date.'],
    ['a function', { f: () => 1 }, 'In them, f is or holds a function.'],
    ['a bigint', { n: 1n }, 'In them, n is or holds a bigint.'],
    ['a class instance', { deep: [{ url: new URL('http://a') }] }, 'In them, deep is or holds a URL.'],
    ['NaN', { n: Number.NaN }, 'In them, n is or holds NaN.'],
    ['a list with undefined', { list: [undefined] }, 'In them, list is or holds undefined.'],
    ['too many levels', { a: nested(300) }, 'In them, a nests deeper than 256 levels.'],
    ['a million levels', nested(1_000_000), 'In them, a nests deeper than 256 levels.'],
    ['references that unfold to 10 billion values', { a: Array(1e5).fill(Array(1e5).fill(1)) }, 'holds more than'],
  ])('are refused when they hold %s', async (_, given, message) => {
    const { result, ran } = await call({ arguments: given });
    expect(ran).toBe(false);
    expect(result.error).toMatchObject({ code: 'invalid_arguments', executed: 'no' });
    expect(result.content).toContain(message);
    expect(result.requested).toEqual({ name: 'echo', input: {} });
  });

  test('are refused when they hold themselves', async () => {
    const given: Record<string, unknown> = {};
    given['self'] = given;
    const { result } = await call({ arguments: given });
    expect(result.error?.code).toBe('invalid_arguments');
  });

  test.each([
    [['a'], 'an array'],
    [42, 'a number'],
    [false, 'false'],
    [1n, 'a bigint'],
    [Symbol('s'), 'a symbol'],
    [() => 1, 'a function'],
    [new Date(), 'a Date'],
    [new Map(), 'a Map'],
    [new URL('http://a'), 'a URL'],
    [Buffer.from('{}'), 'a Uint8Array'],
  ])('are refused when they are something else: %p', async (given, kind) => {
    const { result, ran } = await call({ arguments: given });
    expect(ran).toBe(false);
    expect(result.error?.code).toBe('invalid_arguments');
    expect(result.content).toContain(`They are ${kind}.`);
  });

  test('do not tell the model what a getter of the host threw', async () => {
    const given = {
      get secret(): never {
        throw new Error('hunter2');
      },
    };
    const { result } = await call({ arguments: given });
    expect(result.error?.code).toBe('invalid_arguments');
    expect(JSON.stringify(result)).not.toContain('hunter2');
  });

  test.each(hostileValues)('give one result for this call when they are %s', async (_, value) => {
    for (const given of [value, { value }]) {
      const { result, ran } = await call({ id: 'call_1', arguments: given });
      expect(result).toMatchObject({ toolCallId: 'call_1', requested: { name: 'echo' } });
      if (!ran) expect(result.error?.code).toBe('invalid_arguments');
      expect(typeof JSON.stringify(result)).toBe('string');
    }
  });
});
