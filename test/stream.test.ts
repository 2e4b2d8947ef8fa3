import { AsyncLocalStorage } from 'node:async_hooks';
import { Readable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  after,
  type Content,
  type ContentPart,
  createDispatcher,
  type Dispatcher,
  defineTool,
  type Middleware,
  named,
  Passage,
  type StreamEvent,
  type StreamOptions,
  type ToolCall,
  type ToolDispatchResult,
  ToolFailure,
  ToolOutput,
} from 'toolonion';
import {
  allowAll,
  outputLimit,
  outputValidation,
  permission,
  redaction,
  standard,
  timeout,
  validation,
} from 'toolonion/middleware';
import { ManualClock, turns } from './support/manual-clock.ts';
import { dispatcherOf, type Execute, retry } from './support/one-tool.ts';
import { image, text } from './support/parts.ts';
import { comparable, streamed as drained, joined, normal, type Streamed } from './support/streamed.ts';
import { expectNothingUnhandled } from './support/unhandled.ts';

const unhandled = expectNothingUnhandled();

function streamed(dispatcher: Dispatcher, options?: StreamOptions): Promise<Streamed> {
  return drained(dispatcher.stream({ id: 'c1', name: 'tool' }, options));
}

function isDone(value: StreamEvent | ToolDispatchResult | undefined): value is ToolDispatchResult {
  return value !== undefined && 'content' in value;
}

async function* yieldsTwo() {
  yield 'a';
  yield 'b';
}

describe('a stream', () => {
  test('yields what the tool yields, as it comes, and returns the result', async () => {
    const { events, result } = await streamed(
      dispatcherOf(async function* () {
        yield 'a';
        yield text('b');
        yield [text('c'), image];
        yield 'd';
      }),
    );
    expect(events).toEqual([text('a'), text('b'), text('c'), image, text('d')]);
    expect(result).toMatchObject({ toolCallId: 'c1', content: [text('abc'), image, text('d')], isError: false });
  });

  test('begins with the first next, and not before', async () => {
    let begun = 0;
    const dispatcher = dispatcherOf(() => {
      begun++;
      return 'x';
    });
    const stream = dispatcher.stream({ name: 'tool' });
    await turns();
    expect(begun).toBe(0);
    await stream.next();
    expect(begun).toBe(1);
    const left = dispatcher.stream({ name: 'tool' });
    expect(await left.return()).toEqual({ done: true, value: undefined });
    expect(await left.next()).toEqual({ done: true, value: undefined });
    expect((await left.result).error).toMatchObject({ code: 'cancelled', executed: 'no' });
    expect(begun).toBe(1);
  });

  test('lets the tool go on only when somebody waits for its next part', async () => {
    let yields = 0;
    const stream = dispatcherOf(async function* () {
      for (;;) yield `${++yields}`;
    }).stream({ name: 'tool' });
    for (let taken = 1; taken <= 5; taken++) {
      expect((await stream.next()).value).toEqual(text(`${taken}`));
      await turns();
      expect(yields).toBe(taken);
    }
    await stream.return();
  });

  test('answers several who ask at once in their order', async () => {
    const stream = dispatcherOf(async function* () {
      yield 'a';
      yield 'b';
    }).stream({ name: 'tool' });
    const steps = await Promise.all(Array.from({ length: 5 }, () => stream.next()));
    expect(steps.map(({ done, value }) => [done, isDone(value) ? value.content : value])).toEqual([
      [false, text('a')],
      [false, text('b')],
      [true, 'ab'],
      [true, undefined],
      [true, undefined],
    ]);
  });

  test('of a tool that does not stream has its answer in one piece, whatever it is', async () => {
    for (const [answer, events] of [
      ['x', [text('x')]],
      ['', []],
      [undefined, []],
      [{ n: 1 }, [text('{"n":1}')]],
      [
        [text('a'), image],
        [text('a'), image],
      ],
      [ToolOutput.error('no'), [text('no')]],
    ] as const) {
      const { events: given, result } = await streamed(dispatcherOf(() => answer));
      expect(given).toEqual(events);
      expect(joined(given)).toEqual(result.content);
    }
  });

  test('of a call that is refused has the refusal', async () => {
    const dispatcher = dispatcherOf(() => 'x', validation(), permission({}));
    const { events, result } = await streamed(dispatcher);
    expect(result.error?.code).toBe('denied');
    expect(events).toEqual([text(result.content as string)]);
  });

  test.each<[string, unknown, unknown, string]>([
    ['no call', null, undefined, 'It must be an object with a name.'],
    ['no name', {}, undefined, 'The call names no tool.'],
    ['a wrong option', { name: 'tool' }, { signal: 7 }, 'Option "signal" of stream must be an AbortSignal'],
    ['observers beside it', { name: 'tool' }, { onPart: () => {} }, 'stream has no option "onPart"'],
  ])('of %s says what was wrong', async (_, request, options, message) => {
    const stream = dispatcherOf(() => 'x').stream(request as never, options as never);
    const first = await stream.next();
    expect(first.value).toMatchObject({ type: 'text', text: expect.stringContaining(message) });
    expect(await stream.next()).toMatchObject({ done: true, value: { error: { code: 'invalid_call' } } });
  });

  test('of a tool that suspends ends with the signal', async () => {
    const { result } = await streamed(dispatcherOf((_, call) => call.suspend({ reason: 'ask' })));
    expect(result.control).toMatchObject({ type: 'suspend' });
  });

  test('has its result for whoever iterates', async () => {
    const stream = dispatcherOf(yieldsTwo).stream({ name: 'tool' });
    let count = 0;
    for await (const _ of stream) count++;
    expect(count).toBe(2);
    expect(await stream.result).toMatchObject({ content: 'ab' });
    const left = dispatcherOf(yieldsTwo).stream({ name: 'tool' });
    for await (const _ of left) break;
    expect(await left.result).toMatchObject({ error: { code: 'cancelled' } });
  });

  test('is no promise, so that it can be handed through async functions', async () => {
    const stream = await (async () => dispatcherOf(() => 'x').stream({ name: 'tool' }))();
    expect((await stream.next()).value).toEqual(text('x'));
  });
});

