import {
  createDispatcher,
  defineTool,
  type ToolCallRequest,
  type ToolDispatchResult,
  type ToolSchema,
} from 'toolonion';
import {
  anthropic,
  gemini,
  geminiInteractions,
  mcp,
  mcpSampling,
  openaiChat,
  openaiResponses,
  type ToolNames,
} from 'toolonion/wire';

/** Something that calls tools, with all that differs between their shapes behind the same names. */
export interface Shape {
  readonly title: string;
  /** What a name may be. */
  readonly name: RegExp;
  /** What the name of an argument may be, where not anything. */
  readonly argument?: RegExp;
  define(tools: Iterable<ToolSchema>): { readonly tools: readonly Defined[]; readonly names: ToolNames };
  calls(requests: readonly Sent[], names?: ToolNames): ToolCallRequest[];
  results(all: readonly ToolDispatchResult[]): readonly Answer[];
}

/** A provider, whose calls come in a reply, which is put into a history. */
export interface ProviderShape extends Shape {
  calls(requests: readonly Sent[], names?: ToolNames, isCut?: boolean): ToolCallRequest[];
  /** The calls of a reply as it is put back. */
  replay(requests: readonly Sent[], all: readonly ToolDispatchResult[], names?: ToolNames): readonly Sent[];
}

export interface Sent {
  readonly id?: string;
  readonly name: string;
  readonly input: Record<string, unknown>;
}

export interface Defined {
  readonly name: string;
  readonly description: string;
  readonly schema: unknown;
}

export interface Answer {
  readonly id: string;
  /** A string, or blocks. */
  readonly content: unknown;
  /** Undefined where the provider has no flag. */
  readonly isError: boolean | undefined;
}

export const PROVIDERS: readonly ProviderShape[] = [
  {
    title: 'openaiChat',
    name: /^[A-Za-z0-9_-]{1,64}$/,
    define(tools) {
      const { tools: made, names } = openaiChat.definitions(tools);
      return { tools: made.map(({ function: { parameters, ...told } }) => ({ ...told, schema: parameters })), names };
    },
    calls: (requests, names, isCut = false) =>
      openaiChat.calls({ finish_reason: isCut ? 'length' : 'tool_calls', message: chatMessage(requests) }, names),
    replay: (requests, all, names) =>
      openaiChat
        .replay(chatMessage(requests), all, names)
        // None at all where there are no calls.
        .tool_calls?.map(({ id, function: { name, arguments: text } }) => ({
          ...(id !== undefined && { id }),
          name,
          input: JSON.parse(text),
        })) ?? [],
    results: (all) =>
      openaiChat.results(all).map(({ tool_call_id: id, content }) => ({ id, content, isError: undefined })),
  },
  {
    title: 'openaiResponses',
    name: /^[A-Za-z0-9_-]{1,64}$/,
    define(tools) {
      const { tools: made, names } = openaiResponses.definitions(tools);
      return { tools: made.map(({ name, description, parameters: schema }) => ({ name, description, schema })), names };
    },
    calls: (requests, names, isCut = false) =>
      openaiResponses.calls(
        { output: functionCalls(requests), incomplete_details: isCut ? { reason: 'max_output_tokens' } : null },
        names,
      ),
    replay: (requests, all, names) =>
      openaiResponses
        .replay({ output: functionCalls(requests) }, all, names)
        .map(({ call_id: id, name, arguments: text }) => ({
          ...(id !== undefined && { id }),
          name,
          input: JSON.parse(text),
        })),
    results: (all) =>
      openaiResponses
        .results(all, { output: all.map(() => ({ type: 'function_call' })) })
        .map(({ call_id: id, output: content }) => ({ id, content, isError: undefined })),
  },
  {
    title: 'anthropic',
    name: /^[A-Za-z0-9_-]{1,128}$/,
    argument: /^[A-Za-z0-9_.-]{1,64}$/,
    define(tools) {
      const { tools: made, names } = anthropic.definitions(tools);
      return { tools: made.map(({ input_schema, ...told }) => ({ ...told, schema: input_schema })), names };
    },
    calls: (requests, names, isCut = false) =>
      anthropic.calls({ content: toolUses(requests), stop_reason: isCut ? 'max_tokens' : 'tool_use' }, names),
    replay: (requests, all, names) =>
      anthropic.replay({ content: toolUses(requests) }, all, names).content.map(({ type: _, ...call }) => call),
    results: (all) =>
      anthropic.results(all).content.map(({ tool_use_id: id, content, is_error = false }) => ({
        id,
        content,
        isError: is_error,
      })),
  },
  {
    title: 'gemini',
    name: /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/,
    define(tools) {
      const { tools: made, names } = gemini.definitions(tools);
      const functions = made.flatMap(({ functionDeclarations }) => functionDeclarations);
      return { tools: functions.map(({ parametersJsonSchema: schema, ...told }) => ({ ...told, schema })), names };
    },
    calls: (requests, names, isCut = false) =>
      gemini.calls({ finishReason: isCut ? 'MAX_TOKENS' : 'STOP', content: functionCallParts(requests) }, names),
    // What has no id here goes by its place.
    replay: (requests, all, names) =>
      gemini
        .replay(functionCallParts(requests), all, names)
        .parts.map(({ functionCall: { id, name, args } }, place) => ({
          id: id ?? (all[place]?.toolCallId as string),
          name,
          input: args,
        })),
    results: (all) =>
      gemini.results(all).parts.map(({ functionResponse: { id, response, parts } }, place) => ({
        id: id ?? (all[place]?.toolCallId as string),
        content: parts === undefined ? textOf(response) : [textOf(response), parts],
        isError: 'error' in response,
      })),
  },
  {
    title: 'geminiInteractions',
    name: /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/,
    define(tools) {
      const { tools: made, names } = geminiInteractions.definitions(tools);
      return { tools: made.map(({ name, description, parameters: schema }) => ({ name, description, schema })), names };
    },
    calls: (requests, names, isCut = false) =>
      geminiInteractions.calls({ status: isCut ? 'incomplete' : 'requires_action', steps: callSteps(requests) }, names),
    replay: (requests, all, names) =>
      geminiInteractions
        .replay({ steps: callSteps(requests) }, all, names)
        .map(({ type: _, arguments: input, ...call }) => ({ ...call, input })),
    results: (all) =>
      geminiInteractions.results(all).map(({ call_id: id, result: content, is_error: isError = false }) => ({
        id,
        content,
        isError,
      })),
  },
  {
    title: 'mcpSampling',
    name: /^[A-Za-z0-9_.-]{1,128}$/,
    define(tools) {
      const { tools: made, names } = mcpSampling.definitions(tools);
      return { tools: made.map(({ inputSchema: schema, ...told }) => ({ ...told, schema })), names };
    },
    calls: (requests, names, isCut = false) =>
      mcpSampling.calls({ content: toolUses(requests), stopReason: isCut ? 'maxTokens' : 'toolUse' }, names),
    replay: (requests, all, names) =>
      mcpSampling.replay({ content: toolUses(requests) }, all, names).content.map(({ type: _, ...call }) => call),
    results: (all) =>
      mcpSampling.results(all).content.map(({ toolUseId: id, content, isError = false }) => ({
        id,
        content: plain(content),
        isError,
      })),
  },
];

