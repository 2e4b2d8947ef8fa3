import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  closeDangling,
  createDispatcher,
  type HistoryShape,
  interrupted,
  type ToolCallRequest,
  type ToolDispatchResult,
} from 'toolonion';
import { anything } from './support/anything.ts';
import { hostileValues } from './support/hostile.ts';

const run = { id: 'c1', name: 'deploy', arguments: '{"to":"production"}' };

describe('interrupted', () => {
  test('says that nobody knows what became of the call, and to check before it is called again', () => {
    const message =
      'The run was interrupted during this call of tool "deploy": whether the tool had an effect is not known. Check before you call it again.';
    expect(interrupted(run)).toEqual({
      resolvedToolName: 'deploy',
      content: message,
      isError: true,
      error: { code: 'cancelled', message, retryable: false, executed: 'unknown', errorId: expect.any(String) },
      notes: [],
      toolCallId: 'c1',
      durationMs: 0,
      requested: { id: 'c1', name: 'deploy', input: { to: 'production' }, rawArguments: '{"to":"production"}' },
    });
  });

  test.each([undefined, '', null, 7])('makes an id where that of the call is %p', (id) => {
    const { toolCallId, requested } = interrupted({ ...run, id } as unknown as ToolCallRequest);
    expect(toolCallId).toMatch(/^[\w-]{21}$/);
    expect(requested.id).toBe(id === '' ? '' : undefined);
  });

  test('makes a name printable', () => {
    expect(interrupted({ name: `a\u202e${'b'.repeat(100)}` }).content).toMatch(/tool "a\\u\{202e\}b{62}…"/);
  });

  const requests: readonly (readonly [string, unknown])[] = [
    ['arguments as an object', { id: 'c1', name: 'deploy', arguments: { to: 'production' } }],
    ['no arguments', { id: 'c1', name: 'deploy' }],
    ['arguments that are put right', { ...run, arguments: "{'to': 'production',}" }],
    ['arguments that stop in the middle', { ...run, arguments: '{"to":"prod' }],
    ['arguments that were cut off', { ...run, truncated: true }],
    ['arguments that are no JSON', { ...run, arguments: { at: new Date(0) } }],
    ['arguments under another key', { id: 'c1', name: 'deploy', input: { to: 'production' } }],
    ['a name that is no text', { id: 'c1', name: 5 }],
    ['an own key named __proto__', JSON.parse('{"id":"c1","name":"deploy","arguments":{"__proto__":{"a":1}}}')],
    ['nothing', undefined],
    ['null', null],
    ['text', 'deploy'],
  ];

  test.each([...requests, ...hostileValues])('has what was requested as dispatch has it: %s', async (_, value) => {
    const request = value as ToolCallRequest;
    const { requested } = interrupted(request);
    expect(requested).toEqual((await createDispatcher().dispatch(request)).requested);
  });

  test('is plain data, whatever was stored', async () => {
    const request = fc.oneof(anything, fc.record({ id: anything, name: anything, arguments: anything }));
    await fc.assert(
      fc.asyncProperty(request, async (value) => {
        const result = interrupted(value as ToolCallRequest);
        const { requested } = await createDispatcher().dispatch(value as ToolCallRequest);
        expect(JSON.stringify(result.requested)).toBe(JSON.stringify(requested));
        expect(JSON.stringify(JSON.parse(JSON.stringify(result)))).toBe(JSON.stringify(result));
      }),
    );
  });

  test.each([0, 1, 2, 3])('believes no getter that answers otherwise after %d times', (times) => {
    let asked = 0;
    const request = {
      get name(): string {
        return (asked++ < times ? 'deploy' : 5) as string;
      },
    };
    expect(['deploy', '']).toContain(interrupted(request).requested.name);
  });
});

/** A message as a test writes it: `says`, the ids of `calls`, or of what it `answers`. */
interface Message {
  readonly says?: string;
  readonly calls?: readonly (string | undefined)[];
  readonly answers?: readonly (string | undefined)[];
  /** Made by `closeDangling`. */
  readonly closes?: string;
}

const shape: HistoryShape<Message> = {
  calls: ({ calls = [] }) => calls.map((id) => (id === undefined ? { name: 'deploy' } : { id, name: 'deploy' })),
  answers: ({ answers = [] }) => answers,
  answer: ({ toolCallId }, { id }) => ({ answers: [id], closes: id || toolCallId }),
};
const generated = expect.stringMatching(/^[\w-]{21}$/) as unknown as string;

