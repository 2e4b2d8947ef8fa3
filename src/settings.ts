/** A value given for one call, under a key that a middleware publishes. */
export interface Setting<Value = unknown> {
  /** The SettingKey that made it. */
  readonly key: object;
  readonly value: Value;
}

const made = new WeakSet<object>();

/** Whether a value was made, and so checked, by a key. */
export function isSetting(value: unknown): value is Setting {
  return typeof value === 'object' && value !== null && made.has(value);
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
    const setting = Object.freeze({ key, value });
    made.add(setting);
    return setting;
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
