import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  AbortReason,
  createDispatcher,
  defineTool,
  describeError,
  notFound,
  printable,
  redactor,
  type ToolErrorCode,
  ToolFailure,
  toolError,
  toToolError,
} from 'toolonion';
import { hostileValues } from './support/hostile.ts';

describe('toolError', () => {
  test('makes an error with an id of its own, for something that has not run', () => {
    const error = toolError('denied', 'No.');
    expect(error).toEqual({ code: 'denied', message: 'No.', retryable: false, executed: 'no', errorId: error.errorId });
    expect(error.errorId).toMatch(/^[\w-]{12}$/);
    expect(toolError('denied', 'No.').errorId).not.toBe(error.errorId);
  });

  test('is retryable by its code, unless it is told otherwise', () => {
    const retryable = (code: ToolErrorCode) => toolError(code, '').retryable;
    expect((['timeout', 'rate_limited', 'circuit_open', 'execution_failed'] as const).every(retryable)).toBe(true);
    expect((['not_found', 'invalid_arguments', 'denied', 'cancelled', 'internal'] as const).some(retryable)).toBe(
      false,
    );
    expect(toolError('timeout', '', { retryable: false }).retryable).toBe(false);
    expect(toolError('denied', '', { retryable: true }).retryable).toBe(true);
  });

  test('holds its cause where neither JSON nor a spread shows it', () => {
    const cause = new Error('hunter2');
    const error = toolError('internal', 'It failed.', { cause, executed: 'unknown' });
    expect(error.cause).toBe(cause);
    expect(error.executed).toBe('unknown');
    expect(JSON.stringify(error)).not.toContain('hunter2');
    expect({ ...error }).not.toHaveProperty('cause');
    expect('cause' in toolError('internal', '')).toBe(false);
    expect('cause' in toolError('internal', '', { cause: undefined })).toBe(true);
  });
});

describe('AbortReason', () => {
  test('is an error named as the platform names such an abort', () => {
    const timeout = new AbortReason(toolError('timeout', 'Too long.'));
    expect(timeout).toMatchObject({ name: 'TimeoutError', message: 'Too long.', toolError: { code: 'timeout' } });
    expect(new AbortReason(toolError('budget_exceeded', '')).name).toBe('AbortError');
  });
});

describe('notFound', () => {
  test('says that no tools are registered', () => {
    expect(notFound('a', []).message).toBe('There is no tool named "a". Available tools: none registered.');
  });

  test('lists up to ten names', () => {
    const names = Array.from({ length: 10 }, (_, index) => `tool_${index}`);
    expect(notFound('a', names)).toMatchObject({ code: 'not_found', executed: 'no', retryable: false });
    expect(notFound('a', names).message).toContain(`Available tools: ${names.join(', ')}.`);
  });

  test('lists ten names and counts the rest', () => {
    const names = Array.from({ length: 15 }, (_, index) => `tool_${index}`);
    expect(notFound('a', names).message).toMatch(/tool_9, and 5 more\.$/);
    expect(notFound('a', names).message).not.toContain('tool_10');
  });

  test('shows names only as far as they are printable', () => {
    const { message } = notFound('a\u0000b\n\u202e', ['x'.repeat(1000)]);
    expect(message).toContain('"a\\u{0}b\\u{a}\\u{202e}"');
    expect(message.length).toBeLessThan(200);
  });
});

describe('printable', () => {
  test('leaves an ordinary name as it is', () => {
    expect(printable('read_file.v2-ü漢\u{1F98A}')).toBe('read_file.v2-ü漢\u{1F98A}');
  });

  test('escapes control, format and line-separating characters', () => {
    expect(printable('\u0000\r\n\u007f\u0085\u200b\u2028\u2029\u202e\ufeff\u{e0041}')).toBe(
      '\\u{0}\\u{d}\\u{a}\\u{7f}\\u{85}\\u{200b}\\u{2028}\\u{2029}\\u{202e}\\u{feff}\\u{e0041}',
    );
  });

  test('keeps 64 characters and is well-formed, wherever that cuts', () => {
    expect(printable('x'.repeat(65))).toBe(`${'x'.repeat(64)}…`);
    expect(printable('\u{1F98A}'.repeat(1_000_000)).length).toBe(65);
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (name) => {
        expect(printable(`x${name}\ud800`).isWellFormed()).toBe(true);
        expect(printable(name)).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
      }),
    );
  });
});