const says = (text: string): Message => ({ says: text });
const calls = (...ids: readonly (string | undefined)[]): Message => ({ calls: ids });
const answers = (...ids: readonly (string | undefined)[]): Message => ({ answers: ids });
const closes = (id: string): Message => ({ answers: [id], closes: id });

describe('closeDangling', () => {
  const whole: readonly (readonly [what: string, history: readonly Message[]])[] = [
    ['an empty one', []],
    ['one without calls', [says('hello'), says('bye')]],
    ['one whose calls are answered', [says('go'), calls('a', 'b'), answers('a'), answers('b'), says('done')]],
    ['one whose calls are answered in one message', [calls('a', 'b'), answers('b', 'a')]],
    ['answers out of order', [calls('a', 'b', 'c'), answers('c'), answers('a'), answers('b')]],
    ['an answer behind what the user says: its outcome is known', [calls('a'), says('still there?'), answers('a')]],
    ['two turns in a row that are answered behind both', [calls('a'), calls('b'), answers('a'), answers('b')]],
    ['answers whose calls are gone', [answers('a'), says('go'), calls('b'), answers('b'), answers('c')]],
    ['an answer given twice', [calls('a'), answers('a'), answers('a')]],
    ['ids used again in each turn', [calls('0', '1'), answers('0'), answers('1'), calls('0'), answers('0')]],
    ['one id twice in a turn', [calls('a', 'a'), answers('a'), answers('a')]],
    ['a message that calls and answers', [calls('a'), { calls: ['b'], answers: ['a', 'b'] }]],
    ['calls and answers without ids', [calls(undefined, ''), answers('', undefined)]],
    [
      'calls without ids, answered under ids that were made',
      [calls(undefined, 'a', ''), answers('x', 'a'), answers('y')],
    ],
    ['ids with a meaning of their own', [calls('__proto__', 'constructor'), answers('constructor', '__proto__')]],
  ];

  test.each(whole)('leaves a history as it is: %s', (_, history) => {
    expect(closeDangling(history, shape)).toBe(history);
  });

  const dangling: readonly (readonly [what: string, history: readonly Message[], closed: readonly Message[]])[] = [
    ['the last call', [says('go'), calls('a')], [says('go'), calls('a'), closes('a')]],
    ['all calls of a turn, in their order', [calls('a', 'b')], [calls('a', 'b'), closes('a'), closes('b')]],
    [
      'one call of a turn, behind the answers of the others',
      [calls('a', 'b', 'c'), answers('c'), answers('a')],
      [calls('a', 'b', 'c'), answers('c'), answers('a'), closes('b')],
    ],
    ['a call before what the user says', [calls('a'), says('go on')], [calls('a'), closes('a'), says('go on')]],
    [
      'a call beside one that is answered behind what the user says',
      [calls('a', 'b'), says('go on'), answers('b')],
      [calls('a', 'b'), closes('a'), says('go on'), answers('b')],
    ],
    [
      'calls of two turns in a row, each behind its own',
      [calls('a'), calls('b'), answers('b')],
      [calls('a'), closes('a'), calls('b'), answers('b')],
    ],
    [
      'the turn before, where the id is used again and that call is answered',
      [calls('0'), says('go on'), calls('0'), answers('0')],
      [calls('0'), closes('0'), says('go on'), calls('0'), answers('0')],
    ],
    [
      'the last turn, where the id was used before',
      [calls('0'), answers('0'), calls('0', '1'), answers('1')],
      [calls('0'), answers('0'), calls('0', '1'), answers('1'), closes('0')],
    ],
    [
      'the second of two calls with one id',
      [calls('a', 'a'), answers('a')],
      [calls('a', 'a'), answers('a'), closes('a')],
    ],
    [
      'a call, not for an answer whose call is gone',
      [answers('x'), calls('a'), answers('y')],
      [answers('x'), calls('a'), answers('y'), closes('a')],
    ],
    [
      'a call that stands in an answer',
      [calls('a'), { calls: ['b'], answers: ['a'] }],
      [calls('a'), { calls: ['b'], answers: ['a'] }, closes('b')],
    ],
    [
      'a call whose id the same message answers for the turn before',
      [calls('0'), { calls: ['0'], answers: ['0'] }],
      [calls('0'), closes('0'), { calls: ['0'], answers: ['0'] }],
    ],
    [
      'calls without ids, by order',
      [calls('', undefined, 'a'), answers(''), answers('a')],
      [calls('', undefined, 'a'), answers(''), answers('a'), { answers: [undefined], closes: generated }],
    ],
    [
      'a call without an id, not for a strange answer that is not right behind it',
      [calls(undefined), says('go on'), answers('x')],
      [calls(undefined), { answers: [undefined], closes: generated }, says('go on'), answers('x')],
    ],
    [
      'a call without an id, not for an answer given twice',
      [calls('a', ''), answers('a'), answers('a')],
      [calls('a', ''), answers('a'), answers('a'), { answers: [''], closes: generated }],
    ],
  ];

  test.each(dangling)('closes %s', (_, history, closed) => {
    const given = structuredClone(history);
    const once = closeDangling(history, shape);
    expect(once).toEqual(closed);
    expect(history).toEqual(given);
    expect(closeDangling(once, shape)).toBe(once);
  });

  test('works on a frozen history', () => {
    const history = Object.freeze([Object.freeze(calls('a'))]);
    expect(closeDangling(history, shape)).toEqual([calls('a'), closes('a')]);
  });

  test('gives the result and the call as it was stored, from which the host makes its message', () => {
    const request = { id: 'a', name: 'deploy', arguments: '{}' };
    const seen: [ToolDispatchResult, ToolCallRequest][] = [];
    closeDangling([request], {
      calls: (message) => [message],
      answers: () => [],
      answer: (...given) => {
        seen.push(given);
        return request;
      },
    });
    const { error, ...result } = interrupted(request);
    expect(seen).toEqual([[{ ...result, error: { ...error, errorId: expect.any(String) } }, request]]);
    expect(seen[0]?.[1]).toBe(request);
  });

  test.each(['a', ''])('takes the first of two calls with the id %j in a turn for answered', (id) => {
    const closed: string[] = [];
    closeDangling(['turn', 'answer'], {
      calls: (message) => (message === 'turn' ? ['first', 'second'].map((name) => ({ id, name })) : []),
      answers: (message) => (message === 'answer' ? [id] : []),
      answer: ({ requested }) => {
        closed.push(requested.name);
        return 'answer';
      },
    });
    expect(closed).toEqual(['second']);
  });

  test('knows a call again that had no id and was answered under the id of the result', () => {
    const named = { ...shape, answer: ({ toolCallId }: ToolDispatchResult) => ({ answers: [toolCallId] }) };
    const once = closeDangling([calls(undefined, ''), says('go on')], named);
    expect(once).toHaveLength(4);
    expect(closeDangling(once, named)).toBe(once);
  });

  test('closes what is stored as a call and is none', () => {
    const stored = [null, 7, {}, { name: 5 }] as unknown as readonly ToolCallRequest[];
    const results: ToolDispatchResult[] = [];
    closeDangling(['turn'], {
      calls: () => stored,
      answers: () => [],
      answer: (result) => {
        results.push(result);
        return '';
      },
    });
    expect(results.map(({ error }) => error?.executed)).toEqual(stored.map(() => 'unknown'));
  });

  test('takes messages that are lists', () => {
    const history: readonly (readonly string[])[] = [['call'], []];
    const closed = closeDangling(history, {
      calls: (message) => message.map((id) => ({ id, name: 'deploy' })),
      answers: () => [],
      answer: () => ['closed'],
    });
    expect(closed).toEqual([['call'], ['closed'], []]);
  });
});

