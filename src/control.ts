/** What a suspended call waits for. */
export interface SuspendRequest {
  /** Why the call stopped, for people. */
  readonly reason: string;
  /** Anything the host needs to answer it later. */
  readonly payload?: unknown;
}

/** Stops a dispatch without failing it: a suspension to be answered later, or a runtime's own interrupt. */
export type ControlSignal =
  | { readonly type: 'suspend'; readonly toolCallId: string; readonly request: SuspendRequest }
  | { readonly type: 'interrupt'; readonly signal: unknown };

const signals = new WeakSet<object>();

/** Marks a signal as made here: a tool cannot suspend by returning data that merely looks like it. */
export function controlSignal<Signal extends ControlSignal>(signal: Signal): Signal {
  signals.add(signal);
  return signal;
}

/** Whether a value returned or thrown is a control signal. */
export function isControlSignal(value: unknown): value is ControlSignal {
  return typeof value === 'object' && value !== null && signals.has(value);
}

/** What suspends the call: a signal, or the result of another dispatch that ended by one. */
export function controlIn(value: unknown): ControlSignal | undefined {
  if (isControlSignal(value)) return value;
  if (typeof value !== 'object' || value === null) return undefined;
  try {
    const { control } = value as { readonly control?: unknown };
    return isControlSignal(control) ? control : undefined;
  } catch {
    return undefined;
  }
}