describe('a failure half-way', () => {
  const failing: readonly (readonly [string, Execute, string])[] = [
    [
      'that is thrown',
      async function* () {
        yield 'a';
        yield 'b';
        throw new ToolFailure('Broken.');
      },
      'ab\n\nBroken.',
    ],
    [
      'that is yielded',
      async function* () {
        yield 'a';
        yield new ToolFailure('Broken.');
      },
      'a\n\nBroken.',
    ],
    [
      'that is returned',
      async function* () {
        yield 'a';
        return new ToolFailure('Broken.');
      },
      'a\n\nBroken.',
    ],
    [
      'of a synchronous generator',
      function* () {
        yield 'a';
        throw new ToolFailure('Broken.');
      },
      'a\n\nBroken.',
    ],
    [
      'of a promise that is yielded',
      function* () {
        yield 'a';
        yield Promise.reject(new ToolFailure('Broken.'));
      },
      'a\n\nBroken.',
    ],
  ];

  test.each(failing)('%s keeps what came before it, streamed or not', async (_, execute, content) => {
    const dispatcher = dispatcherOf(execute);
    const { events, result } = await streamed(dispatcher);
    expect(result).toMatchObject({ content, isError: true, error: { message: 'Broken.', executed: 'yes' } });
    expect(joined(events)).toBe(content);
    expect(comparable(await dispatcher.dispatch({ id: 'c1', name: 'tool' }))).toEqual(comparable(result));
  });

  test('keeps media as well', async () => {
    const { result, events } = await streamed(
      dispatcherOf(async function* () {
        yield image;
        throw new ToolFailure('Broken.');
      }),
    );
    expect(result.content).toEqual([image, text('\n\nBroken.')]);
    expect(joined(events)).toEqual(result.content);
  });

  test('at a time limit keeps what was delivered, and tells the limit', async () => {
    const clock = new ManualClock();
    for (const stuck of [true, false]) {
      const dispatcher = dispatcherOf(
        async function* () {
          yield 'line 1\n';
          if (stuck) await new Promise(() => {});
          for (;;) {
            await turns(1);
            yield '.';
          }
        },
        timeout({ limitMs: 100 }),
      ).with({ clock });
      const pending = streamed(dispatcher);
      await clock.advance(100);
      await turns();
      const { result, events } = await pending;
      expect(result.error).toMatchObject({ code: 'timeout', executed: stuck ? 'unknown' : 'stopped' });
      expect(result.content).toMatch(/^line 1\n\.*\n\nTool "tool" did not finish within its limit of 100 ms\./);
      expect(joined(events)).toBe(result.content);
    }
  });
});

