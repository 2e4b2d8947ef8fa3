import { createDispatcher, defineTool } from 'toolonion';
import { readOnlyAllowed, standard } from 'toolonion/middleware';

const weather = defineTool({
  name: 'weather',
  description: 'Tells the weather of a city.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  readOnly: true,
  execute: ({ city }) => `Sunny in ${city}.`,
});

const dispatcher = createDispatcher({
  tools: [weather],
  middleware: standard({ permission: { check: readOnlyAllowed }, logging: false }),
});

const good = await dispatcher.dispatch({ name: 'weather', arguments: '{"city":"Oslo"}' });
console.log(good.content);

const bad = await dispatcher.dispatch({ name: 'weather', arguments: '{"town":"Oslo"}' });
console.log(bad.error?.code, bad.content);
