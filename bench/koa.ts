import { Ajv2020 } from 'ajv/dist/2020.js';
import koaCompose from 'koa-compose';
import { nanoid } from 'nanoid';
import type { JsonValue, ToolDispatchResult } from '../src/index.ts';
import type { Contestant, Execute, Scenario } from './scenario.ts';

interface Context {
  readonly name: string;
  readonly id: string;
  readonly args: unknown;
  readonly controller: AbortController;
  input?: JsonValue;
  content?: string;
  isError?: boolean;
}

/** The five jobs as people write them on koa-compose: one async function each, a timer of its own for each call. */
export function koa({ schema, execute, allowed, limit, limitMs, logger }: Scenario): Contestant {
  const names = new Set(allowed);
  const validate = new Ajv2020({ strict: false, logger: false, allErrors: true, useDefaults: true }).compile(schema);
  const onion = koaCompose<Context>([
    async (context, next) => {
      const startedAt = performance.now();
      await next();
      if (logger.isLevelEnabled('info')) logger.info({ tool: context.name, durationMs: performance.now() - startedAt });
    },
    async (context, next) => {
      context.input = typeof context.args === 'string' ? JSON.parse(context.args) : structuredCopy(context.args);
      if (!validate(context.input)) throw new Error('invalid arguments');
      await next();
    },
    async (context, next) => {
      if (!names.has(context.name)) throw new Error('denied');
      await next();
    },
    async (context, next) => {
      await next();
      if ((context.content?.length ?? 0) > limit) context.content = context.content?.slice(0, limit) ?? '';
    },
    async (context, next) => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          context.controller.abort();
          reject(new Error('timeout'));
        }, limitMs);
      });
      try {
        await Promise.race([next(), late]);
      } finally {
        clearTimeout(timer);
      }
    },
  ]);

  return async ({ id, name, arguments: args }) => {
    const startedAt = performance.now();
    const context: Context = { name, id: id ?? nanoid(), args, controller: new AbortController() };
    try {
      await onion(context, async () => {
        context.content = (await execute(
          context.input as unknown as Parameters<Execute>[0],
          context.controller,
        )) as string;
      });
    } catch (error) {
      context.content = (error as Error).message;
      context.isError = true;
    }
    const { content = '', isError = false, input = {} } = context;
    const durationMs = performance.now() - startedAt;
    return {
      toolCallId: context.id,
      resolvedToolName: name,
      content,
      isError,
      notes: [],
      durationMs,
      requested: { name, input },
    } as ToolDispatchResult;
  };
}

function structuredCopy(value: unknown): JsonValue {
  return JSON.parse(JSON.stringify(value));
}
