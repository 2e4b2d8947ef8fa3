import type { JsonValue } from './json.ts';

/** What keys open, as their names say it. A key without such a word may be one of a table, a cache or a translation. */
const KEYS_TO =
  'api|app|application|private|secret|access|session|signing|encryption|decryption|master|account|subscription|consumer|client|' +
  'license|shared|service|serviceaccount|role|functions|admin|root|deploy|auth|webhook|ssh|hmac|aes|rsa|' +
  'openai|anthropic|claude|gemini|google|gcp|aws|azure|github|gitlab|slack|discord|telegram|stripe|sendgrid|mailgun|twilio|' +
  'algolia|cloudflare|datadog|groq|mistral|cohere|huggingface|openrouter|deepseek|supabase|firebase|heroku';

/** Not all that ends in `token` is one: there are those of a next page, of a vocabulary, of a parser, of a price. */
const HARMLESS_TOKENS =
  'next|prev|previous|page|pagination|continuation|continue|sync|cursor|resume|start|end|stop|delta|max|min|per|first|last|' +
  'input|output|prompt|completion|reasoning|num|total|current|unexpected|lookahead|eos|bos|pad|unk|sep|cls|mask|special|image|' +
  'audio|text|design|syntax|css|color|colour|theme|cancel|cancellation|abort|fencing|idempotency|clientrequest';

/** How the names of secrets end, normalised: `DB_PASSWORD`, `X-Api-Key`, `Set-Cookie`, `stripeSecretKey`, `passwordHash`. */
const SECRET_NAME = new RegExp(
  `(?:^(?:auth|bearer|jwt|otp|totp|jsessionid|phpsessid)|passw(?:or)?d|passphrase|passcode|pwd|secret|authorization|cookie|` +
    `credentials?|conn(?:ection)?str(?:ing)?|keymaterial|(?:${KEYS_TO})key|(?<!${HARMLESS_TOKENS})token|` +
    `(?:auth|authorization|mfa)code|(?:github|gitlab|jira|azure|devops)pat)` +
    `(?:hash|digest|confirm|confirmation|repeat|value|string|pem|base|base64|b64|header|plaintext|json|binary|data)?\\d*$`,
);

/** What may be secret as well as counted: `apiKeys: 3`, `pass: 12`. */
const SECRET_OR_COUNT = new RegExp(
  `(?:passw(?:or)?ds|passphrases|secrets|cookies|(?:${KEYS_TO})keys|` +
    `(?:access|api|app|auth|bearer|bot|deploy|device|github|oauth|refresh|secret|security|session|user)tokens|` +
    `(?:db|database|smtp|imap|mail|email|redis|mysql|pg|postgres|ftp|ssh|user|admin|root)pass)$`,
);

/** `pass` as a word of its own, not the end of `compass`. */
const PASS = /(?:(?:^|[^A-Za-z])(?:pass|PASS|Pass)|[a-z\d]Pass)\d*$/;

/** What has a secret, or wants one: nothing to hide in a yes or no. */
const QUESTION =
  /^(?:is|has|have|needs?|requires?|shows?|uses?|with|without|no|allows?|enables?|can|should|must|supports?)(?![a-z])/;

/** Names of what holds a name, and of what holds its value: `{ name: 'Authorization', value: … }`. */
const NAME_HOLDER = /(?:name|key|header|field|label|parameter|param|variable|option|attribute|property)$|^(?:id|k)$/;
const VALUE_HOLDER = /values?$|^(?:v|val|default|text)$/;

/** Names that are common in addresses and say little elsewhere. */
const PARAMETER = /^(?:sig|signature|code|key|xamzsignature|xgoogsignature)$/;

/** A name without case, and without all that is no letter or digit; full-width letters are letters. */
export function normalKey(key: string): string {
  if (/^[\w.-]+$/.test(key)) return key.toLowerCase().replace(/[-_.]/g, '') || key;
  const plain = key.normalize('NFKC').toLowerCase();
  return plain.replace(/[^\p{L}\p{N}]/gu, '') || plain;
}

