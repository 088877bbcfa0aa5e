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
  const result = { text: "", tools: [], results: [], ids: [] };
  await agent.runAgent(parameters, {
    onEvent: ({ event }) => { if (saw.events.at(-1) !== event.type) saw.events.push(event.type); },
    onTextMessageContentEvent: ({ event }) => { result.text += event.delta; },
    onToolCallEndEvent: ({ event, toolCallName }) => { result.tools.push(toolCallName); result.ids.push(event.toolCallId); },
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

agent.addMessage({ id: "m4", role: "user", content: "sum" });
const denied = await run();
await run({ resume: denied.outcome.interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved: false, reason: "too dear" } })) });

// A tool of the page: the run ends with its call, and the next one has the result.
const tools = [{ name: "paint", description: "Paints.", parameters: { type: "object", properties: { colour: { type: "string" } } } }];
agent.addMessage({ id: "m5", role: "user", content: "paint" });
const calling = await run({ tools });
agent.addMessage({ id: "r5", role: "tool", toolCallId: calling.ids.at(-1), content: "dry" });
await run({ tools });

const wrong = new HttpAgent({ url: task.url + "/agui", headers: { Authorization: "Bearer wrong" }, threadId: "thread-1" });
wrong.addMessage({ id: "m1", role: "user", content: "hello" });
saw.refused = await wrong.runAgent().then(() => "", (e) => e.message);
console.log(JSON.stringify(saw));
