// The schema as an editor reads it: the shipped file, by a validator of its own, in strict mode.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { type PolicyDocument, policy } from 'toolonion/middleware';
import { POLICY_SCHEMA } from '../../middleware/policy-schema.ts';
import { root } from '../support/pages.ts';

function readJson(path: string) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'));
}

const shipped = readJson('policy.schema.json');
const isValid = new Ajv({ strict: true, strictTypes: false }).compile(shipped);

/** Whether `policy` takes a document. */
function isTaken(document: unknown): boolean {
  try {
    policy(document as PolicyDocument);
    return true;
  } catch {
    return false;
  }
}

test('the schema that is shipped for editors is the one that policies are checked with', () => {
  expect(shipped).toEqual(POLICY_SCHEMA);
});

test('the policy of the examples follows the schema, and points at it', () => {
  const example = readJson('docs/examples/policy.json');
  expect(isValid(example)).toBe(true);
  expect(readJson(join('docs/examples', example.$schema))).toEqual(shipped);
});

describe('an editor and the package agree', () => {
  const when = { path: { type: 'string', pattern: '^/' } };

  test.each<[unknown]>([
    [{}],
    [{ $schema: 'x', default: {}, tools: {} }],
    [{ default: { permission: 'ask', limitMs: 0.5, outputLimit: 1, logValues: false } }],
    [{ tools: { 'a*': { limitMs: 'none', outputLimit: 'none' } } }],
    [JSON.parse('{"tools":{"__proto__":{"permission":"deny"}}}')],
    [{ tools: { a: { permission: [{ verdict: 'deny', when, reason: '' }] } } }],
  ])('on %j, which can be used', (document) => {
    expect([isValid(document), isTaken(document)]).toEqual([true, true]);
  });

  test.each<[unknown]>([
    [[]],
    [{ defaults: {} }],
    [{ default: 'deny' }],
    [{ default: { permission: 'never' } }],
    [{ default: { permission: [] } }],
    [{ default: { permission: [{}] } }],
    [{ default: { permission: [{ verdict: 'deny', unless: when }] } }],
    [{ default: { permission: [{ verdict: 'deny', when: {} }] } }],
    [{ default: { permission: [{ verdict: 'deny', when: { path: true } }] } }],
    [{ default: { permission: [{ verdict: 'deny', when: { path: { type: 'text' } } }] } }],
    [{ tools: { a: { limitMs: 0 } } }],
    [{ tools: { a: { limitMs: 2 ** 31 } } }],
    [{ tools: { a: { outputLimit: 0 } } }],
    [{ tools: { a: { logValues: 'no' } } }],
    [{ tools: { '': {} } }],
  ])('on %j, which cannot', (document) => {
    expect([isValid(document), isTaken(document)]).toEqual([false, false]);
  });
});
