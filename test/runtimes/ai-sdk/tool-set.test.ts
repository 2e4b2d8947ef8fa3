import { describe, expect, jest, test } from '@jest/globals';
import {
  createDispatcher,
  type Dispatcher,
  type DispatcherOptions,
  defineTool,
  type Tool,
  ToolContext,
  ToolFailure,
} from 'toolonion';
import {
  repairToolCall,
  type SdkRequest,
  type SdkTool,
  sdkRequest,
  toolApproval,
  toolDefinitions,
  toolMessage,
  toolSet,
} from 'toolonion/adapters/ai-sdk';
import { allowAll, rules, type StandardOptions, standard } from 'toolonion/middleware';
import { type GenerateOptions, Script, type Turn, VERSIONS } from './sdk.ts';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const add = defineTool({
  name: 'add',
  description: 'Adds.',
  inputSchema: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
  execute: ({ a, b }) => a + b,
});
const deploy = defineTool({ name: 'deploy', description: 'Deploys.', execute: () => 'Deployed.' });

function tool(name: string, execute: (...given: never[]) => unknown): Tool {
  return defineTool({ name, description: `Does ${name}.`, execute: execute as () => unknown });
}

function dispatcherOf(
  tools: readonly Tool[],
  layers: Partial<StandardOptions> = {},
  options: DispatcherOptions = {},
): Dispatcher {
  const { permission = { check: allowAll }, ...others } = layers;
  const middleware = standard({ permission, logging: false, ...others });
  return createDispatcher({ tools, middleware, ...options });
}

const asked = (name: string, input: unknown = {}, id = 'c1') => ({ id, name, input });

