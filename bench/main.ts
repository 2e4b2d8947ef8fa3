import { aiSdkTimes, hasRuntimes, proxyTimes } from './adapters.ts';
import { againstTimes } from './against.ts';
import { batchTimes, waitingBytes } from './batch.ts';
import { commandTimes } from './command.ts';
import { dispatchBytes, dispatchTimes } from './dispatch.ts';
import { idleTimes } from './idle.ts';
import { layerBytes, layerTimes } from './layers.ts';
import { streamTimes } from './streams.ts';
import { wireTimes } from './wire.ts';

const quick = process.argv.includes('quick');
const rounds = quick ? 7 : 31;
const repeats = quick ? 5_000 : 20_000;

const other = process.argv.indexOf('against');
if (other > 0) {
  await againstTimes(process.argv[other + 1] ?? '.', rounds, repeats);
  process.exit();
}

if (process.argv.includes('many')) {
  await batchTimes(rounds, repeats);
  await waitingBytes();
  await streamTimes(rounds);
  process.exit();
}

if (process.argv.includes('adapters')) {
  await aiSdkTimes(rounds, repeats / 100);
  await proxyTimes(rounds, repeats / 100);
  process.exit();
}

if (process.argv.includes('wire')) {
  await wireTimes(rounds, repeats);
  process.exit();
}

if (process.argv.includes('idle')) {
  await idleTimes(rounds, repeats);
  process.exit();
}

await dispatchTimes(rounds, repeats);
await idleTimes(rounds, repeats);
await layerTimes(rounds, repeats);
await dispatchBytes(repeats);
await layerBytes(repeats);
await batchTimes(rounds, repeats);
await waitingBytes();
await streamTimes(rounds);
await wireTimes(rounds, repeats);
await commandTimes(quick ? 3 : 9, 100_000);
if (hasRuntimes()) {
  await aiSdkTimes(rounds, repeats / 100);
  await proxyTimes(rounds, repeats / 100);
}