describe('leaving early', () => {
  function closing(stuck = false) {
    const seen: string[] = [];
    const dispatcher = dispatcherOf(async function* (_, call) {
      try {
        yield 'a';
        if (stuck) await new Promise(() => {});
        yield 'b';
        seen.push('went on');
      } finally {
        seen.push(`closed, aborted: ${call.aborted}`);
      }
    });
    return { seen, dispatcher };
  }

  test('by break closes the tool, once, before the loop goes on', async () => {
    const { seen, dispatcher } = closing();
    for await (const event of dispatcher.stream({ name: 'tool' })) {
      expect(event).toEqual(text('a'));
      break;
    }
    expect(seen).toEqual(['closed, aborted: true']);
  });

  test('by a throw in the loop does as well', async () => {
    const { seen, dispatcher } = closing();
    await expect(
      (async () => {
        for await (const _ of dispatcher.stream({ name: 'tool' })) throw new Error('mine');
      })(),
    ).rejects.toThrow('mine');
    expect(seen).toEqual(['closed, aborted: true']);
  });

  test('G16: from a tool that is stuck takes a few turns and no longer; its call is told as unknown', async () => {
    const late: (readonly [string | undefined, string | undefined])[] = [];
    const { dispatcher } = closing(true);
    const ends: ToolDispatchResult[] = [];
    const watching = dispatcher.with({
      middleware: [
        (call, next) =>
          after(next(call), (outcome) => {
            late.push([outcome.error?.code, outcome.error?.executed]);
            return outcome;
          }),
      ],
    });
    const stream = watching.stream({ name: 'tool' });
    await stream.next();
    const waiting = stream.next();
    expect(await stream.return(ends[0] as never)).toEqual({ done: true, value: undefined });
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    expect(late).toEqual([['cancelled', 'unknown']]);
  });

  test('by throw rejects with what was given', async () => {
    const { seen, dispatcher } = closing();
    const stream = dispatcher.stream({ name: 'tool' });
    await stream.next();
    await expect(stream.throw(new Error('mine'))).rejects.toThrow('mine');
    expect(seen).toEqual(['closed, aborted: true']);
  });

  test('by disposal, twice, and after the end is harmless', async () => {
    const { seen, dispatcher } = closing();
    const stream = dispatcher.stream({ name: 'tool' });
    await stream.next();
    await stream[Symbol.asyncDispose]();
    await stream.return();
    expect(seen).toEqual(['closed, aborted: true']);
    const whole = dispatcherOf(() => 'x').stream({ name: 'tool' });
    await whole.next();
    expect((await whole.next()).done).toBe(true);
    expect(await whole.return()).toEqual({ done: true, value: undefined });
  });

  test('leaves no listener on the signal of the caller, and other streams as they are', async () => {
    const { dispatcher } = closing();
    const controller = new AbortController();
    let listeners = 0;
    const { addEventListener, removeEventListener } = controller.signal;
    Object.assign(controller.signal, {
      addEventListener: (...given: Parameters<typeof addEventListener>) => {
        listeners++;
        addEventListener.apply(controller.signal, given);
      },
      removeEventListener: (...given: Parameters<typeof removeEventListener>) => {
        listeners--;
        removeEventListener.apply(controller.signal, given);
      },
    });
    const other = dispatcher.stream({ name: 'tool' });
    await other.next();
    const stream = dispatcher.stream({ name: 'tool' }, { signal: controller.signal });
    await stream.next();
    expect(listeners).toBe(1);
    await stream.return();
    expect(listeners).toBe(0);
    expect((await other.next()).value).toEqual(text('b'));
    expect((await other.next()).done).toBe(true);
  });
});

