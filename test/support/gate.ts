import { type Middleware, named } from 'toolonion';

/** Holds calls up whose `id` begins with `held`, until the test lets them go on. */
export function gate(): { readonly layer: Middleware; readonly open: (id: string) => void } {
  const held = new Map<string, () => void>();
  return {
    layer: named('gate', async (call, next) => {
      const { id } = call.input as { readonly id: string };
      if (id.startsWith('held')) await new Promise<void>((resolve) => held.set(id, resolve));
      return next(call);
    }),
    open: (id) => held.get(id)?.(),
  };
}
