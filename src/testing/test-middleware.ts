import { getEventListeners } from 'node:events';
import type { ToolCall } from '../call.ts';
import type { ContentPart } from '../content.ts';
import { createDispatcher } from '../dispatcher.ts';
import { describeError } from '../error.ts';
import type { JsonObject } from '../json.ts';
import type { Middleware } from '../middleware.ts';
import { isOutcome, type ToolDispatchResult } from '../outcome.ts';
import type { DispatchOptions, ToolCallRequest } from '../request.ts';
import { deepFreeze } from '../schema.ts';
import { defineTool } from '../tool.ts';
import { ManualClock, turns } from './manual-clock.ts';

/**
 * Tests whether a middleware keeps the laws that all layers rely on: one result for each call, no timer of its clock and no listener left, no call taken
 * for another, a stream that gives what a dispatch gives, whatever the tool does, and whatever the model sends.
 *
 * @param make Makes it anew for each test, as it is used.
 * @param test That of any runner: of jest, vitest, node:test, mocha.
 * @example describe('audit', () => testMiddleware(() => audit({ log }), test));
 */
export function testMiddleware(
  make: () => Middleware,
  test: (title: string, check: () => Promise<void>) => unknown,
): void {
  test('has a name for logs and errors', async () => {
    demand(make().name !== '', 'it has none: named("mine", layer)');
  });
  for (const [what, execute] of Object.entries(TOOLS))
    for (const abort of ABORTS)
      test(`a tool that ${what}, an abort ${abort}: one result, and nothing is left behind`, () =>
        checkCall(make, execute, abort));
  test('calls that come together, and those after them, have each its own result', () => checkTogether(make));
  test('arguments that are frozen stay as they were', () => checkFrozen(make));
  test('a stream has the result that a dispatch has', () => checkStream(make));
  for (const [what, request] of Object.entries(REQUESTS))
    test(`${what}: one result, and no fault of the layer`, async () => {
      const { result } = await settled(make, () => 'done', request, 'never');
      checkResult(result);
    });
}

type Execute = (input: JsonObject, call: ToolCall) => unknown;

/** In the message of what tools throw: no model may read it. */
const SECRET = 'a-secret-of-the-tool';

const TOOLS: Readonly<Record<string, Execute>> = {
  'answers at once': () => 'done',
  'answers later': async () => 'done',
  'gives data': () => ({ rows: [1, 2, 3] }),
  'throws at once': () => {
    throw new Error(SECRET);
  },
  'rejects later': async () => {
    throw Object.assign(new Error(SECRET), { code: 'ECONNRESET' });
  },
  'rejects with nothing': () => Promise.reject(),
  'yields parts': async function* () {
    yield 'one ';
    yield 'two';
  },
  'yields, and throws': async function* () {
    yield 'one ';
    throw new Error(SECRET);
  },
  'waits for its signal': (_, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    }),
};

const ABORTS = ['never', 'before', 'during', 'after'] as const;
type Abort = (typeof ABORTS)[number];

const REQUESTS: Readonly<Record<string, ToolCallRequest>> = {
  'a name that no tool has': { id: 'c', name: 'ghost', arguments: {} },
  'a name that every object has': { id: 'c', name: 'constructor', arguments: {} },
  'no name': { id: 'c', name: '', arguments: {} },
  'no id': { name: 'tool', arguments: {} },
  'arguments that end too early': { id: 'c', name: 'tool', arguments: '{"a":' },
  'arguments that are no object': { id: 'c', name: 'tool', arguments: '[1]' },
  'arguments that were cut': { id: 'c', name: 'tool', arguments: '{}', truncated: true },
  'arguments with names of every object': { id: 'c', name: 'tool', arguments: '{"__proto__":{"a":1},"constructor":1}' },
};

interface Settled {
  readonly result: ToolDispatchResult | undefined;
  readonly clock: ManualClock;
  readonly signal: AbortSignal;
  /** Runs of the tool, and the most of them at once. */
  readonly runs: number;
  readonly atOnce: number;
}

/** Milliseconds on a clock of its own in which whatever waits has to come to an end. */
const LONGEST_MS = 3_600_000;

async function settled(
  make: () => Middleware,
  execute: Execute,
  request: ToolCallRequest,
  abort: Abort,
): Promise<Settled> {
  const clock = new ManualClock();
  const controller = new AbortController();
  let runs = 0;
  let running = 0;
  let atOnce = 0;
  const counted: Execute = (input, call) => {
    runs++;
    running++;
    atOnce = Math.max(atOnce, running);
    const ended = () => {
      running--;
    };
    try {
      const given = execute(input, call);
      if (typeof (given as PromiseLike<unknown> | undefined)?.then === 'function')
        (given as Promise<unknown>).then(ended, ended);
      else ended();
      return given;
    } catch (error) {
      ended();
      throw error;
    }
  };
  const tool = defineTool({
    name: 'tool',
    description: 'A tool under trial.',
    idempotent: true,
    execute: counted as never,
  });
  const dispatcher = createDispatcher({ tools: [tool], middleware: [make()], clock });
  if (abort === 'before') controller.abort(new Error('the caller'));
  let result: ToolDispatchResult | undefined;
  let answers = 0;
  dispatcher.dispatch(request, { signal: controller.signal }).then((given) => {
    answers++;
    result = given;
  });
  await turns();
  if (abort === 'during') controller.abort(new Error('the caller'));
  await clock.advance(LONGEST_MS);
  if (result === undefined) controller.abort(new Error('the caller, in the end'));
  await clock.advance(LONGEST_MS);
  if (abort === 'after') controller.abort(new Error('the caller'));
  await turns();
  demand(answers === 1, `the call has ${answers === 0 ? 'no result' : `${answers} results`}`);
  return { result, clock, signal: controller.signal, runs, atOnce };
}

