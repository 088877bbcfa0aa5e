// SPDX-License-Identifier: Apache-2.0

// A client on the protocol's official TypeScript SDK. It is told in one JSON
// argument where the installed packages lie and how to reach the server, does
// what the tests want to know of, and prints what it saw as JSON.

import { createRequire } from "node:module";
import { once } from "node:events";

const task = JSON.parse(process.argv[2]);
const require = createRequire(task.modules + "/");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const types = require("@modelcontextprotocol/sdk/types.js");

function transport(token) {
  if (task.command) {
    return new StdioClientTransport({ ...task.command, stderr: "inherit" });
  }
  return new StreamableHTTPClientTransport(new URL(task.url), {
    requestInit: { headers: token ? { Authorization: `Bearer ${token}` } : {} },
  });
}

async function connect(token) {
  const client = new Client({ name: "witness", version: "1" }, { capabilities: { elicitation: {} } });
  const heard = new EventTarget();
  client.setRequestHandler(types.ElicitRequestSchema, (request) => ({
    action: "accept",
    content: { answer: `to ${request.params.message}` },
  }));
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => heard.dispatchEvent(new Event("tools")));
  client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, (n) =>
    heard.dispatchEvent(new MessageEvent("updated", { data: n.params.uri })));
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, (n) => logged.push(n.params));
  await client.connect(transport(token));
  return { client, heard };
}

// refused is what came of something that must not succeed.
async function refused(attempt) {
  try {
    return { result: await attempt };
  } catch (error) {
    return { code: error.code, message: String(error.message) };
  }
}

const logged = [];
const saw = {};
const { client, heard } = await connect(task.token);
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);

saw.server = client.getServerVersion();
saw.capabilities = client.getServerCapabilities();
saw.tools = (await client.listTools()).tools;
saw.add = await call("shop__add", { a: 2, b: 3 });
saw.find = await call("shop__find", { id: "x1" });
saw.invalid = await call("shop__add", { a: "two" });
saw.forged = await call("shop__whoami", { user_id: "mallory" });
saw.whoami = await call("shop__whoami", {});
saw.unknown = await refused(call("shop__nothing", {}));
saw.asked = await call("shop__ask", {});

await client.setLoggingLevel("info");
saw.progress = [];
saw.steps = await call("shop__steps", {}, {
  onprogress: (p) => {
    if (saw.progress.push(p) === 3) call("shop__seen", {});
  },
});
saw.logged = logged;

saw.resources = (await client.listResources()).resources;
saw.templates = (await client.listResourceTemplates()).resourceTemplates;
saw.read = await client.readResource({ uri: "shop://opening-hours" });
saw.readTemplate = await client.readResource({ uri: "shop://goods/tea" });
saw.noResource = await refused(client.readResource({ uri: "shop://nothing" }));
saw.prompts = (await client.listPrompts()).prompts;
saw.prompt = await client.getPrompt({ name: "shop__sell", arguments: { goods: "tea" } });
saw.completion = await client.complete({
  ref: { type: "ref/prompt", name: "shop__sell" }, argument: { name: "goods", value: "c" },
});

await client.subscribeResource({ uri: "shop://opening-hours" });
const updated = once(heard, "updated");
await call("shop__touch", {});
saw.updated = (await updated)[0].data;

const changed = once(heard, "tools");
await call("shop__grow", {});
await changed;
saw.grown = (await client.listTools()).tools.map((tool) => tool.name);

const abort = new AbortController();
saw.canceled = await refused(call("shop__wait", {}, { signal: abort.signal, onprogress: () => abort.abort("enough") }));
saw.ended = await call("shop__ended", {}); // waits until the function has seen it

if (task.url) {
  saw.noToken = await refused(connect(undefined));
  saw.wrongToken = await refused(connect("wrong"));
  const other = await connect(task.otherToken);
  saw.other = await other.client.callTool({ name: "shop__whoami", arguments: {} });
  await other.client.close();
}
await client.close();
console.log(JSON.stringify(saw));
