/** What is probably a mistake in a list of layers. */
export interface OrderWarning {
  /** Places of the layers it is about, from 0, outermost first. Empty where one is missing. */
  readonly places: readonly number[];
  /** What goes wrong, and what to do. */
  readonly message: string;
}

/** Which layer belongs outside which, and what goes wrong otherwise. */
const PAIRS: readonly (readonly [outer: string, inner: string, otherwise: string])[] = [
  ['logging', 'validation', 'calls that are invalid, unknown or unreadable are not logged'],
  ['logging', 'permission', 'calls that are denied are not logged'],
  ['unknownTool', 'validation', 'calls under another name are answered before their tool is looked for'],
  ['unknownTool', 'permission', 'calls under another name are answered before their tool is looked for'],
  ['prepareArguments', 'validation', 'arguments are checked before they are prepared'],
  ['validation', 'permission', 'rules and people judge arguments that nobody has checked'],
  ['permission', 'timeout', 'the time a person takes to approve counts as the time of the tool'],
  ['validation', 'schedule', 'what may run together is told from arguments that nobody has checked'],
  ['permission', 'schedule', 'a call that waits for a person holds a slot and a key'],
  ['unknownTool', 'loopGuard', 'a tool that is called by several names is taken for several'],
  ['loopGuard', 'validation', 'calls that are invalid again and again are not seen'],
  ['alias', 'unknownTool', 'a name that is the alias of one tool is taken for another that is like it'],
  ['alias', 'validation', 'calls under another name are answered before their tool is looked for'],
  ['fallback', 'validation', 'the tool that stands in gets arguments nobody has checked for it'],
  ['fallback', 'permission', 'the tool that stands in runs unasked'],
  ['permission', 'budget', 'calls that are denied are counted'],
  ['validation', 'budget', 'calls that are invalid are counted'],
  ['budget', 'retry', 'each attempt is counted as a call'],
  [
    'permission',
    'circuitBreaker',
    'a call that waits for a person takes the place of one that shows whether a tool does again',
  ],
  ['schedule', 'circuitBreaker', 'what a tool does is judged by the time its calls wait'],
  ['circuitBreaker', 'retry', 'a call whose last attempt went well counts as several failures'],
  ['permission', 'retry', 'each attempt is judged, and people are asked each time'],
  ['schedule', 'retry', 'each attempt waits for its turn anew'],
  ['retry', 'timeout', 'all attempts have one limit together'],
  ['retry', 'outputLimit', 'an answer that has begun to leave cannot begin anew'],
  ['schedule', 'timeout', 'the time a call waits for its turn counts as the time of the tool'],
  ['outputLimit', 'redaction', 'what is cut may hold half a secret, which nothing recognises'],
  ['redaction', 'outputValidation', 'data is checked when secrets have been taken out of it, and can fail for that'],
  ['outputLimit', 'outputValidation', 'an answer is checked when it has been cut already, and can fail for that'],
];

/** What goes wrong where a layer is missing. */
const NEEDED: readonly (readonly [name: string, otherwise: string])[] = [
  ['validation', 'tools receive arguments that nobody has checked'],
  ['permission', 'every call runs'],
];

/**
 * Looks through the names of a dispatcher's layers for the mistakes that matter. It knows the layers of this package by name; what a
 * layer of your own does, it cannot know.
 *
 * @example orderWarnings(dispatcher.middlewareNames).map(({ message }) => message)
 */
export function orderWarnings(names: readonly string[]): readonly OrderWarning[] {
  const pairs = PAIRS.flatMap(([outer, inner, otherwise]) => {
    // Of what sees or checks calls the outermost does it; of what waits or cuts, each does.
    const place = outer === 'logging' || outer === 'validation' ? names.indexOf(outer) : names.lastIndexOf(outer);
    const places = [names.indexOf(inner), place] as const;
    if (places[0] < 0 || places[1] < places[0]) return [];
    return { places, message: `"${outer}" is inside "${inner}": ${otherwise}. Put it outside.` };
  });
  const repeated = names.flatMap((name, place) => {
    const first = names.indexOf(name);
    // Told at the second one only.
    if (name === '' || first === place || names.indexOf(name, first + 1) !== place) return [];
    const places = names.flatMap((each, index) => (each === name ? [index] : []));
    return { places, message: `"${name}" is there more than once. Leave one out, or give it another name.` };
  });
  const unnamed = names.flatMap((name, place) => {
    if (name !== '') return [];
    const message = 'a layer has no name for logs and errors to show. Give it one: named("mine", layer).';
    return { places: [place], message };
  });
  const missing = NEEDED.flatMap(([name, otherwise]) =>
    names.includes(name)
      ? []
      : { places: [], message: `there is no layer named "${name}": unless another does its work, ${otherwise}.` },
  );
  return [...pairs, ...repeated, ...unnamed, ...missing];
}
