// SPDX-License-Identifier: Apache-2.0

// AG-UI's own client runs a thread of consort serve. It checks each event.

import { createRequire } from "node:module";

const task = JSON.parse(process.argv[2]);
const require = createRequire(task.modules + "/");
const { HttpAgent } = require("@ag-ui/client");
const headers = { Authorization: `Bearer ${task.token}` };
const agent = new HttpAgent({ url: task.url + "/agui", headers, threadId: "thread-1", initialState: { mine: true } });
const saw = { events: [], runs: [] };

async function run(parameters) {
  const result = { text: "", tools: [], results: [] };
  await agent.runAgent(parameters, {
    onEvent: ({ event }) => { if (saw.events.at(-1) !== event.type) saw.events.push(event.type); },
    onTextMessageContentEvent: ({ event }) => { result.text += event.delta; },
    onToolCallEndEvent: ({ toolCallName }) => { result.tools.push(toolCallName); },
    onToolCallResultEvent: ({ event }) => { result.results.push(event.content); },
    onRunFinishedEvent: ({ event }) => { result.outcome = event.outcome; },
    onRunErrorEvent: ({ event }) => { result.error = event.message; },
  });
  result.state = agent.state;
  result.messages = agent.messages.map((m) => m.role);
  saw.runs.push(result);
  return result;
}

agent.addMessage({ id: "m1", role: "user", content: "echo: to AG-UI" });
await run();
agent.addMessage({ id: "m2", role: "user", content: "hello again" });
await run();
agent.addMessage({ id: "m3", role: "user", content: "sum" });
const waiting = await run();
const interrupts = waiting.outcome.interrupts;
saw.interrupt = interrupts[0];
await run({ resume: interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved: true } })) });

const wrong = new HttpAgent({ url: task.url + "/agui", headers: { Authorization: "Bearer wrong" }, threadId: "thread-1" });
wrong.addMessage({ id: "m1", role: "user", content: "hello" });
saw.refused = await wrong.runAgent().then(() => "", (e) => e.message);
console.log(JSON.stringify(saw));
