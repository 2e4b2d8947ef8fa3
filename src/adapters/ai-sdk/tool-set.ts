import type { ToolContext } from '../../context.ts';
import type { Dispatcher } from '../../dispatcher.ts';
import { describeError } from '../../error.ts';
import { Gathering } from '../../gathering.ts';
import { cloneJson, type JsonValue } from '../../json.ts';
import type { Judgement } from '../../judgement.ts';
import {
  checkOptions,
  isBoolean,
  isFunction,
  isListOf,
  type OptionChecks,
  type PerTool,
  perTool,
  perToolCheck,
} from '../../options.ts';
import type { StreamOptions } from '../../request.ts';
import { type Setting, type SettingKey, settingKey } from '../../settings.ts';
import type { ToolStream } from '../../stream.ts';
import type { Tool } from '../../tool.ts';
import { answerIn, questionIn } from './approval.ts';
import { argumentsOf } from './arguments.ts';
import {
  type ModelOutputOptions,
  modelOutput,
  outputOf,
  type PartialOutput,
  type ToolSetOutput,
  withoutBytes,
} from './output.ts';
import { type SdkExecuteOptions, type SdkModelOutput, sdkSchema } from './sdk.ts';

/** What the SDK tells of the request a call belongs to. */
export interface SdkRequest {
  readonly toolCallId: string;
  /** The messages the model was sent. */
  readonly messages: readonly unknown[];
  /** The request's own context: `experimental_context` of version 6, the tool's of version 7. */
  readonly context: unknown;
}

/** The request a call belongs to, for tools and layers: `call.setting(sdkRequest)`. */
export const sdkRequest: SettingKey<SdkRequest> = settingKey<SdkRequest>();

/** Options of `toolSet`. */
export interface ToolSetOptions extends ModelOutputOptions {
  /** The session a request belongs to. Default: the dispatcher's. */
  readonly context?: (request: SdkRequest) => ToolContext;
  /**
   * Whether what a tool yields is passed on as preliminary results, each of them all there is so far. Default: for tools whose `execute` is a
   * generator function. For any other tool the SDK would tell its whole answer twice.
   */
  readonly preliminary?: PerTool<boolean>;
}

/** A tool as the SDK shows it to the model. */
export interface SdkToolDefinition {
  readonly type: 'dynamic';
  readonly description: string;
  readonly inputSchema: never;
  toModelOutput(options: { readonly output: unknown }): SdkModelOutput;
}

/** A tool as the SDK calls it. */
export interface SdkTool extends SdkToolDefinition {
  needsApproval: boolean | ((input: unknown, options: SdkExecuteOptions) => Promise<boolean>);
  execute(
    input: unknown,
    options: SdkExecuteOptions,
  ): AsyncGenerator<PartialOutput | ToolSetOutput> | Promise<ToolSetOutput>;
}

/**
 * A dispatcher's tools for `generateText`, `streamText` and agents of the AI SDK, versions 6 and 7. Each call goes through the dispatcher; its
 * failures are told to the model as such, and the SDK's user is asked where the gate wants somebody to be asked and has nobody.
 *
 * The SDK runs the calls of a turn side by side: give the dispatcher a `schedule` layer where tools must not be. A tool without `execute` is shown,
 * and its calls are left to whoever runs them, as the SDK has it.
 *
 * @throws TypeError naming the option and what is allowed.
 * @example await generateText({ model, prompt, tools: toolSet(dispatcher), stopWhen: stepCountIs(5) })
 */
export function toolSet(
  dispatcher: Dispatcher,
  options: ToolSetOptions = {},
): Record<string, SdkTool | SdkToolDefinition> {
  checkDispatcher('toolSet', dispatcher);
  checkOptions('toolSet', options, {
    ...MODEL_OUTPUT_OPTIONS,
    context: isFunction,
    preliminary: perToolCheck(isBoolean),
  });
  const isPreliminary = perTool<boolean | undefined>(options.preliminary, undefined);
  return byName(dispatcher, (tool) =>
    tool.execute === undefined
      ? definitionOf(tool, options)
      : executable(dispatcher, tool, options, isPreliminary(tool.name)),
  );
}

/**
 * The same tools for loops in which the SDK does not call them: it stops at each call, to be answered with `toolMessage`.
 *
 * @throws TypeError naming the option and what is allowed.
 */
export function toolDefinitions(
  dispatcher: Dispatcher,
  options: ModelOutputOptions = {},
): Record<string, SdkToolDefinition> {
  checkDispatcher('toolDefinitions', dispatcher);
  checkOptions('toolDefinitions', options, MODEL_OUTPUT_OPTIONS);
  return byName(dispatcher, (tool) => definitionOf(tool, options));
}

