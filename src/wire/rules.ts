import type { ToolRules } from './definitions.ts';
import { nameRule } from './names.ts';
import { ANTHROPIC, GEMINI, OPENAI } from './schema/dialects.ts';

// What providers take of tools, as their pages, packages and refusals had it in November 2026.

export const OPENAI_RULES: ToolRules = { names: nameRule('A-Za-z0-9_-', 64), dialect: OPENAI };

export const ANTHROPIC_RULES: ToolRules = {
  names: nameRule('A-Za-z0-9_-', 128),
  arguments: nameRule('A-Za-z0-9_.-', 64),
  dialect: ANTHROPIC,
};

/** Of names, what all its models take: later ones take 128 characters, and colons. */
export const GEMINI_RULES: ToolRules = { names: nameRule('A-Za-z0-9_.-', 64, 'A-Za-z_'), dialect: GEMINI };

export const MCP_RULES: ToolRules = { names: nameRule('A-Za-z0-9_.-', 128), takesUnions: true };
