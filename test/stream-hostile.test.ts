import { describe, expect, test } from '@jest/globals';
import {
  type Channel,
  type ContentPart,
  createDispatcher,
  type Dispatcher,
  defineTool,
  type Middleware,
  type StreamEvent,
  type ToolCall,
  ToolFailure,
} from 'toolonion';
import { outputLimit, redaction } from 'toolonion/middleware';
import { turns } from './support/manual-clock.ts';
import { dispatcherOf, type Execute, retry } from './support/one-tool.ts';
import { image, text } from './support/parts.ts';
import { bothWays, joined, normal, streamed } from './support/streamed.ts';
import { expectNothingUnhandled } from './support/unhandled.ts';

expectNothingUnhandled();

const request = { id: 'c1', name: 'tool' };

/** The layers that hold parts back. */
const holding: readonly (readonly [name: string, layer: Middleware])[] = [
  ['outputLimit', outputLimit()],
  ['redaction', redaction()],
];

function explode(): never {
  throw new Error('hostile');
}

describe('a tool', () => {
  /** JSON as far as anybody asks, but it does not tell its prototype. */
  const shy = () => new Proxy({ a: 1 }, { getPrototypeOf: explode });

  test.each<[string, Execute]>([
    ['returned', shy],
    ['promised', async () => shy()],
    [
      'returned by a generator',
      async function* () {
        yield 'a';
        return shy();
      },
    ],
  ])('whose answer does not tell its prototype is answered for, be it %s', async (_, execute) => {
    const result = await dispatcherOf(execute).dispatch(request);
    expect(result).toMatchObject({ isError: false, structured: { a: 1 } });
  });

  test('that ends with itself, again and again, lets the event loop turn', async () => {
    let hasTurned = false;
    let steps = 0;
    setImmediate(() => {
      hasTurned = true;
    });
    const circular = {
      [Symbol.asyncIterator]: () => circular,
      next: () => ({ done: true, value: hasTurned || ++steps === 100_000 ? 'end' : circular }),
    };
    expect((await dispatcherOf(() => circular).dispatch(request)).content).toBe('end');
    expect(steps).toBeLessThan(100_000);
  });

  test('that is a synchronous generator is closed where what it yields cannot be awaited', async () => {
    let closed = 0;
    const { content } = await dispatcherOf(function* () {
      try {
        yield {
          then: () => {
            throw new ToolFailure('Broken.');
          },
        };
      } finally {
        closed++;
      }
    }).dispatch(request);
    await turns();
    expect([content, closed]).toEqual(['Broken.', 1]);
  });

  test('that is a web stream is cancelled by an abort, though it is stuck in a read', async () => {
    const controller = new AbortController();
    let cancelled = 0;
    const web = new ReadableStream({
      start: (queue) => queue.enqueue('a'),
      cancel: () => {
        cancelled++;
      },
    });
    const pending = streamed(dispatcherOf(() => web).stream(request, { signal: controller.signal }));
    await turns();
    expect(cancelled).toBe(0);
    controller.abort();
    const { events, result } = await pending;
    expect(cancelled).toBe(1);
    expect(result.error).toMatchObject({ code: 'cancelled', executed: 'stopped' });
    expect(joined(events)).toBe(result.content);
  });

  test('that is aborted among the parts of one yield has those in its content that were passed on', async () => {
    const controller = new AbortController();
    const stream = dispatcherOf(async function* () {
      yield [text('a'), image, image, text('b')];
    }).stream(request, { signal: controller.signal });
    const first = await stream.next();
    controller.abort();
    await turns();
    const { events, result } = await streamed(stream);
    expect(joined([first.value as ContentPart, ...events])).toEqual(normal(result.content));
  });

  test.each<[string, readonly string[]]>([
    ['first', []],
    ['after a part', ['a']],
  ])('that yields the result of a suspended call %s is suspended', async (_, before) => {
    const inner = defineTool({
      name: 'inner',
      description: 'Asks.',
      execute: (_, call) => call.suspend({ reason: 'why' }),
    });
    const outer = defineTool({
      name: 'tool',
      description: 'Passes it on.',
      execute: async function* (_, call) {
        yield* before;
        yield await both.dispatch({ name: 'inner' }, { parent: call });
      },
    });
    const both: Dispatcher = createDispatcher({ tools: [inner, outer] });
    expect((await both.dispatch(request)).control).toMatchObject({ type: 'suspend', request: { reason: 'why' } });
  });

  test('that is suspended half-way has its reason for content, whatever has left', async () => {
    const { events, result, compared } = await bothWays(
      dispatcherOf(async function* (_, call) {
        yield 'a';
        yield call.suspend({ reason: 'why' });
      }),
      request,
    );
    expect(events).toEqual([text('a')]);
    expect(result).toMatchObject({ content: 'why', control: { type: 'suspend' } });
    expect(compared[0]).toEqual(compared[1]);
  });

  test('whose sign of life looks like a part has given no part', async () => {
    const { events, result } = await streamed(
      dispatcherOf((_, call) => {
        call.report({ type: 'text', text: 'mine' } as never);
        return 'x';
      }).stream(request),
    );
    expect(events).toEqual([{ type: 'progress', text: 'mine' }, text('x')]);
    expect(result.content).toBe('x');
  });
});

