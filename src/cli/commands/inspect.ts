import { type OrderWarning, orderWarnings } from '../../../middleware/index.ts';
import { printable } from '../../index.ts';
import type { Command, Given } from '../command.ts';
import { MODULE_OPTIONS, openDispatcher } from '../open-dispatcher.ts';
import { print, printJson } from '../output.ts';
import { counted, layerName, oneLine, type Paint, paintFor, widthOf, wrapped } from '../terminal.ts';

const HELP = `Usage: toolonion inspect --dispatcher MODULE [--json]
       toolonion inspect --tools MODULE [--json]

Draws the onion a call goes through, from outside in, and warns of an order that goes wrong.

  --dispatcher MODULE  a module that exports a dispatcher
  --tools MODULE       a module that exports tools: the standard layers around them are drawn
  --json               names and warnings, as JSON

Examples:
  toolonion inspect --dispatcher dispatcher.js
  toolonion inspect --dispatcher dispatcher.js --json | jq '.warnings[].message'
`;

export const inspect: Command = {
  summary: 'the onion of a dispatcher, with warnings about its order',
  help: HELP,
  options: { ...MODULE_OPTIONS, json: { type: 'boolean' } },
  words: 0,
  run,
};

async function run(given: Given): Promise<number> {
  const { middlewareNames, tools } = await openDispatcher(given, { level: 'silent' });
  const warnings = orderWarnings(middlewareNames);
  if (given.has('json')) {
    printJson({ layers: middlewareNames, warnings, tools: tools.names });
    return 0;
  }
  const paint = paintFor(process.stdout);
  const width = widthOf(process.stdout);
  const lines = [
    ...drawn(middlewareNames, toolsLine(tools.names, width), warnings, paint),
    '',
    ...told(warnings, width, paint),
  ];
  print(`${lines.join('\n')}\n`);
  return 0;
}

function toolsLine(names: readonly string[], width: number): string {
  if (names.length === 0) return 'no tools';
  return oneLine(`${counted(names.length, 'tool')}: ${names.map(printable).join(', ')}`, Math.min(60, width - 30));
}

/** Boxes in boxes: a call goes in from the left, through each wall, and its answer comes out the same way. */
function drawn(
  names: readonly string[],
  core: string,
  warnings: readonly OrderWarning[],
  paint: Paint,
): readonly string[] {
  const labels = names.map((name, place) => {
    const marks = warnings.flatMap(({ places }, index) => (places.includes(place) ? [`(${index + 1})`] : []));
    return ['─', layerName(name), ...marks, ''].join(' ');
  });
  // How wide the core has to be for every label to fit into its own wall.
  const widest = Math.max(
    core.length + 4,
    ...labels.map((label, place) => label.length + 1 - 2 * (names.length - place - 1)),
  );
  const wall = (depth: number) => '│'.repeat(depth);
  const tops = labels.map((label, depth) => {
    const room = widest + 2 * (names.length - depth - 1);
    const isWarned = warnings.some(({ places }) => places.includes(depth));
    return `${wall(depth)}╭${paint(label, isWarned ? 'yellow' : 'bold')}${'─'.repeat(room - label.length)}╮${wall(depth)}`;
  });
  const bottoms = labels.map((_, depth) => {
    const room = widest + 2 * (names.length - depth - 1);
    return `${wall(depth)}╰${'─'.repeat(room)}╯${wall(depth)}`;
  });
  const middle = `${wall(names.length)}  ${paint(core, 'cyan')}${' '.repeat(widest - core.length - 2)}${wall(names.length)}`;
  return [...tops, middle, ...bottoms.reverse()];
}

function told(warnings: readonly OrderWarning[], width: number, paint: Paint): readonly string[] {
  if (warnings.length === 0) return [paint('No warnings about this order.', 'green')];
  return warnings.flatMap(({ message }, index) =>
    wrapped(`(${index + 1}) ${message.charAt(0).toUpperCase()}${message.slice(1)}`, width).map((line) =>
      paint(line, 'yellow'),
    ),
  );
}
