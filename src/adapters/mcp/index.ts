export {
  type ConnectedTools,
  type ConnectToolsOptions,
  connectTools,
  type McpClient,
} from './connect-tools.ts';
export type { McpTransport, Message } from './peer.ts';
export type { McpServer1, McpServer2 } from './protocol.ts';
export { type Proxy, type ProxyOptions, proxy } from './proxy.ts';
export { type McpCaller, type ServeToolsOptions, serveTools } from './serve-tools.ts';
export type { KnownTraits, ListedTool } from './server-tools.ts';
