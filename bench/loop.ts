// What the command is measured against: the same calls in a loop, read and written as one would by hand.

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { pino } from 'pino';
import { readOnlyAllowed, standard } from '../middleware/index.ts';
import { createDispatcher } from '../src/index.ts';
import { weather } from './tools.ts';

const [file = '', manner = ''] = process.argv.slice(2);
const dispatcher = createDispatcher({
  tools: [weather],
  middleware: standard({ permission: { check: readOnlyAllowed }, logging: { logger: pino({ level: 'silent' }) } }),
});

if (manner === 'readline') {
  for await (const line of createInterface({ input: createReadStream(file) })) {
    process.stdout.write(`${JSON.stringify(await dispatcher.dispatch(JSON.parse(line)))}\n`);
  }
} else {
  // In chunks, as somebody would who has measured: one text for all lines of a chunk, one write for all their results.
  let rest = '';
  for await (const chunk of createReadStream(file, 'utf8')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    let results = '';
    for (const line of lines) results += `${JSON.stringify(await dispatcher.dispatch(JSON.parse(line)))}\n`;
    process.stdout.write(results);
  }
}