describe('any history', () => {
  const id = fc.constantFrom('a', 'b', 'c', '', undefined);
  const ids = fc.array(id, { maxLength: 3 });
  const message: fc.Arbitrary<Message> = fc.oneof(
    fc.record({ says: fc.constant('hello') }),
    fc.record({ calls: ids }),
    fc.record({ answers: ids }),
    fc.record({ calls: ids, answers: ids }),
  );
  const underItsId = {
    ...shape,
    answer: ({ toolCallId }: ToolDispatchResult) => ({ answers: [toolCallId], closes: '' }),
  };

  test('keeps its messages and their order, and needs no second pass', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 12 }), fc.constantFrom(shape, underItsId), (history, given) => {
        const once = closeDangling(history, given);
        expect(once.filter(({ closes }) => closes === undefined)).toEqual(history);
        expect(closeDangling(once, given)).toBe(once);
      }),
      { numRuns: 2000 },
    );
  });

  test('has the calls closed that are left when each answer has taken the nearest call of its id', () => {
    const named = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 3 });
    const turnOrAnswers = fc.oneof(fc.record({ calls: named }), fc.record({ answers: named }));
    fc.assert(
      fc.property(fc.array(turnOrAnswers, { maxLength: 12 }), (history: readonly Message[]) => {
        const open: { readonly turn: number; readonly id: string | undefined }[] = [];
        for (const [turn, { calls = [], answers = [] }] of history.entries()) {
          open.push(...calls.map((id) => ({ turn, id })));
          for (const id of answers) {
            const nearest = open.findLast((call) => call.id === id)?.turn;
            const taken = open.findIndex((call) => call.id === id && call.turn === nearest);
            if (taken >= 0) open.splice(taken, 1);
          }
        }
        const closed = closeDangling(history, shape).flatMap(({ closes }) => closes ?? []);
        expect(closed).toEqual(open.map((call) => call.id));
      }),
      { numRuns: 2000 },
    );
  });
});

