import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createDispatcher, type Dispatcher, defineTool, type Middleware, type Tool } from 'toolonion';
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
