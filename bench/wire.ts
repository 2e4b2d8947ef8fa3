import {
  anthropic,
  gemini,
  geminiInteractions,
  mcp,
  mcpSampling,
  openaiChat,
  openaiResponses,
} from '../src/wire/index.ts';
import { compare } from './compare.ts';
import { floor } from './floor.ts';
import { scenarioOf, TOOLS } from './scenario.ts';
import { printTable, ratioCell } from './table.ts';

const input = { city: 'Oslo', days: 3, units: 'metric' };
const text = JSON.stringify(input);

/** What it costs to put a call and its result into a provider's shape, as a ratio to the floor's dispatch of that call. */
export async function wireTimes(rounds: number, repeats: number): Promise<void> {
  const schema = { name: 'weather', description: 'Tells the weather.', inputSchema: { type: 'object' } };
  const dispatch = floor(scenarioOf(TOOLS['synchronous'] as never));
  const request = { id: 'call_1', name: 'weather', arguments: text };
  const result = await dispatch(request);
  const choice = {
    finish_reason: 'tool_calls',
    message: {
      tool_calls: [{ id: 'call_1', type: 'function' as const, function: { name: 'weather', arguments: text } }],
    },
  };
  const response = { output: [{ type: 'function_call', call_id: 'call_1', name: 'weather', arguments: text }] };
  const message = { stop_reason: 'tool_use', content: [{ type: 'tool_use', id: 'call_1', name: 'weather', input }] };
  const content = { parts: [{ functionCall: { id: 'call_1', name: 'weather', args: input } }] };
  const steps = { steps: [{ type: 'function_call', id: 'call_1', name: 'weather', arguments: input }] };
  const sampled = { stopReason: 'toolUse', content: message.content };
  const asked = { id: 1, method: 'tools/call', params: { name: 'weather', arguments: input } };
  const defined = mcp.definitions([schema]);
  const { names: chatNames } = openaiChat.definitions([schema]);
  const { names: geminiNames } = gemini.definitions([schema]);
  const { names } = anthropic.definitions([schema]);
  const { ratios } = await compare(
    [
      () => dispatch(request),
      () => [openaiChat.calls(choice, chatNames), openaiChat.results([result])],
      () => openaiChat.replay(choice.message, [result], chatNames),
      () => [openaiResponses.calls(response, chatNames), openaiResponses.results([result], response)],
      () => openaiResponses.replay(response, [result], chatNames),
      () => [anthropic.calls(message, names), anthropic.results([result])],
      () => anthropic.replay(message, [result], names),
      () => [gemini.calls(content, geminiNames), gemini.results([result], geminiNames)],
      () => gemini.replay(content, [result], geminiNames),
      () => [geminiInteractions.calls(steps, geminiNames), geminiInteractions.results([result], geminiNames)],
      () => geminiInteractions.replay(steps, [result], geminiNames),
      () => [mcpSampling.calls(sampled, names), mcpSampling.results([result])],
      () => mcpSampling.replay(sampled, [result], names),
      () => [mcp.calls(asked, defined.names), mcp.results([result], defined)],
    ],
    repeats,
    rounds,
  );
  const cells = ratios.map(ratioCell);
  printTable(
    'Shapes of providers: × the floor’s dispatch of the call, by a tool that answers at once',
    ['shape', 'call and result', 'replay'],
    ['openaiChat', 'openaiResponses', 'anthropic', 'gemini', 'geminiInteractions', 'mcpSampling', 'mcp'].map(
      (shape, place) => [shape, ...cells.slice(1 + 2 * place, 3 + 2 * place)],
    ),
  );
}
