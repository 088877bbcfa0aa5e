// SPDX-License-Identifier: Apache-2.0

// Clients on the protocol's official TypeScript SDKs: the first, which speaks
// 2025-11-25, and the second, which speaks 2026-07-28. A script is told in one
// JSON argument where the installed packages lie, which of the two to take, and
// how to reach the server; it prints what it saw as JSON.

import { createRequire } from "node:module";

export const task = JSON.parse(process.argv[2]);
const require = createRequire(task.modules + "/");
const me = { name: "client", version: "1" };
const capabilities = { elicitation: { form: {} } };

function reach({ StreamableHTTPClientTransport }, { StdioClientTransport }, token) {
  if (task.command) {
    return new StdioClientTransport({ ...task.command, stderr: "inherit" });
  }
  return new StreamableHTTPClientTransport(new URL(task.url), {
    requestInit: { headers: token ? { Authorization: `Bearer ${token}` } : {} },
  });
}

// first is a client of 2025-11-25. Of what it hears it tells the listener.
async function first(token, listener) {
  const types = require("@modelcontextprotocol/sdk/types.js");
  const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
  const client = new Client(me, { capabilities });
  client.setRequestHandler(types.ElicitRequestSchema, listener.asked);
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, listener.toolsChanged);
  client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, listener.updated);
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, listener.logged);
  await client.connect(reach(
    require("@modelcontextprotocol/sdk/client/streamableHttp.js"), require("@modelcontextprotocol/sdk/client/stdio.js"), token));
  client.call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
  client.watch = async (uri) => {
    await client.setLoggingLevel("info");
    await client.subscribeResource({ uri });
  };
  return client;
}

// second is a client of 2026-07-28, where the log is asked for with each request,
// and news on a stream.
async function second(token, listener) {
  const sdk = require("@modelcontextprotocol/client");
  const client = new sdk.Client(me, { capabilities, versionNegotiation: { mode: { pin: "2026-07-28" } } });
  client.setRequestHandler("elicitation/create", listener.asked);
  client.setNotificationHandler("notifications/tools/list_changed", listener.toolsChanged);
  client.setNotificationHandler("notifications/resources/updated", listener.updated);
  client.setNotificationHandler("notifications/message", listener.logged);
  await client.connect(reach(sdk, require("@modelcontextprotocol/client/stdio"), token));
  const _meta = { "io.modelcontextprotocol/logLevel": "info" };
  client.call = (name, args, options) => client.callTool({ name, arguments: args, _meta }, options);
  client.watch = (uri) => client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
  return client;
}

export function connect(token, listener = { asked() {}, toolsChanged() {}, updated() {}, logged() {} }) {
  return task.protocol === "2026-07-28" ? second(token, listener) : first(token, listener);
}

// refused is what came of something that must not succeed.
export async function refused(attempt) {
  try {
    return { result: await attempt };
  } catch (error) {
    return { code: error.code, message: String(error.message) };
  }
}
