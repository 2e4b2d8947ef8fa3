import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { checkOptions, isBoolean, type OptionCheck, type OptionChecks } from './options.ts';
import { readSetting, type Setting, type SettingKey, settingKey } from './settings.ts';

/** Makes extensions and is the key they are read by. */
export type ExtensionKey<Value> = SettingKey<Value>;

/** A typed value a host attaches to the session. */
export type Extension<Value = unknown> = Setting<Value>;

/**
 * Makes the key of a typed extension.
 *
 * @example
 * const database = extensionKey<Database>();
 * const context = new ToolContext({ extensions: [database(db)] });
 * context.extension(database); // Database | undefined
 */
export function extensionKey<Value>(): ExtensionKey<Value> {
  return settingKey<Value>();
}

/** What a ToolContext is made of; each field has a default. */
export interface ToolContextFields {
  /** Directory relative paths are meant against. Default: `.`, the process's own. */
  readonly cwd?: string;
  /** Default: a new UUID v4. */
  readonly sessionId?: string;
  /** Default: the system's directory for temporary files. */
  readonly tempDir?: string;
  /** Nobody is there to be asked. Default: false. */
  readonly isNonInteractive?: boolean;
  /** Text values of the host's own, such as a user id. Default: none. */
  readonly userContext?: Iterable<readonly [string, string]> | Readonly<Record<string, string>>;
  /** Default: none; of two with the same key the later one counts. */
  readonly extensions?: readonly Extension[];
}

const isText: OptionCheck = (value) => typeof value === 'string' || 'text';
const isObject: OptionCheck = (value) => (typeof value === 'object' && value !== null) || 'text values by name';

function isExtension(value: unknown): boolean {
  return typeof (value as Partial<Extension> | null | undefined)?.key === 'function';
}

const FIELDS: OptionChecks = {
  cwd: isText,
  sessionId: isText,
  tempDir: isText,
  isNonInteractive: isBoolean,
  userContext: isObject,
  extensions: (value) =>
    (Array.isArray(value) && value.every(isExtension)) || 'an array of what extension keys make, as in [database(db)]',
};

/** The session a call belongs to. Immutable: `with` makes another. */
export class ToolContext {
  readonly cwd: string;
  readonly sessionId: string;
  readonly tempDir: string;
  readonly isNonInteractive: boolean;
  readonly userContext: ReadonlyMap<string, string>;
  readonly #extensions: readonly Extension[];

  /** @throws TypeError naming the field and what is allowed: a misspelt one must not silently mean its default. */
  constructor(fields: ToolContextFields = {}) {
    checkOptions('ToolContext', fields, FIELDS);
    this.cwd = fields.cwd ?? '.';
    this.sessionId = fields.sessionId ?? randomUUID();
    this.tempDir = fields.tempDir ?? tmpdir();
    this.isNonInteractive = fields.isNonInteractive ?? false;
    const entries = fields.userContext ?? [];
    this.userContext = new Map(Symbol.iterator in entries ? entries : Object.entries(entries));
    this.#extensions = replaceSameKeys(fields.extensions ?? []);
    Object.freeze(this);
  }

  /** The value attached under a key. */
  extension<Value>(key: ExtensionKey<Value>): Value | undefined {
    return readSetting(this.#extensions, key);
  }

  /** This session with other fields; undefined ones stay. Extensions are added; one with the same key replaces the earlier. */
  with(changes: ToolContextFields): ToolContext {
    const extensions = [...this.#extensions, ...(changes.extensions ?? [])];
    const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
    return new ToolContext({ ...this, ...given, extensions });
  }

  /** What a log shows: extensions only by their number, for they may hold anything. */
  toJSON(): unknown {
    const extensions = `${this.#extensions.length} ${this.#extensions.length === 1 ? 'entry' : 'entries'}`;
    return { ...this, userContext: Object.fromEntries(this.userContext), extensions };
  }
}

// `console.log` and `util.inspect` show the same.
Object.defineProperty(ToolContext.prototype, Symbol.for('nodejs.util.inspect.custom'), {
  value(this: ToolContext): unknown {
    return this.toJSON();
  },
});

function replaceSameKeys(extensions: readonly Extension[]): readonly Extension[] {
  return [...new Map(extensions.map((extension) => [extension.key, extension])).values()];
}