describe('an abort', () => {
  test('G16: at every point ends the stream with its result, and closes a suspended generator once', async () => {
    for (let point = 0; point <= 6; point++) {
      const controller = new AbortController();
      let closed = 0;
      const dispatcher = dispatcherOf(async function* () {
        try {
          for (let count = 0; count < 3; count++) {
            yield `${count}`;
            await turns(1);
          }
        } finally {
          closed++;
        }
      });
      const stream = dispatcher.stream({ name: 'tool' }, { signal: controller.signal });
      const events: StreamEvent[] = [];
      let result: ToolDispatchResult | undefined;
      for (let step = 0; result === undefined; step++) {
        if (step * 2 === point) controller.abort();
        const asked = stream.next();
        if (step * 2 + 1 === point) controller.abort();
        const { done, value } = await asked;
        if (done === true) result = value;
        else events.push(value);
      }
      expect(result.error?.code).toBe('cancelled');
      expect(joined(events)).toBe(result.content);
      await turns();
      expect(closed).toBeLessThanOrEqual(1);
      expect(unhandled).toEqual([]);
    }
  });

  test('releases a consumer who waits on a tool that is stuck', async () => {
    const controller = new AbortController();
    const stream = dispatcherOf(async function* () {
      await new Promise(() => {});
      yield 'a';
    }).stream({ name: 'tool' }, { signal: controller.signal });
    const waiting = stream.next();
    controller.abort();
    const refusal = await waiting;
    expect(refusal.value).toMatchObject({ type: 'text', text: expect.stringContaining('may still be running') });
    expect(await stream.next()).toMatchObject({ done: true, value: { error: { executed: 'unknown' } } });
  });

  test('while nobody takes the part closes the tool all the same', async () => {
    const controller = new AbortController();
    let closed = 0;
    const stream = dispatcherOf(async function* () {
      try {
        yield 'a';
        yield 'b';
      } finally {
        closed++;
      }
    }).stream({ name: 'tool' }, { signal: controller.signal });
    expect((await stream.next()).value).toEqual(text('a'));
    controller.abort();
    await turns();
    expect(closed).toBe(1);
    expect((await stream.next()).value).toMatchObject({ type: 'text' });
    expect(await stream.next()).toMatchObject({
      done: true,
      value: { error: { code: 'cancelled', executed: 'stopped' } },
    });
  });

  test('in the tool’s finally and in its listeners each caller’s AsyncLocalStorage is its own', async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen: string[] = [];
    const dispatcher = dispatcherOf(async function* (_, call) {
      call.signal.addEventListener('abort', () => seen.push(`listener ${storage.getStore()}`));
      try {
        yield 'a';
        yield 'b';
      } finally {
        seen.push(`finally ${storage.getStore()}`);
      }
    });
    const controller = new AbortController();
    const stream = await storage.run('caller', async () => {
      const own = dispatcher.stream({ name: 'tool' }, { signal: controller.signal });
      await own.next();
      return own;
    });
    storage.run('somebody else', () => controller.abort());
    await turns();
    expect(seen.sort()).toEqual(['finally caller', 'listener caller']);
    await stream.return();
  });
});