describe('toToolError', () => {
  /** An error as Node makes it, with these properties. */
  const system = (properties: object) => Object.assign(new Error('connect 10.0.0.5 user=admin'), properties);
  const thrownBy = (throws: () => unknown): unknown => {
    try {
      return throws();
    } catch (thrown) {
      return thrown;
    }
  };
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);

  test.each<readonly [string, unknown, ToolErrorCode, boolean]>([
    ['a missing file', thrownBy(() => readFileSync('/does/not/exist')), 'file_not_found', false],
    ['a directory that is read', thrownBy(() => readFileSync('/')), 'io', false],
    ['a file that may not be read', system({ code: 'EACCES', errno: -13 }), 'io', false],
    ['a full disk', system({ code: 'ENOSPC', errno: -28 }), 'io', false],
    ['a connection that was reset', system({ code: 'ECONNRESET', errno: -104 }), 'io', true],
    ['a socket that hung up, which has no errno', system({ code: 'ECONNRESET' }), 'io', true],
    ['a name server that does not answer', system({ code: 'EAI_AGAIN', errno: -3001 }), 'io', true],
    ['a host that is unknown', system({ code: 'ENOTFOUND', errno: -3008 }), 'io', false],
    ['a file too many', system({ code: 'EMFILE', errno: -24 }), 'io', true],
    ['a program there is not', system({ code: 'ENOENT', errno: -2, syscall: 'spawn git' }), 'io', false],
    ['a program that may not run', system({ code: 'EACCES', errno: -13, syscall: 'spawn' }), 'io', false],
    ['a program too many', system({ code: 'EAGAIN', errno: -11, syscall: 'spawn git' }), 'io', true],
    ['an error of Node itself', thrownBy(() => connect({ port: -1 })), 'execution_failed', true],
    ['a code that only looks like that of the system', system({ code: 'EUSER' }), 'execution_failed', true],
    ['broken JSON', thrownBy(() => JSON.parse('{"a":')), 'json', false],
    ['broken JSON of another realm', thrownBy(() => runInNewContext('JSON.parse("[1,]")')), 'json', false],
    ['a cycle that cannot be JSON', thrownBy(() => JSON.stringify(cyclic)), 'json', false],
    ['a bigint that cannot be JSON', thrownBy(() => JSON.stringify(1n)), 'json', false],
    ['another syntax error', thrownBy(() => runInNewContext('return )')), 'execution_failed', true],
    ['an abort', new DOMException('gone', 'AbortError'), 'cancelled', false],
    ['the reason of a signal', AbortSignal.abort().reason, 'cancelled', false],
    ["Node's own abort", system({ name: 'AbortError', code: 'ABORT_ERR' }), 'cancelled', false],
    ['a timeout', new DOMException('late', 'TimeoutError'), 'timeout', true],
    ['any other error', new Error('SELECT * FROM users'), 'execution_failed', true],
    ['a text', 'a text', 'execution_failed', true],
    ['nothing', undefined, 'execution_failed', true],
    ['null', null, 'execution_failed', true],
    ['a number', 42, 'execution_failed', true],
    ['a symbol', Symbol('s'), 'execution_failed', true],
    ['an object', { code: 'E1', message: 'x' }, 'execution_failed', true],
    ['several errors', new AggregateError([new Error('a')], 'all'), 'execution_failed', true],
  ])('takes %s for what it is', (_, thrown, code, retryable) => {
    const error = toToolError(thrown, 'read');
    expect(error).toMatchObject({ code, retryable, executed: code === 'cancelled' ? 'stopped' : 'yes' });
    expect(error.message).toMatch(/^Tool "read" /);
    expect(error.cause).toBe(thrown);
  });

  test('tells the model nothing of what an error says', () => {
    for (const thrown of [system({ code: 'EACCES', errno: -13 }), system({}), 'hunter2', { message: 'hunter2' }])
      expect(toToolError(thrown, 'read').message).not.toMatch(/10\.0|admin|hunter2/);
  });

  test('tells the model what a ToolFailure says', () => {
    const failure = new ToolFailure('There is no city called "Olso".', { cause: 'hunter2' });
    expect(toToolError(failure, 'read')).toMatchObject({
      code: 'execution_failed',
      message: 'There is no city called "Olso".',
      retryable: false,
      executed: 'yes',
    });
  });

  test('takes code and retryability from a ToolFailure', () => {
    const failure = new ToolFailure('Not now.', { code: 'rate_limited' });
    expect(toToolError(failure, 'read')).toMatchObject({ code: 'rate_limited', retryable: true });
    const final = new ToolFailure('Never.', { code: 'rate_limited', retryable: false });
    expect(toToolError(final, 'read')).toMatchObject({ code: 'rate_limited', retryable: false });
  });

  test('takes no code and no effect from a ToolFailure that are not of the closed set', () => {
    for (const word of ['ENOENT', 'constructor', '__proto__', 'Denied', 1, null]) {
      const odd = Object.assign(new ToolFailure('No.'), { code: word, executed: word });
      expect(toToolError(odd, 'read')).toMatchObject({ code: 'execution_failed', message: 'No.', executed: 'yes' });
    }
  });

  test('says at least which tool failed where a ToolFailure says nothing', () => {
    for (const message of ['', ' \n'])
      expect(toToolError(new ToolFailure(message), 'read').message).toContain('"read"');
  });

  test('knows a ToolFailure of another realm or another copy of this package', () => {
    const foreign: unknown = runInNewContext(`
      class ToolFailure extends Error {
        code = 'denied';
        retryable = true;
      }
      Object.defineProperty(new ToolFailure('Ask first.'), Symbol.for('toolonion.ToolFailure'), { value: true });
    `);
    expect(toToolError(foreign, 'read')).toMatchObject({ code: 'denied', message: 'Ask first.', retryable: true });
  });

  test('takes no data for a ToolFailure, whatever they claim', () => {
    const claim = { [Symbol.for('toolonion.ToolFailure')]: true, message: 'hunter2', code: 'denied' };
    const error = toToolError(claim, 'read');
    expect(error.code).toBe('execution_failed');
    expect(error.message).not.toContain('hunter2');
  });

  test('shows the name of a tool only as far as it is printable', () => {
    expect(toToolError(1, `a\n${'x'.repeat(1000)}`).message).toMatch(/^Tool "a\\u\{a\}x{62}…" /);
  });

  test.each(hostileValues)('has an error for %s', (_, thrown) => {
    const error = toToolError(thrown, 'read');
    expect(error.code).toBe('execution_failed');
    expect(error.message).toMatch(/^Tool "read" /);
    expect(error.cause === thrown).toBe(true);
    expect(JSON.stringify(error)).not.toContain('hostile');
  });

  test.each([...hostileValues, ['undefined', undefined] as const])(
    'is what a dispatch makes of %s, thrown now or later',
    async (_, thrown) => {
      const now = () => {
        throw thrown;
      };
      const later = async () => now();
      for (const execute of [now, later]) {
        const odd = defineTool({ name: 'odd', description: 'Throws odd things.', execute });
        const result = await createDispatcher({ tools: [odd] }).dispatch({ name: 'odd' });
        expect(result).toMatchObject({ isError: true, error: { code: 'execution_failed', executed: 'yes' } });
      }
    },
  );
});

