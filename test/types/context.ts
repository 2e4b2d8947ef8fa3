import {
  createDispatcher,
  type Extension,
  extensionKey,
  type Setting,
  type SettingKey,
  settingKey,
  type ToolCall,
  ToolContext,
} from 'toolonion';
import { timeoutMs } from 'toolonion/middleware';
import type { Equal, Expect } from './equal.ts';

// Extensions: the key knows the type of its value, when it is attached and when it is read.

interface Database {
  query(sql: string): readonly string[];
}
declare const db: Database;

const database = extensionKey<Database>();
const locale = extensionKey<'de' | 'en'>();
const context = new ToolContext({ cwd: '/', userContext: { userId: '7' }, extensions: [database(db), locale('de')] });
const attached = context.extension(database);
const spoken = context.with({ extensions: [locale('en')] }).extension(locale);
export type Extensions = [
  Expect<Equal<typeof attached, Database | undefined>>,
  Expect<Equal<typeof spoken, 'de' | 'en' | undefined>>,
];

// @ts-expect-error: no Database
database({ query: 'select 1' });
// @ts-expect-error: not one of the two
locale('fr');
// @ts-expect-error: it may not be attached
context.extension(database).query('select 1');
// @ts-expect-error: a value goes in under its key
new ToolContext({ extensions: [db] });
// @ts-expect-error: user context is text
new ToolContext({ userContext: { userId: 7 } });
// @ts-expect-error: it is `isNonInteractive`
new ToolContext({ nonInteractive: true });
// @ts-expect-error: immutable
context.cwd = '/tmp';
// @ts-expect-error: immutable
context.userContext.set('userId', '8');

// Settings: typed values for one call.

const attempts = settingKey<number>();
declare const call: ToolCall;
const given = call.setting(attempts);
const limit = call.setting(timeoutMs);
const settings: readonly Setting[] = [timeoutMs(500), attempts(3)];
export type Settings = [
  Expect<Equal<typeof given, number | undefined>>,
  Expect<Equal<typeof limit, number | undefined>>,
  Expect<Equal<typeof timeoutMs, SettingKey<number>>>,
];

const dispatcher = createDispatcher();
dispatcher.dispatch({ name: 'add' }, { settings: [timeoutMs(500), attempts(3)], context, parent: call });
dispatcher.dispatchAll([{ name: 'add', arguments: '{}' }], { settings, signal: new AbortController().signal });
export const extensions: readonly Extension[] = [database(db)];

// @ts-expect-error: milliseconds are a number
timeoutMs('500');
// @ts-expect-error: the key is called with the value
dispatcher.dispatch({ name: 'add' }, { settings: [timeoutMs] });
// @ts-expect-error: a list of settings
dispatcher.dispatch({ name: 'add' }, { settings: { timeoutMs: 500 } });
// @ts-expect-error: it is `settings`
dispatcher.dispatch({ name: 'add' }, { setting: [timeoutMs(500)] });
// @ts-expect-error: which tool?
dispatcher.dispatch({ arguments: {} });
// @ts-expect-error: immutable
call.input = {};
// @ts-expect-error: immutable
call.context = context;
// @ts-expect-error: what a model sent may be any JSON
call.input.path;
