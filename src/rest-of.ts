import type { Content, ContentPart } from './content.ts';

/** What of a content comes behind another, with which it begins; undefined where it does not. */
export function restOf(content: Content, beginning: Content): readonly ContentPart[] | undefined {
  const whole = partsOf(content);
  const head = partsOf(beginning);
  const last = head.at(-1);
  const next = whole[head.length - 1];
  const isBegun = head.every((part, index) => isSame(part, whole[index]) || (part === last && goesOn(part, next)));
  if (!isBegun) return undefined;
  const rest = whole.slice(head.length);
  if (last?.type !== 'text' || next?.type !== 'text' || next.text.length === last.text.length) return rest;
  return [{ type: 'text', text: next.text.slice(last.text.length) }, ...rest];
}

function isSame(part: ContentPart, other: ContentPart | undefined): boolean {
  if (part === other || other === undefined) return part === other;
  if (part.type === 'text') return other.type === 'text' && part.text === other.text;
  // A layer may have made a copy.
  const [own, others] = [Object.entries(part), new Map(Object.entries(other))];
  return own.length === others.size && own.every(([key, value]) => isSameValue(value, others.get(key)));
}

/** Of bytes only the very same: to compare them could take long. */
function isSameValue(value: unknown, other: unknown): boolean {
  if (value === other || ArrayBuffer.isView(value)) return value === other;
  return typeof value === 'object' && JSON.stringify(value) === JSON.stringify(other);
}

function goesOn(part: ContentPart, other: ContentPart | undefined): boolean {
  return part.type === 'text' && other?.type === 'text' && other.text.startsWith(part.text);
}

/** The parts, neighbouring texts as one: whether they came together or apart makes no difference. */
function partsOf(content: Content): readonly ContentPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  const parts: ContentPart[] = [];
  for (const part of content) {
    const last = parts.at(-1);
    if (part.type !== 'text' || last?.type !== 'text') parts.push(part);
    else parts[parts.length - 1] = { type: 'text', text: last.text + part.text };
  }
  return parts;
}
