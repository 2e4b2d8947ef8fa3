import pino, { type Logger } from 'pino';
import {
  createDispatcher,
  fail,
  type Middleware,
  named,
  PermissionCheck,
  ToolContext,
  ToolRegistry,
  withNote,
} from 'toolonion';
import {
  type Approver,
  allowAll,
  type CallLogger,
  logging,
  outputLimit,
  outputValidation,
  type PermissionRule,
  permission,
  readOnlyAllowed,
  rules,
  standard,
  timeout,
  validation,
} from 'toolonion/middleware';

// A stranger's middleware, in each of the ways one can be written.

export const shout: Middleware = async (call, next) => {
  const outcome = await next(call);
  return { ...outcome, content: String(outcome.content).toUpperCase() };
};
export const refuse: Middleware = (call, next) =>
  call.name === 'rm' ? fail(call, 'denied', 'Never.') : next(call.with({ input: {} }));
const retryOnce: Middleware = named('retryOnce', async (call, next) => {
  const outcome = await next(call);
  if (outcome.error?.retryable !== true) return outcome;
  return withNote(await next(call), { type: 'retried', by: 'retryOnce', message: 'Tried twice.', forModel: false });
});
createDispatcher({ middleware: [shout, refuse, retryOnce, logging(), ...standard({ permission: false })] });

// @ts-expect-error: it forgets to return
export const forgetful: Middleware = (call, next) => {
  next(call);
};
// @ts-expect-error: it forgets to return
export const forgetfulToo: Middleware = async (call, next) => {
  await next(call);
};
// @ts-expect-error: on one of its ways it forgets to return
export const halfForgetful: Middleware = async (call, next) => {
  if (call.name === 'add') return next(call);
};
export const spreading: Middleware = (call, next) =>
  // @ts-expect-error: a spread call has lost its lazy parts; `call.with` changes one
  next({ ...call, input: {} });
export const empty: Middleware = (_call, next) =>
  // @ts-expect-error: which call?
  next();
// @ts-expect-error: text alone is no outcome
export const texting: Middleware = () => 'done';
export const mutating: Middleware = async (call, next) => {
  // @ts-expect-error: immutable; `call.with({ input })` makes another
  call.input = {};
  // @ts-expect-error: what was asked for stays what it was
  call.with({ name: 'other' });
  const outcome = await next(call);
  // @ts-expect-error: immutable; a copy is returned
  outcome.content = '';
  // @ts-expect-error: immutable; `withNote` makes a copy
  outcome.notes.push({ type: 'seen', by: 'mutating', message: 'Seen.' });
  return outcome;
};
export const impatient: Middleware = (call, next) => {
  const outcome = next(call);
  // @ts-expect-error: it may be a promise; await it, or use `after`
  return outcome.isError ? outcome : withNote(outcome, { type: 'ok', by: 'impatient', message: 'Fine.' });
};

// Options of the dispatcher.

const dispatcher = createDispatcher({
  tools: new ToolRegistry(),
  context: new ToolContext(),
  clock: { now: () => 0, setTimeout: () => 0, clearTimeout: () => {} },
  generateId: () => 'id',
  onLate: (outcome, call) => console.error(call.id, outcome.isError),
  onWarning: console.warn,
});
dispatcher.with({ middleware: [timeout()] });
// @ts-expect-error: it is `middleware`
createDispatcher({ middlewares: [shout] });
// @ts-expect-error: it is `onLate`
dispatcher.with({ onlate: () => {} });
// @ts-expect-error: made, not named
createDispatcher({ middleware: [timeout] });
// @ts-expect-error: a list
createDispatcher({ middleware: shout });
// @ts-expect-error: a ToolContext
createDispatcher({ context: { cwd: '/' } });
// @ts-expect-error: immutable
dispatcher.middlewareNames.push('mine');

// logging: pino's logger is one, and so are its children.

const logger: Logger = pino();
const own: CallLogger = logger.child({ session: 7 });
logging({
  logger,
  values: { default: false, byTool: { search: true } },
  redact: { keys: ['pin'], patterns: [/\d{16}/] },
});
logging({ logger: own });
logging({ logger: pino({ customLevels: { audit: 35 } }) });
// @ts-expect-error: the console has no levels to ask for
logging({ logger: console });
// @ts-expect-error: it is `values`
logging({ value: true });
// @ts-expect-error: true or false
logging({ values: 'all' });
// @ts-expect-error: a list of names
logging({ redact: { keys: 'pin' } });

// permission

const sunday: PermissionRule = async (call) =>
  call.tool?.destructive === true ? PermissionCheck.deny('not on Sundays') : PermissionCheck.allow();
const approver: Approver = ({ input, prompt, signal }) => !signal.aborted && prompt !== '' && input !== null;
permission({ check: readOnlyAllowed, approver, approvalLimitMs: Number.POSITIVE_INFINITY });
permission({ check: [sunday, allowAll, rules({ ask: [{ tool: 'rm', when: (input) => input['force'] === true }] })] });
// @ts-expect-error: it is `check`
permission({ checks: [sunday] });
// @ts-expect-error: true is no check
permission({ check: () => true });
// @ts-expect-error: no such check
permission({ check: () => ({ type: 'permit' }) });
// @ts-expect-error: an approver answers
permission({ check: sunday, approver: async () => {} });
// @ts-expect-error: no such verdict
rules({ permit: ['read_*'] });
// @ts-expect-error: a rule names its tool
rules({ deny: [{ when: () => true }] });
// @ts-expect-error: deny, ask or allow
rules({ otherwise: 'maybe' });

// The other ones.

validation({ maxFaults: 3 }).precompile(dispatcher.tools);
// @ts-expect-error: it is `maxFaults`
validation({ maxErrors: 3 });
outputValidation({ onInvalid: 'note' });
// @ts-expect-error: fail or note
outputValidation({ onInvalid: 'ignore' });
// @ts-expect-error: it is `onInvalid`
outputValidation({ oninvalid: 'note' });
outputLimit({ limit: { default: 20_000, byTool: { read_file: 100_000 } }, unit: 'bytes', keep: 'head' });
outputLimit({ marker: (leftOut, total, unit) => `${leftOut} of ${total} ${unit}` });
// @ts-expect-error: it is `limit`
outputLimit({ maxLength: 100 });
// @ts-expect-error: head, tail or both
outputLimit({ keep: { byTool: { log: 'end' } } });
timeout({ limitMs: { byTool: { deploy: Number.POSITIVE_INFINITY } }, graceMs: 100 });
// @ts-expect-error: it is `limitMs`
timeout({ limit: 500 });
// @ts-expect-error: milliseconds
timeout({ limitMs: '500' });
// @ts-expect-error: by tool, then the name
timeout({ limitMs: { deploy: 500 } });

// standard: options, a middleware, or false for each layer.

standard({ permission: { check: readOnlyAllowed, approver }, timeout: { limitMs: 10_000 }, outputLimit: false });
standard({ permission: permission(), validation: shout });
// @ts-expect-error: what may run has to be said
standard({});
// @ts-expect-error: what may run has to be said
standard();
// @ts-expect-error: no layer of that name
standard({ permission: false, retries: {} });
// @ts-expect-error: an option of a layer is checked like its own
standard({ permission: false, timeout: { limit: 500 } });
// @ts-expect-error: false leaves it out; true says nothing
standard({ permission: true });