const MODEL_OUTPUT_OPTIONS: OptionChecks = {
  accepts: isListOf((entry) => typeof entry === 'string', 'an array of kinds and mime types'),
  version: (value) => value === 6 || value === 7 || '6 or 7',
};

/** @throws TypeError for what is none. */
export function checkDispatcher(owner: string, dispatcher: Dispatcher): void {
  if (typeof dispatcher?.judge !== 'function')
    throw new TypeError(`${owner} takes a dispatcher, as createDispatcher makes one.`);
}

/** Without a prototype, so that no tool has the name `constructor`. */
function byName<Shown>(dispatcher: Dispatcher, shown: (tool: Tool) => Shown): Record<string, Shown> {
  const tools: Record<string, Shown> = Object.create(null);
  for (const tool of dispatcher.tools) tools[tool.name] = shown(tool);
  return tools;
}

function definitionOf({ description, schema }: Tool, { accepts, version = 6 }: ModelOutputOptions): SdkToolDefinition {
  const own = { version, ...(accepts && { accepts }) };
  return {
    type: 'dynamic',
    description,
    // A copy, for providers may change what they are given.
    inputSchema: sdkSchema(cloneJson(schema.inputSchema as JsonValue)),
    toModelOutput: ({ output }) => modelOutput(output as ToolSetOutput, own),
  };
}

function executable(
  dispatcher: Dispatcher,
  tool: Tool,
  options: ToolSetOptions,
  isStreamed: boolean = isGenerator(tool.execute),
): SdkTool {
  const { name } = tool;
  const { type, description, inputSchema, toModelOutput } = definitionOf(tool, options);
  const requestOf = (input: unknown, { toolCallId: id }: SdkExecuteOptions) => ({
    id,
    name,
    arguments: argumentsOf(input),
  });
  // Written out: of two objects spread into one the SDK takes copies that cost a twentieth of its whole turn.
  return {
    type,
    description,
    inputSchema,
    toModelOutput,
    needsApproval:
      dispatcher.mayAsk &&
      ((input, sdk) => dispatcher.judge(requestOf(input, sdk), dispatchOptions(options, sdk)).then(isAsking)),
    // The SDK looks for a generator before it awaits anything.
    execute: (input, sdk) => {
      const { toolCallId, messages } = sdk;
      const own = dispatchOptions(options, sdk, answerIn(messages, { toolCallId, toolName: name, input }));
      if (isStreamed) return outputsOf(dispatcher.stream(requestOf(input, sdk), own), sdk.toolCallId, name);
      return dispatcher.dispatch(requestOf(input, sdk), own).then(outputOf);
    },
  };
}

function isAsking(judgement: Judgement): boolean {
  return questionIn(judgement) !== undefined;
}

/** What the SDK tells of a call, as a dispatcher takes it. */
export function dispatchOptions(
  { context }: Pick<ToolSetOptions, 'context'>,
  sdk: SdkExecuteOptions,
  settings: readonly Setting[] = [],
): StreamOptions {
  const { toolCallId, messages, abortSignal } = sdk;
  const request: SdkRequest = { toolCallId, messages, context: sdk.context ?? sdk.experimental_context };
  return {
    ...(abortSignal && { signal: abortSignal }),
    ...(context && { context: sessionOf(context, request) }),
    settings: [sdkRequest(request), ...settings],
  };
}

/** The host's own failure is no business of the model's. */
function sessionOf(context: NonNullable<ToolSetOptions['context']>, request: SdkRequest): ToolContext {
  try {
    return context(request);
  } catch (cause) {
    process.emitWarning(`The session of a request cannot be made: ${describeError(cause).message}`);
    throw new Error('The session of this request cannot be made.');
  }
}

/** Ever more of an answer, and the result as the last one: the SDK takes it for the answer. */
async function* outputsOf(
  stream: ToolStream,
  toolCallId: string,
  resolvedToolName: string,
): AsyncGenerator<PartialOutput | ToolSetOutput> {
  const gathering = new Gathering();
  let progress: Pick<PartialOutput, 'progress'> = {};
  for await (const event of stream) {
    if (event.type === 'progress') {
      const { type: _, ...told } = event;
      progress = { progress: told };
    } else gathering.addPart(event);
    const content = withoutBytes(gathering.content);
    yield { toolCallId, resolvedToolName, content, isError: false, notes: [], isPartial: true, ...progress };
  }
  yield outputOf(await stream.result);
}

function isGenerator(execute: Tool['execute']): boolean {
  return /Generator/.test(execute?.constructor.name ?? '');
}