describe('a layer', () => {
  const yields: Execute = async function* () {
    yield 'a';
    yield image;
    yield 'b';
  };
  const whole = [text('a'), image, text('b')];

  /** A layer whose channel does what is told, and else nothing. */
  const channelled =
    (
      methods: { readonly [Method in keyof Channel]?: (...given: Parameters<Channel[Method]>) => unknown },
    ): Middleware =>
    (call, next) =>
      next(
        call.with({ channel: { part: () => undefined, progress: () => {}, done: () => {}, ...methods } as Channel }),
      );

  test('outside the tool that hangs leaves nothing of the answer in the result: it may be the one that cleans it', async () => {
    const controller = new AbortController();
    const stuck: Middleware = async (call, next) => {
      await next(call);
      return new Promise(() => {});
    };
    const pending = streamed(dispatcherOf(yields, stuck).stream(request, { signal: controller.signal }));
    await turns();
    controller.abort();
    const { events, result } = await pending;
    expect(joined(events)).toEqual(whole);
    expect(result.error).toMatchObject({ code: 'cancelled' });
    expect(result.content).toBe(result.error?.message);
  });

  test.each(holding)('may call again what has given nothing, though %s is inside', async (_, layer) => {
    let runs = 0;
    const dispatcher = dispatcherOf(
      () => {
        if (runs++ % 2 === 0) throw new ToolFailure('Broken.');
        return 'fine';
      },
      retry,
      layer,
    );
    const { events, result, compared } = await bothWays(dispatcher, request);
    expect(events).toEqual([text('fine')]);
    expect(result.content).toBe('fine');
    expect(compared[0]).toEqual(compared[1]);
  });

  test.each<[string, unknown]>([
    ['null', null],
    ['a number', 1],
    ['an object', {}],
    ['what throws when it is awaited', { then: explode }],
    ['what throws when it is asked', Object.defineProperty({}, 'then', { get: explode })],
  ])('whose channel gives %s costs no answer', async (_, given) => {
    const quiet = dispatcherOf(yields, channelled({ part: () => given })).with({ onWarning: () => {} });
    expect((await quiet.dispatch(request)).content).toEqual(whole);
  });

  const faults: readonly (readonly [string, Middleware])[] = [
    ['throws where it gets a part', channelled({ part: explode })],
    ['rejects where it gets a part', channelled({ part: async () => explode() })],
    ['throws where it hears of the end', channelled({ done: explode })],
    ['rejects where it hears of the end', channelled({ done: async () => explode() })],
  ];
  const faultsOutside = holding.flatMap(([name, layer]) =>
    faults.map(([fault, outside]) => ({ name, layer, fault, outside })),
  );

  test.each(faultsOutside)('whose channel $fault costs no answer of $name, inside', async ({ layer, outside }) => {
    const warnings: string[] = [];
    const dispatcher = dispatcherOf(yields, outside, layer);
    const { content } = await dispatcher.with({ onWarning: (message) => warnings.push(message) }).dispatch(request);
    await turns();
    expect(content).toEqual(whole);
    expect(new Set(warnings)).toEqual(new Set(['The channel of a layer failed']));
  });

  test('whose channel calls back twice has the tool take one step at a time', async () => {
    const parts: ContentPart[] = [];
    const twice = channelled({
      part: (part) => {
        parts.push(part);
        return { then: (taken: () => void) => [taken(), taken()] };
      },
    });
    let left = 3;
    const steps = atOnce();
    const iterator = {
      [Symbol.asyncIterator]: () => iterator,
      next: () => steps.during(async () => ({ done: left-- === 0, value: 'x' })),
    };
    await dispatcherOf(() => iterator, twice).dispatch(request);
    expect(steps.most).toBe(1);
    expect(parts).toHaveLength(3);
  });

  test('that keeps the channel of one call for another mixes no parts', async () => {
    const tools = ['tool', 'other'].map((name) =>
      defineTool({
        name,
        description: 'Yields its name.',
        execute: async function* () {
          yield name;
          await turns(5);
          yield name;
        },
      }),
    );
    let kept: ToolCall['channel'];
    const keeping: Middleware = (call, next) => {
      kept ??= call.channel;
      return next(kept === undefined ? call : call.with({ channel: kept }));
    };
    const dispatcher = createDispatcher({ tools, middleware: [keeping] });
    const pending = streamed(dispatcher.stream({ name: 'tool' }));
    await turns(1);
    await dispatcher.dispatch({ name: 'other' });
    expect((await pending).events).toEqual([text('tool'), text('tool')]);
  });

  test.each(holding)('that holds parts back, as %s does, has onPart take one at a time', async (_, layer) => {
    const takes = atOnce();
    const dispatcher = dispatcherOf(async function* () {
      yield '[1';
      yield image;
      yield 'b';
    }, layer);
    await dispatcher.dispatch(request, { onPart: () => takes.during(async () => {}) });
    expect(takes.most).toBe(1);
  });

  test.each(holding)(
    'that holds parts back, as %s does, passes none twice where the call is aborted on the way',
    async (_, layer) => {
      const controller = new AbortController();
      const parts: ContentPart[] = [];
      const takes: (() => void)[] = [];
      const outside = channelled({
        part: (part) => {
          parts.push(part);
          return new Promise<void>((resolve) => {
            takes.push(resolve);
          });
        },
      });
      const dispatcher = dispatcherOf(
        async function* () {
          yield 'a';
          yield image;
          yield 'b';
        },
        outside,
        layer,
      );
      const pending = dispatcher.dispatch(request, { signal: controller.signal });
      await turns();
      controller.abort();
      await pending;
      for (const take of takes) take();
      await turns();
      expect(parts).toEqual([...new Set(parts)]);
    },
  );

  /** Counts what goes on at once. */
  function atOnce() {
    let running = 0;
    const counter = {
      most: 0,
      async during<Value>(work: () => Promise<Value>): Promise<Value> {
        counter.most = Math.max(counter.most, ++running);
        await turns(1);
        running--;
        return work();
      },
    };
    return counter;
  }
});

