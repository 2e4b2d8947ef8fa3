import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  createDispatcher,
  type Dispatcher,
  defineTool,
  type Middleware,
  type Tool,
  type ToolCall,
  type ToolCallRequest,
} from 'toolonion';
import { allowAll, schedule, standard } from 'toolonion/middleware';
import { turns } from '../support/manual-clock.ts';
import { expectNothingUnhandled } from '../support/unhandled.ts';
import { Work } from '../support/work.ts';

expectNothingUnhandled();

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'toolonion-'));
});
afterAll(() => rm(folder, { recursive: true }));

const ONIONS: readonly (readonly [string, readonly Middleware[]])[] = [
  ['without a schedule layer', standard({ permission: { check: allowAll }, logging: false })],
  ['with one', standard({ permission: { check: allowAll }, logging: false, schedule: {} })],
];

/** Tools that work on real files, slowly enough to meet each other. */
function fileTools(): readonly Tool[] {
  const path = { type: 'string' } as const;
  return [
    defineTool({
      name: 'append',
      description: 'Adds a word to a file.',
      inputSchema: { type: 'object', properties: { path, word: path }, required: ['path', 'word'] },
      concurrencySafe: true,
      resourceKey: ({ path }) => path,
      execute: async ({ path, word }) => {
        const text = await readFile(join(folder, path), 'utf8').catch(() => '');
        await turn();
        await writeFile(join(folder, path), `${text}${word} `);
        return 'added';
      },
    }),
    defineTool({
      name: 'write',
      description: 'Writes a file.',
      inputSchema: { type: 'object', properties: { path, text: path }, required: ['path', 'text'] },
      execute: async ({ path, text }) => {
        await turn();
        await writeFile(join(folder, path), text);
        return 'written';
      },
    }),
    defineTool({
      name: 'read',
      description: 'Reads a file.',
      inputSchema: { type: 'object', properties: { path }, required: ['path'] },
      readOnly: true,
      concurrencySafe: true,
      execute: ({ path }) => readFile(join(folder, path), 'utf8'),
    }),
  ];
}

