/** Counts functions made from text, which is how ajv compiles, while something runs. */
export async function compilations(run: () => unknown): Promise<number> {
  const { Function: original } = globalThis;
  let count = 0;
  globalThis.Function = new Proxy(original, {
    construct(target, args) {
      count++;
      return Reflect.construct(target, args) as object;
    },
  });
  try {
    await run();
  } finally {
    globalThis.Function = original;
  }
  return count;
}
