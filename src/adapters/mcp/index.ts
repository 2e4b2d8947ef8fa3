export {
  type ConnectedTools,
  type ConnectToolsOptions,
  connectTools,
  type McpClient,
} from './connect-tools.ts';
export { toolDefinition } from './definition.ts';
export type { McpTransport, Message } from './peer.ts';
export type { McpCallResult, McpContent, McpServer1, McpServer2, McpTool } from './protocol.ts';
export { type Proxy, type ProxyOptions, proxy } from './proxy.ts';
export { callToolResult } from './result.ts';
export { type McpCaller, type ServeToolsOptions, serveTools } from './serve-tools.ts';
export type { KnownTraits, ListedTool } from './server-tools.ts';
