// SPDX-License-Identifier: Apache-2.0

// Does everything that a client of the shop can do, and prints what it saw.

import { once } from "node:events";
import { connect, refused, task, types } from "./sdk.mjs";

const logged = [];
const saw = {};
const heard = new EventTarget();
const client = await connect(task.token, (client) => {
  client.setRequestHandler(types.ElicitRequestSchema, (request) => ({
    action: "accept",
    content: { answer: `to ${request.params.message}` },
  }));
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => heard.dispatchEvent(new Event("tools")));
  client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, (n) =>
    heard.dispatchEvent(new MessageEvent("updated", { data: n.params.uri })));
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, (n) => logged.push(n.params));
});
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
  saw.other = await other.callTool({ name: "shop__whoami", arguments: {} });
  await other.close();
}
await client.close();
console.log(JSON.stringify(saw));
