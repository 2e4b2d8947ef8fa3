import type { ToolCall } from '../call.ts';
import { ToolFailure } from '../error.ts';
import { type Middleware, named } from '../middleware.ts';
import type { ToolOutcome } from '../outcome.ts';
import { type SettingKey, settingKey } from '../settings.ts';
import { defineTool, type Tool } from '../tool.ts';
import type { Passage } from './spans.ts';

/** Gives a recorded answer again, the way the tool gave it: at once, or as a promise. */
export type Answer = (call: ToolCall) => unknown;

/** The answer a call's stand-in gives. */
export const answeredBy: SettingKey<Answer> = settingKey<Answer>();

/**
 * An innermost layer that runs a stand-in in the place of every tool, whatever the layers outside have let through: so they can be
 * taken away, and calls repeated, and no tool ever runs for it.
 */
export function standIns(): Middleware {
  const byTool = new WeakMap<Tool, Tool>();
  return named('standIns', function standIns(call, next) {
    const { tool } = call;
    if (tool === undefined) return next(call);
    let standIn = byTool.get(tool);
    if (standIn === undefined) {
      standIn = standInFor(tool);
      byTool.set(tool, standIn);
    }
    return next(call.with({ tool: standIn, parsed: call.parsed }));
  });
}

function standInFor({ name, description }: Tool): Tool {
  return defineTool({ name, description, execute: (_, call) => call.setting(answeredBy)?.(call) });
}

/** The recorded answer of a tool: empty text where it was never reached. */
export function answerOf(passage: Passage | undefined): Answer {
  const give = giverOf(passage?.outcome);
  return passage?.atOnce === false ? async (call) => give(call) : give;
}

function giverOf(outcome: ToolOutcome | undefined): Answer {
  if (outcome === undefined) return () => '';
  const { content, isError, structured, error, control } = outcome;
  if (control?.type === 'suspend') return (call) => call.suspend(control.request);
  if (control?.type === 'interrupt') {
    return () => {
      throw control.signal;
    };
  }
  if (error !== undefined) {
    // Made once: an error's stack costs more than a dispatch.
    const failure = new ToolFailure(error.message, error);
    return () => {
      throw failure;
    };
  }
  if (structured !== undefined) return () => ({ content, isError, structured });
  return typeof content === 'string' && !isError ? () => content : () => ({ content, isError });
}