describe('signs of life', () => {
  const reporting: Execute = async function* (_, call) {
    call.report({ message: 'begun' });
    yield 'a';
    call.report({ progress: 1, total: 2 });
    yield 'b';
    setImmediate(() => call.report({ message: 'too late' }));
  };

  test('come between the parts, in order, and end with the call', async () => {
    const { events } = await streamed(dispatcherOf(reporting));
    await turns();
    expect(events).toEqual([
      { type: 'progress', message: 'begun' },
      text('a'),
      { type: 'progress', progress: 1, total: 2 },
      text('b'),
    ]);
  });

  test('never hold up the tool: of those nobody takes the last hundred are kept', async () => {
    const stream = dispatcherOf(async (_, call) => {
      for (let count = 0; count < 1000; count++) call.report({ progress: count });
      return 'x';
    }).stream({ name: 'tool' });
    const steps: unknown[] = [await stream.next()];
    await turns();
    for (let step = await stream.next(); step.done !== true; step = await stream.next()) steps.push(step.value);
    expect(steps).toHaveLength(102);
    expect(steps[1]).toEqual({ type: 'progress', progress: 900 });
    expect(steps.at(-1)).toEqual(text('x'));
  });

  test('data that looks like one is data', async () => {
    const { events, result } = await streamed(
      dispatcherOf(async function* () {
        yield { type: 'progress', message: 'mine' };
      }),
    );
    expect(events).toEqual([text('{"type":"progress","message":"mine"}')]);
    expect(result.structured).toEqual({ type: 'progress', message: 'mine' });
  });
});

describe('a stream of another call', () => {
  test('is passed on by yield*, parts, signs of life, result and all', async () => {
    const inner = defineTool({
      name: 'inner',
      description: 'Streams.',
      execute: async function* (_, call) {
        yield 'a';
        call.report({ message: 'half-way' });
        yield image;
        yield 'b';
      },
    });
    const outer = defineTool({
      name: 'tool',
      description: 'Passes it on.',
      execute: (_, call) => both.stream({ name: 'inner' }, { parent: call }),
    });
    const around = defineTool({
      name: 'around',
      description: 'Adds to it.',
      execute: async function* (_, call) {
        yield 'first ';
        yield* both.stream({ name: 'inner' }, { parent: call });
        yield ' last';
      },
    });
    const both: Dispatcher = createDispatcher({ tools: [inner, outer, around] });
    const { events, result } = await streamed(both);
    expect(events).toEqual([text('a'), { type: 'progress', message: 'half-way' }, image, text('b')]);
    expect(result).toMatchObject({ resolvedToolName: 'tool', content: [text('a'), image, text('b')] });
    expect((await both.dispatch({ name: 'around' })).content).toEqual([text('first a'), image, text('b last')]);
  });

  test('ends with the call around it', async () => {
    let closed = 0;
    const inner = defineTool({
      name: 'inner',
      description: 'Streams for ever.',
      execute: async function* () {
        try {
          for (;;) yield 'x';
        } finally {
          closed++;
        }
      },
    });
    const outer = defineTool({
      name: 'tool',
      description: 'Passes it on.',
      execute: (_, call) => both.stream({ name: 'inner' }, { parent: call }),
    });
    const both: Dispatcher = createDispatcher({ tools: [inner, outer] });
    for await (const _ of both.stream({ name: 'tool' })) break;
    await turns();
    expect(closed).toBe(1);
  });
});

