// The servers of the examples, before the real client of the protocol's package.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { type CreateMessageRequest, CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { exampleFile, Programs } from '../../support/examples.ts';
import { root } from '../../support/pages.ts';

const examples = ['mcp', 'mcp-sampling'].map((file) => exampleFile(`docs/examples/wire/${file}.ts`));
let programs: Programs;

beforeAll(async () => {
  programs = await Programs.compile(examples, `${root}/test/runtimes`);
}, 120_000);

afterAll(() => programs.remove());

async function withServer(place: number, client: Client, work: () => Promise<void>): Promise<void> {
  const args = [programs.compiled(examples[place] as (typeof examples)[number])];
  await client.connect(new StdioClientTransport({ command: process.execPath, args }));
  try {
    await work();
  } finally {
    await client.close();
  }
}

test('both compile, and take less than 40 lines', () => {
  expect(programs.errors).toEqual([]);
  for (const { code } of examples) expect(code.trimEnd().split('\n').length).toBeLessThan(40);
});

test('a server by hand lists its tools and answers calls, wrong ones as well', async () => {
  const client = new Client({ name: 'test', version: '1' });
  await withServer(0, client, async () => {
    const { tools } = await client.listTools();
    expect(tools).toMatchObject([{ name: 'weather', annotations: { readOnlyHint: true } }]);
    const answers = await Promise.all(
      [{ city: 'Oslo' }, { town: 'Oslo' }].map((input) => client.callTool({ name: 'weather', arguments: input })),
    );
    expect(answers[0]).toMatchObject({ content: [{ type: 'text', text: 'Sunny in Oslo.' }] });
    expect(answers[1]).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('"city" is required') }],
    });
    expect(await client.callTool({ name: 'whether' })).toMatchObject({ isError: true });
  });
});

test('an agent in a server has its calls answered, and the wrong ones put right in what the client is sent', async () => {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { sampling: { tools: {} } } });
  const asked: CreateMessageRequest['params'][] = [];
  const uses = [
    { type: 'tool_use' as const, id: 'c1', name: 'weather', input: { city: 'Oslo' } },
    { type: 'tool_use' as const, id: 'c1', name: 'the weather, please', input: { city: 'Bergen' } },
  ];
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
    asked.push(params);
    const isFirst = asked.length === 1;
    return {
      model: 'scripted',
      role: 'assistant',
      stopReason: isFirst ? 'toolUse' : 'endTurn',
      content: isFirst ? uses : [{ type: 'text', text: 'Oslo.' }],
    };
  });
  await withServer(1, client, async () => {
    expect(await client.callTool({ name: 'advise' })).toMatchObject({ content: [{ type: 'text', text: 'Oslo.' }] });
  });
  expect(asked[0]?.tools).toMatchObject([{ name: 'weather', inputSchema: { type: 'object' } }]);
  const [, replayed, answered] = asked[1]?.messages ?? [];
  const [first, second] = [replayed?.content].flat();
  expect(first).toEqual(uses[0]);
  expect(second).toMatchObject({ name: 'the_weather__please', id: expect.not.stringMatching(/^c1$/) });
  expect(answered?.content).toMatchObject([
    { type: 'tool_result', toolUseId: 'c1', content: [{ text: 'Sunny in Oslo.' }] },
    { type: 'tool_result', toolUseId: (second as { id: string }).id, isError: true },
  ]);
});
