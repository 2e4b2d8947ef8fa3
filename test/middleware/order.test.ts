import { describe, expect, test } from '@jest/globals';
import { allowAll, orderWarnings, standard } from 'toolonion/middleware';

const ORDER = standard({ permission: { check: allowAll }, schedule: {} }).map(({ name }) => name);

function messages(...names: readonly string[]): readonly string[] {
  return orderWarnings(names).map(({ message }) => message);
}

/** The standard order with one layer moved to another place. */
function moved(name: string, place: number): readonly string[] {
  const others = ORDER.filter((each) => each !== name);
  return [...others.slice(0, place), name, ...others.slice(place)];
}

test.each([
  [['loopGuard', 'unknownTool'], 'a tool that is called by several names is taken for several'],
  [['validation', 'loopGuard'], 'calls that are invalid again and again are not seen'],
  [['unknownTool', 'alias'], 'a name that is the alias of one tool is taken for another that is like it'],
  [['validation', 'alias'], 'calls under another name are answered before their tool is looked for'],
  [['validation', 'fallback'], 'the tool that stands in gets arguments nobody has checked for it'],
  [['permission', 'fallback'], 'the tool that stands in runs unasked'],
  [['budget', 'permission'], 'calls that are denied are counted'],
  [['budget', 'validation'], 'calls that are invalid are counted'],
  [['retry', 'budget'], 'each attempt is counted as a call'],
  [['circuitBreaker', 'permission'], 'a call that waits for a person takes the place'],
  [['circuitBreaker', 'schedule'], 'what a tool does is judged by the time its calls wait'],
  [['retry', 'circuitBreaker'], 'a call whose last attempt went well counts as several failures'],
  [['retry', 'permission'], 'each attempt is judged, and people are asked each time'],
  [['retry', 'schedule'], 'each attempt waits for its turn anew'],
  [['timeout', 'retry'], 'all attempts have one limit together'],
  [['outputLimit', 'retry'], 'an answer that has begun to leave cannot begin anew'],
])('%j: attempts and counts have their place', (names, why) => {
  expect(messages(...names).join('\n')).toContain(why);
});

describe('orderWarnings', () => {
  test('has nothing to say of the standard order, nor of layers it does not know', () => {
    expect(messages(...ORDER)).toEqual([]);
    expect(messages('mine', ...ORDER, 'yours')).toEqual([]);
  });

  test.each([
    ['timeout', 0, '"permission" is inside "timeout": the time a person takes'],
    ['permission', 1, '"validation" is inside "permission": rules and people judge arguments'],
    ['logging', 2, '"logging" is inside "validation": calls that are invalid'],
    ['logging', 3, '"logging" is inside "permission": calls that are denied'],
    [
      'schedule',
      1,
      '"validation" is inside "schedule": what may run together is told from arguments that nobody has checked',
    ],
    ['schedule', 2, '"permission" is inside "schedule": a call that waits for a person holds a slot and a key'],
    ['timeout', 3, '"schedule" is inside "timeout": the time a call waits for its turn'],
    ['outputValidation', 3, '"outputLimit" is inside "outputValidation": an answer is checked'],
  ])('warns of %s at place %i', (name, place, message) => {
    expect(messages(...moved(name, place)).join('\n')).toContain(message);
  });

  test('tells the places of both', () => {
    expect(orderWarnings(['mine', 'timeout', 'validation', 'permission'])).toMatchObject([{ places: [1, 3] }]);
  });

  test('finds a mistake where a layer is there twice', () => {
    const names = ['validation', 'permission', 'timeout', 'permission'];
    expect(messages(...names)).toEqual([
      expect.stringContaining('"permission" is inside "timeout"'),
      '"permission" is there more than once. Leave one out, or give it another name.',
    ]);
  });

  test('finds none where the outermost of two sees all there is', () => {
    const twice = (name: string) => [`"${name}" is there more than once. Leave one out, or give it another name.`];
    expect(messages('logging', 'validation', 'logging', 'permission')).toEqual(twice('logging'));
    expect(messages('logging', 'validation', 'permission', 'validation')).toEqual(twice('validation'));
  });

  test('warns of a layer without a name, and of a gate and a check that are missing', () => {
    expect(orderWarnings([''])).toEqual([
      { places: [0], message: expect.stringContaining('named("mine", layer)') },
      { places: [], message: expect.stringContaining('"validation"') },
      { places: [], message: expect.stringContaining('"permission": unless another does its work, every call runs') },
    ]);
  });
});
