// SPDX-License-Identifier: Apache-2.0

// A client on the official SDK that logs in at the authorization server that its MCP server
// names, and whose user answers questions. It prints what it saw as JSON.

import { createRequire } from "node:module";

const task = JSON.parse(process.argv[2]);
const require = createRequire(task.modules + "/");
const types = require("@modelcontextprotocol/sdk/types.js");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const callback = "http://127.0.0.1:1/callback";
const saw = { questions: [], results: [] };
let information, tokens, verifier, visited;
const authProvider = {
  redirectUrl: callback,
  clientMetadata: {
    client_name: "client", redirect_uris: [callback], grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"], token_endpoint_auth_method: "none",
  },
  clientInformation: () => information,
  saveClientInformation: (given) => { information = given; },
  tokens: () => tokens,
  saveTokens: (given) => { tokens = given; },
  codeVerifier: () => verifier,
  saveCodeVerifier: (given) => { verifier = given; },
  redirectToAuthorization: (url) => { visited = url; },
};

async function connect() {
  const client = new Client({ name: "client", version: "1" }, { capabilities: { elicitation: { form: {} } } });
  client.setRequestHandler(types.ElicitRequestSchema, (request) => {
    saw.questions.push(request.params.message);
    return { action: "accept", content: { decision: task.decisions.shift() } };
  });
  const transport = new StreamableHTTPClientTransport(new URL(task.url), { authProvider });
  try {
    await client.connect(transport);
  } catch (err) {
    return { transport, err };
  }
  return { client };
}

const first = await connect();
saw.first = first.err?.constructor.name ?? "";
if (!visited) throw first.err;
const page = await fetch(visited, { redirect: "manual" }); // a browser whose user agrees
const code = new URL(page.headers.get("location")).searchParams.get("code");
await first.transport.finishAuth(code);
const { client, err } = await connect();
if (err) throw err;
saw.tools = (await client.listTools()).tools.map((tool) => tool.name);
for (const { name, arguments: args } of task.calls) {
  try {
    saw.results.push(await client.callTool({ name, arguments: args }));
  } catch (err) {
    saw.results.push({ isError: true, content: [{ type: "text", text: err.message }] });
  }
}
await client.close();
console.log(JSON.stringify(saw));
