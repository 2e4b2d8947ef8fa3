import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import {
  createDispatcher,
  defineTool,
  isConcurrencySafe,
  type JsonObject,
  type JsonSchema,
  type StandardSchema,
  type Tool,
  type ToolDefinition,
  ToolRegistry,
} from 'toolonion';
import * as v from 'valibot';
import { z } from 'zod';
import type { Equal, Expect } from './equal.ts';

// Every way of writing `execute`, and the predicates, get what the schema says.

const search = defineTool({
  name: 'search',
  description: 'Searches notes.',
  inputSchema: {
    type: 'object',
    properties: {
      query: { type: 'string' },
      limit: { type: 'integer', default: 10, minimum: 1 },
      order: { enum: ['newest', 'oldest'] },
      tags: { type: 'array', items: { type: 'string' } },
      owner: { type: ['string', 'null'] },
      where: {
        anyOf: [{ type: 'string' }, { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] }],
      },
    },
    required: ['query'],
    additionalProperties: false,
  },
  concurrencySafe: ({ limit }) => limit < 100,
  resourceKey: (input) => input.owner ?? undefined,
  execute: ({ query, limit, order = 'newest', tags = [], where }, call) => {
    call.report({ message: query.toUpperCase(), total: limit.valueOf() });
    const id = typeof where === 'object' ? where.id.toFixed() : where?.trim();
    return { order: order === 'oldest', tags: tags.map((tag) => tag.length), id };
  },
});
interface SearchInput {
  query: string;
  limit: number;
  order?: 'newest' | 'oldest';
  tags?: string[];
  owner?: string | null;
  where?: string | { id: number };
}
export type Search = Expect<Equal<typeof search, Tool<SearchInput>>>;

const methods = defineTool({
  name: 'methods',
  description: 'A method, written before the schema it depends on.',
  async execute({ path }, { signal }) {
    return path.concat(String(signal.aborted));
  },
  inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
});

const streaming = defineTool({
  name: 'streaming',
  description: 'An async generator.',
  inputSchema: { type: 'object', properties: { count: { type: 'number' } }, required: ['count'] },
  async *execute({ count }) {
    for (let index = 0; index < count; index++) yield `${index} `;
  },
});

const shown = defineTool({ name: 'shown', description: 'Shown to the model, run elsewhere.' });

// No arguments: nothing can be read of them.
const plain = defineTool({
  name: 'plain',
  description: 'Takes no arguments.',
  execute: (input) => {
    // @ts-expect-error: there is no such argument
    return input.path;
  },
});
// biome-ignore lint/complexity/noBannedTypes: the type of an object without properties
export type Plain = [Expect<Equal<typeof plain, Tool<{}>>>, Expect<Equal<typeof shown, Tool<{}>>>];

declare const known: JsonSchema;
const remote = defineTool({
  name: 'remote',
  description: 'A schema that is not known before the program runs.',
  inputSchema: known,
  execute: (input) => Object.keys(input),
});
export type Remote = Expect<Equal<typeof remote, Tool<JsonObject>>>;

const literal = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] } as const;
const named = defineTool({
  name: 'named',
  description: 'A named schema.',
  inputSchema: literal,
  execute: ({ a }) => a + 1,
});

// Standard Schemas, as their libraries make them.

const fromZod = defineTool({
  name: 'from_zod',
  description: 'zod.',
  inputSchema: z.object({
    city: z.string(),
    on: z.string().transform((text) => new Date(text)),
    days: z.int().default(3),
  }),
  outputSchema: z.object({ degrees: z.number() }),
  concurrencySafe: ({ days }) => days < 10,
  execute: ({ city, on, days }) => ({ degrees: city.length + on.getTime() + days }),
});
const city = v.object({ city: v.string(), days: v.optional(v.number(), 3) });
const fromValibot = defineTool({
  name: 'from_valibot',
  description: 'valibot, converted.',
  inputSchema: toStandardJsonSchema(city),
  execute: ({ city, days }) => city.repeat(days),
});
const fromRawValibot = defineTool({
  name: 'from_raw_valibot',
  description: 'valibot, its JSON Schema beside it.',
  inputSchema: city,
  jsonSchema: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'number' } } },
  execute: ({ city, days }) => city.repeat(days),
});
const fromArktype = defineTool({
  name: 'from_arktype',
  description: 'arktype.',
  inputSchema: type({ city: 'string', 'days?': 'number' }),
  outputSchema: type({ degrees: 'number' }),
  execute: ({ city, days = 3 }) => city.repeat(days),
});
declare const anySchema: StandardSchema;
const fromAny = defineTool({
  name: 'any',
  description: 'Any.',
  inputSchema: anySchema,
  execute: (input) => String(input),
});

