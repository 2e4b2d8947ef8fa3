import { spawn } from 'node:child_process';
import { mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spreadOf } from '../src/testing/rounds.ts';
import { printTable, ratioCell } from './table.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const DISPATCH = [here('../src/cli/main.js'), 'dispatch', '--tools', here('tools.js'), '--quiet'];
const IMPORTS = ['--input-type=module', '-e', "import 'ajv'; import 'pino'; console.log('ready');"];
/** Tells at the end how much memory the process had at most, and what of its heap is left after a collection, in megabytes. */
const TELL_MEMORY = [
  '--expose-gc',
  '--import',
  `data:text/javascript,process.on('exit', () => {
    gc();
    console.error('peak', process.resourceUsage().maxRSS / 1024, 'left', process.memoryUsage().heapUsed / 1e6);
  })`,
];

/** What one run of a process showed. */
interface Ran {
  readonly ms: number;
  /** Until the first byte of its output. */
  readonly firstMs: number;
  readonly peakMb: number;
  readonly leftMb: number;
}

/** What the command costs beside the dispatches it does, as whole processes. */
export async function commandTimes(rounds: number, lines: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'toolonion-bench-'));
  try {
    await throughput(directory, rounds, lines);
    await memory(directory, lines);
    await start(directory, 3 * rounds);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function throughput(directory: string, rounds: number, lines: number): Promise<void> {
  const file = callsIn(directory, lines);
  const loops = ['in chunks', 'readline'].map((manner) => [here('loop.js'), file, manner]);
  const times = await turns(rounds, [[...DISPATCH, file], ...loops], ({ ms }) => ms);
  const [command = []] = times;
  const rows = ['by hand, in chunks', 'by hand, readline and a write a line'].map((name, index) => {
    const other = times[index + 1] as readonly number[];
    return [name, ratioCell(spreadOf(other.map((ms, round) => ms / (command[round] as number))))];
  });
  const perSecond = Math.round((1000 * lines) / spreadOf(command).median);
  printTable(
    `${lines} lines from a file to a pipe, whole processes: the command (${perSecond} lines per second), × a loop`,
    ['loop', 'toolonion dispatch ×'],
    rows,
  );
}

async function memory(directory: string, lines: number): Promise<void> {
  const rows: string[][] = [];
  const bases: number[] = [];
  for (const count of [1_000, lines / 10, lines, 10 * lines]) {
    const args = [...TELL_MEMORY, ...DISPATCH, callsIn(directory, count)];
    const { peakMb, leftMb } = await run(args, join(directory, 'out'));
    bases.push(...[peakMb, leftMb].slice(bases.length));
    const cells = [peakMb, leftMb].map(
      (mb, index) => `${mb.toFixed(0)} MB, ${(mb / (bases[index] as number)).toFixed(2)}`,
    );
    rows.push([String(count), ...cells]);
  }
  printTable('Memory of the command, and × that for 1,000 lines', ['lines', 'at most', 'heap in the end'], rows);
}

async function start(directory: string, rounds: number): Promise<void> {
  const file = callsIn(directory, 1);
  const [first = [], empty = []] = await turns(rounds, [[...DISPATCH, file], IMPORTS], ({ firstMs }) => firstMs);
  const ratio = spreadOf(first.map((ms, round) => ms / (empty[round] as number)));
  printTable(
    'The first result of a one-line input, × the start of a process that imports ajv and pino',
    ['that process', 'toolonion dispatch ×'],
    [[`${spreadOf(empty).median.toFixed(0)} ms`, ratioCell(ratio)]],
  );
}

function callsIn(directory: string, lines: number): string {
  const file = join(directory, `${lines}.jsonl`);
  const call = (index: number) =>
    `{"id":"call_${index}","name":"weather","arguments":"{\\"city\\":\\"Oslo\\",\\"days\\":${index % 9}}"}\n`;
  writeFileSync(file, Array.from({ length: lines }, (_, index) => call(index)).join(''));
  return file;
}

/** Runs processes in turning order, after a round that is not counted; what they show, by process and round. */
async function turns(
  rounds: number,
  processes: readonly (readonly string[])[],
  read: (ran: Ran) => number,
): Promise<readonly (readonly number[])[]> {
  const shown: number[][] = processes.map(() => []);
  for (let round = -1; round < rounds; round++) {
    for (let turn = 0; turn < processes.length; turn++) {
      const index = (turn + round + 1) % processes.length;
      const value = read(await run(processes[index] as readonly string[]));
      if (round >= 0) shown[index]?.push(value);
    }
  }
  return shown;
}

/** @param output A file its output goes to. Default: it is read and thrown away. */
function run(args: readonly string[], output?: string): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    let firstMs = Number.NaN;
    let told = '';
    const stdout = output === undefined ? 'pipe' : openSync(output, 'w');
    const child = spawn(process.execPath, args, { stdio: ['ignore', stdout, 'pipe'] });
    child.stdout?.once('data', () => {
      firstMs = performance.now() - startedAt;
    });
    child.stdout?.resume();
    child.stderr?.on('data', (text) => {
      told += text;
    });
    child.on('close', (code) => {
      if (code !== 0) reject(new Error(`A process of the benchmark ended with ${code}: ${told}`));
      else {
        const [, peakMb, leftMb] = (/peak ([\d.]+) left ([\d.]+)/.exec(told) ?? []).map(Number);
        resolve({
          ms: performance.now() - startedAt,
          firstMs,
          peakMb: peakMb ?? Number.NaN,
          leftMb: leftMb ?? Number.NaN,
        });
      }
    });
  });
}
