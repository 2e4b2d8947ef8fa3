// The AI SDK in both versions, driven by its own model for tests: a script of turns, and what the model was sent.

import * as ai7 from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import * as ai6 from 'ai-6';
import { MockLanguageModelV3, simulateReadableStream } from 'ai-6/test';

/** A call the model makes: its arguments as an object, or as the text it writes. */
export interface Asked {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

/** What the model says in one turn: text, or calls. */
export type Turn = string | readonly Asked[];

/** What the model got back for a call. */
export interface Told {
  readonly type: string;
  readonly toolCallId: string;
  readonly output: { readonly type: string; readonly value?: unknown; readonly reason?: string };
}

/** The two versions differ in their types only where nothing here depends on it. */
export type Sdk = typeof ai6;
export type GenerateOptions = Partial<Omit<Parameters<typeof ai6.generateText>[0], 'model'>>;

const usage = { inputTokens: {}, outputTokens: {} };

function contentOf(turn: Turn): readonly Record<string, unknown>[] {
  if (typeof turn === 'string') return [{ type: 'text', text: turn }];
  return turn.map(({ id: toolCallId, name: toolName, input }) => ({
    type: 'tool-call',
    toolCallId,
    toolName,
    input: typeof input === 'string' ? input : JSON.stringify(input),
  }));
}

function finishOf(turn: Turn): unknown {
  const reason = typeof turn === 'string' ? 'stop' : 'tool-calls';
  return { unified: reason, raw: reason };
}

function chunksOf(turn: Turn): readonly unknown[] {
  const content =
    typeof turn === 'string'
      ? [
          { type: 'text-start', id: 't' },
          { type: 'text-delta', id: 't', delta: turn },
          { type: 'text-end', id: 't' },
        ]
      : contentOf(turn);
  return [{ type: 'stream-start', warnings: [] }, ...content, { type: 'finish', finishReason: finishOf(turn), usage }];
}

/** A model that says what is written, turn by turn; all turns after the last are `done`. */
export class Script {
  readonly model: MockLanguageModelV3;
  #turn = 0;

  constructor(version: string, turns: readonly Turn[]) {
    const next = () => turns[this.#turn++] ?? 'done';
    const options = {
      doGenerate: async () => {
        const turn = next();
        return { content: contentOf(turn), finishReason: finishOf(turn), usage, warnings: [] };
      },
      doStream: async () => ({ stream: simulateReadableStream({ chunks: [...chunksOf(next())] }) }),
    };
    const Model =
      version === '6' ? MockLanguageModelV3 : (MockLanguageModelV4 as unknown as typeof MockLanguageModelV3);
    this.model = new Model(options as unknown as ConstructorParameters<typeof MockLanguageModelV3>[0]);
  }

  /** What the model was sent in its last turn. */
  get prompt(): readonly { readonly role: string; readonly content: unknown }[] {
    return [...this.model.doGenerateCalls, ...this.model.doStreamCalls].at(-1)?.prompt ?? [];
  }

  /** What it was told of its calls, in all turns. */
  get told(): readonly Told[] {
    const messages = this.prompt.filter(({ role }) => role === 'tool');
    return messages.flatMap(({ content }) => (content as readonly Told[]).filter(({ type }) => type === 'tool-result'));
  }

  /** The tools it was shown in its last turn. */
  get tools(): readonly unknown[] {
    return [...this.model.doGenerateCalls, ...this.model.doStreamCalls].at(-1)?.tools ?? [];
  }
}

export const VERSIONS: readonly (readonly [version: string, sdk: Sdk])[] = [
  ['6', ai6],
  ['7', ai7 as unknown as Sdk],
];
