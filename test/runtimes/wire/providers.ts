// Providers without a network: they answer as scripted, and refuse what the real ones refuse.

import { createServer, type Server } from 'node:http';
import { expect } from '@jest/globals';

type Json = Record<string, unknown>;

/** A call of the script. Its arguments are text, which need not be JSON. */
export interface ScriptedCall {
  readonly id: string;
  readonly name: string;
  readonly text: string;
}

/** A reply: calls, or the last word; of Gemini blank for a call that it could not read itself. */
export type Turn = string | readonly ScriptedCall[];

/** What there is of a provider, for the server. */
interface Provider {
  readonly path: string;
  /** What its own package says of a request: a type, and what it needs to be imported. */
  readonly type: string;
  readonly imports: string;
  /** Throws where the real one would refuse the request. */
  check(request: Json): void;
  reply(turn: Turn): Json;
}

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const GEMINI_NAME = /^[a-zA-Z_][a-zA-Z0-9_.-]{0,63}$/;

export const PROVIDERS = {
  openaiChat: {
    path: '/v1/chat/completions',
    type: 'OpenAI.ChatCompletionCreateParamsNonStreaming',
    imports: "import type OpenAI from 'openai';",
    check({ tools, messages }) {
      for (const { type, function: told } of tools as { type: string; function: Json }[])
        checkTool(type, told, 'parameters');
      let open: unknown[] = [];
      for (const { role, tool_calls, tool_call_id, content } of messages as Json[]) {
        if (role === 'tool') {
          expect(open).toContain(tool_call_id);
          expect(content).toEqual(expect.any(String));
          open = open.filter((id) => id !== tool_call_id);
        } else expect(open).toEqual([]);
        for (const { id, function: asked } of (tool_calls ?? []) as {
          id: string;
          function: { name: string; arguments: string };
        }[]) {
          expect(id).not.toBe('');
          expect(open).not.toContain(id);
          expect(asked.name).toMatch(NAME);
          expect(JSON.parse(asked.arguments)).toEqual(expect.any(Object));
          open.push(id);
        }
      }
      expect(open).toEqual([]);
    },
    reply(turn) {
      const tool_calls =
        typeof turn === 'string'
          ? []
          : turn.map(({ id, name, text }) => ({ id, type: 'function', function: { name, arguments: text } }));
      const message = typeof turn === 'string' ? { content: turn } : { content: null, tool_calls };
      const finish_reason = typeof turn === 'string' ? 'stop' : 'tool_calls';
      return {
        id: 'r',
        object: 'chat.completion',
        choices: [{ index: 0, finish_reason, message: { role: 'assistant', ...message } }],
      };
    },
  },
  openaiResponses: {
    path: '/v1/responses',
    type: 'OpenAI.Responses.ResponseCreateParamsNonStreaming',
    imports: "import type OpenAI from 'openai';",
    check({ tools, input }) {
      for (const { type, strict, ...told } of tools as Json[]) {
        checkTool(type, told, 'parameters');
        expect(strict).toBe(false);
      }
      let open: unknown[] = [];
      for (const { type, call_id, name, arguments: text, output } of input as Json[]) {
        if (type === 'function_call') {
          expect([call_id, open]).toEqual([expect.stringMatching(/./), expect.not.arrayContaining([call_id])]);
          expect(name).toMatch(NAME);
          expect(JSON.parse(text as string)).toEqual(expect.any(Object));
          open.push(call_id);
        } else if (type === 'function_call_output') {
          expect(open).toContain(call_id);
          expect(output).toEqual(expect.any(String));
          open = open.filter((id) => id !== call_id);
        } else expect(open).toEqual([]);
      }
      expect(open).toEqual([]);
    },
    reply(turn) {
      const output =
        typeof turn === 'string'
          ? [
              {
                type: 'message',
                id: 'm',
                role: 'assistant',
                content: [{ type: 'output_text', text: turn, annotations: [] }],
              },
            ]
          : turn.map(({ id, name, text }) => ({ type: 'function_call', id: 'i', call_id: id, name, arguments: text }));
      return { id: 'r', object: 'response', status: 'completed', output };
    },
  },
  anthropic: {
    path: '/v1/messages',
    type: 'Anthropic.MessageCreateParamsNonStreaming',
    imports: "import type Anthropic from '@anthropic-ai/sdk';",
    check({ tools, messages }) {
      for (const { name, description, input_schema } of tools as Json[])
        checkTool('function', { name, description, input_schema }, 'input_schema');
      let open: unknown[] = [];
      for (const [place, { role, content }] of (messages as { role: string; content: string | Json[] }[]).entries()) {
        expect(role).toBe(place % 2 === 0 ? 'user' : 'assistant');
        const blocks = typeof content === 'string' ? [] : content;
        const answered = blocks.filter(({ type }) => type === 'tool_result');
        expect(answered.map(({ tool_use_id }) => tool_use_id)).toEqual(open);
        for (const { content: told } of answered) expect(told).not.toEqual([]);
        const uses = blocks.filter(({ type }) => type === 'tool_use');
        for (const { id, name, input } of uses) {
          expect(id).toMatch(/^[a-zA-Z0-9_-]+$/);
          expect(name).toMatch(NAME);
          expect([input, Array.isArray(input)]).toEqual([expect.any(Object), false]);
        }
        open = uses.map(({ id }) => id);
        expect(new Set(open).size).toBe(open.length);
      }
      expect(open).toEqual([]);
    },
    reply(turn) {
      const content =
        typeof turn === 'string'
          ? [{ type: 'text', text: turn }]
          : turn.map(({ id, name, text }) => ({ type: 'tool_use', id, name, input: inputOf(text) }));
      const stop_reason = typeof turn === 'string' ? 'end_turn' : 'tool_use';
      return {
        id: 'r',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content,
        stop_reason,
        usage: { input_tokens: 1, output_tokens: 1 },
      };
    },
  },
  gemini: {
    path: '/v1beta/models/gemini-3-pro:generateContent',
    type: '{ contents: Content[]; tools: Tool[]; generationConfig: object }',
    imports: "import type { Content, Tool } from '@google/genai';",
    check({ tools, contents }) {
      for (const { functionDeclarations } of tools as { functionDeclarations: Json[] }[])
        for (const told of functionDeclarations) checkTool('function', told, 'parametersJsonSchema', GEMINI_NAME);
      let open: Json[] = [];
      for (const [place, { role, parts }] of (contents as { role: string; parts: Json[] }[]).entries()) {
        expect([role, parts]).toEqual([place % 2 === 0 ? 'user' : 'model', expect.not.arrayContaining([{}])]);
        const answers = parts.flatMap(({ functionResponse }) => (functionResponse ? [functionResponse as Json] : []));
        expect(answers).toEqual(
          // One without an id is found by its name and its place.
          open.map(({ id, name }) => ({ ...(id !== undefined && { id }), name, response: expect.any(Object) })),
        );
        // There has to be an answer for each call, and nothing else.
        if (open.length > 0) expect(parts.length).toBe(open.length);
        open = parts.flatMap(({ functionCall }) => (functionCall ? [functionCall as Json] : []));
        for (const { id, name, args } of open) {
          expect(id).not.toBe('');
          expect(name).toMatch(GEMINI_NAME);
          expect([args, Array.isArray(args)]).toEqual([expect.any(Object), false]);
        }
        const ids = open.flatMap(({ id }) => (id === undefined ? [] : [id]));
        expect(new Set(ids).size).toBe(ids.length);
      }
      expect(open).toEqual([]);
    },
    reply(turn) {
      const parts =
        typeof turn === 'string'
          ? [{ text: turn }]
          : turn.map(({ id, name, text }) => ({
              functionCall: { ...(id !== '' && { id }), name, args: inputOf(text) },
              thoughtSignature: 'c2ln',
            }));
      if (turn === '') return { candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL' }] };
      return { candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }] };
    },
  },
  geminiInteractions: {
    path: '/v1beta/interactions',
    type: 'Interactions.InteractionCreateParams.CreateModelInteractionParamsNonStreaming',
    imports: "import type { Interactions } from '@google/genai';",
    check({ tools, input }) {
      for (const { type, ...told } of tools as Json[]) checkTool(type, told, 'parameters', GEMINI_NAME);
      let open: Json[] = [];
      for (const { type, id, call_id, name, arguments: given, result } of input as Json[]) {
        if (type === 'function_call') {
          expect([id, open.map((call) => call['id'])]).toEqual([
            expect.stringMatching(/./),
            expect.not.arrayContaining([id]),
          ]);
          expect(name).toMatch(GEMINI_NAME);
          expect([given, Array.isArray(given)]).toEqual([expect.any(Object), false]);
          open.push({ id, name });
        } else if (type === 'function_result') {
          expect(open).toContainEqual({ id: call_id, name });
          expect(result).toEqual(expect.any(String));
          open = open.filter((call) => call['id'] !== call_id);
        } else expect(open).toEqual([]);
      }
      expect(open).toEqual([]);
    },
    reply(turn) {
      const steps =
        typeof turn === 'string'
          ? [{ type: 'model_output', content: [{ type: 'text', text: turn }] }]
          : [
              { type: 'thought', signature: 'c2ln' },
              ...turn.map(({ id, name, text }) => ({ type: 'function_call', id, name, arguments: inputOf(text) })),
            ];
      return { id: 'i', status: typeof turn === 'string' ? 'completed' : 'requires_action', steps };
    },
  },
} satisfies Record<string, Provider>;

