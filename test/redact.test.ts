import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { describeError, REDACTED, type RedactOptions, redactor, shrinkJson } from 'toolonion';
import { anything } from './support/anything.ts';
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
  '-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQdG\n-----END PGP PRIVATE KEY BLOCK-----',
  `sk-ant-api03-${'a1B2-'.repeat(8)}`,
  `rk_test_${'a1B2'.repeat(6)}`,
  `whsec_${'a1B2'.repeat(8)}`,
  `gldt-${'a1-2'.repeat(5)}`,
  `xoxe.xoxp-1-${'a1B2'.repeat(8)}`,
  `xapp-1-${'A1B2'.repeat(8)}`,
  `ya29.${'a1B2_'.repeat(8)}`,
  `GOCSPX-${'a1B2'.repeat(7)}`,
  `1//0${'a1B2-'.repeat(8)}`,
  `npm_${'a1B2'.repeat(9)}`,
  `pypi-${'AgEI'.repeat(20)}`,
  `rubygems_${'0a1b'.repeat(12)}`,
  `dckr_pat_${'a1B2-'.repeat(6)}`,
  `hf_${'aBcD'.repeat(9)}`,
  `gsk_${'a1B2'.repeat(13)}`,
  `xai-${'a1B2'.repeat(20)}`,
  `dapi${'0a1b'.repeat(8)}`,
  `SK${'0a1b'.repeat(8)}`,
  `${'0a1b'.repeat(8)}-us12`,
  `dop_v1_${'0a1b'.repeat(16)}`,
  `SG.${'a1B2'.repeat(5)}.${'a1B2'.repeat(10)}`,
  `1234567890:${'a1B2_'.repeat(7)}`,
  `MTEy${'a1B2'.repeat(5)}.Gaaaaa.${'a1B2'.repeat(8)}`,
  `shpat_${'0a1b'.repeat(8)}`,
  `sntrys_${'a1B2'.repeat(10)}`,
  `hvs.${'a1B2'.repeat(8)}`,
  `${'a1B2'.repeat(3)}a1.atlasv1.${'a1B2'.repeat(15)}`,
  `ATATT3${'a1B2-'.repeat(20)}`,
  `glsa_${'a1B2'.repeat(8)}_0a1b2c3d`,
  `abc8Q~${'a1B2.'.repeat(7)}`,
  `AGE-SECRET-KEY-1${'A1B2'.repeat(15)}`,
  `$2b$12$${'a1B2/'.repeat(10)}abc`,
  `$6$salt$${'a1B2/'.repeat(16)}`,
  `eyJhbGciOiJkaXIifQ..${'a1B2'.repeat(4)}.${'a1B2'.repeat(9)}.${'a1B2'.repeat(5)}`,
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
  'AZURE_STORAGE_CONNECTION_STRING',
  'npmToken',
  'BOT_TOKEN',
  'csrf_token',
  'PRIVATE-TOKEN',
  'jwt',
  'bearer',
  'MYSQL_PWD',
  'passcode',
  'ENCRYPTION_KEY',
  'SECRET_KEY_BASE',
  'AccountKey',
  'Ocp-Apim-Subscription-Key',
  'SENDGRID_KEY',
  'client-key-data',
  'passwordHash',
  'password_confirmation',
  'SecretString',
  'apiKeyValue',
  'auth_header',
  'user[password]',
  'password*',
  '"password"',
  'ＰＡＳＳＷＯＲＤ',
  'pass\u00adword\u200b',
];

