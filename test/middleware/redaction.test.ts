import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type ContentPart,
  createDispatcher,
  type Dispatcher,
  defineTool,
  type Middleware,
  REDACTED,
  redactor,
  ToolFailure,
  type ToolOutcome,
} from 'toolonion';
import { outputLimit, type RedactionOptions, redaction } from 'toolonion/middleware';
import { lookout } from '../support/lookout.ts';
import { image, text } from '../support/parts.ts';
import { bothWays, joined, normal, streamed } from '../support/streamed.ts';

const KEY = `ghp_${'a1B2c3D4'.repeat(5)}`;

function dispatcherOf(execute: () => unknown, options?: RedactionOptions, outside: readonly Middleware[] = []) {
  const tool = defineTool({ name: 'tool', description: 'A tool.', execute });
  return createDispatcher({ tools: [tool], middleware: [...outside, redaction(options)] });
}

function yielding(pieces: Iterable<unknown>, options?: RedactionOptions, outside?: readonly Middleware[]): Dispatcher {
  return dispatcherOf(
    async function* () {
      yield* pieces;
    },
    options,
    outside,
  );
}

async function answered(answer: unknown, options?: RedactionOptions) {
  const { durationMs: _, ...result } = await dispatcherOf(() => answer, options).dispatch({ name: 'tool' });
  return result;
}

describe('an answer', () => {
  test('loses the secrets of its text, and says so', async () => {
    const result = await answered(`the key is ${KEY}, keep it`);
    expect(result.content).toBe(`the key is ${REDACTED}, keep it`);
    expect(result.notes).toEqual([
      { type: 'redacted', by: 'redaction', message: 'Secrets were taken out of the answer.' },
    ]);
  });

  test('loses those of its parts, their fields included, and no bytes', async () => {
    const bytes = new Uint8Array([1, 2, 3]);
    const { content } = await answered([
      text(`a ${KEY}`),
      { type: 'image', mimeType: 'image/png', data: bytes, name: `${KEY}.png` },
      { type: 'resource_link', uri: `https://x.test/?token=${KEY}` },
      image,
    ]);
    expect(content).toEqual([
      text(`a ${REDACTED}`),
      { type: 'image', mimeType: 'image/png', data: bytes, name: expect.stringContaining(REDACTED) },
      { type: 'resource_link', uri: `https://x.test/?token=${REDACTED}` },
      image,
    ]);
  });

  test('loses those of its data, by the names of their keys as well', async () => {
    const { structured, content } = await answered({ user: 'ada', password: 'hunter2', list: [KEY] });
    expect(structured).toEqual({ user: 'ada', password: REDACTED, list: [REDACTED] });
    expect(JSON.parse(content as string)).toEqual(structured);
  });

  test('that is a failure loses those of its message, and keeps its cause for the log', async () => {
    const cause = new Error('why');
    const result = await dispatcherOf(() => {
      throw new ToolFailure(`No access with ${KEY}.`, { cause });
    }).dispatch({ name: 'tool' });
    expect(result).toMatchObject({
      content: `No access with ${REDACTED}.`,
      error: { code: 'execution_failed', message: `No access with ${REDACTED}.` },
    });
    expect(result.error?.cause).toMatchObject({ cause });
    expect(JSON.stringify(result)).not.toContain('why');
  });

  test('without any passes untouched, the same object', async () => {
    for (const answer of ['plain', [text('plain'), image], { n: 1 }, undefined]) {
      const { seen, look } = lookout();
      const tool = defineTool({ name: 'tool', description: 'A tool.', execute: () => answer });
      await createDispatcher({
        tools: [tool],
        middleware: [look('outside'), redaction(), look('inside')],
      }).dispatch({ name: 'tool' });
      expect(seen['outside']).toBe(seen['inside']);
    }
  });

  test('loses what the host counts as secret', async () => {
    const result = await answered('EMP-123456 has badge=A77KZ901', { patterns: [/EMP-\d{6}/], keys: ['badge'] });
    expect(result.content).toBe(`${REDACTED} has badge=${REDACTED}`);
  });

  test('that suspends the call is passed on as it is', async () => {
    const tool = defineTool({
      name: 'tool',
      description: 'Asks.',
      execute: (_, call) => call.suspend({ reason: `May I use ${KEY}?`, payload: { KEY } }),
    });
    const { control } = await createDispatcher({ tools: [tool], middleware: [redaction()] }).dispatch({ name: 'tool' });
    expect(control).toMatchObject({ request: { payload: { KEY } } });
  });

  test('keeps fields nobody here knows', async () => {
    const odd: Middleware = async (call, next) => ({ ...(await next(call)), mine: 7 }) as ToolOutcome;
    const tool = defineTool({ name: 'tool', description: 'A tool.', execute: () => KEY });
    const result = await createDispatcher({ tools: [tool], middleware: [redaction(), odd] }).dispatch({ name: 'tool' });
    expect(result).toMatchObject({ content: REDACTED, mine: 7 });
  });

  test('is not limited before: a cut leaves no half of a secret', async () => {
    for (let length = 0; length < 60; length++) {
      const answer = `${'x '.repeat(length)}${KEY} ${'y '.repeat(200)}`;
      const dispatcher = dispatcherOf(() => answer, {}, [outputLimit({ limit: 150, keep: 'head', marker: () => '…' })]);
      expect(String((await dispatcher.dispatch({ name: 'tool' })).content)).not.toMatch(/ghp_|a1B2/);
    }
  });
});

