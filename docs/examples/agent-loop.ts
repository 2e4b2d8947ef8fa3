import { fileURLToPath } from 'node:url';
import { type Content, createDispatcher, forModel, type ToolCallRequest, ToolContext } from 'toolonion';
import { readOnlyAllowed, standard } from 'toolonion/middleware';
import { countLines, listDirectory, readLines } from './tools.ts';

/** Whatever a provider's client has in the place of these; see docs/guide/agent-loops.md. */
type Message =
  | { readonly role: 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string; readonly toolCalls: readonly ToolCallRequest[] }
  | { readonly role: 'tool'; readonly toolCallId: string; readonly content: Content; readonly isError: boolean };

type Model = (messages: readonly Message[]) => Promise<Message & { readonly role: 'assistant' }>;

const dispatcher = createDispatcher({
  tools: [listDirectory, readLines, countLines],
  middleware: standard({ permission: { check: readOnlyAllowed }, logging: false }),
  context: new ToolContext({ cwd: fileURLToPath(new URL('../..', import.meta.url)), isNonInteractive: true }),
});

/** The loop people already have: ask the model, run its tools, tell it what came out, until it asks for none. */
async function run(model: Model, question: string, maxTurns = 10): Promise<string> {
  const messages: Message[] = [{ role: 'user', content: question }];
  for (let turn = 0; turn < maxTurns; turn++) {
    const reply = await model(messages);
    messages.push(reply);
    print(reply);
    if (reply.toolCalls.length === 0) return reply.content;
    const results = await dispatcher.dispatchAll(reply.toolCalls);
    for (const [index, result] of results.entries()) {
      // The id the model gave, which the provider wants back.
      const toolCallId = reply.toolCalls[index]?.id ?? result.toolCallId;
      const message: Message = { role: 'tool', toolCallId, content: forModel(result), isError: result.isError };
      messages.push(message);
      print(message);
    }
  }
  throw new Error(`The model still asked for tools after ${maxTurns} turns.`);
}

/** A model without a network: it says its lines one after the other. The second corrects the first by what it was told. */
const script: readonly (Message & { readonly role: 'assistant' })[] = [
  {
    role: 'assistant',
    content: '',
    toolCalls: [
      { id: 'a1', name: 'list_directory', arguments: '{"path":"docs/examples"}' },
      { id: 'a2', name: 'count_lines', arguments: '{"file":"LICENSE"}' },
    ],
  },
  { role: 'assistant', content: '', toolCalls: [{ id: 'b1', name: 'count_lines', arguments: '{"path":"LICENSE"}' }] },
  { role: 'assistant', content: 'The licence has 22 lines.', toolCalls: [] },
];

const scripted: Model = async (messages) => {
  const line = script[messages.filter((message) => message.role === 'assistant').length];
  if (line === undefined) throw new Error('The script is over.');
  return line;
};

function print(message: Message): void {
  if (message.role === 'tool') console.log(`tool       ${message.toolCallId}: ${JSON.stringify(message.content)}`);
  if (message.role !== 'assistant') return;
  for (const { id, name, arguments: text } of message.toolCalls) console.log(`assistant  ${id}: ${name} ${text}`);
  if (message.content !== '') console.log(`assistant  ${message.content}`);
}

await run(scripted, 'How long is the licence?');