export const SHAPES: readonly Shape[] = [
  ...PROVIDERS,
  {
    title: 'mcp',
    name: /^[A-Za-z0-9_.-]{1,128}$/,
    define(tools) {
      const { tools: made, names } = mcp.definitions(tools);
      return { tools: made.map(({ inputSchema: schema, ...told }) => ({ ...told, schema })), names };
    },
    calls: (requests, names) =>
      requests.flatMap(({ id, name, input }) =>
        mcp.calls({ ...(id !== undefined && { id }), method: 'tools/call', params: { name, arguments: input } }, names),
      ),
    // Each is a response of its own, to the request with the id.
    results: (all) =>
      mcp.results(all).map(({ content, isError = false }, place) => ({
        id: all[place]?.requested.id || (all[place]?.toolCallId as string),
        content: plain(content),
        isError,
      })),
  },
];

/** An answer of one text is that text. */
function plain(content: readonly { readonly type: string; readonly text?: string }[]): unknown {
  return content.length === 1 && content[0]?.type === 'text' ? content[0].text : content;
}

/** Calls as a provider sends them; what is nothing, as nothing. */
function each<Made>(requests: readonly Sent[], make: (request: Sent) => Made): Made[] {
  return requests.map((request) => (request ? make(request) : (request as Made)));
}

function chatMessage(requests: readonly Sent[]) {
  const tool_calls = each(requests, ({ id, name, input }) => ({
    ...(id !== undefined && { id }),
    type: 'function' as const,
    function: { name, arguments: JSON.stringify(input) },
  }));
  return { tool_calls } as { tool_calls?: typeof tool_calls };
}

function functionCalls(requests: readonly Sent[]) {
  return each(requests, ({ id, name, input }) => ({
    type: 'function_call',
    ...(id !== undefined && { call_id: id }),
    name,
    arguments: JSON.stringify(input),
  }));
}

function toolUses(requests: readonly Sent[]) {
  return each(requests, (request) => ({ type: 'tool_use', ...request }));
}

function functionCallParts(requests: readonly Sent[]) {
  return { parts: each(requests, ({ input: args, ...call }) => ({ functionCall: { ...call, args } })) };
}

function callSteps(requests: readonly Sent[]) {
  return each(requests, ({ input, ...call }) => ({ type: 'function_call' as const, ...call, arguments: input }));
}

function textOf(response: { readonly output: string } | { readonly error: string }): string {
  return 'error' in response ? response.error : response.output;
}

/** A dispatcher with one tool, `work`, which gives what it is told to. */
export function worker(execute: (input: never) => unknown) {
  return createDispatcher({
    tools: [
      defineTool({ name: 'work', description: 'Works.', concurrencySafe: true, execute: execute as () => unknown }),
    ],
  });
}