describe('dispatch and stream', () => {
  const tools: Readonly<Record<string, Execute>> = {
    'no parts': async function* () {},
    'nothing but empty texts': async function* () {
      yield '';
      yield '';
    },
    nulls: async function* () {
      yield null;
      yield undefined;
      yield 'x';
    },
    'one text': async function* () {
      yield 'a';
    },
    'one piece of data': async function* () {
      yield { n: 1 };
    },
    'rows of data with nothing between': async function* () {
      yield { n: 1 };
      yield undefined;
      yield '';
      yield { n: 2 };
    },
    'rows of data': async function* () {
      yield { n: 1 };
      yield [2];
      yield 'text';
      yield 3;
    },
    'two images at once': async function* () {
      yield [image, image];
    },
    'two images, one after the other': async function* () {
      yield image;
      yield '';
      yield image;
    },
    'text around an image': async function* () {
      yield 'a';
      yield [text('b'), image, text('c')];
      yield 'd';
    },
    'an output that fails softly': async function* () {
      yield 'a';
      yield ToolOutput.error('no');
    },
    'a return that replaces': async function* () {
      yield 'a';
      return 'whole';
    },
    'data returned': async function* () {
      yield 'a';
      return { n: 1 };
    },
    'a synchronous generator': function* () {
      yield 'a';
      yield Promise.resolve('b');
    },
    'a stream of Node': () => Readable.from(['a', 'b']),
    'a text': () => 'a',
    'a promise of a generator': async () =>
      (async function* () {
        yield 'a';
        yield 'b';
      })(),
    'a throw before the first part': async function* () {
      await turns(1);
      throw new ToolFailure('No.');
    },
    'two thousand parts': function* () {
      for (let count = 0; count < 2000; count++) yield `${count} `;
    },
  };

  const onions: Readonly<Record<string, readonly Middleware[]>> = {
    'no layer': [],
    'the standard layers': standard({ permission: { check: allowAll }, logging: false }),
    'a layer of async and await': [async (call, next) => ({ ...(await next(call)) })],
  };

  const rows = Object.keys(onions).flatMap((onion) => Object.keys(tools).map((tool) => [onion, tool] as const));

  test.each(rows)('give the same result through %s for %s, and its parts are its content', async (onion, tool) => {
    const dispatcher = dispatcherOf(tools[tool] as Execute, ...(onions[onion] ?? []));
    const { events, result } = await streamed(dispatcher);
    expect(comparable(await dispatcher.dispatch({ id: 'c1', name: 'tool' }))).toEqual(comparable(result));
    if (tool === 'a return that replaces' || tool === 'data returned') expect(events).toEqual([text('a')]);
    else expect(joined(events)).toEqual(result.content);
  });

  test('agree whatever is yielded, whatever comes of it', async () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom<unknown>(image, null, undefined, { n: 1 }, [1, 2], text('t'), ToolOutput.error('no'), 7, [
        image,
        text('x'),
      ]),
    );
    const end = fc.constantFrom<unknown>(undefined, undefined, 'whole', { data: 1 }, new ToolFailure('Broken.'));
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 6 }), end, fc.boolean(), async (pieces, last, throws) => {
        const dispatcher = dispatcherOf(async function* () {
          yield* pieces;
          if (throws && last instanceof Error) throw last;
          return last;
        });
        const { events, result } = await streamed(dispatcher);
        expect(comparable(await dispatcher.dispatch({ id: 'c1', name: 'tool' }))).toEqual(comparable(result));
        if (last === undefined || result.error !== undefined) expect(joined(events)).toEqual(normal(result.content));
      }),
      { numRuns: 300 },
    );
  });
});