describe.each(ONIONS)('%s', (name, middleware) => {
  const dispatcher = createDispatcher({ tools: fileTools(), middleware });

  test('K01: two edits of one file in one batch are both there, in order, and so are twenty of three', async () => {
    const words = Array.from({ length: 20 }, (_, index) => `w${index}`);
    const calls = words.map((word, index) => ({
      name: 'append',
      arguments: { path: `k01 ${name} ${index % 3}`, word },
    }));
    const results = await dispatcher.dispatchAll(calls);
    expect(results.map(({ content }) => content)).toEqual(words.map(() => 'added'));
    for (let file = 0; file < 3; file++) {
      const { content } = await dispatcher.dispatch({ name: 'read', arguments: { path: `k01 ${name} ${file}` } });
      expect(content).toBe(`${words.filter((_, index) => index % 3 === file).join(' ')} `);
    }
  });

  test('K02: a read after a write sees what was written, and one before it what was there', async () => {
    const path = `k02 ${name}`;
    await writeFile(join(folder, path), 'old');
    const read = { name: 'read', arguments: { path } };
    const write = (text: string) => ({ name: 'write', arguments: { path, text } });
    const results = await dispatcher.dispatchAll([read, write('new'), read, read, write('newer'), read]);
    expect(results.map(({ content }) => content)).toEqual(['old', 'written', 'new', 'new', 'written', 'newer']);
  });

  test('K03: one that throws costs no other its result, alone or in the middle, in any mode', async () => {
    const odd = [
      defineTool({ name: 'ok', description: 'Is.', concurrencySafe: true, execute: async () => 'ok' }),
      defineTool({
        name: 'throws',
        description: 'Throws.',
        concurrencySafe: true,
        execute: () => {
          throw new Error('no');
        },
      }),
    ];
    const both = createDispatcher({ tools: odd, middleware });
    for (const mode of ['parallel', 'sequential'] as const) {
      const names = ['ok', 'throws', 'ok', 'gone', 'ok', 'throws'];
      const results = await both.dispatchAll(
        names.map((each) => ({ name: each })),
        { mode },
      );
      expect(results.map(({ error }) => error?.code ?? 'ok')).toEqual([
        ...['ok', 'execution_failed', 'ok', 'not_found', 'ok', 'execution_failed'],
      ]);
    }
  });

  test('K05: the stalled call alone is lost by an abort, and the others were told at once', async () => {
    const tools = [
      defineTool({ name: 'fast', description: 'Is fast.', concurrencySafe: true, execute: async () => 'done' }),
      defineTool({
        name: 'stalls',
        description: 'Never settles.',
        concurrencySafe: true,
        execute: () => new Promise(() => {}),
      }),
    ];
    const stop = new AbortController();
    const told: number[] = [];
    const batch = createDispatcher({ tools, middleware }).dispatchAll(
      ['fast', 'stalls', 'fast'].map((each) => ({ name: each })),
      { signal: stop.signal, onResult: (_, place) => told.push(place) },
    );
    await turns();
    expect(told).toEqual([0, 2]);
    stop.abort();
    expect((await batch).map(({ content, error }) => error?.executed ?? content)).toEqual(['done', 'unknown', 'done']);
    expect(told).toEqual([0, 2, 1]);
  });

  test('K06: of fifty calls never more than four run, first come, first served', async () => {
    const work = new Work();
    const tools = [work.tool('work', { concurrencySafe: true })];
    const ids = Array.from({ length: 50 }, (_, index) => `c${index}`);
    const stop = new AbortController();
    const batch = createDispatcher({ tools, middleware }).dispatchAll(
      ids.map((id) => ({ id, name: 'work', arguments: { id } })),
      { concurrency: 4, signal: stop.signal },
    );
    for (let ended = 0; ended < 40; ended++) {
      await turns(3);
      work.end(work.running[0] as string);
    }
    await turns(3);
    stop.abort();
    const results = await batch;
    expect(work.most).toBe(4);
    expect(work.events.filter((event) => event.startsWith('+'))).toEqual(ids.slice(0, 44).map((id) => `+${id}`));
    expect(results.map(({ error }) => error?.executed ?? 'done')).toEqual([
      ...ids.slice(0, 40).map(() => 'done'),
      ...ids.slice(40, 44).map(() => 'stopped'),
      ...ids.slice(44).map(() => 'no'),
    ]);
  });

  test('K07: a tool that calls another while only one may run does not wait for itself', async () => {
    const tools = [
      defineTool({
        name: 'outer',
        description: 'Calls another.',
        execute: async (_, call) => {
          const one = await both.dispatch({ name: 'inner' }, { parent: call });
          const [two] = await both.dispatchAll([{ name: 'inner' }], { parent: call, concurrency: 1 });
          return `${one.content} ${two?.content}`;
        },
      }),
      defineTool({ name: 'inner', description: 'Is called.', execute: async () => 'in' }),
    ];
    const layers = name === 'with one' ? [schedule({ concurrency: 1 })] : middleware;
    const both: Dispatcher = createDispatcher({ tools, middleware: layers });
    const results = await both.dispatchAll([{ name: 'outer' }, { name: 'outer' }], { concurrency: 1 });
    expect(results.map(({ content }) => content)).toEqual(['in in', 'in in']);
  });

  test('K08: where the first to fail stops the batch, each of the others has its result', async () => {
    const work = new Work();
    const tools = [
      defineTool({ name: 'throws', description: 'Throws.', concurrencySafe: true, execute: () => Promise.reject(1) }),
      work.tool('work', { concurrencySafe: true }),
      work.tool('alone'),
    ];
    const results = await createDispatcher({ tools, middleware }).dispatchAll(
      ['work', 'throws', 'work', 'alone'].map((each, index) => ({ name: each, arguments: { id: `c${index}` } })),
      { failFast: true },
    );
    expect(results.map(({ error }) => `${error?.code} ${error?.executed}`)).toEqual([
      ...['cancelled stopped', 'execution_failed yes', 'cancelled stopped', 'cancelled no'],
    ]);
  });
});

/** One call of a trial: what its tool says of it, how long it takes, and the calls it makes itself. */
interface Trial {
  readonly kind: 'safe' | 'alone' | 'judged';
  readonly key: string | undefined;
  readonly isSafe: boolean;
  readonly takes: number;
  readonly held: number;
  readonly fails: boolean;
  readonly nested: readonly Trial[];
}

const trialOf = (depth: number): fc.Arbitrary<Trial> =>
  fc.record({
    kind: fc.constantFrom('safe', 'alone', 'judged'),
    key: fc.constantFrom(undefined, undefined, 'f', 'g'),
    isSafe: fc.boolean(),
    takes: fc.nat(3),
    held: fc.nat(3),
    fails: fc.boolean(),
    nested: depth === 0 ? fc.constant([]) : fc.array(trialOf(depth - 1), { maxLength: 3 }),
  });

