import { spawn } from 'node:child_process';

// A process between two others that only copies bytes: what any proxy costs before it has looked at them.
const [command = '', ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
process.stdin.on('data', (chunk) => child.stdin.write(chunk));
process.stdin.on('end', () => child.stdin.end());
child.stdout.on('data', (chunk) => process.stdout.write(chunk));
child.on('exit', () => process.exit());