describe('a stream', () => {
  test('loses a secret wherever the border of two pieces cuts it', async () => {
    const whole = `before ${KEY} after\nnext line\n`;
    for (let cut = 0; cut <= whole.length; cut++) {
      const pieces = [whole.slice(0, cut), whole.slice(cut)];
      const { events, result, compared } = await bothWays(yielding(pieces), {
        id: 'c1',
        name: 'tool',
      });
      expect(joined(events)).toBe(`before ${REDACTED} after\nnext line\n`);
      expect(joined(events)).toBe(result.content);
      expect(compared[0]).toEqual(compared[1]);
    }
  });

  test('lets its lines leave as soon as enough stands behind them', async () => {
    const lines = Array.from({ length: 50 }, (_, line) => `line ${line} ${'.'.repeat(50)}\n`);
    const stream = yielding(lines).stream({ name: 'tool' });
    const first = await stream.next();
    expect(first.value).toMatchObject({ type: 'text', text: expect.stringMatching(/^line 0 /) });
    const { events, result } = await streamed(stream);
    expect(events.length).toBeGreaterThan(1);
    expect(joined([first.value as ContentPart, ...events])).toBe(lines.join(''));
    expect(result.content).toBe(lines.join(''));
  });

  test('holds a private key back until it has ended, however long it is', async () => {
    const lines = Array.from({ length: 200 }, (_, line) => `MIIEvQIBADANBgkqhkiG9w0BAQEFAASC${line}`);
    const key = ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----'].join('\n');
    const words = Array.from({ length: 60 }, (_, line) => `word ${line} of a log that goes on\n`).join('');
    const whole = `${words}${key}\n${words}`;
    const pieces = whole.match(/[\s\S]{1,37}/g) ?? [];
    const { events, result } = await streamed(yielding(pieces).stream({ name: 'tool' }));
    expect(joined(events)).toBe(`${words}${REDACTED}\n${words}`);
    expect(result.content).toBe(joined(events));
    expect(events.length).toBeGreaterThan(2);
  });

  test('keeps together what is a secret only together', async () => {
    const whole = `{"user": "ada",\n "password":\n\n   "correct horse battery"}\n${'line\n'.repeat(300)}`;
    const pieces = whole.match(/[\s\S]{1,11}/g) ?? [];
    const { events } = await streamed(yielding(pieces).stream({ name: 'tool' }));
    expect(JSON.stringify(events)).not.toContain('correct horse');
  });

  test('of JSON leaves when it is whole', async () => {
    const json = JSON.stringify({ list: Array.from({ length: 100 }, (_, n) => ({ n, token: `secret${n}` })) });
    const { events, result } = await streamed(yielding(json.match(/.{1,50}/g) ?? []).stream({ name: 'tool' }));
    expect(events).toHaveLength(1);
    expect(joined(events)).toBe(result.content);
    expect(String(result.content)).not.toContain('secret1');
  });

  test('passes media at their place, what stood before it first', async () => {
    const { events, result } = await streamed(yielding([`a ${KEY}`, image, 'b']).stream({ name: 'tool' }));
    expect(events).toEqual([text(`a ${REDACTED}`), image, text('b')]);
    expect(normal(result.content)).toEqual(joined(events));
  });

  test('lets out what stands behind a part that lost a secret', async () => {
    const link = { type: 'resource_link', uri: `https://x.test/?token=${KEY}` };
    const { events, result } = await streamed(yielding(['a', link, 'b']).stream({ name: 'tool' }));
    expect(events).toEqual([text('a'), { ...link, uri: `https://x.test/?token=${REDACTED}` }, text('b')]);
    expect(joined(events)).toEqual(result.content);
  });

  test('holds the text of an element back until it has ended, however long it is', async () => {
    const whole = `<clientSecret>\n${'Zq7hunter2hunter\n'.repeat(400)}</clientSecret>\n${'the end\n'.repeat(300)}`;
    const pieces = whole.match(/[\s\S]{1,50}/g) ?? [];
    const { events, result } = await streamed(yielding(pieces).stream({ name: 'tool' }));
    expect(JSON.stringify(events)).not.toContain('Zq7');
    expect(joined(events)).toBe(result.content);
  });

  test.each([75, 76])('of base64 in lines of %d characters leaves when it is whole', async (width) => {
    const key = `-----BEGIN PRIVATE KEY-----\n${'Zq7hunter2hunter2\n'.repeat(200)}`;
    const base64 = Buffer.from(`${'x'.repeat(3000)}\n${key}`).toString('base64');
    const lines = (base64.match(new RegExp(`.{1,${width}}`, 'g')) ?? []).map((line) => `${line}\n`);
    const { events, result } = await streamed(yielding(lines).stream({ name: 'tool' }));
    expect(result.content).toBe(REDACTED);
    expect(events).toEqual([text(REDACTED)]);
  });

  test('holds back what a pattern of the host may match, as far as it is told to', async () => {
    const whole = `a log:\n${'all is well\n'.repeat(300)}BEGIN\n${'Zq7: 1\n'.repeat(250)}END\n${'all is well\n'.repeat(300)}`;
    const pieces = whole.match(/[\s\S]{1,50}/g) ?? [];
    const options = { patterns: [/BEGIN[\s\S]*?END/], heldBack: 2000 };
    const { events, result } = await streamed(yielding(pieces, options).stream({ name: 'tool' }));
    expect(events.length).toBeGreaterThan(1);
    expect(JSON.stringify(events)).not.toContain('Zq7');
    expect(joined(events)).toBe(result.content);
  });

  test('has none in its signs of life', async () => {
    const tool = defineTool({
      name: 'tool',
      description: 'Reports.',
      execute: (_, call) => {
        call.report({ message: `with ${KEY}`, progress: 1 });
        return 'x';
      },
    });
    const { events } = await streamed(
      createDispatcher({ tools: [tool], middleware: [redaction()] }).stream({ name: 'tool' }),
    );
    expect(events[0]).toEqual({ type: 'progress', message: `with ${REDACTED}`, progress: 1 });
  });

  test('that fails half-way keeps what came before, without its secrets', async () => {
    const dispatcher = yielding(
      (function* () {
        yield `using ${KEY.slice(0, 20)}`;
        yield KEY.slice(20);
        throw new ToolFailure(`${KEY} was refused.`);
      })(),
    );
    const { events, result } = await streamed(dispatcher.stream({ name: 'tool' }));
    expect(result.content).toBe(`using ${REDACTED}\n\n${REDACTED} was refused.`);
    expect(joined(events)).toBe(result.content);
  });

  test('is limited as well, outside', async () => {
    const lines = Array.from({ length: 400 }, (_, line) => `line ${line} with ${KEY} in it\n`);
    const dispatcher = yielding(lines, {}, [outputLimit({ limit: 3000 })]);
    const { events, result } = await streamed(dispatcher.stream({ name: 'tool' }));
    expect(joined(events)).toBe(result.content);
    expect(events.length).toBeGreaterThan(1);
    expect(String(result.content)).not.toContain('ghp_');
  });

  test('shows no secret, in whatever form, whatever stands around it, however it comes in pieces', async () => {
    const secret = fc.stringMatching(/^[A-Za-z0-9]{8,20}$/).map((word) => `Zq7${word}`);
    const form = fc.constantFrom<(value: string) => string>(
      (value) => `DB_PASSWORD=${value}`,
      (value) => `"apiKey": "${value}"`,
      (value) => `"apiKey":\n  "${value}"`,
      (value) => `password: "${value}\nand ${value}"`,
      (value) => `curl --token ${value}`,
      (value) => `Authorization: Bearer ${value}xxxx`,
      (value) => `postgres://ada:${value}@db.test/x`,
      (value) => `<password>${value}</password>`,
      (value) => `-----BEGIN PRIVATE KEY-----\n${value}\n${value}\n-----END PRIVATE KEY-----`,
      (value) => `token: |\n  ${value}\n  ${value}\n`,
      (value) => `{ "name": "Authorization",\n "other": "${'o'.repeat(250)}",\n "value": "${value}" }`,
      (value) => `name="password"\r\nContent-Type: text/plain\r\n\r\n${value}\r\n`,
      (value) => `<password ${'a="b"\n'.repeat(60)}>\n${value}</password>`,
      (value) => `<clientSecret>\n${`${value}\n`.repeat(40)}</clientSecret>`,
      (value) => `["password",\n"${`${value}\n`.repeat(40)}"]`,
      (value) => `-----BEGIN PRIVATE KEY-----\n${`${value}\n`.repeat(200)}-----END PRIVATE KEY-----`,
    );
    const noise = fc
      .array(fc.constantFrom('a line of a log\n', 'words ', '\n', 'n = 1\n', '', 'x'.repeat(60)), { maxLength: 30 })
      .map((all) => all.join(''));
    await fc.assert(
      fc.asyncProperty(
        secret,
        fc.array(fc.tuple(noise, form), { maxLength: 3 }),
        noise,
        fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 40 }),
        fc.constantFrom(600, 1000),
        async (value, planted, rest, sizes, heldBack) => {
          const whole = [...planted.flatMap(([before, make]) => [before, '\n', make(value), '\n']), rest].join('');
          const pieces: string[] = [];
          for (let at = 0, turn = 0; at < whole.length; turn++) {
            const size = sizes[turn % sizes.length] as number;
            pieces.push(whole.slice(at, at + size));
            at += size;
          }
          const { events, result } = await streamed(yielding(pieces, { heldBack }).stream({ name: 'tool' }));
          expect(String(result.content)).toBe(redactor()(whole));
          expect(JSON.stringify(events)).not.toContain('Zq7');
          expect(joined(events)).toBe(result.content);
        },
      ),
      { numRuns: 2000 },
    );
  });

  test('keeps the text of an element back whose end has just begun', async () => {
    const pieces = [`n = 1\n<clientSecret>\n${'Zq7abcdefgh\n'.repeat(60)}<`, '/clientSecret>\n', 'x\n'.repeat(600)];
    const { events, result } = await streamed(yielding(pieces, { heldBack: 600 }).stream({ name: 'tool' }));
    expect(result.content).toMatch(/^n = 1\n<clientSecret>\[REDACTED\]<\/clientSecret>\n/);
    expect(JSON.stringify(events)).not.toContain('Zq7');
  });

  test('takes no longer than its text is long', async () => {
    const lines = Array.from({ length: 20_000 }, (_, line) => `line ${line}: all is well\n`);
    const { events } = await streamed(yielding(lines).stream({ name: 'tool' }));
    expect(joined(events)).toBe(lines.join(''));
  }, 20_000);
});

test.each([
  [{ heldBack: 599 }, 'Option "heldBack" of redaction must be a whole number of at least 600'],
  [{ keys: 'x' }, 'Option "keys" of redactor must be an array of names'],
  [{ pattern: /x/ }, 'redaction has no option "pattern"'],
])('%j is refused', (options, message) => {
  expect(() => redaction(options as unknown as RedactionOptions)).toThrow(message);
});
