import type { ToolCallRequest } from 'toolonion';

/** A call as a model sent it, and what the host says of it. */
export interface RecordedCall {
  readonly request: ToolCallRequest;
  /** Milliseconds this one call may take. Default: the dispatcher's limit. */
  readonly limitMs?: number;
}

/** Calls as models send them, good and bad. Arguments are JSON text, as most providers give them. */
export const calls: readonly RecordedCall[] = [
  // Good ones.
  { request: { id: 'call_01', name: 'list_directory', arguments: '{"path":"middleware"}' } },
  { request: { id: 'call_02', name: 'read_file', arguments: '{"path":"package.json","lines":3}' } },
  { request: { id: 'call_03', name: 'count_lines', arguments: '{"path":"LICENSE"}' } },
  // Arguments that do not fit the schema.
  { request: { id: 'call_04', name: 'read_file', arguments: '{"file":"package.json","lines":"three"}' } },
  // Arguments that are no JSON.
  { request: { id: 'call_05', name: 'read_file', arguments: "{'path': 'package.json'}" } },
  // Arguments that stop in the middle, as when the model ran out of tokens.
  { request: { id: 'call_06', name: 'search_text', arguments: '{"text":"export","under":"sr' } },
  // A tool there is none of.
  { request: { id: 'call_07', name: 'grep', arguments: '{"pattern":"export"}' } },
  // A tool the rules refuse.
  { request: { id: 'call_08', name: 'delete_file', arguments: '{"path":"package.json"}' } },
  // A file there is none of, and a way out of the project.
  { request: { id: 'call_09', name: 'read_file', arguments: '{"path":"src/onion.ts"}' } },
  { request: { id: 'call_10', name: 'read_file', arguments: '{"path":"../../etc/passwd"}' } },
  // An answer far too long.
  { request: { id: 'call_11', name: 'search_text', arguments: '{"text":"return","under":"src"}' } },
  // An answer that is not what the tool declares.
  { request: { id: 'call_12', name: 'build_status', arguments: '{}' } },
  // A tool that takes too long and does not heed its signal.
  { request: { id: 'call_13', name: 'wait_for_build', arguments: '' }, limitMs: 100 },
];