describe('layers', () => {
  test('see a streaming call end like any other, without a line of their own', async () => {
    const seen: unknown[] = [];
    const watch: Middleware = async (call, next) => {
      const outcome = await next(call);
      seen.push(outcome.content);
      return outcome;
    };
    await streamed(
      dispatcherOf(async function* () {
        yield 'a';
        yield 'b';
      }, watch),
    );
    expect(seen).toEqual(['ab']);
  });

  test('can change the parts by a channel of their own', async () => {
    class Loud extends Passage {
      override part(part: ContentPart, call: ToolCall) {
        return super.part(part.type === 'text' ? text(part.text.toUpperCase()) : part, call);
      }

      override done(content: Content) {
        super.done(String(content).toUpperCase());
      }
    }
    const loud: Middleware = (call, next) =>
      after(next(call.with({ channel: new Loud(call.channel) })), (outcome) => ({
        ...outcome,
        content: String(outcome.content).toUpperCase(),
      }));
    const { events, result } = await streamed(
      dispatcherOf(async function* () {
        yield 'a';
        yield 'b';
      }, loud),
    );
    expect(events).toEqual([text('A'), text('B')]);
    expect(result.content).toBe('AB');
  });

  test('that add to an answer add to the stream', async () => {
    const sign: Middleware = (call, next) =>
      after(next(call), (outcome) => ({ ...outcome, content: `${outcome.content}, signed` }));
    const { events, result } = await streamed(
      dispatcherOf(async function* () {
        yield 'a';
        yield 'b';
      }, sign),
    );
    expect(events).toEqual([text('a'), text('b'), text(', signed')]);
    expect(joined(events)).toBe(result.content);
  });

  test('that answer in another way have the last word in the result', async () => {
    const replace: Middleware = (call, next) => after(next(call), (outcome) => ({ ...outcome, content: 'other' }));
    const { events, result } = await streamed(
      dispatcherOf(async function* () {
        yield 'a';
      }, replace),
    );
    expect(events).toEqual([text('a')]);
    expect(result.content).toBe('other');
  });

  test.each<[string, () => never | Promise<never>]>([
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no'))],
  ])('whose channel %s cost no answer, and are told of', async (_, part) => {
    const warnings: string[] = [];
    const dispatcher = dispatcherOf(
      async function* () {
        yield 'a';
        yield 'b';
      },
      (call, next) => next(call.with({ channel: { part, progress: () => {}, done: () => {} } })),
    ).with({ onWarning: (message) => warnings.push(message) });
    const { result } = await streamed(dispatcher);
    expect(result.content).toBe('ab');
    expect(warnings).toEqual(['The channel of a layer failed']);
  });

  test('that call next again run no tool twice once a part of its answer has left', async () => {
    let runs = 0;
    const dispatcher = dispatcherOf(async function* () {
      runs++;
      if (runs < 3) yield `run ${runs}`;
      throw new ToolFailure(`Broken in run ${runs}.`);
    }, retry);
    const { events, result } = await streamed(dispatcher);
    expect(runs).toBe(1);
    expect(result).toMatchObject({ content: 'run 1\n\nBroken in run 1.', isError: true });
    expect(joined(events)).toBe(result.content);
    runs = 0;
    expect((await dispatcher.dispatch({ name: 'tool' })).content).toBe('run 2\n\nBroken in run 2.');
    expect(runs).toBe(2);
  });

  test('may run a tool again where only its signs of life are wanted', async () => {
    let runs = 0;
    const dispatcher = dispatcherOf(async function* () {
      yield `run ${++runs}`;
      if (runs === 1) throw new ToolFailure('Broken.');
    }, retry);
    expect((await dispatcher.dispatch({ name: 'tool' }, { onProgress: () => {} })).content).toBe('run 2');
  });

  test('may pass parts of their own on before the tool runs', async () => {
    const heading: Middleware = async (call, next) => {
      call.channel?.part(text('# '), call);
      const outcome = await next(call);
      return { ...outcome, content: `# ${outcome.content}` };
    };
    const { events, result } = await streamed(
      dispatcherOf(async function* () {
        yield 'a';
        yield 'b';
      }, heading),
    );
    expect(joined(events)).toBe('# ab');
    expect(result.content).toBe('# ab');
  });

  test('that check data show none of it before it is checked', async () => {
    const tool = defineTool({
      name: 'tool',
      description: 'Promises a number.',
      outputSchema: { type: 'object', properties: { n: { type: 'number' } } },
      execute: async function* () {
        yield { n: 'secret' };
      },
    });
    const { events, result } = await streamed(createDispatcher({ tools: [tool], middleware: [outputValidation()] }));
    expect(result.error?.code).toBe('output_invalid');
    expect(JSON.stringify(events)).not.toContain('secret"');
    expect(joined(events)).toBe(result.content);
  });

  test.each<[string, Middleware]>([
    ['redaction', redaction()],
    ['outputLimit', outputLimit({ limit: 100 })],
  ])('that hold parts back, as %s does, forget those of an attempt that is made again', async (_, layer) => {
    let runs = 0;
    const { events, result } = await streamed(
      dispatcherOf(
        async function* () {
          yield `${'[1, '.repeat(3)} run ${++runs}`;
          if (runs === 1) throw new ToolFailure('Broken.');
          yield '\nline '.repeat(400);
        },
        layer,
        retry,
      ),
    );
    expect(runs).toBe(2);
    expect(JSON.stringify(events)).not.toContain('run 1');
    expect(joined(events)).toBe(result.content);
  });

  test('may run a tool again that has given nothing yet', async () => {
    let runs = 0;
    const { events, result } = await streamed(
      dispatcherOf(async function* () {
        if (runs++ === 0) throw new ToolFailure('Broken.');
        yield 'a';
      }, retry),
    );
    expect(events).toEqual([text('a')]);
    expect(result.content).toBe('a');
  });
});