test('whatever calls come, none runs beside one it must not run beside, all have their result, and nothing hangs', async () => {
  interface Running extends Trial {
    readonly call: ToolCall;
    readonly ancestors: readonly ToolCall[];
  }
  const running = new Set<Running>();
  const faults: string[] = [];

  const isInside = (one: Running, other: Running) => one.ancestors.includes(other.call);
  const mayMeet = (one: Running, other: Running): boolean => {
    if (isInside(one, other) || isInside(other, one)) return true;
    if (one.key !== undefined && one.key === other.key) return false;
    const areSiblings = one.call.parent === other.call.parent;
    const isSafe = ({ kind, isSafe }: Trial) => kind === 'safe' || (kind === 'judged' && isSafe);
    return !areSiblings || (isSafe(one) && isSafe(other));
  };

  const inputSchema = { type: 'object' } as const;
  const execute = async (input: unknown, call: ToolCall) => {
    const trial = input as Trial;
    const ancestors: ToolCall[] = [];
    for (let { parent } = call; parent !== undefined; parent = parent.parent) ancestors.push(parent);
    const me: Running = { ...trial, call, ancestors };
    for (const other of running) if (!mayMeet(me, other)) faults.push(`${call.id} beside ${other.call.id}`);
    running.add(me);
    try {
      await turns(trial.takes);
      await dispatcher.dispatchAll(requestsOf(trial.nested ?? []), { parent: call });
      if (trial.fails) throw new Error('no');
      return 'done';
    } finally {
      running.delete(me);
    }
  };
  const tools = [
    defineTool({ name: 'safe', description: 'Safe.', inputSchema, concurrencySafe: true, resourceKey: keyOf, execute }),
    defineTool({ name: 'alone', description: 'Alone.', inputSchema, resourceKey: keyOf, execute }),
    defineTool({
      name: 'judged',
      description: 'It depends.',
      inputSchema,
      concurrencySafe: (input) => (input as unknown as Trial).isSafe,
      resourceKey: keyOf,
      execute,
    }),
  ];
  function keyOf(input: unknown): string | undefined {
    return (input as Trial).key;
  }
  const requestsOf = (trials: readonly Trial[]): readonly ToolCallRequest[] =>
    trials.map((trial) => ({ name: trial.kind, arguments: trial }));
  const hold: Middleware = async (call, next) => {
    await turns((call.input as unknown as Trial).held);
    return next(call);
  };
  let dispatcher: Dispatcher = createDispatcher();

  await fc.assert(
    fc.asyncProperty(
      fc.array(trialOf(2), { maxLength: 6 }),
      fc.constantFrom(1, 2, Number.POSITIVE_INFINITY),
      fc.constantFrom(1, 3, Number.POSITIVE_INFINITY),
      fc.option(fc.nat(20), { freq: 3 }),
      fc.boolean(),
      async (trials, concurrency, limit, abortsAfter, failFast) => {
        dispatcher = createDispatcher({ tools, middleware: [hold, schedule({ concurrency })] });
        const stop = new AbortController();
        const batch = dispatcher.dispatchAll(requestsOf(trials), { signal: stop.signal, concurrency: limit, failFast });
        if (abortsAfter !== null) {
          await turns(abortsAfter);
          stop.abort();
        }
        const results = await Promise.race([batch, turns(1000)]);
        stop.abort();
        // A tool that was stopped goes on by itself here, as it does not look at its signal.
        await turns(40);
        running.clear();
        expect(results).toHaveLength(trials.length);
        const after = await dispatcher.dispatchAll(
          requestsOf([
            { ...PLAIN, kind: 'alone' },
            { ...PLAIN, key: 'f' },
            { ...PLAIN, key: 'g' },
          ]),
        );
        expect(after.map(({ content }) => content)).toEqual(['done', 'done', 'done']);
        // What was aborted may still be at work beside what came after it.
        if (abortsAfter === null && !failFast) expect(faults.splice(0)).toEqual([]);
        faults.splice(0);
      },
    ),
    { numRuns: 150 },
  );
}, 60_000);

const PLAIN: Trial = { kind: 'safe', key: undefined, isSafe: true, takes: 0, held: 0, fails: false, nested: [] };