const harmlessKeys = [
  ...[
    'name',
    'author',
    'authority',
    'authMethod',
    'authenticated',
    'oauth',
    'key',
    'keys',
    'keyboard',
    'keyCount',
    'monkey',
  ],
  ...['publicKey', 'primary_key', 'foreignKey', 'cacheKey', 'idempotency_key', 'apiKeyId', 'apiKeyName', 'GPG_KEY'],
  ...['nextPageToken', 'page_token', 'NextContinuationToken', 'max_tokens', 'maxToken', 'total_tokens', 'token_count'],
  ...[
    'tokens',
    'tokenizer',
    'token_type',
    'tokenUri',
    'eos_token',
    'price_per_token',
    'cancellationToken',
    'syncToken',
  ],
  ...[
    'secretary',
    'secretName',
    'secretsCount',
    'passwordless',
    'passwordPolicy',
    'password_length',
    'passwordChangedAt',
  ],
  ...['compass', 'bypass', 'passage', 'passenger', 'pass_rate', 'cookiePolicy', 'cookie_consent', 'credentialType'],
  ...[
    'session',
    'hash',
    'sha256',
    'etag',
    'signature',
    'code',
    'id',
    'pin',
    'access',
    'accessible',
    'interval',
    'context',
  ],
];

/** What may be secret, and may as well be counted. */
const secretOrCount = [
  'pass',
  'DB_PASS',
  'smtpPass',
  'passwords',
  'apiKeys',
  'access_tokens',
  'secrets',
  'cookies',
  'passwords?',
];

/** What texts are made of in which something may be secret. */
const pieces = [
  ...[
    '[',
    ']',
    '{',
    '}',
    '"',
    "'",
    '`',
    '=',
    ': ',
    ':',
    ',',
    ' ',
    '\\',
    '\n',
    '\t',
    '(',
    ')',
    '|',
    '-',
    '<',
    '>',
    '@',
    '://',
  ],
  ...['password', '"token"', '"token":"', 'Authorization: ', 'Cookie', '--token ', ' is ', '<password>', '</password>'],
  ...[
    'name',
    'value',
    '"name":"token","value":"',
    'key',
    'a1b2c3d4e5',
    'abcdefghijklmnopqrst',
    'http://u:p@h',
    '?code=',
  ],
  ...[
    '%3D',
    '\\u003d',
    '&quot;',
    'null',
    '$X',
    'a.b',
    'next_page_',
    'PASSWORD=',
    'export ',
    '\ud83e',
    '\u{1F98A}',
    REDACTED,
  ],
  ...shapedSecrets.slice(0, 13),
];

/** A value as a redactor sees it, for what JSON would lose. */
function redactable(value: unknown): unknown {
  if (value instanceof Map) return [...value];
  return Object.prototype.toString.call(value) === '[object Error]' ? String(value) : value;
}