describe('describeError', () => {
  test('shows name, message, code, stack and cause', () => {
    const error = Object.assign(new RangeError('too far', { cause: 'nobody knows' }), { code: 'E1' });
    const description = describeError(error);
    expect(description).toEqual({
      name: 'RangeError',
      message: 'too far',
      code: 'E1',
      stack: expect.stringContaining('RangeError: too far'),
      cause: { name: 'string', message: 'nobody knows' },
    });
  });

  test.each([
    ['text', 'text', { name: 'string', message: 'text' }],
    ['undefined', undefined, { name: 'undefined', message: 'undefined' }],
    ['null', null, { name: 'object', message: 'null' }],
    ['a bigint', 1n, { name: 'bigint', message: '1' }],
    ['a symbol', Symbol('s'), { name: 'symbol', message: 'Symbol(s)' }],
    [
      'a function',
      (
        () => () =>
          1
      )(),
      { name: 'function', message: 'a function' },
    ],
    ['a class', class Forgotten {}, { name: 'function', message: 'a function named "Forgotten"' }],
    ['empty text', '', { name: 'string', message: '(no message)' }],
    ['blank text', ' \n', { name: 'string', message: '(no message)' }],
    ['an error with a blank message', new Error(' '), { name: 'Error', message: '(no message)' }],
    ['an object with a blank message', { message: ' ', a: 1 }, { message: '{"message":" ","a":1}' }],
    ['an object with a message', { code: 'E1', message: 'x' }, { name: 'an object', message: 'x', code: 'E1' }],
    ['an object with a code that is a number', { code: 14, message: 'x' }, { code: '14' }],
    ['an object without a message', { status: 500 }, { name: 'an object', message: '{"status":500}' }],
    ['a message that is no text', { message: { detail: 'x' } }, { message: '{"message":{"detail":"x"}}' }],
    ['a list', ['x'], { name: 'an array', message: '["x"]' }],
    ['an error without a message', new Error(), { name: 'Error', message: '(no message)' }],
    ['an error of another realm', runInNewContext('new TypeError("x")'), { name: 'TypeError', message: 'x' }],
    ['an abort', new DOMException('gone', 'AbortError'), { name: 'AbortError', message: 'gone', code: '20' }],
  ])('makes %s readable', (_, thrown, expected) => {
    expect(describeError(thrown)).toMatchObject(expected);
  });

  test('shows the errors of an AggregateError, ten at most', () => {
    const errors = Array.from({ length: 20 }, (_, index) => new Error(`number ${index}`));
    const description = describeError(new AggregateError(errors, 'all failed'));
    expect(description.errors?.map(({ message }) => message)).toEqual(
      Array.from({ length: 10 }, (_, index) => `number ${index}`),
    );
  });

  test('shows five causes below an error, or as many as it is asked for', () => {
    const chain = Array.from({ length: 9 }).reduce((cause) => new Error('x', { cause }), undefined);
    const depth = (description: { readonly cause?: object } | undefined): number =>
      description === undefined ? 0 : 1 + depth(description.cause as typeof description);
    expect(depth(describeError(chain))).toBe(6);
    expect(depth(describeError(chain, 1))).toBe(2);
    expect(depth(describeError(chain, 0))).toBe(1);
    expect(depth(describeError(chain, Number.POSITIVE_INFINITY))).toBe(9);
  });

  test('ends for errors that hold themselves, however often', () => {
    const error = new AggregateError([], 'again');
    error.errors.push(...Array(10).fill(error));
    error.cause = error;
    const text = JSON.stringify(describeError(error, Number.POSITIVE_INFINITY));
    expect(text.match(/"again"/g)?.length).toBe(50);
  });

  test('is bounded for texts of any length, and cuts between words, lest half a secret stays', () => {
    const secret = `ghp_${'a'.repeat(40)}`;
    const long = Object.assign(new Error(`${'word '.repeat(1998)}${secret} ${'x'.repeat(10_000_000)}`), {
      name: 'N'.repeat(1000),
      code: 'C'.repeat(1000),
    });
    const text = JSON.stringify(describeError(long));
    expect(text.length).toBeLessThan(25_000);
    expect(text).not.toContain('ghp_');
    expect(text).toContain('more characters)');
    // A word that is longer than any secret is cut: its beginning says more than nothing.
    const { message } = describeError('y'.repeat(10_000_000));
    expect(message).toMatch(/^y{1000}/);
    expect(message.length).toBeLessThan(11_000);
  });

  test('shows a large object without a message as JSON that is smaller', () => {
    const { message } = describeError({ rows: Array(100_000).fill({ id: 1 }) });
    expect(message.length).toBeLessThanOrEqual(2000);
    expect(JSON.parse(message)).toHaveProperty('rows');
  });

  test.each(hostileValues)('describes %s', (_, thrown) => {
    for (const value of [thrown, { cause: thrown, errors: [thrown] }, { errors: thrown, message: thrown }]) {
      const { name, message } = describeError(value);
      expect(name).not.toBe('');
      expect(message).not.toBe('');
      expect(JSON.stringify(describeError(value)).length).toBeLessThan(50_000);
    }
  });

  test('describes anything', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true }), (thrown) => {
        expect(typeof describeError(thrown).message).toBe('string');
        expect(typeof toToolError(thrown, 'read').message).toBe('string');
      }),
    );
  });
});

test('what tells of a thrown object is cut so that a redactor finds each secret whole, or nothing of it', () => {
  const secret = `ghp_${'a1B2'.repeat(9)}`;
  const redact = redactor();
  for (let before = 0; before < 4000; before += 17) {
    for (const filler of ['x', 'x ']) {
      const thrown = {
        detail: `${filler.repeat(before)} ${secret} ${'y '.repeat(1000)}`,
        list: Array(50).fill(secret),
      };
      expect(JSON.stringify(redact(describeError(thrown)))).not.toContain('ghp_');
    }
  }
});