/** Whether a value of this name is secret. Most names tell without it. */
export function isSecretName(key: string, value: JsonValue): boolean {
  const name = normalKey(key);
  if (SECRET_NAME.test(name)) {
    if (typeof value === 'boolean')
      return !QUESTION.test(key.replace(/^[A-Z_]+$/, (screaming) => screaming.toLowerCase()));
    // The working directory, in the environment of a process.
    return !(name.endsWith('pwd') && typeof value === 'string' && /^(?:[/~]|[A-Za-z]:\\)/.test(value));
  }
  if (!SECRET_OR_COUNT.test(name) && !PASS.test(key)) return false;
  return typeof value === 'string' ? !/^[\d.]+$/.test(value) : typeof value === 'object' && value !== null;
}

export function isNameHolder(key: string): boolean {
  return NAME_HOLDER.test(normalKey(key));
}

export function isValueHolder(key: string): boolean {
  return VALUE_HOLDER.test(normalKey(key));
}

/** Whether a parameter of an address is secret where it is long. */
export function isSecretParameter(key: string): boolean {
  return PARAMETER.test(normalKey(key));
}

/** Whether the values of a name have several words, up to the end of a line. */
export function hasLongValue(key: string): boolean {
  return /(?:authorization|cookies?)$/.test(normalKey(key));
}

/** Secrets that say by their beginning, or by their form, whose they are. */
const TOKENS: readonly RegExp[] = [
  /[spr]k-(?=[A-Za-z_-]{0,80}\d|[A-Za-z0-9]{16})[\w-]{16,}/,
  /[spr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}/,
  /whsec_[A-Za-z0-9+/=]{16,}/,
  /gh[pousr]_[A-Za-z0-9]{36,}/,
  /github_pat_\w{22,}/,
  /gl(?:pat|dt|rt|rtr|cbt|ptt|ft|soat|oas|agent|imt|ffct)-[\w-]{20,}/,
  /xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}/,
  /xapp-\d-[A-Za-z0-9-]{10,}/,
  /AIza[\w-]{35}/,
  /ya29\.[\w-]{20,}/,
  /GOCSPX-[\w-]{20,}/,
  /1\/\/0[\w-]{30,}/,
  /(?:AKIA|ASIA|AGPA)[A-Z0-9]{16}\b/,
  /(?:IQoJb3JpZ2lu|F[wQ]oGZXIvYXdz)[A-Za-z0-9+/=%]{40,}/,
  /\w{3}\dQ~[\w.~-]{30,}/,
  /npm_[A-Za-z0-9]{36,}/,
  /pypi-[\w-]{50,}/,
  /rubygems_[0-9a-f]{40,}/,
  /dckr_[a-z]{3}_[\w-]{20,}/,
  /hf_[A-Za-z0-9]{30,}/,
  /(?:gsk_|xai-|pplx-|r8_|tvly-|jina_|nfp_|ntn_|figd_|secret_|lsv2_(?:pt|sk)_)[\w-]{32,}/,
  /(?:dapi|key-|SK|fc-)[0-9a-f]{32}(?![\w-])/,
  /do[opr]_v1_[0-9a-f]{40,}/,
  /(?:sbp_|pul-|e2b_)[0-9a-f]{40,}/,
  /SG\.[\w-]{16,}\.[\w-]{16,}/,
  /[0-9a-f]{32}-us\d{1,2}\b/,
  /(?:bot)?\d{8,10}:[\w-]{35}(?![\w-])/,
  /[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}/,
  /shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}/,
  /sq0[a-z]{3}-[\w-]{22,}/,
  /lin_api_[A-Za-z0-9]{30,}/,
  /PMAK-[0-9a-f]{24}-[0-9a-f]{34}/,
  /NRAK-[A-Z0-9]{27}/,
  /sntry[su]_[\w+/=-]{30,}/,
  /dp\.[a-z]{2,5}\.[\w.-]{30,}/,
  /hv[sbr]\.[\w-]{20,}/,
  /[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}/,
  /ATATT3[\w=-]{40,}/,
  /gl(?:sa|c)_[\w=+/-]{32,}/,
  /pat[A-Za-z0-9]{14}\.[0-9a-f]{64}/,
  /tskey-[a-z]+-[\w-]{16,}/,
  /AGE-SECRET-KEY-1[A-Z0-9]{50,}/,
  /EAA[A-Za-z0-9]{80,}/,
  // Hashes of passwords, as /etc/shadow and databases have them.
  /\$(?:2[abxy]|[156y]|apr1|argon2(?:id?|d))\$[\w./$+=-]{20,}/,
];