/** What a model wrote, parsed where it can be. */
function inputOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function checkTool(type: unknown, told: Json, schema: string, name = NAME): void {
  expect([type, Object.keys(told).sort()]).toEqual(['function', ['description', 'name', schema].sort()]);
  expect(told['name']).toMatch(name);
  expect(told[schema]).toMatchObject({ type: 'object' });
}

/** A provider at an address of this machine. */
export class Stub {
  /** Each request. */
  readonly seen: Json[] = [];
  /** Why requests were refused. */
  readonly refused: string[] = [];
  readonly #server: Server;

  constructor({ path, check, reply }: Provider, script: readonly Turn[]) {
    const turns = [...script];
    this.#server = createServer(async (request, response) => {
      const pieces: Buffer[] = [];
      for await (const piece of request) pieces.push(piece);
      let status = 200;
      let answer: Json;
      try {
        expect(request.url).toBe(path);
        const asked = JSON.parse(Buffer.concat(pieces).toString('utf8')) as Json;
        this.seen.push(asked);
        check(asked);
        answer = reply(turns.shift() ?? 'The script is over.');
      } catch (error) {
        status = 400;
        this.refused.push(String((error as Error).message));
        answer = { type: 'error', error: { type: 'invalid_request_error', message: 'Refused.' } };
      }
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    });
  }

  /** @returns Its address. */
  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : ''}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