async function checkCall(make: () => Middleware, execute: Execute, abort: Abort): Promise<void> {
  const { result, clock, signal, atOnce } = await settled(
    make,
    execute,
    { id: 'c', name: 'tool', arguments: { a: 1 } },
    abort,
  );
  checkResult(result);
  demand(
    result?.toolCallId === 'c',
    `the result has the id ${JSON.stringify(result?.toolCallId)}, not that of the call`,
  );
  demand(atOnce < 2, 'it ran the tool again while it was running');
  demand(clock.pending === 0, `${clock.pending} timers are left`);
  demand(getEventListeners(signal, 'abort').length === 0, 'a listener of the abort is left');
}

function checkResult(result: ToolDispatchResult | undefined): void {
  demand(isOutcome(result), `what the call gave is no result: ${JSON.stringify(result)}`);
  const { error } = result as ToolDispatchResult;
  if (error?.code === 'internal')
    throw new Error(`It is at fault itself: ${error.message} ${describeError(error.cause).message}`);
  demand(!JSON.stringify(result).includes(SECRET), 'the model reads what the tool threw');
}

/** So many, and as many once more, that a state shared by mistake shows. */
const TOGETHER = 100;

async function checkTogether(make: () => Middleware): Promise<void> {
  const clock = new ManualClock();
  const tool = defineTool({
    name: 'tool',
    description: 'A tool under trial.',
    concurrencySafe: true,
    execute: async (input: JsonObject) => `n=${input['n']}.`,
  } as never);
  const dispatcher = createDispatcher({ tools: [tool as never], middleware: [make()], clock });
  for (const first of [0, TOGETHER]) {
    const all = await inTime(clock, (signal) =>
      Array.from({ length: TOGETHER }, (_, place) => {
        const n = first + place;
        return dispatcher.dispatch({ id: `c${n}`, name: 'tool', arguments: { n } }, { signal });
      }),
    );
    for (const [place, result] of all.entries()) checkOwn(first + place, result);
  }
  demand(clock.pending === 0, `${clock.pending} timers are left`);
}

/** Results of tools that answer: a layer may wait, but not for ever. */
async function inTime(
  clock: ManualClock,
  dispatch: (signal: AbortSignal) => readonly Promise<ToolDispatchResult>[],
): Promise<readonly ToolDispatchResult[]> {
  const abort = new AbortController();
  let results: readonly ToolDispatchResult[] | undefined;
  Promise.all(dispatch(abort.signal)).then((all) => {
    results = all;
  });
  await clock.advance(LONGEST_MS);
  const isOver = results !== undefined;
  abort.abort(new Error('the caller, in the end'));
  await turns();
  demand(isOver, 'a call of a tool that answers has no result after an hour');
  return results ?? [];
}

function checkOwn(n: number, result: ToolDispatchResult): void {
  checkResult(result);
  const told = /^n=(\d+)\.$/.exec(String(result.content))?.[1] ?? `${n}`;
  demand(result.toolCallId === `c${n}` && told === `${n}`, `call ${n} has the result of call ${told}`);
}

async function checkFrozen(make: () => Middleware): Promise<void> {
  const input = deepFreeze({ list: [{ a: 1 }], text: 'x' });
  const before = JSON.stringify(input);
  const { result } = await settled(
    make,
    (given) => JSON.stringify(given),
    { id: 'c', name: 'tool', arguments: input },
    'never',
  );
  checkResult(result);
  demand(JSON.stringify(result?.requested.input) === before, 'the result tells other arguments than those that came');
}

async function checkStream(make: () => Middleware): Promise<void> {
  const yields = async function* () {
    yield 'one ';
    yield 'two';
  };
  const clock = new ManualClock();
  const dispatch = (options: DispatchOptions) => {
    const tool = defineTool({ name: 'tool', description: 'A tool under trial.', execute: yields });
    return createDispatcher({ tools: [tool], middleware: [make()], clock }).dispatch({ name: 'tool' }, options);
  };
  const parts: string[] = [];
  const onPart = (part: ContentPart) => void parts.push(part.type === 'text' ? part.text : '');
  const all = await inTime(clock, (signal) => [dispatch({ signal }), dispatch({ signal, onPart })]);
  for (const result of all) checkResult(result);
  const [one, other] = all.map(({ content, isError }) => JSON.stringify([content, isError]));
  demand(one === other, `a dispatch gives ${one}, a stream ${other}`);
  const [, streamed] = all as [ToolDispatchResult, ToolDispatchResult];
  const { content } = streamed;
  demand(
    typeof content !== 'string' || parts.join('') === content,
    `its parts are ${JSON.stringify(parts)}, the answer ${JSON.stringify(content)}`,
  );
}

function demand(isSo: boolean, otherwise: string): void {
  if (!isSo) throw new Error(`A law of middlewares is broken: ${otherwise}.`);
}
