import { expect, test } from '@jest/globals';
import * as core from 'toolonion';
import * as aiSdk from 'toolonion/adapters/ai-sdk';
import * as mcp from 'toolonion/adapters/mcp';
import * as middleware from 'toolonion/middleware';
import * as testing from 'toolonion/testing';
import * as wire from 'toolonion/wire';

// A name that is added, renamed or removed is a decision, to be written in CHANGELOG.md.

const coreNames = `
  AbortReason HoldBack MAX_DELAY_MS MalformedArguments Passage PermissionCheck REDACTED ReadonlyToolRegistry Schedule TimeLimit ToolCall ToolContext
  ToolFailure ToolOutput ToolRegistry after approvedBy asks canonicalJson changedError checkOptions cloneJson closeDangling codeOf compose controlOf copyJson
  createDispatcher cutTexts deepFreeze defineTool describeError describePart extensionKey fail failure forModel interrupted
  isBoolean isConcurrencySafe isContent isContentPart isCount isFunction isJsonLonger isJudged isLimit isLimitMs isListOf isOneOf isOutcome
  isPlainObject isPromise isStandardSchema isTool jsonFaultIndex judged kindOf listed mapSubschemas mediaBytes named namespaced
  nearestNames notFound perTool perToolCheck printable readJson redactor returnedValue settingKey shrinkJson
  similarity
  sizeOf standsFor stopped succeed suspended systemClock textOf timersOf toJson toOutput toToolError toolError unrunnable wildcard withNote
`;

const middlewareNames = `
  ToolHealth alias allowAll budget circuitBreaker denyAll directoryStore fallback logging loopGuard memoryStore orderWarnings outputLimit outputValidation permission policy prepareArguments
  readOnlyAllowed readResultTool redaction retry rules schedule standard timeout timeoutMs unknownTool validation when
`;

const testingNames = 'ManualClock emptyTrace measure spansOf testMiddleware tracedIn withProbes';

test.each([
  ['toolonion', core, coreNames],
  ['toolonion/middleware', middleware, middlewareNames],
  [
    'toolonion/adapters/ai-sdk',
    aiSdk,
    'modelOutput repairToolCall sdkRequest toolApproval toolDefinitions toolMessage toolSet',
  ],
  ['toolonion/adapters/mcp', mcp, 'connectTools proxy serveTools'],
  ['toolonion/testing', testing, testingNames],
  ['toolonion/wire', wire, 'anthropic detect gemini geminiInteractions mcp mcpSampling openaiChat openaiResponses'],
  ['toolonion/wire: anthropic', wire.anthropic, 'calls definitions replay results'],
  ['toolonion/wire: gemini', wire.gemini, 'calls definitions replay results'],
  ['toolonion/wire: geminiInteractions', wire.geminiInteractions, 'calls definitions replay results'],
  ['toolonion/wire: mcp', wire.mcp, 'calls definitions results'],
  ['toolonion/wire: mcpSampling', wire.mcpSampling, 'calls definitions replay results'],
  ['toolonion/wire: openaiChat', wire.openaiChat, 'calls definitions replay results'],
  ['toolonion/wire: openaiResponses', wire.openaiResponses, 'calls definitions replay results'],
])('%s exports these values and no others', (_, exported, names) => {
  expect(Object.keys(exported).sort()).toEqual(names.trim().split(/\s+/));
});
