import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { describeError, REDACTED, type RedactOptions, redactor, shrinkJson } from 'toolonion';
import { hostileValues, nested } from './support/hostile.ts';

const redact = redactor();

/** Secrets that give themselves away in any text. */
const shapedSecrets = [
  'Bearer abcdefghijklmnop',
  'bearer  a1b2c3d4.e5f6~g7',
  'Basic dXNlcjpwYXNzd29yZA==',
  'sk-proj-abcdefghijklmnop1234',
  'sk_live_abcdefghijkl',
  `ghp_${'a1B2'.repeat(9)}`,
  `github_pat_${'a1_2'.repeat(6)}`,
  `glpat-${'a1-2'.repeat(5)}`,
  'xoxb-1234567890-abc',
  `AIza${'a1B2_'.repeat(7)}`,
  'AKIAABCDEFGHIJKLMNOP',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl',
  '-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----',
];

test('H09: a Date among the values is still there, as its time, and so is a shrunk one', () => {
  const createdAt = new Date(0);
  expect(redact({ createdAt, token: createdAt, list: [createdAt] })).toEqual({
    createdAt: '1970-01-01T00:00:00.000Z',
    token: REDACTED,
    list: ['1970-01-01T00:00:00.000Z'],
  });
  expect(shrinkJson(redact({ createdAt, text: 'x'.repeat(1000) }), 200, 'characters')).toContain(
    '1970-01-01T00:00:00.000Z',
  );
});

const secretKeys = [
  'password',
  'PASSWORD',
  'DB_PASSWORD',
  'db.password',
  'userPasswd',
  'pwd',
  'passphrase',
  'secret',
  'client_secret',
  'AWS_SECRET_ACCESS_KEY',
  'token',
  'accessToken',
  'refresh-token',
  'idToken',
  'apiKey',
  'ApiKey',
  'X-Api-Key',
  'api key',
  'apiKey2',
  'Authorization',
  'proxy-authorization',
  'auth',
  'Cookie',
  'Set-Cookie',
  'credentials',
  'privateKey',
  'connectionString',
];

const harmlessKeys = ['name', 'author', 'keys', 'keyboard', 'nextPageToken', 'max_tokens', 'secretary', 'passwords?'];

