import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { dispatchBytes, dispatchTimes } from './dispatch.ts';
import { layerBytes, layerTimes } from './layers.ts';

/** Megabytes of a young generation that no measurement fills, so that all that is allocated is still there to be counted. */
const YOUNG_MB = 256;

if (process.argv.includes('bytes')) {
  await dispatchBytes(5_000);
  await layerBytes(5_000);
} else {
  const quick = process.argv.includes('quick');
  await dispatchTimes(quick ? 7 : 31, quick ? 5_000 : 20_000);
  await layerTimes(quick ? 7 : 31, quick ? 5_000 : 20_000);
  const flags = ['--expose-gc', `--min-semi-space-size=${YOUNG_MB}`, `--max-semi-space-size=${YOUNG_MB}`];
  const { status } = spawnSync(process.execPath, [...flags, fileURLToPath(import.meta.url), 'bytes'], {
    stdio: 'inherit',
  });
  process.exitCode = status ?? 1;
}
