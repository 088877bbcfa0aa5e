// SPDX-License-Identifier: Apache-2.0

// Does everything that a client of the shop can do, and prints what it saw.

import { once } from "node:events";
import { connect, refused, task } from "./sdk.mjs";

const saw = { logged: [], progress: [] };
const heard = new EventTarget();
const client = await connect(task.token, {
  asked: (request) => ({ action: "accept", content: { answer: `to ${request.params.message}` } }),
  toolsChanged: () => heard.dispatchEvent(new Event("tools")),
  updated: (news) => heard.dispatchEvent(new MessageEvent("updated", { data: news.params.uri })),
  logged: (line) => saw.logged.push(line.params),
});
const { call } = client;

saw.server = client.getServerVersion();
saw.tools = (await client.listTools()).tools;
saw.add = await call("shop__add", { a: 2, b: 3 });
saw.find = await call("shop__find", { id: "x1" });
saw.invalid = await call("shop__add", { a: "two" });
saw.forged = await call("shop__whoami", { user_id: "mallory" });
saw.whoami = await call("shop__whoami", {});
saw.unknown = await refused(call("shop__nothing", {}));
saw.asked = await call("shop__ask", {});

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

const watching = await client.watch("shop://opening-hours");
saw.steps = await call("shop__steps", {}, {
  onprogress: (report) => {
    if (saw.progress.push(report) === 3) call("shop__seen", {});
  },
});
const updated = once(heard, "updated");
await call("shop__touch", {});
saw.updated = (await updated)[0].data;
const changed = once(heard, "tools");
await call("shop__grow", {});
await changed;
saw.grown = (await client.listTools()).tools.map((tool) => tool.name);
await watching?.close();

const abort = new AbortController();
saw.canceled = await refused(call("shop__wait", {}, { signal: abort.signal, onprogress: () => abort.abort("enough") }));
saw.ended = await call("shop__ended", {}); // waits until the function has seen it

if (task.url) {
  saw.noToken = await refused(connect(undefined));
  saw.wrongToken = await refused(connect("wrong"));
  const other = await connect(task.otherToken);
  saw.other = await other.call("shop__whoami", {});
  await other.close();
}
await client.close();
console.log(JSON.stringify(saw));