describe('redactor', () => {
  test.each(secretKeys)('takes out the value of %s, whatever its kind and however deep', (key) => {
    for (const value of ['S', 42, true, null, ['S'], { inner: 'S' }, JSON.parse('{"__proto__":"S"}')])
      expect(redact({ a: [{ b: { [key]: value } }] })).toEqual({ a: [{ b: { [key]: REDACTED } }] });
  });

  test.each(harmlessKeys)('leaves the value of %s', (key) => {
    expect(redact({ [key]: 'value' })).toEqual({ [key]: 'value' });
  });

  test.each(shapedSecrets)('takes %j out of any text and leaves the text around it', (secret) => {
    expect(redact(secret)).toBe(REDACTED);
    expect(redact(`before (${secret}) after`)).toBe(`before (${REDACTED}) after`);
    expect(redact({ [`${secret} x`]: 1 })).toEqual({ [`${REDACTED} x`]: 1 });
    expect(redact([[`${secret}, ${secret}`]])).toEqual([[`${REDACTED}, ${REDACTED}`]]);
  });

  test.each([
    ['https://user:hunter2@host/path', `${REDACTED}host/path`],
    ['see redis://:hunter2@host:6379', `see ${REDACTED}host:6379`],
    ['DB_PASSWORD=hunter2', `DB_PASSWORD=${REDACTED}`],
    ['export API_KEY="a b" && run', `export API_KEY="${REDACTED}" && run`],
    ["password = 'it is'", `password = '${REDACTED}'`],
    ['connect user=admin password=hunter2 host=h', `connect user=admin password=${REDACTED} host=h`],
    ['https://h/?page=2&token=abc&x=1', `https://h/?page=2&token=${REDACTED}&x=1`],
    ['X-Api-Key: abc123def\nAccept: */*', `X-Api-Key: ${REDACTED}\nAccept: */*`],
    ['--client-secret=abc --verbose', `--client-secret=${REDACTED} --verbose`],
    ['{"password":"ab\\"cd","x":1', `{"password":"${REDACTED}","x":1`],
    ['{"password":"ab\\\\","x":1', `{"password":"${REDACTED}","x":1`],
    ['{"password":"cut off', `{"password":"${REDACTED}`],
    ["{'api_key': 'S'}", `{'api_key': '${REDACTED}'}`],
    ['Got {"apiKey": "S", "ok": 1}.', `Got {"apiKey": "${REDACTED}", "ok": 1}.`],
    ['Got {"raw":"{\\"apiKey\\":\\"S\\"}"}.', `Got {"raw":"{\\"apiKey\\":\\"${REDACTED}\\"}"}.`],
    ['Got "{\\"apiKey\\":\\"S\\\\\\"T\\"}".', `Got "{\\"apiKey\\":\\"${REDACTED}\\"}".`],
  ])('takes what is assigned to the name of a secret out of %j', (text, cleaned) => {
    expect(redact(text)).toBe(cleaned);
    expect(redact({ message: [text] })).toEqual({ message: [cleaned] });
  });

  test.each([
    ['Unexpected token: foo'],
    ['password: must have at least eight characters'],
    ['basic understanding of bearers'],
    ['The token is used as a secret'],
    ['https://host:8080/path@home'],
    ['a@b.example'],
    ['9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
  ])('leaves %j as it is', (text) => {
    expect(redact(text)).toBe(text);
  });

  test('looks into text that is JSON, and into JSON in its texts', () => {
    const inner = JSON.stringify({ apiKey: 'S', list: [{ token: 'S' }], ok: 1 });
    const outer = JSON.stringify({ inner });
    const cleaned = { apiKey: REDACTED, list: [{ token: REDACTED }], ok: 1 };
    expect(redact({ raw: inner })).toEqual({ raw: JSON.stringify(cleaned) });
    expect(redact({ raw: ` ${outer}` })).toEqual({ raw: JSON.stringify({ inner: JSON.stringify(cleaned) }) });
    expect(redact(JSON.stringify(inner))).toBe(JSON.stringify(JSON.stringify(cleaned)));
  });

  test('keeps the layout of JSON text in which there is nothing to take out', () => {
    const text = '{\n  "id": 12345678901234567890,\n  "a": [ 1, 2 ]\n}';
    expect(redact(text)).toBe(text);
  });

  test('is not deceived by a key that JSON text holds twice', () => {
    expect(redact(`{"x":"${shapedSecrets[0]}","x":1}`)).not.toContain('abcdefgh');
    expect(redact('{"password":"hunter2","password":null}')).not.toContain('hunter2');
  });

  test('takes out the values of a Map and of header pairs', () => {
    const map = new Map([
      ['Authorization', 'S'],
      ['accept', 'all'],
    ]);
    expect(redact(map)).toEqual([
      ['Authorization', REDACTED],
      ['accept', 'all'],
    ]);
  });

  test('reads errors, and what they were caused by', () => {
    const error = new Error('login failed', { cause: { password: 'hunter2', message: 'no: password=hunter2' } });
    expect(JSON.stringify(redact(describeError(error)))).not.toContain('hunter2');
  });

  test('takes more keys, in any spelling, and more patterns, whatever their flags', () => {
    const own = redactor({ keys: ['Credit-Card', 'pin'], patterns: [/\bCUST-\d+/, /secretly/giy, /é+/u] });
    expect(own({ creditCard: 1, credit_card: 2, PIN: 3, pine: 4 })).toEqual({
      creditCard: REDACTED,
      credit_card: REDACTED,
      PIN: REDACTED,
      pine: 4,
    });
    expect(own('CUST-1 SECRETLY CUST-22 éé')).toBe(`${REDACTED} ${REDACTED} ${REDACTED} ${REDACTED}`);
    expect(own('pin=1')).toBe(`pin=${REDACTED}`);
    expect(own(shapedSecrets[0])).toBe(REDACTED);
  });

  test('does not change the patterns it is given, nor does their state matter', () => {
    const pattern = /a/g;
    pattern.lastIndex = 7;
    expect(redactor({ patterns: [pattern] })('banana')).toBe(`b${REDACTED}n${REDACTED}n${REDACTED}`);
    expect(pattern.lastIndex).toBe(7);
  });

  test('ignores where a pattern matches nothing at all', () => {
    expect(redactor({ patterns: [/x*/] })('axxb')).toBe(`a${REDACTED}b`);
  });

  test.each([
    [{ keys: 'password' }, 'Option "keys" of redactor must be an array of names; got "password".'],
    [{ keys: [1] }, 'Option "keys" of redactor must be an array of names; got an array.'],
    [{ patterns: ['secret'] }, 'Option "patterns" of redactor must be an array of regular expressions; got an array.'],
    [{ pattern: [/a/] }, 'redactor has no option "pattern".'],
  ])('refuses %p', (options, message) => {
    expect(() => redactor(options as RedactOptions)).toThrow(TypeError);
    expect(() => redactor(options as RedactOptions)).toThrow(message);
  });

  test('changes nothing it is given, and shares nothing with it', () => {
    const given = Object.freeze({ password: 'S', list: Object.freeze([Object.freeze({ ok: 1 })]) });
    const cleaned = redact(given) as { list: unknown[] };
    expect(given).toEqual({ password: 'S', list: [{ ok: 1 }] });
    expect(cleaned.list).not.toBe(given.list);
    expect(cleaned.list[0]).not.toBe(given.list[0]);
  });

  test('keeps `__proto__` as a key like any other', () => {
    const given: unknown = JSON.parse('{"__proto__":{"password":"S","ok":1},"constructor":"c"}');
    expect(JSON.stringify(redact(given))).toBe(`{"__proto__":{"password":"${REDACTED}","ok":1},"constructor":"c"}`);
    expect(({} as Record<string, unknown>)['ok']).toBeUndefined();
  });

  test('leaves none of the secrets that are anywhere in a value, and does nothing more the second time', () => {
    const secret = fc.constantFrom(...shapedSecrets);
    const noise = fc.oneof(
      fc.string(),
      fc.constantFrom('[', '{', '"', '=', ': ', 'password', ' ', '\\', '\n', '"token":"', REDACTED),
    );
    const text = fc
      .array(
        fc.oneof(
          noise,
          secret.map((found) => ` ${found} `),
        ),
        { maxLength: 8 },
      )
      .map((all) => all.join(''));
    const key = fc.oneof(fc.constantFrom(...secretKeys, '__proto__', 'constructor'), fc.string(), text);
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        text,
        fc.constantFrom(1, true, null),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
        tie('value').map((held) => JSON.stringify(held) ?? ''),
      ),
    }));
    fc.assert(
      fc.property(value, (given) => {
        const before = JSON.stringify(given);
        const cleaned = redact(given);
        const shown = JSON.stringify(cleaned);
        for (const found of shapedSecrets) expect(shown).not.toContain(JSON.stringify(found).slice(1, -1));
        expect(redact(cleaned)).toEqual(cleaned);
        expect(JSON.stringify(given)).toBe(before);
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ['one text of 10 MB', 'x'.repeat(10_000_000)],
    ['the beginning of a key, again and again', 'eyJ-'.repeat(1_000_000)],
    ['a key of 10 MB', `eyJ${'a'.repeat(10_000_000)}`],
    ['backslashes', '\\'.repeat(2_000_000)],
    ['quotes', '"'.repeat(2_000_000)],
    ['escaped quotes after a name', `"password":"${'\\"'.repeat(2_000_000)}`],
    ['assignments', 'password='.repeat(300_000)],
    ['headings of private keys', '-----BEGIN '.repeat(300_000)],
    ['addresses', 'a://b:'.repeat(500_000)],
    ['white space after bearer', `bearer${' '.repeat(5_000_000)}`],
    ['lists in text', '['.repeat(100_000) + ']'.repeat(100_000)],
    ['objects in text', `${'{"a":'.repeat(100_000)}"password=x"${'}'.repeat(100_000)}`],
    ['a million levels', nested(1_000_000)],
  ])('ends soon for %s', (_, value) => {
    expect(typeof JSON.stringify(redact(value))).toBe('string');
  });

  test('takes out whole what its patterns cannot cope with', () => {
    const own = redactor({ patterns: [/(?:x|y)*z/] });
    expect(own('x'.repeat(20_000_000))).toBe(REDACTED);
  });

  test.each(hostileValues)('gives JSON for %s', (_, value) => {
    expect(typeof JSON.stringify(redact([value]))).toBe('string');
  });
});
