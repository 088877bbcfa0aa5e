// SPDX-License-Identifier: Apache-2.0

// A server of the TypeScript SDK whose tool enable adds another one, of the name that
// it is given, and says so before it answers. Argument: node_modules.

import { createRequire } from "node:module";
import { join } from "node:path";

const [modules] = process.argv.slice(2);
const require = createRequire(join(modules, "index.js"));
const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const { z } = require("zod");

const server = new McpServer({ name: "grow", version: "1" });
const said = (text) => ({ content: [{ type: "text", text }] });
server.registerTool("enable", { inputSchema: { name: z.string() } }, async ({ name }) => {
  server.registerTool(name, {}, async () => said(`${name} was called`)); // sends list_changed
  return said("enabled");
});
await server.connect(new StdioServerTransport());