const KEY_BEGINS = '-{4,5} ?BEGIN [A-Z0-9 ]{0,60}PRIVATE KEY(?: BLOCK)? ?-{4,5}';
const KEY_ENDS = '-{4,5} ?END [A-Z0-9 ]{0,60}PRIVATE KEY(?: BLOCK)? ?-{4,5}';

/** The first and the last line of a private key, whose lines may be the items of a list. */
export const KEY_BEGINNING: RegExp = new RegExp(KEY_BEGINS);
export const KEY_END: RegExp = new RegExp(KEY_ENDS);

/** Shapes of secrets that give themselves away; a group is what stays. Each is linear in the length of the text. */
export const SECRET_SHAPES: readonly RegExp[] = [
  new RegExp(`${KEY_BEGINS}[\\s\\S]*?(?:${KEY_ENDS}|$)`, 'g'),
  /\bPrivate-Lines: \d+[\s\S]*?(?:Private-MAC: *[0-9a-f]+|$)/g,
  /\bbearer\s+[A-Za-z0-9._~+/=-]{8,}/gi,
  // Base64, not the next word of a sentence.
  /\b[Bb]asic\s+(?=[A-Za-z+/]{0,400}(?:\d|=|[a-z][A-Z]))[A-Za-z0-9+/]{8,}={0,2}/g,
  new RegExp(`(?<![A-Za-z0-9])(?:${TOKENS.map(({ source }) => source).join('|')})`, 'g'),
  /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,9999}(?:\.[A-Za-z0-9_-]{0,99999}){2,4}/g,
  // Addresses that let anybody who knows them write.
  /\bhooks\.slack\.com\/[a-z]+\/[\w/]{20,}/g,
  /\b(?:discord(?:app)?\.com\/api\/webhooks|webhook\.office\.com\/[a-z\d]+)\/[\w/@-]{20,}/g,
  // A number before a slash is the port of a host.
  /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@"'<>]{0,200}:(?:[^\s/"'<>]{1,200}|(?!\d{1,5}[/?#])[^\s@"'<>]{1,200})@/gi,
  /(:\/\/)(?=[A-Za-z_-]{0,99}\d)[\w-]{20,200}(?=@)/g,
  /\bjdbc:oracle:[a-z]{1,9}:[^\s/@"'<>]{1,99}\/[^\s@"'<>]{1,99}@/gi,
  // What commands take: curl, sshpass, mysql, netrc, SQL. Two numbers are a user and a group.
  /(\s(?:-u|--user|--proxy-user)(?:\s{1,3}|=)["']?)(?!\d+:\d+\b)[^\s"':]{1,99}:[^\s"'/]{1,200}/g,
  /(\bsshpass\s{1,3}-p\s{0,3})[^\s"']+/g,
  /(\bmysql(?:dump|admin)?\s(?:[^\n]{0,99}\s)?-p)[^\s"']{3,}/g,
  /(\bmachine\s{1,3}\S{1,99}\s{1,3}login\s{1,3}\S{1,99}\s{1,3}password\s{1,3})\S+/gi,
  /(\b(?:password|identified by)\s{1,3}')[^'\r\n]+(?=')/gi,
  // A field of a form that is sent in parts.
  /(\bname="[\w.[\]-]{0,60}(?:password|secret|token|api_?key)\]?"[^\r\n]{0,99}\r?\n(?:[^\r\n]{1,99}\r?\n){0,3}\r?\n)[^\r\n]+/gi,
];
