// SPDX-License-Identifier: Apache-2.0

// A server of the TypeScript SDK whose tool orders what the person chooses: it
// answers with its question (SEP-2322), and orders when it is called with the
// answer. What it does stands in the ledger. Arguments: node_modules, the ledger.

import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, ledger] = process.argv.slice(2);
const sdk = (file) => import(pathToFileURL(join(modules, "@modelcontextprotocol/server/dist", file)).href);
const { McpServer, inputRequired } = await sdk("index.mjs");
const { serveStdio } = await sdk("stdio.mjs");

const requestedSchema = { type: "object", properties: { size: { type: "integer" } }, required: ["size"] };

serveStdio(() => {
  const server = new McpServer({ name: "form", version: "1" });
  server.registerTool("order", { description: "Orders one." }, async (ctx) => {
    const key = ctx.mcpReq._meta?.["io.github.consort-go/idempotency-key"];
    const answer = ctx.mcpReq.inputResponses?.choice;
    if (!answer) {
      appendFileSync(ledger, `asked ${key}\n`);
      const choice = inputRequired.elicit({ mode: "form", message: "Which size?", requestedSchema });
      return inputRequired({ inputRequests: { choice }, requestState: "of an order" });
    }
    appendFileSync(ledger, `ordered ${key}\n`);
    return { content: [{ type: "text", text: `${answer.action} ${answer.content?.size ?? "nothing"}` }] };
  });
  return server;
});