describe('a consumer', () => {
  test('who leaves from within the tool, while the stream begins, aborts it', async () => {
    let yields = 0;
    const stream = dispatcherOf(async function* () {
      void stream.return();
      for (; yields < 3000; yields++) yield 'x';
    }).stream(request);
    await stream.next();
    await turns();
    expect(yields).toBeLessThan(3);
  });

  test('gets 200,000 parts that were returned at once, in their order', async () => {
    const uris = Array.from({ length: 200_000 }, (_, number) => `https://x.test/${number}`);
    const links = uris.map((uri) => ({ type: 'resource_link', uri }));
    const { events } = await streamed(dispatcherOf(() => links).stream(request));
    expect(events.map((event) => event.type === 'resource_link' && event.uri)).toEqual(uris);
  }, 20_000);

  test('who asks five thousand times without waiting is answered in order', async () => {
    let yields = 0;
    const stream = dispatcherOf(async function* () {
      while (yields < 4000) yield `${yields++}`;
    }).stream(request);
    const steps = await Promise.all(Array.from({ length: 5000 }, () => stream.next()));
    expect(steps.slice(0, 4000).map(({ value }) => value)).toEqual(
      Array.from({ length: 4000 }, (_, number) => text(`${number}`)),
    );
    expect(steps[4000]).toMatchObject({ done: true, value: { isError: false } });
    expect(steps.slice(4001)).toEqual(Array(999).fill({ done: true, value: undefined }));
  });

  test('who is slow loses the oldest signs of life and no part, whatever was taken before', async () => {
    let report: (from: number, to: number) => void = () => {};
    const stream = dispatcherOf(async function* (_, call) {
      report = (from, to) => {
        for (const progress of range(from, to)) call.report({ progress });
      };
      report(0, 10);
      yield 'a';
    }).stream(request);
    const taken: StreamEvent[] = [];
    const take = async (times: number) => {
      for (let more = 0; more < times; more++) taken.push((await stream.next()).value as StreamEvent);
    };
    await take(11);
    report(11, 130);
    await take(101);
    const signs = (from: number, to: number) => range(from, to).map((progress) => ({ type: 'progress', progress }));
    expect(taken).toEqual([...signs(0, 10), text('a'), ...signs(31, 130)]);
    expect((await stream.next()).value).toMatchObject({ content: 'a' });
  });

  const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
});