describe('redactor', () => {
  test.each(secretKeys)('takes out the value of %s, whatever its kind and however deep', (key) => {
    for (const value of ['S', 42, true, null, ['S'], { inner: 'S' }, JSON.parse('{"__proto__":"S"}')])
      expect(redact({ a: [{ b: { [key]: value } }] })).toEqual({ a: [{ b: { [key]: REDACTED } }] });
  });

  test.each(harmlessKeys)('leaves the value of %s', (key) => {
    const given = { [key]: 'value', list: [{ [key]: 42 }, [key, 'value']], text: `${key}: value, ${key}=value1` };
    expect(redact(given)).toEqual(given);
    expect(redact(JSON.stringify(given))).toBe(JSON.stringify(given));
  });

  test.each(secretOrCount)('takes out what %s names, and leaves how many there are', (key) => {
    for (const value of ['S', ['S'], { inner: 'S' }]) expect(redact({ [key]: value })).toEqual({ [key]: REDACTED });
    for (const value of [12, '12', true, null]) expect(redact({ [key]: value })).toEqual({ [key]: value });
  });

  test('leaves whether there is a secret, and where the working directory is', () => {
    const given = {
      hasPassword: true,
      requires_token: false,
      HAS_API_KEY: true,
      isSecret: false,
      PWD: '/home/ada',
      OLDPWD: '~/notes',
    };
    expect(redact(given)).toEqual(given);
    expect(redact({ userPassword: true, pwd: 'hunter2' })).toEqual({ userPassword: REDACTED, pwd: REDACTED });
  });

  test.each<[unknown, unknown]>([
    [
      { name: 'Authorization', value: 'S' },
      { name: 'Authorization', value: REDACTED },
    ],
    [
      { Value: 'S', Key: 'DB_PASSWORD' },
      { Value: REDACTED, Key: 'DB_PASSWORD' },
    ],
    [
      { label: 'API key', text: 'S', id: 'x' },
      { label: 'API key', text: REDACTED, id: 'x' },
    ],
    [
      { id: 'password', values: ['S'] },
      { id: 'password', values: REDACTED },
    ],
    [
      { header: 'cookie', default: 'S' },
      { header: 'cookie', default: REDACTED },
    ],
    [
      ['--token', 'S', '--max-tokens', '5'],
      ['--token', REDACTED, '--max-tokens', '5'],
    ],
    [
      ['--token', '--verbose'],
      ['--token', '--verbose'],
    ],
    [
      ['Host', 'h', 'Cookie', 'S'],
      ['Host', 'h', 'Cookie', REDACTED],
    ],
    [
      ['user', 'city', 'password'],
      ['user', 'city', 'password'],
    ],
    [
      ['a', '-----BEGIN PRIVATE KEY-----', 'S', '-----END PRIVATE KEY-----', 'b'],
      ['a', REDACTED, REDACTED, REDACTED, 'b'],
    ],
    [
      { name: 'Ada', value: 'x' },
      { name: 'Ada', value: 'x' },
    ],
    [
      { name: 'token', description: 'x', type: 'string' },
      { name: 'token', description: 'x', type: 'string' },
    ],
    [
      { name: 'token', interval: 5, context: 'x' },
      { name: 'token', interval: 5, context: 'x' },
    ],
  ])('knows %j, where name and value are apart', (given, cleaned) => {
    expect(redact(given)).toEqual(cleaned);
    expect(redact(JSON.stringify(given))).toBe(JSON.stringify(cleaned));
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
    ['Got {"token":["S","T"],"ok":1}.', `Got {"token":"${REDACTED}","ok":1}.`],
    ['Got {"token":{"a":"}"},"ok":1}.', `Got {"token":"${REDACTED}","ok":1}.`],
    ['Got {"token":12345,"ok":1}.', `Got {"token":"${REDACTED}","ok":1}.`],
    ['Got {"token":\n  "S"}.', `Got {"token":\n  "${REDACTED}"}.`],
    ['Got [["authorization","S"],["accept","x"]].', `Got [["authorization","${REDACTED}"],["accept","x"]].`],
    ['Got [{"name":"token","value":"S"},{"value":1}].', `Got [{"name":"token","value":"${REDACTED}"},{"value":1}].`],
    ['Got "[[\\"cookie\\",\\"S\\"]]".', `Got "[[\\"cookie\\",\\"${REDACTED}\\"]]".`],
    ['- name: DB_PASSWORD\n  value: S\n- name: X', `- name: DB_PASSWORD\n  value: ${REDACTED}\n- name: X`],
    ['<add key="ApiKey" value="S" />', `<add key="ApiKey" value="${REDACTED}" />`],
    ['<password>hunter</password>', `<password>${REDACTED}</password>`],
    ['Authorization: Token abc123def', `Authorization: ${REDACTED}`],
    ['authorization: Digest username="b", response="S"\nx', `authorization: ${REDACTED}\nx`],
    ['Authorization=Bearer abc', `Authorization=${REDACTED}`],
    ['Cookie: a=b; sid=c\nHost: h', `Cookie: ${REDACTED}\nHost: h`],
    ['curl -H "Cookie: a=b; c=d" h', `curl -H "Cookie: ${REDACTED}" h`],
    ['curl -u ada:hunter2 https://h', `curl -u ${REDACTED} https://h`],
    ['--password hunter2 --verbose', `--password ${REDACTED} --verbose`],
    ['mysql -u root -phunter2 db', `mysql -u root -p${REDACTED} db`],
    ["ALTER USER a PASSWORD 'hunter2'", `ALTER USER a PASSWORD '${REDACTED}'`],
    ['machine h login a password hunter', `machine h login a password ${REDACTED}`],
    ['The password is hunter2.', `The password is ${REDACTED}`],
    ['password: hunter\nuser: ada', `password: ${REDACTED}\nuser: ada`],
    ['key: |\n  a\npassword: |\n  a\n  b\nuser: c', `key: |\n  a\npassword: ${REDACTED}\nuser: c`],
    ['const token: string = "S";', `const token: string = "${REDACTED}";`],
    ['password := "S"', `password := "${REDACTED}"`],
    ["'password' => 'S'", `'password' => '${REDACTED}'`],
    ['password=`S`', `password=\`${REDACTED}\``],
    ['$env:API_KEY = "S"', `$env:API_KEY = "${REDACTED}"`],
    ['DB_PASSWORD=p@(w&0;r)d\nDB_HOST=h', `DB_PASSWORD=${REDACTED}\nDB_HOST=h`],
    ['AccountName=a;AccountKey=S==;Suffix=b', `AccountName=a;AccountKey=${REDACTED};Suffix=b`],
    ['https://h/?a=1&sig=abcdefghijklmnop%3D', `https://h/?a=1&sig=${REDACTED}`],
    ['https://h/cb?code=abcdefghijklmnop&state=1', `https://h/cb?code=${REDACTED}&state=1`],
    ['https://h/?user[password]=S&x=1', `https://h/?user[password]=${REDACTED}&x=1`],
    ['https://h/?to=https%3A%2F%2Fx%3Ftoken%3DS&x=1', `https://h/?to=https%3A%2F%2Fx%3Ftoken%3D${REDACTED}&x=1`],
    ['user%5Bpassword%5D=S&x=1', `user%5Bpassword%5D=${REDACTED}&x=1`],
    ['a\\u0026token\\u003dS\\u0026b', `a\\u0026token\\u003d${REDACTED}\\u0026b`],
    ['{&quot;token&quot;:&quot;abc123&quot;}', `{&quot;token&quot;:&quot;${REDACTED}&quot;}`],
    [`https://${'a1b2'.repeat(10)}@h/x.git`, `https://${REDACTED}@h/x.git`],
    ['mysql://u:p@s@h/db', `${REDACTED}h/db`],
    ['mysql://u:p/s@h/db', `${REDACTED}h/db`],
    [`https://hooks.slack.com/services/T0/B0/${'a1B2'.repeat(6)}`, `https://${REDACTED}`],
    ['name="password"\r\n\r\nS\r\n--x', `name="password"\r\n\r\n${REDACTED}\r\n--x`],
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
    ['550e8400-e29b-41d4-a716-446655440000'],
    ['Unexpected token \'}\', "{a}" is not valid JSON'],
    ['password: required\ntoken: invalid'],
    ['Set the API key in settings. The password is wrong; it was changed on 2024-01-01.'],
    ['max_tokens=4096 prompt_tokens: 1234567, nextPageToken: CAUQAA1234567890abcdef'],
    ['https://h/?code=404&key=city&page_token=abc'],
    ['ssh://git@github.com/a/b, https://bob@host/x, npm i @a/b@1.2.3'],
    ['docker run -u 1000:1000 -p 8080:80 team/auth:1.2.3-alpine'],
    ['usage: x [--api-key KEY] --token <TOKEN> --max-tokens 4096; --password is required'],
    ['const token = getToken(); const password = process.env.DB_PASSWORD;'],
    ['if (token === null || password == confirm) token = null;'],
    ['function f(token: string, password: string) {}'],
    ['input("Password: ") + "secret="'],
    [`password=$DB_PASSWORD TOKEN=$(cat file) SECRET=\${SECRET}`],
    ['DB_PASSWORD=\nDB_HOST=localhost\nPWD=/home/ada'],
    ['password:\n  min: 8characters'],
    ['Authorization: required. Cookie: none'],
    ['{"token":null,"ok":true'],
    ['12 pass, 0 fail. pass: 12, pass=12'],
    ['-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----'],
    ['sk-loading-indicator-wrapper risk-assessment-of-the-year-2024 npm_config_registry secret_santa'],
    ['<author>Ada</author> <tokens>12</tokens> <input name="city" value="Oslo">'],
    [Buffer.from('plain words, in which nothing is secret').toString('base64')],
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
    expect(redact('{"a":{"password":"hunter2"},"a":1}')).toBe(`{"a":{"password":"${REDACTED}"},"a":1}`);
  });

  test('looks into JSON however often it was written into JSON, and into base64', () => {
    let text = JSON.stringify({ list: [['token', 'hunter2']] });
    for (let level = 0; level < 10; level++) text = JSON.stringify(text);
    expect(redact(text)).not.toContain('hunter2');
    expect(redact(`Got ${JSON.stringify(JSON.stringify(JSON.stringify({ token: 'hunter2' })))}`)).not.toContain(
      'hunter2',
    );
    const bytes = Buffer.from('# settings\nDB_PASSWORD=hunter2\n');
    expect(redact({ stdout: bytes, body: bytes.toString('base64'), ok: 1 })).toEqual({
      stdout: REDACTED,
      body: REDACTED,
      ok: 1,
    });
    expect(redact(`\ufeff${JSON.stringify({ list: [['token', 'hunter2']] })}`)).not.toContain('hunter2');
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
    expect(own({ 'CUST-1': 1 })).toEqual({ [REDACTED]: 1 });
    expect(own('pin=1')).toBe(`pin=${REDACTED}`);
    expect(redactor({ keys: ['Пароль', '$'] })({ 'пароль:': 'S', $: 'S', '': 1, '€': 2 })).toEqual({
      'пароль:': REDACTED,
      $: REDACTED,
      '': 1,
      '€': 2,
    });
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

  test('does nothing more the second time, though a pattern matches what stands for a secret', () => {
    const own = redactor({ patterns: [/[A-Z]+/, /^.$/, /\W/] });
    const cleaned = own(['AB c', 'D', '!']);
    expect(cleaned).toEqual([`${REDACTED}${REDACTED}c`, REDACTED, REDACTED]);
    expect(own(cleaned)).toEqual(cleaned);
  });

  test('stays well-formed, though a pattern cuts a character in half', () => {
    expect(redactor({ patterns: [/\ud83e/] })('a\u{1F98A}')).toBe(`a${REDACTED}\ufffd`);
    expect(redact('password=\u{1F98A}\u{1F98A} \ud83e')).toBe(`password=${REDACTED} \ud83e`);
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

  test('leaves no secret of a secret’s name, in whatever it is written', () => {
    const name = fc.constantFrom(...secretKeys.filter((key) => /^[\w-]+$/.test(key) && !/^(?:bearer|pwd)$/.test(key)));
    const secret = fc.stringMatching(/^[A-Za-z0-9]{6,20}$/).map((text) => `Zq7${text}`);
    const form = fc.constantFrom<(key: string, value: string) => unknown>(
      (key, value) => ({ [key]: value }),
      (key, value) => ({ [key]: [1, { value }] }),
      (key, value) => [[key, value]],
      (key, value) => new Map([[key, value]]),
      (key, value) => ({ name: key, value }),
      (key, value) => [`--${key}`, value],
      (key, value) => `--${key} ${value}`,
      (key, value) => `${key}=${value}`,
      (key, value) => `${key}: ${value}`,
      (key, value) => `a=1&${key}=${value}&b=2`,
      (key, value) => `<${key}>${value}</${key}>`,
      (key, value) => `{ ${key}: '${value}' }`,
      (key, value) => new Error(`${key}=${value}`),
    );
    const wrap = fc.constantFrom<(value: unknown) => unknown>(
      (value) => value,
      (value) => [value, 'x'],
      (value) => ({ a: value, __proto__: null }),
      (value) => JSON.stringify(value),
      (value) => JSON.stringify(value, null, 2),
      (value) => `Got ${JSON.stringify(value)}.`,
      (value) => Buffer.from(JSON.stringify(value) ?? '').toString('base64'),
      (value) => ({ data: Buffer.from(JSON.stringify(value) ?? '') }),
    );
    const value = fc.tuple(name, secret, form, fc.array(wrap, { maxLength: 5 }));
    fc.assert(
      fc.property(value, ([key, found, make, wraps]) => {
        // Of a Map, an error and text, JSON knows nothing but text.
        const made = make(key, found);
        const given = wraps.reduce((held, each) => each(held), typeof made === 'string' ? made : redactable(made));
        expect(JSON.stringify(redact(given))).not.toContain(found);
      }),
      { numRuns: 2000 },
    );
  });

  test('gives well-formed JSON for any text, and the same for what it gave', () => {
    const piece = fc.oneof(
      { weight: 5, arbitrary: fc.constantFrom(...pieces) },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 4 }) },
    );
    const own = redactor({ patterns: [/[A-Z]{4}/, /\ud83e/, /[a-z]\W+[a-z]/] });
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (found) => {
        const text = found.join('');
        for (const each of [redact, own]) {
          const cleaned = each({ text, [text]: [text, text] });
          expect(each(cleaned)).toEqual(cleaned);
          if (text.isWellFormed()) expect(JSON.stringify(cleaned)).not.toMatch(/\\ud[89a-f]../);
        }
      }),
      { numRuns: 1000 },
    );
  });

  test('gives JSON for anything, and the same for what it gave', () => {
    fc.assert(
      fc.property(anything, (given) => {
        const cleaned = redact(given);
        const text = JSON.stringify(cleaned);
        expect(JSON.stringify(JSON.parse(text))).toBe(text);
        expect(JSON.stringify(redact(cleaned))).toBe(text);
      }),
      { numRuns: 1000 },
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
    ['lines', `x${'\r\n'.repeat(500_000)}=y`],
    ['headers that are none', 'Cookie: a'.repeat(120_000)],
    ['names of names', '"name":"token",'.repeat(70_000)],
    ['sentences', 'token is '.repeat(120_000)],
    ['opening brackets after names', '"password":[['.repeat(80_000)],
    ['options', '--token '.repeat(130_000)],
    ['elements', '<token a'.repeat(130_000)],
    ['beginnings of tokens', 'sk-sk_SG.eyJ.M$'.repeat(70_000)],
    ['commands', 'mysql -u sshpass machine a login b '.repeat(30_000)],
    ['fields of forms', 'name="password"\r\na\r\n'.repeat(50_000)],
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

describe('what is assigned in a text', () => {
  const redact = redactor();

  test.each<[string, string]>([
    ['export DB_PASSWORD=p(w1234', 'export DB_PASSWORD=[REDACTED]'],
    ['["token", "abcdef12345678"]', '["token","[REDACTED]"]'],
    ['of ["token", "abcdef12', 'of ["token", "[REDACTED]'],
    ['of ["token", "abcdef12"', 'of ["token", "[REDACTED]"'],
    ['run --token abcdefg now', 'run --token [REDACTED] now'],
    ['password: abcdefghijklmnopqr and more', 'password: [REDACTED] and more'],
  ])('is taken out: %s', (text, cleaned) => {
    expect(redact(text)).toBe(cleaned);
  });

  test.each([
    'the next_token is abc12345',
    '{"password": process.env.X}',
    "{name: 'Please type here what is your long password', value: 'x'}",
    'password=""',
    'usage: login --password PASSWORD',
    'PWD=/home/me',
    'token = getToken()',
  ])('stays where it is no secret: %s', (text) => {
    expect(redact(text)).toBe(text);
  });
});