describe.each(VERSIONS)('AI SDK %s', (version, sdk) => {
  /** The whole loop: the model's turns, the calls between them, and what the model was told. */
  async function run(dispatcher: Dispatcher, turns: readonly Turn[], options: GenerateOptions = {}) {
    const script = new Script(version, turns);
    const tools = toolSet(dispatcher, { version: version === '6' ? 6 : 7 });
    const stopWhen = sdk.stepCountIs(5);
    const result = await sdk.generateText({ model: script.model, prompt: 'go', tools, stopWhen, ...options } as never);
    return { script, told: script.told, result };
  }

  test('a call is dispatched, and the model goes on with its answer', async () => {
    const { told, result, script } = await run(dispatcherOf([add]), [[asked('add', { a: 2, b: 3 })], 'It is 5.']);
    expect(told).toMatchObject([{ toolCallId: 'c1', output: { type: 'text', value: '5' } }]);
    expect(result.text).toBe('It is 5.');
    expect(script.tools).toMatchObject([{ name: 'add', description: 'Adds.', inputSchema: add.schema.inputSchema }]);
    const [step] = result.steps;
    expect(step?.toolResults).toMatchObject([
      {
        output: {
          toolCallId: 'c1',
          resolvedToolName: 'add',
          structured: 5,
          isError: false,
          durationMs: expect.any(Number),
        },
      },
    ]);
    expect(JSON.parse(JSON.stringify(step?.toolResults[0]?.output))).toEqual(step?.toolResults[0]?.output);
  });

  test('invalid arguments are told, and put right in the next turn', async () => {
    const turns = [[asked('add', { a: 2 })], [asked('add', { a: 2, b: 3 }, 'c2')], 'It is 5.'];
    const { told, result } = await run(dispatcherOf([add]), turns);
    expect(told).toMatchObject([
      { toolCallId: 'c1', output: { type: 'error-text', value: expect.stringContaining('"b" is required') } },
      { toolCallId: 'c2', output: { type: 'text', value: '5' } },
    ]);
    expect(result.text).toBe('It is 5.');
  });

  describe('arguments that are no JSON', () => {
    const repair = version === '6' ? { experimental_repairToolCall: repairToolCall } : { repairToolCall };

    test('are read where they leave no doubt, and the model is told so', async () => {
      const { told } = await run(dispatcherOf([add]), [[asked('add', "{'a': 2, 'b': 3,}")]], repair as GenerateOptions);
      expect(told).toMatchObject([{ output: { type: 'text', value: expect.stringMatching(/^5\n\n\[The arguments/) } }]);
    });

    test('are told by the dispatcher otherwise', async () => {
      const { told } = await run(dispatcherOf([add]), [[asked('add', '{"a": 2, "b"')]], repair as GenerateOptions);
      expect(told).toMatchObject([
        { output: { type: 'error-text', value: expect.stringContaining('are incomplete') } },
      ]);
    });

    test('stand in the history as an object, as providers want them', async () => {
      const { script } = await run(dispatcherOf([add]), [[asked('add', '{"a": 2, "b"')]], repair as GenerateOptions);
      const said = script.prompt
        .filter(({ role }) => role === 'assistant')
        .flatMap(({ content }) => content as object[]);
      expect(said).toMatchObject([{ type: 'tool-call', input: { unreadableArguments: '{"a": 2, "b"' } }]);
    });

    test('are told by the SDK without the hook', async () => {
      const { told } = await run(dispatcherOf([add]), [[asked('add', "{'a': 2, 'b': 3,}")]]);
      expect(told).toMatchObject([{ output: { type: 'error-text', value: expect.stringContaining('Invalid input') } }]);
    });
  });

  test('a denial reaches the model as a failure, with its reason', async () => {
    const check = rules({ deny: [{ tool: 'deploy', reason: 'not on Fridays' }] });
    const { told } = await run(dispatcherOf([deploy], { permission: { check } }), [[asked('deploy')]]);
    expect(told).toMatchObject([{ output: { type: 'error-text', value: expect.stringContaining('not on Fridays') } }]);
  });

  describe('approval', () => {
    const check = rules({ ask: ['deploy'], allow: ['add'] });

    /** The first half of a request with an approval, and what goes on when the user has answered. */
    async function ask(dispatcher: Dispatcher, more: GenerateOptions = {}) {
      const first = await run(dispatcher, [[asked('deploy'), asked('add', { a: 1, b: 1 }, 'c2')]], more);
      const request = first.result.content.find(({ type }) => type === 'tool-approval-request') as
        | { readonly approvalId: string; readonly reason?: string }
        | undefined;
      const answer = async (approved: boolean, turns: readonly Turn[] = []) => {
        const response = {
          type: 'tool-approval-response',
          approvalId: request?.approvalId ?? '',
          approved,
          reason: 'no',
        };
        const messages = [
          { role: 'user', content: 'go' },
          ...first.result.response.messages,
          { role: 'tool', content: [response] },
        ];
        return run(dispatcher, turns, { ...more, prompt: undefined, messages } as never);
      };
      return { first, request, answer };
    }

    test('is asked of the SDK’s user, and a yes runs just that call', async () => {
      const execute = jest.fn(() => 'Deployed.');
      const dispatcher = dispatcherOf([tool('deploy', execute), add], { permission: { check } });
      const { first, request, answer } = await ask(dispatcher);
      expect(request).toBeDefined();
      expect(execute).not.toHaveBeenCalled();
      expect(first.result.toolResults).toMatchObject([{ toolCallId: 'c2', output: { content: '2' } }]);
      const { told } = await answer(true, [[asked('deploy', {}, 'c3')]]);
      expect(told).toContainEqual(
        expect.objectContaining({ toolCallId: 'c1', output: { type: 'text', value: 'Deployed.' } }),
      );
      // The next call is asked about anew.
      expect(execute).toHaveBeenCalledTimes(1);
    });

    test('that is refused runs nothing', async () => {
      const execute = jest.fn(() => 'Deployed.');
      const { answer } = await ask(dispatcherOf([tool('deploy', execute), add], { permission: { check } }));
      const { told } = await answer(false);
      expect(told.find(({ toolCallId }) => toolCallId === 'c1')?.output).toMatchObject({
        type: 'execution-denied',
        reason: 'no',
      });
      expect(execute).not.toHaveBeenCalled();
    });

    test('is asked of the gate’s own approver, where there is one', async () => {
      const { request, first } = await ask(
        dispatcherOf([deploy, add], { permission: { check, approver: () => true } }),
      );
      expect(request).toBeUndefined();
      expect(first.told).toMatchObject([{ output: { value: 'Deployed.' } }, { output: { value: '2' } }]);
    });

    test('is not asked for what would be refused anyway, nor for arguments nobody would be shown', async () => {
      const edit = () => ({ type: 'modify', input: { where: 'there' } }) as const;
      const target = defineTool({
        name: 'deploy',
        description: 'Deploys.',
        inputSchema: { type: 'object', properties: { where: { type: 'string' } } },
        execute: () => 'Deployed.',
      });
      const { request, first } = await ask(dispatcherOf([target, add], { permission: { check: [check, edit] } }));
      expect(request).toBeUndefined();
      expect(first.told[0]).toMatchObject({ output: { type: 'error-text', value: expect.stringContaining('denied') } });
    });

    test('of arguments that the gate has edited since is none', async () => {
      let isEdited = false;
      const edit = () =>
        isEdited ? ({ type: 'modify', input: { where: 'there' } } as const) : ({ type: 'allow' } as const);
      const execute = jest.fn(() => 'Deployed.');
      const target = defineTool({
        name: 'deploy',
        description: 'Deploys.',
        inputSchema: { type: 'object', properties: { where: { type: 'string' } } },
        execute,
      });
      const { answer } = await ask(dispatcherOf([target, add], { permission: { check: [check, edit] } }));
      isEdited = true;
      const { told } = await answer(true);
      const { output } = told.find(({ toolCallId }) => toolCallId === 'c1') ?? {};
      // Version 6 asks again whether somebody has to be asked, and takes the answer to no question for a forgery.
      if (version === '6') expect(output).toMatchObject({ type: 'execution-denied' });
      else expect(output?.value).toContain('not those it would run with');
      expect(execute).not.toHaveBeenCalled();
    });

    test.each<readonly [string, (input: object) => readonly object[], readonly boolean[]]>([
      ['of other arguments', () => [{ toolName: 'deploy', input: { where: 'staging' } }], [true]],
      ['of another tool', (input) => [{ toolName: 'hello', input }], [true]],
      ['of a call that nobody made', () => [], [true]],
      [
        'of one of two with its id',
        (input) => [
          { toolName: 'deploy', input },
          { toolName: 'hello', input: {} },
        ],
        [true],
      ],
      ['that was taken back', (input) => [{ toolName: 'deploy', input }], [true, false]],
      ['that was given after a no', (input) => [{ toolName: 'deploy', input }], [false, true]],
    ])('%s is none', async (_, calls, answers) => {
      const execute = jest.fn(() => 'Deployed.');
      const inputSchema = { type: 'object', properties: { where: { type: 'string' } } } as const;
      const target = defineTool({ name: 'deploy', description: 'Deploys.', inputSchema, execute });
      const tools = toolSet(dispatcherOf([target], { permission: { check } }));
      const input = { where: 'production' };
      const run = (given: readonly object[], said: readonly boolean[]) =>
        (tools['deploy'] as SdkTool).execute(input, {
          toolCallId: 'c1',
          messages: [
            {
              role: 'assistant',
              content: [
                ...given.map((call) => ({ type: 'tool-call', toolCallId: 'c1', ...call })),
                { type: 'tool-approval-request', approvalId: 'a1', toolCallId: 'c1' },
              ],
            },
            {
              role: 'tool',
              content: said.map((approved) => ({ type: 'tool-approval-response', approvalId: 'a1', approved })),
            },
          ],
        });
      expect(await run(calls(input), answers)).toMatchObject({ error: { code: 'denied' } });
      expect(execute).not.toHaveBeenCalled();
      expect(await run([{ toolName: 'deploy', input }], [true])).toMatchObject({ content: 'Deployed.' });
    });

    test('is looked for in whatever messages there are', async () => {
      const tools = toolSet(dispatcherOf([deploy], { permission: { check } }));
      for (const messages of [undefined, [], [null], [{ role: 'tool' }], [{ role: 'tool', content: [null, 7] }]]) {
        const result = (tools['deploy'] as SdkTool).execute({}, { toolCallId: 'c1', messages } as never);
        expect(await result).toMatchObject({ error: { code: 'denied' } });
      }
    });

    if (version === '7')
      test('tells its reason through toolApproval', async () => {
        const dispatcher = dispatcherOf([deploy, add], { permission: { check } });
        const { request, answer } = await ask(dispatcher, {
          toolApproval: toolApproval(dispatcher),
        } as GenerateOptions);
        expect(request).toMatchObject({ reason: 'Run "deploy"?' });
        expect((await answer(true)).told).toContainEqual(
          expect.objectContaining({ toolCallId: 'c1', output: { type: 'text', value: 'Deployed.' } }),
        );
      });
  });

  test('a tool that ignores its signal is answered for at its limit', async () => {
    const deaf = tool('deaf', () => new Promise(() => {}));
    const { told } = await run(dispatcherOf([deaf], { timeout: { limitMs: 20 } }), [[asked('deaf')], 'on']);
    expect(told).toMatchObject([{ output: { type: 'error-text', value: expect.stringContaining('20 ms') } }]);
  });

  test('an abort of the request reaches the tool, and ends the request though the tool does not heed it', async () => {
    const controller = new AbortController();
    let seen: AbortSignal | undefined;
    const deaf = tool('deaf', (_: unknown, { signal }: { signal: AbortSignal }) => {
      seen = signal;
      controller.abort(new Error('gone'));
      return new Promise(() => {});
    });
    const running = run(dispatcherOf([deaf]), [[asked('deaf')]], { abortSignal: controller.signal });
    await expect(running).rejects.toThrow();
    expect(seen?.aborted).toBe(true);
  });

  test('what a tool throws is told to the model without its secrets, and kept for the log', async () => {
    const failing = tool('failing', () => {
      throw new Error('connect postgres://admin:hunter2@db');
    });
    const telling = tool('telling', () => {
      throw new ToolFailure('There is no such city.');
    });
    const { told, result } = await run(dispatcherOf([failing, telling]), [
      [asked('failing'), asked('telling', {}, 'c2')],
    ]);
    expect(told).toMatchObject([
      { output: { type: 'error-text', value: expect.not.stringContaining('hunter2') } },
      { output: { type: 'error-text', value: expect.stringContaining('There is no such city.') } },
    ]);
    expect(JSON.stringify(result.steps[0]?.toolResults)).not.toContain('hunter2');
  });

  test('a picture arrives as one', async () => {
    const data = Uint8Array.from(atob(PIXEL), (character) => character.charCodeAt(0));
    const picture = tool('picture', () => [
      { type: 'text', text: 'Here:' },
      { type: 'image', mimeType: 'image/png', data },
      { type: 'file', mimeType: 'text/csv', data: 'YSxi', name: 'a.csv' },
      { type: 'resource_link', uri: 'file:///a', name: 'A' },
    ]);
    const { told } = await run(dispatcherOf([picture]), [[asked('picture')]]);
    const { output } = told[0] ?? {};
    expect(output?.type).toBe('content');
    const parts = JSON.stringify(output?.value);
    expect(parts).toContain(PIXEL);
    expect(parts).toContain('image');
    expect(parts).toContain('YSxi');
    expect(parts).toContain('file:///a');
  });

  test('what no other can fetch is told as text, not as a picture', async () => {
    const urls = ['not a url', 'file:///etc/passwd', 'ftp://example.org/a.png'];
    const picture = tool('picture', () => urls.map((url) => ({ type: 'image', url })));
    const { told } = await run(dispatcherOf([picture]), [[asked('picture')]]);
    expect(told[0]?.output).toMatchObject({ type: 'content', value: urls.map(() => ({ type: 'text' })) });
  });

  test('what another tool of the name has left in a history is told as it is', async () => {
    const { add: shown } = toolSet(dispatcherOf([add]));
    for (const output of ['Sunny', null, {}, 7, { content: 'x', isError: false }, [1]]) {
      const value = typeof output === 'string' ? output : JSON.stringify(output);
      expect(shown?.toModelOutput({ output })).toEqual({ type: 'text', value });
    }
  });

  test('a failure with a picture stays a failure, and the picture is described', async () => {
    const failing = tool('failing', () => ({
      content: [
        { type: 'text', text: 'It broke:' },
        { type: 'image', mimeType: 'image/png', data: PIXEL },
      ],
      isError: true,
    }));
    const { told } = await run(dispatcherOf([failing]), [[asked('failing')]]);
    expect(told).toMatchObject([
      { output: { type: 'error-text', value: expect.stringMatching(/It broke:\n\[image of \d+ bytes/) } },
    ]);
  });

  test('a stream comes as preliminary results, and the model is told all of it', async () => {
    const count = defineTool({
      name: 'count',
      description: 'Counts.',
      async *execute(_, call) {
        yield 'one, ';
        call.report({ progress: 1, total: 2 });
        yield 'two';
      },
    });
    const script = new Script(version, [[asked('count')], 'Done.']);
    const tools = toolSet(dispatcherOf([count]));
    const result = sdk.streamText({ model: script.model, prompt: 'go', tools, stopWhen: sdk.stepCountIs(3) } as never);
    const seen: unknown[] = [];
    for await (const part of result.fullStream)
      if (part.type === 'tool-result') seen.push([part.preliminary, part.output]);
    expect(seen).toMatchObject([
      [true, { content: 'one, ', isPartial: true }],
      [true, { content: 'one, ', progress: { progress: 1, total: 2 } }],
      [true, { content: 'one, two', isPartial: true }],
      [true, { content: 'one, two', isError: false, durationMs: expect.any(Number) }],
      [undefined, { content: 'one, two', isError: false, durationMs: expect.any(Number) }],
    ]);
    expect(script.told).toMatchObject([{ output: { type: 'text', value: 'one, two' } }]);
  });

  test('two calls of a turn run together, or in turn where a schedule layer keeps them apart', async () => {
    const order: string[] = [];
    const slow = (isSafe: boolean) =>
      defineTool({
        name: 'slow',
        description: 'Takes a turn.',
        concurrencySafe: isSafe,
        inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
        execute: async ({ id }) => {
          order.push(`+${id}`);
          await new Promise((resolve) => setImmediate(resolve));
          order.push(`-${id}`);
          return id;
        },
      });
    const turns = [[asked('slow', { id: 'a' }), asked('slow', { id: 'b' }, 'c2')]];
    const { told } = await run(dispatcherOf([slow(true)], { schedule: {} }), turns);
    expect(told).toMatchObject([{ output: { value: 'a' } }, { output: { value: 'b' } }]);
    expect(order.splice(0)).toEqual(['+a', '+b', '-a', '-b']);
    await run(dispatcherOf([slow(false)], { schedule: {} }), turns);
    expect(order).toEqual(['+a', '-a', '+b', '-b']);
  });

  test('a tool that is not in the set is told by the SDK, before anything is dispatched', async () => {
    const dispatcher = dispatcherOf([add]);
    for (const name of ['gone', 'constructor', '__proto__']) {
      const { told } = await run(dispatcher, [[asked(name)], 'on']);
      expect(told).toMatchObject([
        { output: { type: 'error-text', value: expect.stringContaining('unavailable tool') } },
      ]);
    }
  });

  test('output over the limit is cut, and says so', async () => {
    const long = tool('long', () => 'x'.repeat(10_000));
    const { told } = await run(dispatcherOf([long], { outputLimit: { limit: 100 } }), [[asked('long')]]);
    expect(String(told[0]?.output.value).length).toBeLessThan(400);
    expect(String(told[0]?.output.value)).toMatch(/characters/);
  });

  test('the request’s context and messages reach the tool, and become a session where the host says how', async () => {
    let seen: SdkRequest | undefined;
    let session = '';
    const curious = tool(
      'curious',
      (_: unknown, call: { setting: (key: typeof sdkRequest) => SdkRequest; context: ToolContext }) => {
        seen = call.setting(sdkRequest);
        session = call.context.sessionId;
      },
    );
    const tools = toolSet(dispatcherOf([curious]), {
      context: ({ context }) => new ToolContext({ sessionId: (context as { user: string }).user }),
    });
    const context =
      version === '6' ? { experimental_context: { user: 'ada' } } : { toolsContext: { curious: { user: 'ada' } } };
    await run(dispatcherOf([curious]), [[asked('curious')]], { tools, ...context } as GenerateOptions);
    expect(seen).toMatchObject({ toolCallId: 'c1', messages: [{ role: 'user' }], context: { user: 'ada' } });
    expect(session).toBe('ada');
  });

  test('a tool that is run elsewhere ends the loop with its call', async () => {
    const shown = defineTool({ name: 'shown', description: 'Is run elsewhere.' });
    const { result, told } = await run(dispatcherOf([shown]), [[asked('shown', { a: 1 })], 'not reached']);
    expect(told).toEqual([]);
    expect(result.toolCalls).toMatchObject([{ toolName: 'shown', input: { a: 1 } }]);
    expect(result.steps).toHaveLength(1);
  });

  test('a result that was stored as JSON tells the model the same', async () => {
    const media = tool('media', () => [
      { type: 'text', text: 'Here:' },
      { type: 'image', mimeType: 'image/png', data: new Uint8Array([1, 2, 3]) },
    ]);
    const failing = tool('failing', () => {
      throw new ToolFailure('It broke.', { cause: new Error('secret') });
    });
    const dispatcher = dispatcherOf([media, failing, add]);
    const { told, result } = await run(dispatcher, [
      [asked('media'), asked('failing', {}, 'c2'), asked('add', { a: 1, b: 2 }, 'c3')],
    ]);
    const tools = toolSet(dispatcher, { version: version === '6' ? 6 : 7 });
    for (const { toolName, toolCallId, output } of result.steps[0]?.toolResults ?? []) {
      const stored = JSON.parse(JSON.stringify(output));
      expect(JSON.stringify(stored)).not.toContain('secret');
      const again = JSON.parse(JSON.stringify(tools[toolName]?.toModelOutput({ output: stored })));
      const once = JSON.parse(JSON.stringify(told.find((each) => each.toolCallId === toolCallId)?.output));
      // What a provider gets of a picture has other names in version 7.
      if (again.type === 'content') expect(JSON.stringify(once)).toContain(Buffer.from([1, 2, 3]).toString('base64'));
      else expect(once).toEqual(again);
    }
  });

  test('a host that cannot make the session of a request tells the model nothing of why', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const dispatcher = dispatcherOf([add]);
    const tools = toolSet(dispatcher, {
      context: () => {
        throw new Error('no row for ada@example.org');
      },
    });
    const { told } = await run(dispatcher, [[asked('add', { a: 1, b: 2 })]], { tools } as GenerateOptions);
    expect(told).toMatchObject([{ output: { type: 'error-text', value: expect.not.stringContaining('ada') } }]);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('ada'));
    warn.mockRestore();
  });

  test('a loop outside of the SDK answers all calls of a turn', async () => {
    const dispatcher = dispatcherOf([add, deploy]);
    const tools = toolDefinitions(dispatcher);
    const script = new Script(version, [
      [asked('add', { a: 2, b: 3 }), asked('add', { a: 2 }, 'c2'), asked('gone', {}, 'c3')],
      'Fine.',
    ]);
    const messages: unknown[] = [{ role: 'user', content: 'go' }];
    const first = await sdk.generateText({ model: script.model, tools, messages } as never);
    messages.push(...first.response.messages, await toolMessage(dispatcher, first.toolCalls));
    const second = await sdk.generateText({ model: script.model, tools, messages } as never);
    expect(second.text).toBe('Fine.');
    expect([...script.told].sort((a, b) => a.toolCallId.localeCompare(b.toolCallId))).toMatchObject([
      { toolCallId: 'c1', output: { type: 'text', value: '5' } },
      { toolCallId: 'c2', output: { type: 'error-text', value: expect.stringContaining('"b" is required') } },
      { toolCallId: 'c3', output: { type: 'error-text', value: expect.stringContaining('unavailable tool') } },
    ]);
  });
});

test('options, and what is no dispatcher, are told where the set is made', async () => {
  for (const make of [toolSet, toolDefinitions, toolApproval])
    expect(() => make({} as Dispatcher)).toThrow('takes a dispatcher');
  await expect(toolMessage({} as Dispatcher, [])).rejects.toThrow('takes a dispatcher');
  expect(() => toolApproval(dispatcherOf([add]), { version: 7 } as object)).toThrow('version');
  const wrong = { preliminary: 'yes' } as unknown as Parameters<typeof toolSet>[1];
  expect(() => toolSet(dispatcherOf([add]), wrong)).toThrow('preliminary');
});
