import { describe, expect, test } from '@jest/globals';
import { PermissionCheck } from 'toolonion';

const checks: Readonly<Record<PermissionCheck['type'], PermissionCheck>> = {
  allow: PermissionCheck.allow(),
  deny: PermissionCheck.deny('unsafe'),
  ask: PermissionCheck.ask('Run this?'),
  modify: PermissionCheck.modify({ safe: true }),
};

const predicates: Readonly<Record<PermissionCheck['type'], (check: PermissionCheck) => boolean>> = {
  allow: PermissionCheck.isAllow,
  deny: PermissionCheck.isDeny,
  ask: PermissionCheck.isAsk,
  modify: PermissionCheck.isModify,
};

describe('PermissionCheck', () => {
  test('is plain data that survives JSON', () => {
    expect(Object.values(checks)).toEqual([
      { type: 'allow' },
      { type: 'deny', reason: 'unsafe' },
      { type: 'ask', prompt: 'Run this?' },
      { type: 'modify', input: { safe: true } },
    ]);
    expect(JSON.parse(JSON.stringify(checks))).toEqual(checks);
  });

  test('may deny without a reason, and then has none', () => {
    expect(Object.keys(PermissionCheck.deny())).toEqual(['type']);
  });

  test('cannot be changed from an allowance shared by all', () => {
    expect(Object.isFrozen(PermissionCheck.allow())).toBe(true);
  });

  test.each(Object.entries(checks))('is %s and nothing else', (type, check) => {
    const answers = Object.entries(predicates).filter(([, predicate]) => predicate(check));
    expect(answers.map(([name]) => name)).toEqual([type]);
  });
});
