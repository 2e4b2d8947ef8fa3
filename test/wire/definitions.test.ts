import { describe, expect, test } from '@jest/globals';
import { deepFreeze, type JsonSchema } from 'toolonion';
import { anthropic, gemini, geminiInteractions, mcp, mcpSampling, openaiChat, openaiResponses } from 'toolonion/wire';
import { worker } from './shapes.ts';

const tool = (inputSchema: JsonSchema, name = 'work') => ({ name, description: 'Works.', inputSchema });
const strict = { strict: true };
const text = { type: 'string' } as const;
const described = 'It is told in the description, as no rule.';

function openai(properties: Record<string, unknown>, rest: JsonSchema = {}) {
  const given = deepFreeze({ type: 'object', properties, required: Object.keys(properties), ...rest });
  const { tools, losses } = openaiResponses.definitions([tool(given as JsonSchema)], strict);
  const [told] = tools;
  return { isStrict: told?.strict, own: told?.parameters as JsonSchema, losses };
}

describe('strict', () => {
  test('is told to OpenAI and Anthropic with the tool, and to Gemini by its own setting', () => {
    const one = [tool({ type: 'object', properties: { a: text }, required: ['a'] })];
    expect(openaiChat.definitions(one, strict).tools[0]?.function.strict).toBe(true);
    expect(openaiResponses.definitions(one, strict).tools[0]?.strict).toBe(true);
    expect(anthropic.definitions(one, strict).tools[0]?.strict).toBe(true);
    for (const { definitions } of [gemini, geminiInteractions])
      expect(JSON.stringify(definitions(one, strict).tools)).not.toContain('strict');
    expect(openaiChat.definitions(one).tools[0]?.function).not.toHaveProperty('strict');
    expect(anthropic.definitions(one).tools[0]).not.toHaveProperty('strict');
  });

  test('has OpenAI name all properties, with null for those that may be missing', () => {
    const kinds = {
      plain: text,
      several: { type: ['string', 'number'] },
      listed: { enum: ['a', 1] },
      constant: { const: 'a' },
      object: { type: 'object', properties: { a: text }, required: ['a'], description: 'An object.' },
      either: { anyOf: [text, { type: 'number' }], description: 'Either.' },
      nullable: { type: ['string', 'null'] },
      open: { type: 'string', nullable: true },
      definition: { $ref: '#/$defs/a' },
    };
    const { own, isStrict, losses } = openai(kinds, { required: [], $defs: { a: text } });
    expect({ isStrict, losses }).toEqual({ isStrict: true, losses: [] });
    const nothing = { type: 'null' };
    expect(own).toEqual({
      type: 'object',
      properties: {
        plain: { type: ['string', 'null'] },
        several: { type: ['string', 'number', 'null'] },
        listed: { anyOf: [{ type: 'string', enum: ['a'] }, { type: 'integer', enum: [1] }, nothing] },
        constant: { anyOf: [{ type: 'string', const: 'a' }, nothing] },
        object: {
          description: 'An object.',
          anyOf: [{ type: 'object', properties: { a: text }, required: ['a'], additionalProperties: false }, nothing],
        },
        either: { description: 'Either.', anyOf: [text, { type: 'number' }, nothing] },
        nullable: { type: ['string', 'null'] },
        open: { type: ['string', 'null'] },
        definition: { anyOf: [{ $ref: '#/$defs/a' }, nothing] },
      },
      required: Object.keys(kinds),
      additionalProperties: false,
      $defs: { a: text },
    });
  });

  test('leaves optional what is optional at Anthropic', () => {
    const given = tool({ type: 'object', properties: { a: text, b: text }, required: ['a'] });
    const { tools, losses } = anthropic.definitions([given], strict);
    expect(tools[0]?.input_schema).toEqual({ ...given.inputSchema, additionalProperties: false });
    expect(losses).toEqual([]);
  });

  test.each<[what: string, given: JsonSchema, told: JsonSchema, keyword: string]>([
    [
      'a length',
      { ...text, minLength: 1, description: 'A word.' },
      { ...text, description: 'A word. (minLength: 1)' },
      'minLength',
    ],
    ['a default', { ...text, default: 'a' }, { ...text, description: '(default: "a")' }, 'default'],
    ['an unknown format', { ...text, format: 'uri' }, { ...text, description: '(format: "uri")' }, 'format'],
    [
      'a pattern that looks around',
      { ...text, pattern: '^(?!a)' },
      { ...text, description: '(pattern: "^(?!a)")' },
      'pattern',
    ],
    [
      'uniqueness',
      { type: 'array', items: text, uniqueItems: true },
      { type: 'array', items: text, description: '(uniqueItems: true)' },
      'uniqueItems',
    ],
    ['another schema', { ...text, not: { const: 'a' } }, { ...text, description: '(not: {"const":"a"})' }, 'not'],
  ])('tells %s in the description', (_, given, told, keyword) => {
    const { own, isStrict, losses } = openai({ a: given });
    expect([isStrict, own.properties?.['a']]).toEqual([true, told]);
    expect(losses).toEqual([{ tool: 'work', place: '/properties/a', keyword, message: described }]);
  });

  test('leaves out of a description what is long or of no use to a model, and says so', () => {
    const { own, losses } = openai({ a: { ...text, 'x-own': 1, $comment: 'Hm.', examples: ['x'.repeat(300)] } });
    expect(own.properties?.['a']).toEqual(text);
    expect(losses.map(({ keyword, message }) => [keyword, message])).toEqual(
      ['x-own', '$comment', 'examples'].map((keyword) => [keyword, 'It is not told.']),
    );
  });

  test.each<[what: string, given: unknown, keyword: string, why: string]>([
    [
      'an object of any properties',
      { type: 'object' },
      'additionalProperties',
      'an object may have any properties here.',
    ],
    [
      'a map',
      { type: 'object', additionalProperties: text },
      'additionalProperties',
      'an object may have any properties here.',
    ],
    ['anything', {}, 'type', 'any value may stand here.'],
    ['anything, in short', true, 'type', 'any value may stand here.'],
    ['nothing', false, 'false', 'no value may stand here.'],
    ['a list of anything', { type: 'array' }, 'items', 'a list may hold any values here.'],
    [
      'a reference elsewhere',
      { $ref: 'https://example.com/a' },
      '$ref',
      '"https://example.com/a" leads nowhere within the schema.',
    ],
    ['an allOf within itself', { $ref: '#/$defs/own' }, '$ref', 'the schema is nothing but itself.'],
  ])('is not for %s: the schema is told as it is', (_, given, keyword, why) => {
    const $defs = keyword === '$ref' ? { own: { anyOf: [{ $ref: '#/$defs/own' }] } } : undefined;
    const { own, isStrict, losses } = openai({ a: given }, $defs && { $defs });
    expect([isStrict, own.properties?.['a']]).toEqual([false, given]);
    expect(losses).toContainEqual({
      tool: 'work',
      place: '/properties/a',
      keyword,
      message: `The schema is told as it is, and not held to: ${why}`,
    });
  });

  test('merges what all of several schemas say', () => {
    const $defs = {
      base: { title: 'Base', type: 'object', properties: { a: text }, required: ['a'] },
      more: { $ref: '#/$defs/base' },
    };
    const more = { title: 'More', properties: { b: { type: 'string', pattern: '^a' } }, required: ['b'] };
    const again = { properties: { b: { pattern: '^a', type: 'string' } } };
    const { own, losses } = openai(
      {
        a: { title: 'All', allOf: [{ $ref: '#/$defs/more', description: 'The base.' }, more, again] },
        n: { type: 'integer', minimum: 1, allOf: [{ type: 'number', minimum: 2, maximum: 9 }, { maximum: 7 }] },
      },
      { $defs },
    );
    expect(own.properties).toEqual({
      a: {
        title: 'All',
        description: 'The base.',
        type: 'object',
        properties: { a: text, b: { type: 'string', pattern: '^a' } },
        required: ['a', 'b'],
        additionalProperties: false,
      },
      n: { type: 'integer', minimum: 2, maximum: 7 },
    });
    expect(losses).toEqual([]);
  });

  test.each<[what: string, allOf: unknown[]]>([
    ['of other types', [text, { type: 'number' }]],
    [
      'with other rules',
      [
        { ...text, pattern: 'a' },
        { ...text, pattern: 'b' },
      ],
    ],
    [
      'of which one is closed',
      [{ type: 'object', properties: { a: text }, additionalProperties: false }, { properties: { b: text } }],
    ],
    ['of conditions', [{ if: { required: ['a'] } }, { then: { required: ['b'] } }]],
    ['that hold themselves, with rules beside', [{ $ref: '#/$defs/node' }, { required: ['a'] }]],
  ])('is not for all of several schemas %s', (_, allOf) => {
    const $defs = { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } };
    const { isStrict, losses } = openai({ a: { allOf } }, { $defs });
    expect(isStrict).toBe(false);
    expect(losses[0]).toMatchObject({ place: '/properties/a/allOf/1', keyword: 'allOf' });
    const { losses: lost } = gemini.definitions(
      [tool({ type: 'object', properties: { a: { allOf } }, $defs })],
      strict,
    );
    expect(lost[0]).toMatchObject({
      place: '/properties/a/allOf/1',
      message: 'It is not told, for it does not go with the rest.',
    });
  });

  test('takes no time for schemas that put in others, twice as many each time', () => {
    const names = Array.from({ length: 40 }, (_, n) => `d${n}`);
    const next = (n: number) => ({ $ref: `#/$defs/d${n + 1}` });
    const $defs = Object.fromEntries(names.map((name, n) => [name, n < 39 ? { allOf: [next(n), next(n)] } : text]));
    expect(openai({ a: { allOf: [{ $ref: '#/$defs/d0' }] } }, { $defs }).losses.length).toBeGreaterThan(0);
  });

  test('puts what stands beside a union into its branches, where closed objects would exclude each other', () => {
    const branch = (name: string) => ({ properties: { [name]: text }, required: [name] });
    const { own } = openai({ a: { type: 'object', ...branch('a'), anyOf: [branch('b'), branch('c')] } });
    const told = (name: string) => ({
      type: 'object',
      properties: { a: text, [name]: text },
      required: ['a', name],
      additionalProperties: false,
    });
    expect(own.properties?.['a']).toEqual({ anyOf: [told('b'), told('c')] });
  });

  test('tells a reference alone, and what is said beside it around it', () => {
    const { own, isStrict } = openai(
      { a: { $ref: '#/definitions/node', description: 'A node.' } },
      { definitions: { node: { type: 'object', properties: { next: { $ref: '#/definitions/node' } } } } },
    );
    expect(isStrict).toBe(true);
    expect(own.properties?.['a']).toEqual({ description: 'A node.', anyOf: [{ $ref: '#/$defs/node' }] });
    expect(own['$defs']).toMatchObject({ node: { required: ['next'] } });
  });

  test('is not for a schema that holds itself, at Anthropic', () => {
    const $defs = { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } };
    const given = { type: 'object', properties: { a: { $ref: '#/$defs/node' } }, $defs };
    const { tools, losses } = anthropic.definitions([tool(given)], strict);
    expect(tools[0]).toEqual({ name: 'work', description: 'Works.', input_schema: given });
    expect(losses[0]?.message).toBe('The schema is told as it is, and not held to: the schema holds itself.');
  });

  test('is not required by Gemini where a schema holds itself', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } }, required: ['next'] };
    const given = { type: 'object', properties: { a: { $ref: '#/$defs/node' } }, required: ['a'], $defs: { node } };
    const { tools, losses } = geminiInteractions.definitions([tool(given)], strict);
    expect(tools[0]?.parameters).toEqual({ ...given, $defs: { node: { ...node, required: [] } } });
    expect(losses).toMatchObject([{ place: '/$defs/node', keyword: 'required' }]);
  });

  test('tells Gemini in other words what it has no word for', () => {
    const properties = {
      a: { type: 'integer', exclusiveMinimum: 0, exclusiveMaximum: 10 },
      b: { const: 'b' },
      c: { type: 'number', exclusiveMinimum: 0 },
    };
    const { tools } = gemini.definitions([tool({ type: 'object', properties, additionalProperties: false })], strict);
    expect(tools[0]?.functionDeclarations[0]?.parametersJsonSchema).toEqual({
      type: 'object',
      properties: {
        a: { type: 'integer', minimum: 1, maximum: 9 },
        b: { type: 'string', enum: ['b'] },
        c: { type: 'number', description: '(exclusiveMinimum: 0)' },
      },
      additionalProperties: false,
    });
  });

  test('ends at Anthropic where the tools of a request are more than it holds its model to', () => {
    const one = (n: number) => tool({ type: 'object', properties: { a: text }, required: ['a'] }, `tool${n}`);
    const { tools, losses } = anthropic.definitions(
      Array.from({ length: 22 }, (_, n) => one(n)),
      strict,
    );
    expect(tools.map((told) => told.strict ?? false)).toEqual([...Array(20).fill(true), false, false]);
    expect(losses.map(({ tool: name, message }) => [name, message])).toEqual(
      ['tool20', 'tool21'].map((name) => [
        name,
        'The schema is told as it is, and not held to: with the tools before it there are 21 tools, more than 20.',
      ]),
    );
    const many = Object.fromEntries(Array.from({ length: 25 }, (_, n) => [`p${n}`, text]));
    const optional = anthropic.definitions([tool({ type: 'object', properties: many }), one(1)], strict);
    expect(optional.tools.map((told) => told.strict)).toEqual([undefined, true]);
    expect(optional.losses[0]?.message).toMatch(/there are 25 optional properties, more than 24\.$/);
  });

  test('is not for a schema of more levels than OpenAI takes', () => {
    let deep: JsonSchema = text;
    for (let level = 0; level < 10; level++) deep = { type: 'array', items: deep };
    const { isStrict, losses } = openai({ a: deep });
    expect(isStrict).toBe(false);
    expect(losses[0]?.message).toMatch(/there are 11 levels of objects and lists, more than 10\.$/);
  });

  test.each([{ strict: 'yes' }, { strct: true }])('is yes or no: %j', (options) => {
    expect(() => openaiChat.definitions([], options as never)).toThrow(
      /definitions.*\bstrict\b|\bstrict\b.*definitions/,
    );
  });
});

