import type { JsonObject } from './json.ts';

/** What a gate decides about one call. */
export type PermissionCheck =
  | { readonly type: 'allow' }
  | { readonly type: 'deny'; readonly reason?: string }
  | { readonly type: 'ask'; readonly prompt: string }
  | { readonly type: 'modify'; readonly input: JsonObject };

const ALLOW: PermissionCheck = Object.freeze({ type: 'allow' });

/** Constructors and predicates for `PermissionCheck`. */
export const PermissionCheck = {
  /** Let the call run as it is. */
  allow: (): PermissionCheck => ALLOW,
  /** Refuse it. The reason reaches the model. */
  deny: (reason?: string): PermissionCheck => (reason === undefined ? { type: 'deny' } : { type: 'deny', reason }),
  /** Put it to whoever approves calls, with this question. */
  ask: (prompt: string): PermissionCheck => ({ type: 'ask', prompt }),
  /** Let it run with other arguments, which are validated and judged again first. */
  modify: (input: JsonObject): PermissionCheck => ({ type: 'modify', input }),

  isAllow: (check: PermissionCheck): boolean => check.type === 'allow',
  isDeny: (check: PermissionCheck): boolean => check.type === 'deny',
  isAsk: (check: PermissionCheck): boolean => check.type === 'ask',
  isModify: (check: PermissionCheck): boolean => check.type === 'modify',
} as const;
