import type { ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { nanoid } from 'nanoid';
import { ajvCheck } from '../middleware/schema/ajv.ts';
import type { Faults } from '../middleware/schema/faults.ts';
import { RepairedArguments, readArguments } from '../src/arguments.ts';
import {
  cloneJson,
  cutTexts,
  type DispatchNote,
  type JsonValue,
  MalformedArguments,
  notFound,
  type RequestedCall,
  type ToolCallRequest,
  type ToolDispatchResult,
  type ToolError,
  type ToolErrorCode,
  type ToolErrorOptions,
  type ToolOutcome,
  toolError,
  toToolError,
} from '../src/index.ts';
import type { Contestant, Execute, Running, Scenario } from './scenario.ts';

const NO_NOTES: readonly DispatchNote[] = [];

/** What is kept for each tool. */
interface Entry {
  readonly execute: Execute;
  readonly validate: ValidateFunction;
}

/**
 * The five jobs – permission, validation, time limit, output limit, log – by hand, in one function, as somebody writes them who
 * knows what costs: no layer, no async function, and no closure or timer unless the tool takes its time. It keeps what such code
 * can keep of the engine's promises: one result for every call, unique ids, arguments of its own for the tool. It shares the
 * engine's pure functions for reading and copying arguments and for messages. That its results are the engine's is tested.
 *
 * @param armed `each`: a timer for every call. `turn`: those that still wait are armed once per turn of the event loop.
 */
export function floor(scenario: Scenario, armed: 'each' | 'turn' = 'each'): Contestant {
  const { limit, limitMs, logger } = scenario;
  const ajv = new Ajv2020({ strict: false, logger: false, allErrors: true, useDefaults: true, ownProperties: true });
  const entry: Entry = { execute: scenario.execute, validate: ajv.compile(scenario.schema) };
  const tools = new Map<string, Entry>([[scenario.name, entry]]);
  const allowed = new Set(scenario.allowed);
  const inFlight = new Set<string>();
  const waiting = new Set<() => void>();

  return function dispatch(request: ToolCallRequest): Promise<ToolDispatchResult> {
    const startedAt = performance.now();
    const { id, name, arguments: raw } = request;
    const input = readArguments(raw, name, () => true);
    const toolCallId = id === undefined || id === '' || inFlight.has(id) ? nanoid() : id;
    if (input instanceof MalformedArguments || input instanceof RepairedArguments)
      throw new Error('the benchmark sends no broken arguments');
    const requested = requestedCall(request, input);
    const tool = tools.get(name);
    if (tool === undefined)
      return now(failed(name, notFound(name, [...tools.keys()])), toolCallId, startedAt, requested);

    const parsed = cloneJson(input) as never;
    if (!tool.validate(parsed)) {
      return now(refused(name, 'invalid_arguments', faults(name, input)), toolCallId, startedAt, requested);
    }
    if (!allowed.has(name)) {
      const message = `The call of tool "${name}" was denied: no rule allows it. Do not make the same call again.`;
      return now(refused(name, 'denied', message), toolCallId, startedAt, requested);
    }

    const running = new OwnSignal();
    let returned: unknown;
    try {
      returned = tool.execute(parsed, running);
    } catch (thrown) {
      return now(failed(name, toToolError(thrown, name)), toolCallId, startedAt, requested);
    }
    if (typeof returned === 'string') return now(succeeded(name, returned), toolCallId, startedAt, requested);
    return later(name, returned as Promise<string>, running, toolCallId, startedAt, requested);
  };

  function now(outcome: ToolOutcome, toolCallId: string, startedAt: number, requested: RequestedCall) {
    return Promise.resolve(finish(outcome, toolCallId, startedAt, requested));
  }

  function later(
    name: string,
    returned: Promise<string>,
    running: OwnSignal,
    toolCallId: string,
    startedAt: number,
    requested: RequestedCall,
  ): Promise<ToolDispatchResult> {
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const arm = () => {
        timer = setTimeout(() => {
          inFlight.delete(toolCallId);
          running.abort();
          setImmediate(() => resolve(finish(late(name), toolCallId, startedAt, requested)));
        }, limitMs);
      };
      inFlight.add(toolCallId);
      if (armed === 'each') arm();
      else if (waiting.add(arm).size === 1) setImmediate(armWaiting);
      returned.then(
        (value) => {
          waiting.delete(arm);
          clearTimeout(timer);
          inFlight.delete(toolCallId);
          resolve(finish(succeeded(name, value), toolCallId, startedAt, requested));
        },
        (thrown) => {
          waiting.delete(arm);
          clearTimeout(timer);
          inFlight.delete(toolCallId);
          resolve(finish(failed(name, toToolError(thrown, name)), toolCallId, startedAt, requested));
        },
      );
    });
  }

  function armWaiting() {
    for (const arm of waiting) arm();
    waiting.clear();
  }

  function finish(outcome: ToolOutcome, toolCallId: string, startedAt: number, requested: RequestedCall) {
    const durationMs = performance.now() - startedAt;
    if (logger.isLevelEnabled('error'))
      logger.info({ tool: outcome.resolvedToolName, toolCallId, durationMs }, 'tool call');
    const { resolvedToolName, content, isError, notes, error } = outcome;
    return error === undefined
      ? { resolvedToolName, content, isError, notes, toolCallId, durationMs, requested }
      : { resolvedToolName, content, isError, error, notes, toolCallId, durationMs, requested };
  }

  function succeeded(name: string, content: string): ToolOutcome {
    if (content.length > limit || !content.isWellFormed()) return cut(name, content);
    return { resolvedToolName: name, content, isError: false, notes: NO_NOTES };
  }

  function cut(name: string, content: string): ToolOutcome {
    const marker = (leftOut: number, total: number) =>
      `\n[… ${leftOut} of ${total} characters left out. To see them, ask for less at a time: narrower arguments, a page, a range.]\n`;
    const [text = ''] = cutTexts([content], { limit, unit: 'characters', keep: 'both', marker });
    const message = `The answer had ${content.length} characters; the limit is ${limit}.`;
    return {
      resolvedToolName: name,
      content: text,
      isError: false,
      notes: [{ type: 'truncated', by: 'outputLimit', message }],
    };
  }

  function faults(name: string, input: JsonValue): string {
    const list = (ajvCheck(scenario.schema)(cloneJson(input)) as Faults).describe(8, 300);
    return `The arguments of tool "${name}" are invalid:\n${list}\nSend the call again with these put right.`;
  }

  function late(name: string): ToolOutcome {
    const unknown = 'It may still be running, so its effect is unknown: check before you call it again.';
    const message = `Tool "${name}" did not finish within its limit of ${limitMs} ms. ${unknown}`;
    return refused(name, 'timeout', message, { executed: 'unknown' });
  }

  function refused(name: string, code: ToolErrorCode, message: string, options?: ToolErrorOptions): ToolOutcome {
    return failed(name, toolError(code, message, options));
  }

  function failed(name: string, error: ToolError): ToolOutcome {
    return { resolvedToolName: name, content: error.message, isError: true, error, notes: NO_NOTES };
  }
}

/** A signal that is made when somebody looks at it. */
class OwnSignal implements Running {
  #controller: AbortController | undefined;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }

  abort(): void {
    this.#controller?.abort();
  }
}

function requestedCall({ id, name, arguments: raw }: ToolCallRequest, input: JsonValue): RequestedCall {
  if (id === undefined) return typeof raw === 'string' ? { name, input, rawArguments: raw } : { name, input };
  return typeof raw === 'string' ? { id, name, input, rawArguments: raw } : { id, name, input };
}