describe('without strict', () => {
  const union = {
    type: 'object',
    properties: { id: text },
    required: ['id'],
    oneOf: [{ properties: { a: text, kind: { const: 'a' } }, required: ['a', 'kind'] }, { $ref: '#/$defs/b' }],
    $defs: { b: { properties: { b: text, kind: { const: 'b' } }, required: ['b', 'kind'] } },
  };

  test('arguments that are one of several schemas are told as one, which is all that most providers take', () => {
    const tools = [tool(deepFreeze(union) as JsonSchema)];
    for (const { told, losses } of [
      { told: openaiChat.definitions(tools).tools[0]?.function.parameters, ...openaiChat.definitions(tools) },
      { told: openaiResponses.definitions(tools).tools[0]?.parameters, ...openaiResponses.definitions(tools) },
      { told: anthropic.definitions(tools).tools[0]?.input_schema, ...anthropic.definitions(tools) },
      {
        told: gemini.definitions(tools).tools[0]?.functionDeclarations[0]?.parametersJsonSchema,
        ...gemini.definitions(tools),
      },
      { told: geminiInteractions.definitions(tools).tools[0]?.parameters, ...geminiInteractions.definitions(tools) },
    ]) {
      expect(told).toEqual({
        type: 'object',
        properties: { id: text, a: text, b: text, kind: { anyOf: [{ const: 'a' }, { const: 'b' }] } },
        required: ['id', 'kind'],
        description: expect.stringMatching(/^\(oneOf: \[/),
        $defs: union.$defs,
      });
      expect(losses).toEqual([{ tool: 'work', place: '', keyword: 'oneOf', message: described }]);
    }
  });

  test('arguments that are a reference are told as what it leads to', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } };
    const $defs = { node, other: { $ref: '#/$defs/node' } };
    for (const $ref of ['#/$defs/node', '#/$defs/other']) {
      const { tools, losses } = openaiChat.definitions([tool({ $ref, $defs, description: 'A node.' })]);
      expect(tools[0]?.function.parameters).toEqual({ ...node, $defs, description: 'A node.' });
      expect(losses).toEqual([]);
    }
    for (const $ref of ['#', '#/$defs/nowhere', '#/$defs/own']) {
      const given = { $ref, $defs: { own: { $ref: '#/$defs/own' } } };
      expect(openaiChat.definitions([tool(given)]).tools[0]?.function.parameters).toMatchObject({ type: 'object' });
    }
  });

  test('they stay as they are at MCP, which takes them', () => {
    for (const { definitions } of [mcp, mcpSampling])
      expect(definitions([tool(union)])).toMatchObject({ tools: [{ inputSchema: union }], losses: [] });
  });

  test('a choice of what is required is told in the description', () => {
    const given = {
      type: 'object',
      properties: { a: text, b: text },
      anyOf: [{ required: ['a'] }, { required: ['b'] }],
    };
    const { tools, losses } = anthropic.definitions([tool(given)]);
    expect(tools[0]?.input_schema).toEqual({
      type: 'object',
      properties: { a: text, b: text },
      description: '(anyOf: [{"required":["a"]},{"required":["b"]}])',
    });
    expect(losses).toEqual([{ tool: 'work', place: '', keyword: 'anyOf', message: described }]);
  });

  test('names of arguments that Anthropic does not take are told as others, and lead back', async () => {
    const properties = { $filter: text, top: text, 'a b': text, a_b: text };
    const { tools, names, losses } = anthropic.definitions([
      tool({ type: 'object', properties, required: ['$filter'] }),
    ]);
    const told = tools[0]?.input_schema as JsonSchema;
    const own = Object.keys(told.properties ?? {});
    expect(own).toEqual([expect.stringMatching(/^_filter_\w{8}$/), 'top', expect.stringMatching(/^a_b_\w{8}$/), 'a_b']);
    expect(told.required).toEqual([own[0]]);
    expect(losses).toEqual([]);
    const input = { [own[0] as string]: 'x', top: 1, unknown: 2 };
    const content = [{ type: 'tool_use', id: 'a', name: 'work', input }];
    expect(anthropic.calls({ content }, names)).toEqual([
      { id: 'a', name: 'work', arguments: { $filter: 'x', top: 1, unknown: 2 } },
    ]);
    const asText = [{ type: 'tool_use', id: 'a', name: 'work', input: JSON.stringify(input) }];
    const requests = anthropic.calls({ content: asText }, names);
    expect(requests[0]?.arguments).toEqual({ $filter: 'x', top: 1, unknown: 2 });
    const results = await worker(() => 'Done.').dispatchAll(requests);
    expect(anthropic.replay({ content: asText }, results, names).content).toEqual(content);
    const wrong = [{ type: 'tool_use', id: 'a', name: 'work', input: '{"top":' }];
    expect(anthropic.calls({ content: wrong }, names)[0]?.arguments).toBe('{"top":');
  });

  test('what speaks elsewhere of an argument that is told by another name is a loss', () => {
    const properties = { $a: text, b: { $ref: '#/properties/$a' }, $c: text, $d: text };
    const { losses } = anthropic.definitions([tool({ type: 'object', properties, dependentRequired: { b: ['$c'] } })]);
    expect(losses).toEqual(
      ['$a', '$c'].map((name) => ({
        tool: 'work',
        place: '',
        keyword: 'properties',
        message: `What else speaks of "${name}" has another name for it.`,
      })),
    );
  });
});
