/** Values that break code which trusts what it is given: every way of reading one may throw, lie or never end. */
export const hostileValues: readonly (readonly [name: string, value: unknown])[] = [
  ['a proxy whose every trap throws', trapped({})],
  ['a proxy of a list whose every trap throws', trapped([])],
  ['a proxy of a function whose every trap throws', trapped(() => 1)],
  ['a revoked proxy', revoked({})],
  ['a revoked proxy of a list', revoked([])],
  ['a revoked proxy of a function', revoked(() => 1)],
  ['a proxy that answers itself to everything', selfish()],
  ['a list whose item throws', Object.defineProperty([1], 0, { get: explode, enumerable: true })],
  ['a list whose iterator never ends', Object.assign([1], { [Symbol.iterator]: endless })],
  ['a getter that throws', Object.defineProperty({}, 'x', { get: explode, enumerable: true })],
  ['a getter that throws undefined', Object.defineProperty({}, 'x', { get: explodeOddly, enumerable: true })],
  ['a getter for `type` that throws', Object.defineProperty({}, 'type', { get: explode, enumerable: true })],
  ['a getter for `toJSON` that throws', Object.defineProperty({}, 'toJSON', { get: explode })],
  ['a toJSON that throws', { toJSON: explode }],
  ['a toJSON that answers itself', selfAsJson()],
  ['a toJSON that answers another one, for ever', freshAsJson()],
  ['conversions that throw', { toString: explode, valueOf: explode, [Symbol.toPrimitive]: explode }],
  ['a tag that throws', Object.defineProperty({}, Symbol.toStringTag, { get: explode })],
  ['a function whose text throws', Object.assign(() => 1, { toString: explode, [Symbol.toPrimitive]: explode })],
  ['a Map whose iterator never ends', Object.assign(new Map([[1, 2]]), { [Symbol.iterator]: endless })],
  ['a Set whose iterator throws', Object.assign(new Set([1]), { [Symbol.iterator]: explode })],
  ['a Date whose methods throw', Object.assign(new Date(0), { getTime: explode, toISOString: explode })],
  ['a boxed number whose value is itself', boxedSelf()],
  ['an error whose every property throws', brokenError()],
  ['bytes whose buffer is gone', detachedBytes()],
  ['an object of a million levels', nested(1_000_000)],
  ['an object that holds itself', circular()],
];

/** Values that go on for longer than anything should read. */
export const endlessValues: readonly (readonly [name: string, value: unknown])[] = [
  ['a list that claims to be endless', new Proxy([], { get: (_, key) => (key === 'length' ? Infinity : 1) })],
  ['a list with 4 billion holes', new Array(2 ** 32 - 1)],
];

function explode(): never {
  throw new Error('hostile');
}

function explodeOddly(): never {
  throw undefined;
}

function* endless(): Generator<number> {
  for (;;) yield 1;
}

function trapped<Target extends object>(target: Target): Target {
  return new Proxy(target, new Proxy({}, { get: () => explode }));
}

function revoked(target: object): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function selfish(): unknown {
  const proxy: unknown = new Proxy({}, { get: () => proxy });
  return proxy;
}

function selfAsJson(): unknown {
  const value = { toJSON: () => value };
  return value;
}

function freshAsJson(): unknown {
  return { toJSON: freshAsJson };
}

function boxedSelf(): unknown {
  const boxed = new Number(1);
  return Object.assign(boxed, { valueOf: () => boxed });
}

function brokenError(): Error {
  const broken = new Error('hostile');
  for (const key of [
    'stack',
    'name',
    'message',
    'cause',
    'code',
    'errors',
    'errno',
    Symbol.for('toolonion.ToolFailure'),
  ])
    Object.defineProperty(broken, key, { get: explode });
  return broken;
}

function detachedBytes(): Uint8Array {
  const bytes = new Uint8Array(8);
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  return bytes;
}

/** An object nested so many levels deep. */
export function nested(levels: number): Record<string, unknown> {
  let value: Record<string, unknown> = {};
  for (let level = 0; level < levels; level++) value = { a: value };
  return value;
}

function circular(): unknown {
  const value: Record<string, unknown> = { a: 1 };
  value['self'] = value;
  return value;
}