describe('onPart', () => {
  test('takes the parts of each call of a batch, as they come, beside each other', async () => {
    const parts: string[] = [];
    const slow = defineTool({
      name: 'tool',
      description: 'Streams.',
      concurrencySafe: true,
      execute: async function* () {
        for (const word of ['a', 'b']) {
          yield word;
          await turns(1);
        }
      },
    });
    const results = await createDispatcher({ tools: [slow] }).dispatchAll(
      ['x', 'y', 'z'].map((id) => ({ id, name: id === 'z' ? 'gone' : 'tool' })),
      { onPart: (part, call) => parts.push(`${call.id} ${part.type === 'text' ? part.text.slice(0, 5) : ''}`) },
    );
    expect(parts.sort()).toEqual(['x a', 'x b', 'y a', 'y b', 'z There']);
    expect(results.map(({ content }) => String(content).slice(0, 5))).toEqual(['ab', 'ab', 'There']);
  });

  test('is waited for, so that a tool is no quicker than who takes its parts', async () => {
    let open: () => void = () => {};
    let yields = 0;
    const pending = dispatcherOf(async function* () {
      for (; yields < 3; ) yield `${++yields}`;
    }).dispatch({ name: 'tool' }, { onPart: () => new Promise<void>((resolve) => (open = resolve)) });
    for (let taken = 1; taken <= 3; taken++) {
      await turns();
      expect(yields).toBe(taken);
      open();
    }
    expect((await pending).content).toBe('123');
  });

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no'))],
  ])('one that %s costs no answer', async (_, onPart) => {
    const warnings: string[] = [];
    const dispatcher = dispatcherOf(async function* () {
      yield 'a';
      yield 'b';
    }).with({ onWarning: (message) => warnings.push(message) });
    expect((await dispatcher.dispatch({ name: 'tool' }, { onPart })).content).toBe('ab');
    expect(warnings).toEqual(['onPart failed', 'onPart failed']);
  });

  test('one that hangs holds up its own call only, which can still be aborted', async () => {
    const controller = new AbortController();
    let closed = 0;
    const dispatcher = dispatcherOf(async function* () {
      try {
        yield 'a';
      } finally {
        closed++;
      }
    });
    const stuck = dispatcher.dispatch(
      { name: 'tool' },
      { onPart: () => new Promise(() => {}), signal: controller.signal },
    );
    expect((await dispatcher.dispatch({ name: 'tool' })).content).toBe('a');
    controller.abort();
    expect(await stuck).toMatchObject({ error: { code: 'cancelled', executed: 'stopped' } });
    await turns();
    expect(closed).toBe(2);
  });
});

test('a thousand streams at once do not mix', async () => {
  const counting = defineTool({
    name: 'tool',
    description: 'Counts.',
    inputSchema: { type: 'object', properties: { from: { type: 'number' } }, required: ['from'] },
    execute: async function* ({ from }) {
      for (let count = from; count < from + 5; count++) {
        yield `${count} `;
        if (count % 3 === 0) await turns(1);
      }
    },
  });
  const dispatcher = createDispatcher({
    tools: [counting],
    middleware: [named('through', async (call, next) => next(call))],
  });
  const texts = await Promise.all(
    Array.from({ length: 1000 }, async (_, from) => {
      let all = '';
      for await (const event of dispatcher.stream({ name: 'tool', arguments: { from } }))
        all += event.type === 'text' ? event.text : '';
      return all;
    }),
  );
  expect(texts).toEqual(
    Array.from({ length: 1000 }, (_, from) => [0, 1, 2, 3, 4].map((more) => `${from + more} `).join('')),
  );
});
