/**
 * Whether names fit a pattern, in which `*` stands for any characters. Not a regular expression: a name may come from a model, and
 * must not choose how long this takes.
 */
export function wildcard(pattern: string): (name: string) => boolean {
  const [head = '', ...rest] = pattern.split('*');
  const tail = rest.pop();
  if (tail === undefined) return (name) => name === pattern;
  return (name) => {
    if (name.length < head.length + tail.length || !name.startsWith(head) || !name.endsWith(tail)) return false;
    const end = name.length - tail.length;
    let at = head.length;
    for (const part of rest) {
      const found = name.indexOf(part, at);
      if (found < 0 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  };
}
