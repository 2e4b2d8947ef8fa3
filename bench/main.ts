import { againstTimes } from './against.ts';
import { commandTimes } from './command.ts';
import { dispatchBytes, dispatchTimes } from './dispatch.ts';
import { layerBytes, layerTimes } from './layers.ts';

const quick = process.argv.includes('quick');
const rounds = quick ? 7 : 31;
const repeats = quick ? 5_000 : 20_000;

const other = process.argv.indexOf('against');
if (other > 0) {
  await againstTimes(process.argv[other + 1] ?? '.', rounds, repeats);
  process.exit();
}

await dispatchTimes(rounds, repeats);
await layerTimes(rounds, repeats);
await dispatchBytes(repeats);
await layerBytes(repeats);
await commandTimes(quick ? 3 : 9, 100_000);
