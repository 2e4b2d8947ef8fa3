/** A value given for one call, under a key that a middleware publishes. */
export interface Setting<Value = unknown> {
  /** The SettingKey that made it. */
  readonly key: object;
  readonly value: Value;
}

/** What a key makes. Known by its private field, which costs less than a set of all there are. */
class KeyedValue<Value> implements Setting<Value> {
  readonly key: object;
  readonly value: Value;
  readonly #own = true;

  constructor(key: object, value: Value) {
    this.key = key;
    this.value = value;
    Object.freeze(this);
  }

  static is(value: unknown): boolean {
    return typeof value === 'object' && value !== null && #own in value;
  }
}

/** Whether a value was made, and so checked, by a key. */
export function isSetting(value: unknown): value is Setting {
  return KeyedValue.is(value);
}

/** Makes settings, and is the key they are read by: `call.setting(timeoutMs)`. */
export type SettingKey<Value> = (value: Value) => Setting<Value>;

/**
 * Makes the key of a per-call value.
 *
 * @param check Throws for a value that is not allowed; the error names the option and what is allowed.
 * @example const timeoutMs = settingKey<number>();
 */
export function settingKey<Value>(check?: (value: Value) => void): SettingKey<Value> {
  const key: SettingKey<Value> = (value) => {
    check?.(value);
    return new KeyedValue(key, value);
  };
  return key;
}

/** The last value given under a key. */
export function readSetting<Value>(
  settings: readonly Setting[] | undefined,
  key: SettingKey<Value>,
): Value | undefined {
  if (settings === undefined) return undefined;
  for (let index = settings.length - 1; index >= 0; index--) {
    const setting = settings[index];
    if (setting?.key === key) return setting.value as Value;
  }
  return undefined;
}