test('thirty thousand turns are read once each, whatever their ids', () => {
  for (const idOf of [(turn: number) => `c${turn}`, () => 'call_0', () => undefined]) {
    const turns = Array.from({ length: 30_000 }, (_, turn) => [calls(idOf(turn), idOf(turn)), answers(idOf(turn))]);
    const history = turns.flat();
    let asked = 0;
    const counting: HistoryShape<Message> = {
      ...shape,
      calls: (message) => {
        asked++;
        return shape.calls(message);
      },
    };
    expect(closeDangling(history, counting)).toHaveLength(90_000);
    expect(asked).toBe(60_000);
  }
});

describe('the shape', () => {
  const explode = () => {
    throw new Error('no such field');
  };
  const history = [says('go'), calls('a')];

  test.each([
    ['calls', '"calls" of the shape for closeDangling threw for message 0: no such field'],
    ['answers', '"answers" of the shape for closeDangling threw for message 0: no such field'],
    ['answer', '"answer" of the shape for closeDangling threw for call "a": no such field'],
  ])('is named by its function where that throws: %s', (name, message) => {
    expect(() => closeDangling(history, { ...shape, [name]: explode })).toThrow(
      expect.objectContaining({ message, cause: new Error('no such field') }) as unknown as Error,
    );
  });

  test.each<[string, unknown, string]>([
    ['calls', undefined, '"calls" of the shape for closeDangling must give an array; it gave undefined for message 0.'],
    [
      'calls',
      Promise.resolve([]),
      '"calls" of the shape for closeDangling must give an array; it gave a Promise for message 0.',
    ],
    ['answers', 'a', '"answers" of the shape for closeDangling must give an array; it gave a string for message 0.'],
    [
      'answer',
      undefined,
      '"answer" of the shape for closeDangling must give a message; it gave undefined for call "a".',
    ],
    [
      'answer',
      Promise.resolve(),
      '"answer" of the shape for closeDangling must give a message; it gave a Promise for call "a".',
    ],
  ])('is named by its function where that gives rubbish: %s, %p', (name, value, message) => {
    expect(() => closeDangling(history, { ...shape, [name]: () => value })).toThrow(new TypeError(message));
  });

  test.each(['calls', 'answers', 'answer'])('needs its function %s, whether it is asked or not', (name) => {
    expect(() => closeDangling([], { ...shape, [name]: undefined })).toThrow(
      new TypeError(`"${name}" of the shape for closeDangling must be a function; got undefined.`),
    );
  });

  test('is needed, and so is a history', () => {
    expect(() => closeDangling([], undefined as unknown as typeof shape)).toThrow(/^"calls" of the shape/);
    expect(() => closeDangling({} as unknown as Message[], shape)).toThrow(
      'closeDangling takes the history as an array; got an object.',
    );
  });

  test('may be an object with a class of its own', () => {
    class Shape implements HistoryShape<Message> {
      readonly #kind = 'calls';
      calls(message: Message) {
        return shape.calls({ calls: message[this.#kind] ?? [] });
      }
      answers({ answers = [] }: Message) {
        return answers;
      }
      answer(_: ToolDispatchResult, { id = '' }: ToolCallRequest) {
        return closes(id);
      }
    }
    expect(closeDangling(history, new Shape())).toEqual([...history, closes('a')]);
  });
});
