import { type ChildProcessWithoutNullStreams, type SpawnOptionsWithoutStdio, spawn } from 'node:child_process';

/** What a process left behind. */
export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Waits for a process to end, and collects what it writes from now on. */
export async function finished(child: ChildProcessWithoutNullStreams): Promise<Finished> {
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  // A test may have paused it.
  child.stdout.resume();
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, stdout, stderr };
}

/** Runs Node.js to its end, with nothing to read. */
export function runNode(args: readonly string[], options: SpawnOptionsWithoutStdio): Promise<Finished> {
  const child = spawn(process.execPath, args, { timeout: 60_000, ...options });
  child.stdin.end();
  return finished(child);
}
