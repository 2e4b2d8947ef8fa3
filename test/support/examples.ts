import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fencesOf, printedBelow, readPage, root } from './pages.ts';
import { type Finished, runNode } from './process.ts';

/** A ```ts block of a page, or a file of the examples: a program of its own. */
export interface Example {
  /** `page:line` of its first line, or the file. */
  readonly place: string;
  readonly page: string;
  readonly line: number;
  /** The name of its file, without an ending. */
  readonly file: string;
  readonly code: string;
  /** False for ```ts no-run: it is only compiled. */
  readonly runs: boolean;
  /** What it prints: the ```text block right below, where `…` stands for anything within a line. */
  readonly prints: string | undefined;
}

export function examplesOf(page: string): readonly Example[] {
  const fences = fencesOf(page);
  return fences.flatMap(({ info, line, code }, index) => {
    if (!/^ts\b/.test(info)) return [];
    const place = `${page}:${line}`;
    const prints = printedBelow(page, fences, index);
    return [{ place, page, line, file: fileOf(place), code, runs: info === 'ts', prints }];
  });
}

/** A file of the examples, which runs, and whose output nobody has written down. */
export function exampleFile(place: string): Example {
  return { place, page: place, line: 1, file: fileOf(place), code: readPage(place), runs: true, prints: undefined };
}

export function fileOf(place: string): string {
  return place.replaceAll(/[^A-Za-z0-9]+/g, '-');
}

/** Examples as a stranger's programs, which find the package by its exports, and others where `home` has them. */
export class Programs {
  /** What the compiler says of them. */
  readonly errors: readonly string[];
  readonly #examples: readonly Example[];
  readonly #directory: string;

  private constructor(examples: readonly Example[], directory: string, errors: readonly string[]) {
    this.#examples = examples;
    this.#directory = directory;
    this.errors = errors;
  }

  /** Type-checks all at once, with the flags of the project. */
  static async compile(examples: readonly Example[], home: string): Promise<Programs> {
    await mkdir(join(home, 'node_modules', '.cache'), { recursive: true });
    const directory = await mkdtemp(join(home, 'node_modules', '.cache', 'docs-'));
    const built = join(directory, 'node_modules', 'toolonion');
    const compilerOptions = {
      noEmit: false,
      allowImportingTsExtensions: false,
      rewriteRelativeImportExtensions: true,
      skipLibCheck: home !== root,
      rootDir: root,
      outDir: built,
    };
    const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['*.mts'], exclude: [] };
    const exports = {
      '.': './src/index.js',
      './middleware': './middleware/index.js',
      './middleware/*': './middleware/*.js',
      './adapters/*': './src/adapters/*/index.js',
      './wire': './src/wire/index.js',
      './testing': './src/testing/index.js',
    };
    await mkdir(built, { recursive: true });
    await Promise.all([
      writeFile(join(directory, 'tsconfig.json'), JSON.stringify(config)),
      writeFile(join(built, 'package.json'), JSON.stringify({ name: 'toolonion', type: 'module', exports })),
      ...examples.map((example) => writeFile(join(directory, `${example.file}.mts`), example.code)),
    ]);
    const { stdout } = await runNode(['node_modules/typescript/bin/tsc', '--pretty', 'false', '-p', directory], {
      cwd: root,
    });
    // Faults of the sources are told by the type check of the project.
    const errors = stdout.split('\n').filter((line) => line !== '' && !/^(src|middleware)\//.test(line));
    return new Programs(
      examples,
      directory,
      errors.map((message) => atPage(message, examples)),
    );
  }

  /** Runs those that are to run, two at a time. */
  async run(): Promise<ReadonlyMap<Example, Finished>> {
    const done = new Map<Example, Finished>();
    const waiting = this.#examples.filter(({ runs }) => runs);
    const work = async () => {
      for (let example = waiting.shift(); example !== undefined; example = waiting.shift())
        done.set(example, await this.runOne(example));
    };
    await Promise.all([work(), work()]);
    return done;
  }

  runOne(example: Example, env: NodeJS.ProcessEnv = process.env): Promise<Finished> {
    return runNode([this.compiled(example)], { cwd: root, env });
  }

  /** The file that an example has become. */
  compiled(example: Example): string {
    const built = join(this.#directory, 'node_modules', 'toolonion', relative(root, this.#directory));
    return join(built, `${example.file}.mjs`);
  }

  remove(): Promise<void> {
    return rm(this.#directory, { recursive: true, force: true });
  }
}

/** A compiler's message, with the page and line in the place of the file. */
function atPage(message: string, examples: readonly Example[]): string {
  const [, file, line, rest] = /^.*\/([^/]+)\.mts\((\d+),\d+\)(.*)$/.exec(message) ?? [];
  const example = examples.find((each) => each.file === file);
  return example === undefined ? message : `${example.page}:${example.line + Number(line) - 1}${rest}`;
}