// A function around defineTool keeps what it infers.

function readOnly<const Schema extends JsonSchema | StandardSchema>(definition: ToolDefinition<Schema>) {
  return defineTool({ ...definition, readOnly: true });
}
const read = readOnly({
  name: 'read',
  description: 'Reads.',
  inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  execute: ({ path }) => path.trim(),
});
export type Read = Expect<Equal<typeof read, Tool<{ path: string }>>>;

// Lists hold every tool.

const all: readonly Tool[] = [
  search,
  methods,
  streaming,
  shown,
  plain,
  remote,
  named,
  fromZod,
  fromValibot,
  fromRawValibot,
  fromArktype,
  fromAny,
  read,
];
createDispatcher({ tools: all });
createDispatcher({ tools: [search, methods, fromZod, plain] });
createDispatcher({
  tools: [
    defineTool({
      name: 'inline',
      description: 'What a list expects of its tools does not get in the way.',
      inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
      execute: ({ path }) => path.trim(),
    }),
  ],
});
new ToolRegistry([search, fromArktype, plain]).register(streaming, { replace: true }).register(fromZod);
new ToolRegistry(new Set([search, methods]));
isConcurrencySafe(search, { query: 'q', limit: 1 });

// What is not possible must not compile.

// A tool of unknown input cannot be run by accident.
const [first] = all;
// @ts-expect-error: no value is `never`
first?.execute?.({ query: 'q' }, {} as never);
// @ts-expect-error: `limit` is missing
isConcurrencySafe(search, { query: 'q' });
// @ts-expect-error: a tool for one input is not one for another where its predicates would be asked
export const other: Tool<{ city: string }> = search;
// @ts-expect-error: immutable
search.name = 'find';
// @ts-expect-error: immutable
search.schema.inputSchema.type = 'array';
// @ts-expect-error: made by defineTool only, so that it has a `schema`
createDispatcher({ tools: [{ name: 'raw', description: 'Raw.', inputSchema: {} }] });

defineTool({
  name: 'wrong_property',
  description: '',
  inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  // @ts-expect-error: it is `path`
  execute: ({ file }) => file,
});
defineTool({
  name: 'wrong_type',
  description: '',
  inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  // @ts-expect-error: text has no toFixed
  execute: ({ path }) => path.toFixed(),
});
defineTool({
  name: 'optional',
  description: '',
  inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
  // @ts-expect-error: it may be missing
  execute: ({ path }) => path.trim(),
});
defineTool({
  name: 'wrong_annotation',
  description: '',
  inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  // @ts-expect-error: not what the schema says
  execute: (input: { path: number }) => input.path,
});
defineTool({
  name: 'wrong_predicate',
  description: '',
  inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  // @ts-expect-error: it is `path`
  resourceKey: ({ file }) => file,
  // @ts-expect-error: true or false
  concurrencySafe: ({ path }) => path,
});
defineTool({
  name: 'misspelt',
  description: '',
  // @ts-expect-error: it is `readOnly`
  readonly: true,
});
defineTool({
  name: 'misspelt_schema',
  description: '',
  // @ts-expect-error: it is `inputSchema`
  parameters: { type: 'object' },
});
// @ts-expect-error: a tool without a description is of no use to a model
defineTool({ name: 'wordless' });
// @ts-expect-error: a schema is an object
defineTool({ name: 'schema', description: '', inputSchema: 'object' });
// @ts-expect-error: so is that of a property
defineTool({ name: 'schema', description: '', inputSchema: { type: 'object', properties: { path: 'string' } } });
// @ts-expect-error: required is a list of names
defineTool({ name: 'schema', description: '', inputSchema: { type: 'object', required: true } });
// @ts-expect-error: true or false
defineTool({ name: 'trait', description: '', destructive: 'yes' });
