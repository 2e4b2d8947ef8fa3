// What the adapter needs of the official SDK, of its 1.x line and of its 2.x packages: structural, so that neither has to be installed for the
// other. That the real ones fit is tested.

/** What a request is sent with, besides its method. */
export interface McpParams {
  readonly name?: unknown;
  readonly arguments?: unknown;
  readonly _meta?: { readonly progressToken?: string | number | undefined } | undefined;
}

/** A request as its handler gets it. */
export interface McpRequest {
  readonly method: string;
  readonly params?: McpParams | undefined;
}

/** What goes along with a request in the 1.x line. */
export interface McpExtra {
  readonly signal: AbortSignal;
  readonly requestId: string | number;
  readonly sessionId?: string | undefined;
  readonly authInfo?: unknown;
  sendNotification(notification: never): Promise<void>;
}

/** What goes along with a request in the 2.x packages. */
export interface McpContext {
  readonly sessionId?: string | undefined;
  readonly http?: { readonly authInfo?: unknown } | undefined;
  readonly mcpReq: {
    readonly id: string | number;
    readonly signal: AbortSignal;
    /** What the revision of July 2026 sends with each request. */
    readonly envelope?: Readonly<Record<string, unknown>> | undefined;
    readonly inputResponses?: Record<string, unknown> | undefined;
    notify(notification: never): Promise<void>;
  };
}

/** A low-level `Server` of the 1.x line: `new McpServer(…).server` is one. */
export interface McpServer1 {
  /** Answers what has no handler of its own. */
  fallbackRequestHandler?: unknown;
  assertCanSetRequestHandler(method: never): void;
  registerCapabilities(capabilities: { tools: { listChanged: true } }): void;
  sendToolListChanged(): Promise<void>;
  getClientCapabilities(): { elicitation?: unknown } | undefined;
  elicitInput(params: never, options?: never): Promise<unknown>;
}

/** A low-level `Server` of the 2.x packages. */
export interface McpServer2 {
  setRequestHandler(method: never, handler: never): void;
  assertCanSetRequestHandler(method: never): void;
  registerCapabilities(capabilities: { tools: { listChanged: true } }): void;
  sendToolListChanged(): Promise<void>;
  getClientCapabilities(): { elicitation?: unknown } | undefined;
  projectCallToolResult(result: never, outputSchema: never): unknown;
}

/** Whether a server is one of the 2.x packages. */
export function isServer2(server: McpServer1 | McpServer2): server is McpServer2 {
  return 'projectCallToolResult' in server;
}
