import { defineTool, ToolRegistry } from 'toolonion';

const text = {
  type: 'object',
  properties: { text: { type: 'string' } },
  required: ['text'],
  additionalProperties: false,
};

export const echo = defineTool({
  name: 'echo',
  description: 'Gives back a text.',
  inputSchema: text,
  readOnly: true,
  execute: (input) => input.text,
});

export const more = [
  defineTool({ name: 'my.echo', description: 'The same.', inputSchema: text, readOnly: true, execute: echo.execute }),
  defineTool({ name: 'prints', description: 'Prints.', readOnly: true, execute: () => console.log('printed') }),
  defineTool({ name: 'write', description: 'Changes something.', execute: () => 'written' }),
];

/** What tools do that ought not to. */
export default new ToolRegistry([
  defineTool({
    name: 'sleeps',
    description: 'Takes a minute, and stops when it is told to.',
    readOnly: true,
    execute: (_, call) =>
      new Promise((_resolve, reject) => {
        const timer = setTimeout(() => {}, 60_000);
        call.signal.addEventListener('abort', () => {
          clearTimeout(timer);
          reject(call.signal.reason);
        });
        console.error('sleeping');
      }),
  }),
  defineTool({
    name: 'heedless',
    description: 'Takes a while, whatever it is told.',
    readOnly: true,
    execute: () => new Promise((resolve) => setTimeout(resolve, 300, 'done after all')),
  }),
  defineTool({
    name: 'lingers',
    description: 'Takes longer, whatever it is told.',
    readOnly: true,
    execute: () => new Promise((resolve) => setTimeout(resolve, 2_000, 'done at last')),
  }),
  defineTool({
    name: 'never',
    description: 'Waits for what nothing will ever settle.',
    readOnly: true,
    execute: () => new Promise(() => {}),
  }),
  defineTool({ name: 'exits', description: 'Ends the process.', readOnly: true, execute: () => process.exit(0) }),
  defineTool({
    name: 'exitsLater',
    description: 'Gives a long text, and ends the process after that.',
    readOnly: true,
    execute: () => {
      setTimeout(() => process.exit(0), 200);
      return 'x'.repeat(400_000);
    },
  }),
  defineTool({
    name: 'strays',
    description: 'Leaves things behind that fail.',
    readOnly: true,
    execute: () => {
      Promise.reject(new Error('an unheard rejection'));
      setTimeout(() => {
        throw new Error('an uncaught exception');
      });
      return new Promise((resolve) => setTimeout(resolve, 50, 'fine'));
    },
  }),
  defineTool({
    name: 'busy',
    description: 'Computes for some milliseconds.',
    readOnly: true,
    execute: () => {
      const until = performance.now() + 5;
      while (performance.now() < until);
      return 'computed';
    },
  }),
  defineTool({
    name: 'meddles',
    description: 'Changes what is not its own.',
    readOnly: true,
    execute: () => {
      process.stdout.cork();
      process.stdout.end();
      Object.prototype.meddled = true;
      return 'meddled';
    },
  }),
  defineTool({
    name: 'paints',
    description: 'Gives a picture.',
    readOnly: true,
    execute: () => ({ type: 'image', mimeType: 'image/png', data: new Uint8Array([1, 2, 3]) }),
  }),
  defineTool({
    name: 'suspends',
    description: 'Waits for a person.',
    readOnly: true,
    execute: (_, call) => {
      const payload = { big: 1n };
      payload.self = payload;
      return call.suspend({ reason: 'to be answered later', payload });
    },
  }),
  defineTool({
    name: 'long',
    description: 'Gives a long text.',
    readOnly: true,
    execute: () => 'x'.repeat(1000),
  }),
]);
