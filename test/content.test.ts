import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import { isContent, isContentPart, textOf } from 'toolonion';
import { hostileValues } from './support/hostile.ts';

const validParts: readonly (readonly [string, unknown])[] = [
  ['text', { type: 'text', text: '' }],
  ['an image with base64 text', { type: 'image', mimeType: 'image/png', data: 'AAAA' }],
  ['a sound with bytes', { type: 'audio', mimeType: 'audio/wav', data: new Uint8Array(2) }],
  ['a film at an address', { type: 'video', url: 'https://a/b.mp4' }],
  ['a file with name and kind at an address', { type: 'file', url: 'https://a', mimeType: 'text/csv', name: 'a.csv' }],
  ['a resource link', { type: 'resource_link', uri: 'file:///a', description: 'A file.' }],
  ['a part with more keys', { type: 'text', text: 'a', annotations: { audience: ['user'] } }],
  ['a frozen part', Object.freeze({ type: 'text', text: 'a' })],
  ['a part of another realm', runInNewContext('({ type: "image", mimeType: "image/png", data: new Uint8Array(1) })')],
];

const invalidParts: readonly (readonly [string, unknown])[] = [
  ['an unknown type', { type: 'table', text: 'a' }],
  ['no type', { text: 'a' }],
  ['a type that is inherited', Object.create({ type: 'text', text: 'a' })],
  ['a type of the prototype of all objects', { type: 'constructor' }],
  ['text that is a number', { type: 'text', text: 1 }],
  ['text that is missing', { type: 'text' }],
  ['an image without its kind', { type: 'image', data: 'AAAA' }],
  ['an image without data or address', { type: 'image', mimeType: 'image/png' }],
  ['an image with both data and address', { type: 'image', mimeType: 'image/png', data: 'AAAA', url: 'https://a' }],
  ['a sound whose data are numbers', { type: 'audio', mimeType: 'audio/wav', data: [1, 2] }],
  ['a file whose address is an URL object', { type: 'file', url: new URL('https://a') }],
  ['a resource link without address', { type: 'resource_link', name: 'a' }],
  ['a list', [{ type: 'text', text: 'a' }]],
  ['a text', 'text'],
  ['nothing', undefined],
  ['null', null],
];

describe('isContentPart', () => {
  test.each(validParts)('takes %s', (_, part) => {
    expect(isContentPart(part)).toBe(true);
  });

  test.each([...invalidParts, ...hostileValues])('refuses %s', (_, part) => {
    expect(isContentPart(part)).toBe(false);
  });
});

describe('isContent', () => {
  test('takes text, the empty one too', () => {
    expect(isContent('')).toBe(true);
  });

  test('takes a list of valid parts, the empty one too', () => {
    expect(isContent([])).toBe(true);
    expect(isContent(validParts.map(([, part]) => part))).toBe(true);
  });

  test.each(invalidParts)('refuses a list with one part that is %s', (_, part) => {
    expect(isContent([{ type: 'text', text: 'a' }, part])).toBe(false);
  });

  test('refuses a list with a hole', () => {
    expect(isContent([{ type: 'text', text: 'a' }, ...new Array(1)])).toBe(false);
    expect(isContent(new Array(2))).toBe(false);
  });

  test.each(hostileValues.filter(([, value]) => typeof value !== 'string'))('refuses %s', (_, value) => {
    expect(isContent(value)).toBe(false);
  });
});

describe('textOf', () => {
  test('gives text as it is', () => {
    expect(textOf(' a\n')).toBe(' a\n');
  });

  test('joins text parts by newlines and leaves everything else out', () => {
    expect(
      textOf([
        { type: 'text', text: 'a' },
        { type: 'image', mimeType: 'image/png', data: 'AAAA' },
        { type: 'text', text: 'b' },
        { type: 'resource_link', uri: 'file:///a' },
      ]),
    ).toBe('a\nb');
  });

  test('is empty where there is no text', () => {
    expect(textOf([])).toBe('');
    expect(textOf([{ type: 'file', url: 'https://a' }])).toBe('');
  });
});
