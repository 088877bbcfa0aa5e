// SPDX-License-Identifier: Apache-2.0

// Lists the tools, and makes the calls of the task, each with a token of its own.

import { connect, task } from "./sdk.mjs";

const clients = new Map();
const saw = { tools: [], results: [] };
for (const { token, name, arguments: args } of task.calls) {
  if (!clients.has(token)) clients.set(token, await connect(token));
  const client = clients.get(token);
  saw.tools = (await client.listTools()).tools.map((tool) => tool.name);
  saw.results.push(await client.callTool({ name, arguments: args }));
}
for (const client of clients.values()) await client.close();
console.log(JSON.stringify(saw));
