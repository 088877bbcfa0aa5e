// SPDX-License-Identifier: Apache-2.0

// Clients on the protocol's official TypeScript SDK. A script is told in one JSON
// argument where the installed packages lie and how to reach the server, and
// prints what it saw as JSON.

import { createRequire } from "node:module";

export const task = JSON.parse(process.argv[2]);
const require = createRequire(task.modules + "/");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
export const types = require("@modelcontextprotocol/sdk/types.js");

function transport(token) {
  if (task.command) {
    return new StdioClientTransport({ ...task.command, stderr: "inherit" });
  }
  return new StreamableHTTPClientTransport(new URL(task.url), {
    requestInit: { headers: token ? { Authorization: `Bearer ${token}` } : {} },
  });
}

// connect prepares a client before it connects.
export async function connect(token, prepare = () => {}) {
  const client = new Client({ name: "witness", version: "1" }, { capabilities: { elicitation: {} } });
  prepare(client);
  await client.connect(transport(token));
  return client;
}

// refused is what came of something that must not succeed.
export async function refused(attempt) {
  try {
    return { result: await attempt };
  } catch (error) {
    return { code: error.code, message: String(error.message) };
  }
}
