import { describe, expect, test } from '@jest/globals';
import { createDispatcher, defineTool, type Setting, settingKey } from 'toolonion';

/** What a tool reads under a key in a dispatch with these settings. */
async function read(key: ReturnType<typeof settingKey<unknown>>, settings?: readonly Setting[]): Promise<unknown> {
  let value: unknown;
  const look = defineTool({
    name: 'look',
    description: 'Reads a setting.',
    execute: (_, call) => {
      value = call.setting(key);
    },
  });
  const result = await createDispatcher({ tools: [look] }).dispatch({ name: 'look' }, settings && { settings });
  expect(result.error).toBeUndefined();
  return value;
}

describe('a setting', () => {
  const color = settingKey<unknown>();
  const other = settingKey<unknown>();

  test('is read by the key that made it', async () => {
    expect(await read(color, [other('blue'), color('red')])).toBe('red');
  });

  test('is undefined where none was given', async () => {
    expect(await read(color)).toBeUndefined();
    expect(await read(color, [])).toBeUndefined();
    expect(await read(color, [other('blue')])).toBeUndefined();
  });

  test('is the last one of those given', async () => {
    expect(await read(color, [color('red'), color('green'), other('blue')])).toBe('green');
  });

  test('may be false, zero or null', async () => {
    for (const value of [false, 0, null]) expect(await read(color, [color('red'), color(value)])).toBe(value);
  });

  test('is checked when it is made', () => {
    const even = settingKey<number>((value) => {
      if (value % 2 !== 0) throw new TypeError('must be even');
    });
    expect(even(2).value).toBe(2);
    expect(() => even(3)).toThrow('must be even');
  });
});
