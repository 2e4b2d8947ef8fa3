import { type Middleware, named, type ToolOutcome } from 'toolonion';

/** Layers that pass everything on, and remember under their name which outcome came by. */
export function lookout(): { readonly seen: Record<string, ToolOutcome>; look(name: string): Middleware } {
  const seen: Record<string, ToolOutcome> = {};
  const look = (name: string): Middleware =>
    named(name, async (call, next) => {
      const outcome = await next(call);
      seen[name] = outcome;
      return outcome;
    });
  return { seen, look };
}
