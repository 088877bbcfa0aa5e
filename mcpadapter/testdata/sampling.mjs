// SPDX-License-Identifier: Apache-2.0

// A server of the TypeScript SDK. Its tool relay sends the request to a model that it
// is given and returns the answer, and its tool forced does so against the SDK, which
// asks no client for what that did not declare. Argument: node_modules.

import { createRequire } from "node:module";
import { join } from "node:path";

const [modules] = process.argv.slice(2);
const require = createRequire(join(modules, "index.js"));
const { Server } = require("@modelcontextprotocol/sdk/server/index.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const types = require("@modelcontextprotocol/sdk/types.js");

const server = new Server({ name: "relay", version: "1" }, { capabilities: { tools: {} } });
const inputSchema = { type: "object" };
server.setRequestHandler(types.ListToolsRequestSchema, async () => ({
  tools: [{ name: "relay", inputSchema }, { name: "forced", inputSchema }],
}));
server.setRequestHandler(types.CallToolRequestSchema, async ({ params }) => {
  const ask = params.name === "relay"
    ? () => server.createMessage(params.arguments)
    : () => server.request({ method: "sampling/createMessage", params: params.arguments }, types.CreateMessageResultWithToolsSchema);
  try {
    return { content: [{ type: "text", text: JSON.stringify(await ask()) }] };
  } catch (error) {
    return { isError: true, content: [{ type: "text", text: `${error.code}: ${error.message}` }] };
  }
});
await server.connect(new StdioServerTransport());
