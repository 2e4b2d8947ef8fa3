import type { Dispatcher, ToolCallRequest, ToolSchema } from '../index.ts';
import {
  anthropic,
  detect,
  gemini,
  geminiInteractions,
  mcp,
  openaiChat,
  openaiResponses,
  type Shape,
  type ToolNames,
} from '../wire/index.ts';

/** What the command needs of a shape. */
interface Reader {
  definitions(tools: Iterable<ToolSchema>): { readonly names: ToolNames };
  /** The call alone, or in what a reply would have around it. */
  calls(call: never, names: ToolNames): readonly ToolCallRequest[];
}

const READERS: { readonly [Name in Shape]: Reader } = {
  openaiChat: { ...openaiChat, calls: (call, names) => openaiChat.calls({ tool_calls: [call] }, names) },
  openaiResponses: { ...openaiResponses, calls: (call, names) => openaiResponses.calls({ output: [call] }, names) },
  anthropic: { ...anthropic, calls: (call, names) => anthropic.calls({ content: [call] }, names) },
  gemini: { ...gemini, calls: (call, names) => gemini.calls({ parts: [call] }, names) },
  geminiInteractions: {
    ...geminiInteractions,
    calls: (call, names) => geminiInteractions.calls({ steps: [call] }, names),
  },
  mcp,
};

/** Reads calls as providers tell them. */
export class ProviderCalls {
  readonly #dispatcher: Dispatcher;
  readonly #names = new Map<Shape, ToolNames>();

  constructor(dispatcher: Dispatcher) {
    this.#dispatcher = dispatcher;
  }

  /** The call for the dispatcher, with what could be read of it; undefined where no provider tells calls so. */
  read(value: object): { readonly shape: Shape; readonly call: ToolCallRequest } | undefined {
    const shape = detect(value);
    if (shape === undefined) return undefined;
    const [call] = READERS[shape].calls(value as never, this.#namesOf(shape));
    return { shape, call: call as ToolCallRequest };
  }

  #namesOf(shape: Shape): ToolNames {
    const names = this.#names.get(shape) ?? READERS[shape].definitions(this.#dispatcher.tools.schemas).names;
    this.#names.set(shape, names);
    return names;
  }
}
